//! INSECURE parameters that a GPU makes from a seed: files, and proofs with those that it keeps for itself, to test and
//! to measure circuits that are too large for the CPU to make them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::attempts::NO_MEMORY;
use super::parameters::generation_bytes;
use super::partitions::{assemble_verified, while_made, Coming};
use super::{ProveRequest, Prover, SealProof};
use crate::backend::cuda::card::devices;
use crate::backend::cuda::proof::host_memory;
use crate::backend::cuda::seeded::{generate, SeededGpu};
use crate::backend::Load;
use crate::error::{Error, Result};
use crate::groth16::{Counts, PreparedVerifyingKey, PROOF_BYTES};
use crate::panics;
use crate::pipeline::{return_freed_memory, Control, Queue, Stage, Want, Wish};
use crate::porep::SectorSize;
use crate::r1cs::Templates;
use crate::DeviceName;

/// A GPU that holds parameters made from a seed. Anyone who knows the seed can forge proofs for them.
#[doc(hidden)]
pub struct InsecureGpu {
    size: SectorSize,
    r1cs: Arc<Templates>,
    gpu: SeededGpu,
    verifying_key: PreparedVerifyingKey,
    /// Whoever computes there.
    turn: Queue,
}

impl InsecureGpu {
    /// The verifying key's bytes, as its file has them.
    pub fn vk_bytes(&self) -> Vec<u8> {
        self.gpu.vk().to_bytes()
    }
}

impl Prover {
    /// As [`Prover::generate_insecure_parameters`], on a device, where it takes seconds instead of minutes: the same files.
    ///
    /// # Errors
    /// As there; [`Error::Device`] for a device that cannot be used.
    pub fn generate_insecure_parameters_on(
        &self,
        device: &DeviceName,
        size: SectorSize,
        seed: u64,
        directory: &Path,
        control: &Control,
    ) -> Result<PathBuf> {
        let device = device.find(&devices()?)?.clone();
        self.generate_insecurely(size, directory, control, |r1cs, target, control| {
            generate(&device, r1cs, seed, target, control, &mut |_, _| ())
        })
    }

    /// Makes INSECURE parameters of a size on a device, and keeps them there.
    ///
    /// # Errors
    /// [`Error::Device`] for a device that cannot be used, [`Error::Memory`] if they do not fit there.
    #[doc(hidden)]
    pub fn insecure_gpu(
        &self,
        size: SectorSize,
        seed: u64,
        device: &DeviceName,
        control: &Control,
    ) -> Result<InsecureGpu> {
        let (_call, control) = self.begin(control)?;
        let control = &control;
        let made = panics::guard(|| {
            let what = format!("making {size} parameters");
            self.require_bytes(&what, generation_bytes(size))?;
            let device = device.find(&devices()?)?.clone();
            let r1cs = self.shape(size, &self.parameter_dir(), control)?;
            let _grant = self.enter_with(&what, generation_bytes(size), control)?;
            let open = || control.compute(|| SeededGpu::open(&device, &*r1cs, seed, self.device_memory, control));
            let gpu = self.on_thread(open)?;
            let verifying_key = PreparedVerifyingKey::new(gpu.vk());
            log::warn!("the {size} parameters on {device} are INSECURE: anyone can forge proofs for them");
            Ok(InsecureGpu { size, r1cs, gpu, verifying_key, turn: Queue::default() })
        });
        return_freed_memory();
        made
    }

    /// As [`Prover::prove`], with a GPU's own parameters in place of those that the request names.
    #[doc(hidden)]
    pub fn prove_insecurely(&self, on: &InsecureGpu, request: &ProveRequest<'_>) -> Result<SealProof> {
        let (_call, control) = self.begin(&request.control)?;
        let control = &control;
        let since = Instant::now();
        let c1 = self.check_c1(request.c1, request.sector, request.miner, control)?;
        let registered_proof = c1.registered_proof();
        if registered_proof.size != on.size {
            let detail = format!("the sector has {}, the parameters are for {}", registered_proof.size, on.size);
            return Err(Error::Argument { name: "size", detail });
        }
        let load = Load {
            counts: Counts::of(&*on.r1cs),
            full: on.r1cs.full_positions().len(),
            witnesses: registered_proof.partitions(),
            threads: self.pool.current_num_threads(),
        };
        let wish = Wish {
            what: format!("a {} proof on {}", on.size, on.gpu.name()),
            advice: NO_MEMORY,
            since,
            own: c1.c1().bytes() + load.witness_bytes(),
            uses: Vec::new(),
            places: vec![(on.gpu.name().into(), host_memory(&load))],
            want: Want::Spread(1),
        };
        let grant = control.stage(Stage::Queue, None, || self.enter(wish, control))?;
        let make = |control: &Control, coming: &Coming| coming.make(&c1, &*on.r1cs, control);
        let prove = |coming: &Coming| {
            let witnesses = coming.witnesses();
            // Before the device is taken.
            witnesses.get(0, control)?;
            let turn = on.turn.enter(control)?;
            let parts = on.gpu.prove(&*on.r1cs, witnesses, control)?;
            drop(turn);
            if parts.len() != witnesses.len() {
                return Err(Error::internal(format!("{} witnesses gave {} results", witnesses.len(), parts.len())));
            }
            let mut bytes = Vec::with_capacity(parts.len() * PROOF_BYTES);
            for (partition, parts) in parts.iter().enumerate() {
                let inputs = coming.inputs(partition)?;
                let keys = (on.gpu.vk(), &on.verifying_key);
                let randomness = request.fixed_randomness.as_ref();
                let assemble = || control.compute(|| assemble_verified(keys, randomness, parts, partition, inputs));
                let one = control.stage(Stage::Verify, Some(partition), assemble)?;
                bytes.extend(one.ok_or_else(|| Error::SelfCheck {
                    partition,
                    device: on.gpu.name().into(),
                    diagnosis: "it was made with parameters of a seed, and is not made again".into(),
                })?);
            }
            Ok(SealProof {
                bytes,
                registered_proof,
                device: on.gpu.name().into(),
                fallbacks: Vec::new(),
                insecure_parameters: true,
                memory: grant.bytes(),
                device_memory: on.gpu.device_memory(),
                stages: control.times(),
            })
        };
        let proof = self.on_thread(|| while_made(load.witnesses, control, make, prove));
        return_freed_memory();
        proof
    }
}
