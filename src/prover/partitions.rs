//! From a checked C1 output or a witness to proof bytes that verify, on one device.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use blstrs::Scalar;
use rayon::prelude::*;

use super::lanes::{Lane, Lanes};
use super::threads::beside;
use super::{FixedRandomness, OpenParameters, ProveRequest};
use crate::backend::{Job, Witnesses};
use crate::error::{Error, Result};
use crate::groth16::{assemble, Parameters, PreparedVerifyingKey, ProofParts, Randomness, VerifyingKey, PROOF_BYTES};
use crate::pipeline::{CancelToken, Control, Halt, Promise, Stage};
use crate::porep::{self, CheckedC1};
use crate::r1cs::{Constraints, PartitionWitness};

/// How often a proof that does not verify is made on a device before the device is given up.
const ATTEMPTS: usize = 2;

/// What all proofs of one call share.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub r1cs: &'a dyn Constraints,
    pub parameters: &'a Parameters,
    pub verifying_key: &'a PreparedVerifyingKey,
    pub randomness: Option<&'a FixedRandomness>,
    pub control: &'a Control,
}

impl<'a> Work<'a> {
    pub fn of(
        request: &'a ProveRequest<'_>,
        r1cs: &'a dyn Constraints,
        parameters: &'a OpenParameters,
        control: &'a Control,
    ) -> Self {
        Work {
            r1cs,
            parameters: &parameters.file,
            verifying_key: &parameters.verifying_key,
            randomness: request.fixed_randomness.as_ref(),
            control,
        }
    }
}

/// The partitions of a proof that a device makes.
pub(super) struct Share<'a> {
    pub lane: &'a Arc<Lane>,
    /// Ascending.
    pub partitions: &'a [usize],
    /// Those of all partitions.
    pub witnesses: &'a Coming,
    /// Where the bytes of each go.
    pub done: &'a [OnceLock<[u8; PROOF_BYTES]>],
    /// No other device is left.
    pub last: bool,
}

/// The witnesses of a proof with their public inputs, as the verifier takes them: made one after the other, while earlier
/// ones are proved.
pub(super) struct Coming {
    witnesses: Vec<Promise<Arc<PartitionWitness>>>,
    inputs: Vec<OnceLock<Vec<Scalar>>>,
}

impl Coming {
    fn new(count: usize) -> Self {
        Coming {
            witnesses: (0..count).map(|_| Promise::new()).collect(),
            inputs: (0..count).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Takes a partition's witness; refuses one for other public inputs than the verifier's.
    pub fn put(&self, partition: usize, witness: Arc<PartitionWitness>, inputs: Vec<Scalar>) -> Result<()> {
        if witness.inputs[1..] != inputs[..] {
            let detail = format!("partition {partition}: its public inputs are not those of the verifier");
            return Err(Error::Unsatisfied { detail });
        }
        self.inputs[partition].set(inputs).map_err(|_| Error::internal("a witness was made twice"))?;
        self.witnesses[partition].keep(witness)
    }

    /// Makes those of every partition of a C1 output.
    pub fn make(&self, c1: &CheckedC1, r1cs: &dyn Constraints, control: &Control) -> Result<()> {
        (0..self.witnesses.len()).try_for_each(|partition| {
            let (witness, inputs) = control.stage(Stage::Witness, Some(partition), || {
                let witness = control.compute(|| porep::witness(c1, partition, r1cs.full_positions(), control))?;
                Ok((witness, porep::public_inputs(c1, partition)?))
            })?;
            self.put(partition, Arc::new(witness), inputs)
        })
    }

    pub fn witnesses(&self) -> Witnesses<'_> {
        Witnesses::coming(&self.witnesses)
    }

    /// The public inputs of a partition whose witness is there.
    pub fn inputs(&self, partition: usize) -> Result<&[Scalar]> {
        let inputs = self.inputs[partition].get().ok_or_else(|| Error::internal("a proof without public inputs"))?;
        Ok(inputs)
    }
}

/// Makes witnesses on a thread of its own, and does something with those that are there meanwhile.
pub(super) fn while_made<T>(
    count: usize,
    control: &Control,
    make: impl FnOnce(&Control, &Coming) -> Result<()> + Send,
    work: impl FnOnce(&Coming) -> Result<T>,
) -> Result<T> {
    /// Nobody waits for what is not made any more.
    struct Maker<'a>(&'a Coming);

    impl Drop for Maker<'_> {
        fn drop(&mut self) {
            self.0.witnesses.iter().for_each(Promise::give_up);
        }
    }

    let (coming, unwanted) = (Coming::new(count), CancelToken::new());
    let making = control.clone().with_halt(unwanted.clone(), Halt::Elsewhere);
    let make = || {
        let _maker = Maker(&coming);
        let made = make(&making, &coming);
        // Only if it is the reason, and not the consequence, of an end.
        Ok(made.err().filter(|_| !unwanted.is_cancelled()))
    };
    let (why, outcome) = beside(make, || work(&coming).inspect_err(|_| unwanted.cancel()))?;
    match why? {
        Some(error) if outcome.is_err() => Err(error),
        _ => outcome,
    }
}

