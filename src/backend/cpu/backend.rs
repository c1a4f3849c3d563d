//! A whole proof on the processor: the order of the stages, and the bases that are kept between proofs.

use std::sync::Arc;
use std::time::Instant;

use blstrs::{G2Affine, Scalar};
use parking_lot::Mutex;

use super::bases::Bases;
use super::lane::Lanes;
use super::msm::{self, msm_g1};
use super::ntt::Ntt;
use super::sums::Query;
use crate::backend::{Backend, Job, Load};
use crate::error::Result;
use crate::groth16::{quotient, Parameters, ProofParts};
use crate::memory::zero_scalars;
use crate::pipeline::{Control, Stage};
use crate::r1cs::{Constraints, Matrix, PartitionWitness};

/// The processor. Keeps the bases of the parameters that it used last, decoded, in memory.
#[derive(Default)]
pub struct CpuBackend {
    lanes: Lanes,
    bases: Mutex<Option<Arc<Bases>>>,
}

impl CpuBackend {
    /// With a choice of arithmetic.
    pub fn new(lanes: Lanes) -> Self {
        CpuBackend { lanes, bases: Mutex::default() }
    }

    fn bases(&self, parameters: &Parameters, control: &Control) -> Result<Arc<Bases>> {
        let kept = self.bases.lock().clone();
        if let Some(kept) = kept.filter(|kept| kept.belong_to(parameters)) {
            return Ok(kept);
        }
        // Freed before the next ones are read: two sets need not fit into memory.
        self.bases.lock().take();
        let begin = Instant::now();
        let read = Arc::new(Bases::read(parameters, control)?);
        control.observe(|observer| observer.parameters_loaded(begin.elapsed()));
        *self.bases.lock() = Some(read.clone());
        Ok(read)
    }

    fn prove_one(
        &self,
        job: &Job<'_>,
        bases: &Bases,
        transform: &Ntt,
        witness: &PartitionWitness,
        partition: usize,
    ) -> Result<ProofParts> {
        let Job { r1cs, control, .. } = *job;
        let partition = Some(partition);
        let evaluate = |matrix| -> Result<Vec<Scalar>> {
            let mut values = zero_scalars(1 << r1cs.log_domain(), "a vector of evaluations")?;
            r1cs.evaluate_rows(matrix, witness, &mut values[..r1cs.num_rows()], control)?;
            Ok(values)
        };
        let (a, b) = control.stage(Stage::Evaluate, partition, || Ok((evaluate(Matrix::A)?, evaluate(Matrix::B)?)))?;
        let scalars = control.stage(Stage::Transform, partition, || quotient(transform, a, b, control))?;
        let h = control.stage(Stage::SumH, partition, || msm_g1(&bases.h, &scalars, self.lanes, control))?;
        drop(scalars);
        let query = Query::of_l(r1cs, witness);
        let l = control.stage(Stage::SumL, partition, || query.sum(&bases.l, self.lanes, control))?;
        let query = Query::of_a(r1cs, witness);
        let a = control.stage(Stage::SumA, partition, || query.sum(&bases.a, self.lanes, control))?;
        let query = Query::of_b(r1cs, witness);
        let b_g1 = control.stage(Stage::SumB1, partition, || query.sum(&bases.b_g1, self.lanes, control))?;
        let b_g2 = control.stage(Stage::SumB2, partition, || query.sum(&bases.b_g2, self.lanes, control))?;
        Ok(ProofParts { h, l, a, b_g1, b_g2 })
    }
}

/// Bytes of one evaluation or coefficient.
const SCALAR: u64 = 32;

impl Backend for CpuBackend {
    fn name(&self) -> &str {
        "cpu"
    }

    fn host_memory(&self, load: &Load) -> u64 {
        let counts = &load.counts;
        let domain = 1u64 << counts.log_domain;
        let sums = |points| msm::scratch_bytes(points, self.lanes, load.threads);
        // The transform's scratch all the time. Three vectors while the quotient is computed; its coefficients and what
        // their sum needs; then the other sums, whose full-width scalars and bases are gathered before.
        let full = load.full + counts.inputs;
        let gathered = full as u64 * (2 * SCALAR + 8 + size_of::<G2Affine>() as u64) + counts.aux as u64 / 8;
        let most = (3 * SCALAR * domain).max(SCALAR * domain + sums(domain as usize).0).max(gathered + sums(full).1);
        Bases::bytes_of(counts) + Ntt::scratch_bytes(counts.log_domain, self.lanes) + most
    }

    fn kept_memory(&self) -> u64 {
        self.bases.lock().as_ref().map_or(0, |held| held.bytes())
    }

    fn load(&self, _: &dyn Constraints, parameters: &Parameters, _: usize, control: &Control) -> Result<()> {
        let load = || control.stage(Stage::Parameters, None, || self.bases(parameters, control));
        control.compute(load).map(drop)
    }

    fn prove(&self, job: &Job<'_>) -> Result<Vec<ProofParts>> {
        let control = job.control;
        let bases = || control.stage(Stage::Parameters, None, || self.bases(job.parameters, control));
        let bases = control.compute(bases)?;
        let transform = Ntt::new(job.r1cs.log_domain(), self.lanes)?;
        let one = |index| {
            let witness = job.witnesses.get(index, control)?;
            control.compute(|| self.prove_one(job, &bases, &transform, witness, job.first_partition + index))
        };
        (0..job.witnesses.len()).map(one).collect()
    }

    fn release(&self) {
        self.bases.lock().take();
    }
}
