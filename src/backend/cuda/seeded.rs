//! INSECURE parameters that a GPU makes from a seed, to hold them or for a file: to test and to measure circuits that are
//! too large for others to make them. Anyone who knows the seed can forge proofs for them.

use std::path::PathBuf;

use super::card::Card;
use super::proof::{Loaded, Resident};
use super::setup;
use crate::backend::{Device, Witnesses};
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

/// One GPU with the parameters of one circuit and seed.
pub(crate) struct SeededGpu {
    card: Card<Resident>,
    vk: VerifyingKey,
    memory: Option<u64>,
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
        let card: Card<Resident> = Card::new(device);
        // A device that cannot be used is known before anything long is done.
        card.with(|_, _| Ok(()))?;
        control.stage(Stage::Parameters, None, || {
            let begin = std::time::Instant::now();
            let multipliers = Multipliers::new(r1cs, seed, control)?;
            let vk = multipliers.verifying_key(control)?;
            log::info!("the polynomials at tau took {:.1?}", begin.elapsed());
            let begin = std::time::Instant::now();
            let (counts, sections) = (Counts::of(r1cs), multipliers.into_sections());
            card.with(|gpu, resident| resident.install(|| setup::make(gpu, &counts, sections, control)))?;
            log::info!("their multiples took {:.1?} on {}", begin.elapsed(), card.name());
            Ok(SeededGpu { card, vk, memory })
        })
    }

    /// The verifying key of the parameters.
    pub fn vk(&self) -> &VerifyingKey {
        &self.vk
    }

    /// How reports call the device.
    pub fn name(&self) -> &str {
        self.card.name()
    }

    /// Bytes of the device's memory in use.
    pub fn device_memory(&self) -> u64 {
        self.card.memory()
    }

    /// The sums of every witness of the circuit, in order.
    pub fn prove(
        &self,
        r1cs: &dyn Constraints,
        witnesses: Witnesses<'_>,
        control: &Control,
    ) -> Result<Vec<ProofParts>> {
        let job = Loaded { r1cs, witnesses, first_partition: 0, control };
        self.card.with(|gpu, resident| gpu.traced(control.trace(), || resident.prove_loaded(gpu, &job, self.memory)))
    }
}
