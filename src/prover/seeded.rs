//! INSECURE parameters that a GPU makes from a seed: files, and proofs with those that it keeps for itself, to test and
//! to measure circuits that are too large for the CPU to make them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::attempts::NO_MEMORY;
use super::lanes::Lane;
use super::parameters::generation_bytes;
use super::partitions::{assemble_verified, while_made, Coming};
use super::{ProveRequest, Prover, SealProof};
use crate::backend::cuda::card::devices;
use crate::backend::cuda::proof::host_memory;
use crate::backend::cuda::seeded::{generate, SeededGpu};
use crate::backend::{Load, Witnesses};
use crate::error::{Error, Result};
use crate::groth16::{Counts, PreparedVerifyingKey, ProofParts, PROOF_BYTES};
use crate::panics;
use crate::pipeline::{return_freed_memory, Control, Stage, Want, Wish};
use crate::porep::SectorSize;
use crate::r1cs::{Constraints, Templates};
use crate::DeviceName;

/// A GPU that holds parameters made from a seed. Anyone who knows the seed can forge proofs for them.
#[doc(hidden)]
pub struct InsecureGpu {
    size: SectorSize,
    r1cs: Arc<Templates>,
    gpu: SeededGpu,
    verifying_key: PreparedVerifyingKey,
    lane: Arc<Lane>,
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
            let gpu = self.on_thread(|| SeededGpu::open(&device, &*r1cs, seed, self.device_memory, control))?;
            let verifying_key = PreparedVerifyingKey::new(gpu.vk());
            log::warn!("the {size} parameters on {device} are INSECURE: anyone can forge proofs for them");
            let lane = self.lanes.adopt(device, gpu.backend());
            Ok(InsecureGpu { size, r1cs, gpu, verifying_key, lane })
        });
        return_freed_memory();
        made
    }

    /// The sums of every witness, when it is the turn of the call that began at `since`.
    fn sums_on(
        &self,
        lane: &Arc<Lane>,
        gpu: &SeededGpu,
        r1cs: &dyn Constraints,
        witnesses: Witnesses<'_>,
        since: Instant,
        control: &Control,
    ) -> Result<Vec<ProofParts>> {
        let _in_work = lane.work_on(witnesses.len());
        let control = control.clone().on_device(gpu.name());
        let parts = self.lanes.with(lane, since, &control, |_, control| gpu.prove(r1cs, witnesses, control));
        self.note_kept(std::slice::from_ref(lane));
        parts
    }

    /// As [`Prover::prove`], with a GPU's own parameters in place of those that the request names. After a release they are
    /// made again, which takes far longer than to read them from a file.
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
            // By whoever makes the parameters again, one at a time.
            uses: vec![(format!("the making of {} parameters", on.size).into(), generation_bytes(on.size))],
            places: vec![(on.lane.key().clone(), host_memory(&load))],
            want: Want::Spread(1),
        };
        let grant = control.stage(Stage::Queue, None, || self.enter(wish, control))?;
        let make = |control: &Control, coming: &Coming| coming.make(&c1, &*on.r1cs, control);
        let prove = |coming: &Coming| {
            let witnesses = coming.witnesses();
            // Before the device is taken.
            witnesses.get(0, control)?;
            let parts = self.sums_on(&on.lane, &on.gpu, &*on.r1cs, witnesses, since, control)?;
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

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::backend::cuda::backend::CudaGpus;
    use crate::backend::cuda::gpu::emulated::census;
    use crate::backend::cuda::testing;
    use crate::prover::testing::{within, Small, SMALL};
    use crate::Config;

    #[test]
    fn release_in_the_middle_leaves_nothing_on_the_device_and_the_sums_are_made() {
        within(120, || {
            let Some(_machine) = testing::machine() else { return };
            let mut prover = Prover::with_accelerators(Config::default(), Arc::new(CudaGpus)).unwrap();
            prover.lanes.timing.pause = Duration::from_secs(2);
            let (r1cs, device) = (&SMALL.fixture.r1cs, devices().unwrap().remove(0));
            let gpu = SeededGpu::open(&device, r1cs, 1, None, &Control::new()).unwrap();
            let lane = prover.lanes.adopt(device, gpu.backend());
            let witnesses = [r1cs.assign(Small::circuit(0), &Control::new()).unwrap()];
            let sums =
                |control: &Control| prover.sums_on(&lane, &gpu, r1cs, witnesses[..].into(), Instant::now(), control);
            let expected = sums(&Control::new()).unwrap();
            let (sender, reached) = mpsc::channel();
            let control = Control::new().with_progress(move |event| {
                // Once: after that nobody listens.
                if event.stage == Stage::SumH && event.elapsed.is_none() && sender.send(()).is_ok() {
                    thread::sleep(Duration::from_millis(5));
                }
            });
            thread::scope(|scope| {
                let call = scope.spawn(|| sums(&control));
                reached.recv_timeout(Duration::from_secs(20)).unwrap();
                drop(reached);
                let status = &prover.status().devices[0];
                assert!((status.partitions, status.bytes > 0) == (1, true), "{status:?}");
                prover.release();
                assert_eq!(census(), Default::default());
                assert_eq!(call.join().unwrap().unwrap(), expected);
            });
            assert_eq!(prover.status().devices[0].partitions, 0);
        });
    }
}
