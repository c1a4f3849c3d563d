//! From a checked C1 output or a witness to proof bytes that verify, on one backend.

use blstrs::Scalar;
use rayon::prelude::*;

use super::attempts::Opened;
use super::{FixedRandomness, OpenParameters, ProveRequest};
use crate::backend::Job;
use crate::error::{Error, Result};
use crate::groth16::{assemble, Parameters, PreparedVerifyingKey, ProofParts, Randomness, VerifyingKey, PROOF_BYTES};
use crate::pipeline::{Control, Stage};
use crate::porep::{self, CheckedC1};
use crate::r1cs::{Constraints, PartitionWitness};

/// How often a proof that does not verify is made on a device before the device is given up.
const ATTEMPTS: usize = 2;

/// What all proofs of one call share.
pub(super) struct Work<'a> {
    pub r1cs: &'a dyn Constraints,
    pub parameters: &'a Parameters,
    pub verifying_key: &'a PreparedVerifyingKey,
    pub randomness: Option<&'a FixedRandomness>,
    pub control: &'a Control,
}

impl<'a> Work<'a> {
    pub fn of(request: &'a ProveRequest<'_>, r1cs: &'a dyn Constraints, parameters: &'a OpenParameters) -> Self {
        Work {
            r1cs,
            parameters: &parameters.file,
            verifying_key: &parameters.verifying_key,
            randomness: request.fixed_randomness.as_ref(),
            control: &request.control,
        }
    }
}

/// Witnesses with their public inputs, as the verifier takes them.
pub(super) struct Witnesses {
    pub witnesses: Vec<PartitionWitness>,
    pub inputs: Vec<Vec<Scalar>>,
}

impl Witnesses {
    /// Those of every partition of a C1 output.
    pub fn of(c1: &CheckedC1, r1cs: &dyn Constraints, control: &Control) -> Result<Self> {
        let made: Vec<(PartitionWitness, Vec<Scalar>)> = (0..c1.registered_proof().partitions())
            .into_par_iter()
            .map(|partition| {
                control.stage(Stage::Witness, Some(partition), || {
                    let witness = porep::witness(c1, partition, r1cs.full_positions(), control)?;
                    let inputs = porep::public_inputs(c1, partition)?;
                    Ok((witness, inputs))
                })
            })
            .collect::<Result<_>>()?;
        let (witnesses, inputs) = made.into_iter().unzip();
        Witnesses { witnesses, inputs }.check()
    }

    /// Refuses witnesses for other public inputs than the verifier's.
    pub fn check(self) -> Result<Self> {
        for (partition, (witness, inputs)) in self.witnesses.iter().zip(&self.inputs).enumerate() {
            if witness.inputs[1..] != inputs[..] {
                let detail = format!("partition {partition}: its public inputs are not those of the verifier");
                return Err(Error::Unsatisfied { detail });
            }
        }
        Ok(self)
    }
}

/// Proves witnesses of one circuit on an opened device and verifies each proof's bytes.
pub(super) fn prove_on(opened: &Opened, work: &Work<'_>, witnesses: &Witnesses) -> Result<Vec<u8>> {
    let Witnesses { witnesses, inputs } = witnesses;
    let job =
        Job { r1cs: work.r1cs, parameters: work.parameters, witnesses, first_partition: 0, control: work.control };
    let parts = opened.backend.prove(&job)?;
    if parts.len() != witnesses.len() {
        return Err(Error::internal(format!("{} witnesses gave {} results", witnesses.len(), parts.len())));
    }
    let mut bytes = Vec::with_capacity(parts.len() * PROOF_BYTES);
    for (partition, parts) in parts.into_iter().enumerate() {
        let one = Job { witnesses: &witnesses[partition..=partition], first_partition: partition, ..job };
        bytes.extend(finish(opened, work, &one, parts, &inputs[partition])?);
    }
    Ok(bytes)
}

/// Assembles one proof and verifies its bytes. One that does not verify is diagnosed, and made again with fresh
/// randomness if neither the witness nor the parameters are to blame.
fn finish(
    opened: &Opened,
    work: &Work<'_>,
    job: &Job<'_>,
    parts: ProofParts,
    inputs: &[Scalar],
) -> Result<[u8; PROOF_BYTES]> {
    let (backend, partition) = (&*opened.backend, job.first_partition);
    let keys = (work.parameters.vk(), work.verifying_key);
    let mut parts = parts;
    for attempt in 1.. {
        let bytes = work.control.stage(Stage::Verify, Some(partition), || {
            assemble_verified(keys, work.randomness, &parts, partition, inputs)
        })?;
        if let Some(bytes) = bytes {
            return Ok(bytes);
        }
        if let Some(row) = work.r1cs.first_unsatisfied(&job.witnesses[0], work.control)? {
            let detail = format!("partition {partition}: constraint {row} does not hold");
            return Err(Error::Unsatisfied { detail });
        }
        work.parameters.check_samples(work.control)?;
        let device = backend.name().to_string();
        if attempt == ATTEMPTS {
            // Takes minutes: another device tells sooner whether the parameters are to blame.
            if opened.last && work.parameters.is_official() {
                work.parameters.check_digests(None, work.control, &mut |_, _| ())?;
            }
            let diagnosis = format!("{ATTEMPTS} attempts failed although the witness satisfies the circuit and samples of the parameters look right; check every byte of them with `cuporep params check --digest`, or make insecure ones again");
            return Err(Error::SelfCheck { partition, device, diagnosis });
        }
        log::warn!("partition {partition}: a proof made on {device} does not verify; trying again");
        // What the backend keeps may be what is wrong.
        backend.release();
        let again = backend.prove(job)?;
        parts = again.into_iter().next().ok_or_else(|| Error::internal("one witness gave no result"))?;
    }
    unreachable!("the loop ends by returning")
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