/// Makes a device's share, and verifies the bytes of each proof while the device may work for others.
pub(super) fn prove_share(lanes: &Lanes, share: &Share<'_>, work: &Work<'_>, began: Instant) -> Result<()> {
    for stretch in share.partitions.chunk_by(|before, after| before + 1 == *after) {
        let (first, end) = (stretch[0], stretch[0] + stretch.len());
        let prover = Prover { lanes, share, work, began };
        let parts = prover.sums(share.witnesses.witnesses().slice(first..end), first)?;
        // All at once first: each takes milliseconds on one core.
        let assembled = work.control.compute(|| {
            let one = |(partition, parts): (&usize, &ProofParts)| prover.assemble(*partition, parts);
            stretch.par_iter().zip(&parts).map(one).collect::<Result<Vec<_>>>()
        })?;
        for (partition, assembled) in stretch.iter().zip(assembled) {
            let bytes = assembled.map_or_else(|| prover.mend(*partition), Ok)?;
            share.done[*partition].set(bytes).map_err(|_| Error::internal("a partition was made twice"))?;
        }
    }
    Ok(())
}

/// Makes proofs on one lane.
struct Prover<'a> {
    lanes: &'a Lanes,
    share: &'a Share<'a>,
    work: &'a Work<'a>,
    began: Instant,
}

impl Prover<'_> {
    fn sums(&self, witnesses: Witnesses<'_>, first: usize) -> Result<Vec<ProofParts>> {
        let Work { r1cs, parameters, control, .. } = *self.work;
        if !witnesses.is_empty() {
            // Before the device is taken.
            witnesses.get(0, control)?;
        }
        let parts = self.lanes.with(self.share.lane, self.began, control, |backend, control| {
            backend.prove(&Job { r1cs, parameters, witnesses, first_partition: first, control })
        })?;
        match parts.len() == witnesses.len() {
            true => Ok(parts),
            false => Err(Error::internal(format!("{} witnesses gave {} results", witnesses.len(), parts.len()))),
        }
    }

    /// The bytes of one proof, if they verify.
    fn assemble(&self, partition: usize, parts: &ProofParts) -> Result<Option<[u8; PROOF_BYTES]>> {
        let Work { parameters, verifying_key, randomness, control, .. } = *self.work;
        let keys = (parameters.vk(), verifying_key);
        let inputs = self.share.witnesses.inputs(partition)?;
        let assemble = || assemble_verified(keys, randomness, parts, partition, inputs);
        control.stage(Stage::Verify, Some(partition), assemble)
    }

    /// What becomes of a proof that does not verify: it is diagnosed, and made again with fresh randomness if neither the
    /// witness nor the parameters are to blame.
    fn mend(&self, partition: usize) -> Result<[u8; PROOF_BYTES]> {
        let Work { r1cs, parameters, control, .. } = *self.work;
        let witness = self.share.witnesses.witnesses().slice(partition..partition + 1);
        for attempt in 1.. {
            if let Some(row) = {
                let witness = witness.get(0, control)?;
                control.compute(|| r1cs.first_unsatisfied(witness, control))?
            } {
                let detail = format!("partition {partition}: constraint {row} does not hold");
                return Err(Error::Unsatisfied { detail });
            }
            control.compute(|| parameters.check_samples(control))?;
            let device = self.share.lane.name();
            control.observe(|observer| observer.verify_failed(&device));
            if attempt == ATTEMPTS {
                // Takes minutes: another device tells sooner whether the parameters are to blame.
                if self.share.last && parameters.is_official() {
                    control.compute(|| parameters.check_digests(None, control, &mut |_, _| ()))?;
                }
                let diagnosis = format!("{ATTEMPTS} attempts failed although the witness satisfies the circuit and samples of the parameters look right; check every byte of them with `cuporep params check --digest`, or make insecure ones again");
                return Err(Error::SelfCheck { partition, device, diagnosis });
            }
            log::warn!("{} partition={partition} does not verify; made again", control.subject());
            // What the device keeps may be what is wrong.
            self.share.lane.forget();
            let again = self.sums(witness, partition)?;
            let parts = again.first().ok_or_else(|| Error::internal("one witness gave no result"))?;
            if let Some(bytes) = control.compute(|| self.assemble(partition, parts))? {
                return Ok(bytes);
            }
        }
        unreachable!("the loop ends by returning")
    }
}

/// The bytes of a proof with randomness of its own, if they verify.
pub(super) fn assemble_verified(
    (vk, prepared): (&VerifyingKey, &PreparedVerifyingKey),
    fixed: Option<&FixedRandomness>,
    parts: &ProofParts,
    partition: usize,
    inputs: &[Scalar],
) -> Result<Option<[u8; PROOF_BYTES]>> {
    let randomness = match fixed {
        Some(fixed) => Randomness::fixed(fixed.r, fixed.s, partition),
        None => Randomness::fresh()?,
    };
    let bytes = assemble(vk, parts, &randomness)?.to_bytes();
    // Sums over damaged bases need not even be points of the group.
    match prepared.verify(&bytes, inputs) {
        Ok(true) => Ok(Some(bytes)),
        Ok(false) | Err(Error::ProofForm { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
