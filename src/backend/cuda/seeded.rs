//! INSECURE parameters that a GPU makes from a seed, to hold them or for a file: to test and to measure circuits that are
//! too large for others to make them. Anyone who knows the seed can forge proofs for them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::backend::CudaBackend;
use super::bases::Bases;
use super::card::Card;
use super::gpu::Gpu;
use super::proof::Loaded;
use super::setup;
use crate::backend::{Backend, Device, Witnesses};
use crate::error::Result;
use crate::groth16::setup::{generate_with, Multipliers, Target};
use crate::groth16::{Counts, ProofParts, VerifyingKey};
use crate::pipeline::{Control, Stage};
use crate::r1cs::Constraints;

/// As [`generate`](crate::groth16::setup::generate), on a device: the same files.
pub(crate) fn generate(
    device: &Device,
    r1cs: &dyn Constraints,
    seed: u64,
    target: &Target<'_>,
    control: &Control,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PathBuf> {
    let card: Card<()> = Card::new(device);
    // A device that cannot be used is known before anything long is done.
    card.with(|_, ()| Ok(()))?;
    generate_with(r1cs, seed, target, control, progress, |sections, output, advance| {
        card.with(|gpu, ()| setup::write(gpu, sections, output, advance))
    })
}

/// One GPU with the parameters of one circuit and seed. They are made again where the device's memory was given back.
pub(crate) struct SeededGpu {
    backend: Arc<CudaBackend>,
    seed: u64,
    vk: VerifyingKey,
}

impl SeededGpu {
    /// Opens a device and makes the parameters there. `memory` bounds the bytes that proofs may use.
    pub fn open(
        device: &Device,
        r1cs: &dyn Constraints,
        seed: u64,
        memory: Option<u64>,
        control: &Control,
    ) -> Result<Self> {
        // A device that cannot be used is known before anything long is done.
        let backend = Arc::new(CudaBackend::open(device, memory)?);
        control.stage(Stage::Parameters, None, || {
            let multipliers = control.compute(|| multipliers(r1cs, seed, control))?;
            let vk = control.compute(|| multipliers.verifying_key(control))?;
            backend.install(|gpu| make(gpu, r1cs, multipliers, control))?;
            Ok(SeededGpu { backend, seed, vk })
        })
    }

    /// The device as any other, which proves with parameters of files.
    pub fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    /// The verifying key of the parameters.
    pub fn vk(&self) -> &VerifyingKey {
        &self.vk
    }

    /// How reports call the device.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Bytes of the device's memory in use.
    pub fn device_memory(&self) -> u64 {
        self.backend.device_memory()
    }

    /// The sums of every witness of the circuit, in order.
    pub fn prove(
        &self,
        r1cs: &dyn Constraints,
        witnesses: Witnesses<'_>,
        control: &Control,
    ) -> Result<Vec<ProofParts>> {
        self.backend.prove_made(&Loaded { r1cs, witnesses, first_partition: 0, control }, |gpu| {
            control.stage(Stage::Parameters, None, || {
                let multipliers = control.compute(|| multipliers(r1cs, self.seed, control))?;
                make(gpu, r1cs, multipliers, control)
            })
        })
    }
}

fn multipliers(r1cs: &dyn Constraints, seed: u64, control: &Control) -> Result<Multipliers> {
    let begin = Instant::now();
    let multipliers = Multipliers::new(r1cs, seed, control)?;
    log::info!("the polynomials at tau took {:.1?}", begin.elapsed());
    Ok(multipliers)
}

fn make(gpu: &Gpu, r1cs: &dyn Constraints, multipliers: Multipliers, control: &Control) -> Result<Bases> {
    let begin = Instant::now();
    let (counts, sections) = (Counts::of(r1cs), multipliers.into_sections());
    let bases = control.compute(|| setup::make(gpu, &counts, sections, control))?;
    log::info!("their multiples took {:.1?} on {}", begin.elapsed(), gpu.label());
    Ok(bases)
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::backend::cuda::card::devices;
    use crate::backend::cuda::gpu::emulated::census;
    use crate::backend::cuda::testing;
    use crate::groth16::testing::{Chain, Fixture};

    #[test]
    fn parameters_are_made_again_where_the_memory_was_given_back() {
        let Some(_machine) = testing::machine() else { return };
        let (fixture, control) = (Fixture::new(Chain::small(), 1), Control::new());
        let seeded = SeededGpu::open(&devices().unwrap()[0], &fixture.r1cs, 1, None, &control).unwrap();
        let witnesses = [fixture.r1cs.assign(Chain::small(), &control).unwrap()];
        let prove = || {
            let control = control.fresh_times();
            let parts = seeded.prove(&fixture.r1cs, witnesses[..].into(), &control).unwrap();
            let made = control.times().iter().filter(|event| event.stage == Stage::Parameters).count();
            (parts, made)
        };
        let (first, made) = prove();
        assert_eq!(made, 0, "they are there");
        let (held, uses) = (seeded.device_memory(), seeded.backend().device_memory_uses());
        assert!(uses.tables > 0 && uses.bases > 0 && uses.proofs > 0, "{uses:?}");
        assert!((uses.tables + uses.bases + uses.proofs).abs_diff(held) * 20 <= held, "{uses:?} of {held} bytes");
        seeded.backend().release();
        assert_eq!((census(), seeded.backend().device_memory_uses()), Default::default());
        assert_eq!(prove(), (first, 1));
        assert_eq!(seeded.backend().device_memory_uses(), uses);
    }
}
