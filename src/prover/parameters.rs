//! The parameters of the sector sizes: opening and keeping, checking, making insecure ones for tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{OpenParameters, ParameterReport, Prover};
use crate::error::Result;
use crate::groth16::setup::{self, Target};
use crate::groth16::{Counts, Digests, Expected, Known, Parameters, PreparedVerifyingKey};
use crate::panics;
use crate::pipeline::{Control, Stage};
use crate::porep::SectorSize;
use crate::r1cs::{ShapeStore, Templates};

/// What the parameters of a sector size must be.
pub(super) fn expected(size: SectorSize) -> Expected {
    let digests = |size: SectorSize| {
        let set = size.parameters();
        Digests { params: set.params_digest.into(), vk: set.vk_digest.into() }
    };
    let set = size.parameters();
    Expected {
        stem: set.stem.into(),
        counts: Counts {
            inputs: set.counts.inputs,
            aux: set.counts.aux,
            log_domain: set.counts.domain_log,
            a_aux: set.counts.a_aux_density,
            // ONE alone.
            b_input: 1,
            b_aux: set.counts.b_aux_density,
        },
        official: Some(digests(size)),
        known: SectorSize::ALL
            .iter()
            .map(|&size| Known {
                label: size.name().into(),
                size: size.parameters().params_bytes,
                digests: digests(size),
            })
            .collect(),
    }
}

/// Bytes of memory that making parameters takes, at most: the circuit's templates, the rows' values at tau, and the
/// polynomials of all variables there.
pub(super) fn generation_bytes(size: SectorSize) -> u64 {
    let counts = size.parameters().counts;
    ((256 << 20) + 3 * 32 * (counts.aux + counts.inputs) + (32 << counts.domain_log)) as u64
}

impl Prover {
    /// Parameters of a size in a directory: those kept from an earlier call if the files are still the same,
    /// else newly opened and checked.
    pub(super) fn open(&self, size: SectorSize, directory: &Path, control: &Control) -> Result<Arc<OpenParameters>> {
        let kept = self.parameters.lock().get(&size).cloned();
        if let Some(kept) = kept.filter(|kept| kept.directory == directory) {
            // A file that cannot be looked at is reported by the opening below.
            if kept.file.unchanged().unwrap_or(false) {
                return Ok(kept);
            }
        }
        let file = Parameters::open(directory, &expected(size), control)?;
        let verifying_key = PreparedVerifyingKey::new(file.vk());
        let opened = Arc::new(OpenParameters { directory: directory.to_path_buf(), file, verifying_key });
        self.parameters.lock().insert(size, opened.clone());
        Ok(opened)
    }

    /// Opens and checks the parameters of a size; with `digest` also the digests of the whole files, which
    /// for official parameters must be the published ones.
    pub fn check_parameters(
        &self,
        size: SectorSize,
        directory: &Path,
        digest: bool,
        control: &Control,
    ) -> Result<ParameterReport> {
        let (_call, control) = self.begin(control)?;
        let control = &control;
        self.run(|| {
            let opened = self.open(size, directory, control)?;
            let file = &opened.file;
            let digest = match digest {
                false => None,
                true => {
                    let store = ShapeStore::for_parameters(directory, self.cache_dir.as_deref());
                    let cache = store.directories().first();
                    let digests = match file.is_official() {
                        true => file.check_digests(cache.map(PathBuf::as_path), control, &mut |_, _| ())?,
                        false => file.digests(cache.map(PathBuf::as_path), control, &mut |_, _| ())?,
                    };
                    Some(digests.params)
                }
            };
            Ok(ParameterReport {
                path: file.path().to_path_buf(),
                official: file.is_official(),
                insecure: file.is_insecure(),
                digest,
            })
        })
    }

    /// Whether a directory has a parameter file of this size; it may still be a wrong one.
    pub fn has_parameters(&self, size: SectorSize, directory: &Path) -> bool {
        directory.join(size.parameters().params_name()).symlink_metadata().is_ok()
    }

    /// Makes parameters for tests from the secrets of a seed, under the official names, marked as insecure.
    /// Anyone who knows the seed can forge proofs for them. Returns the path of the `.params` file.
    ///
    /// # Errors
    /// [`Error::ParamsRefused`](crate::Error::ParamsRefused) for the default parameter directory and for existing files;
    /// [`Error::Memory`](crate::Error::Memory) for a size whose constraints do not fit; [`Error::Io`](crate::Error::Io).
    pub fn generate_insecure_parameters(
        &self,
        size: SectorSize,
        seed: u64,
        directory: &Path,
        control: &Control,
    ) -> Result<PathBuf> {
        self.generate_insecurely(size, directory, control, |r1cs, target, control| {
            setup::generate(r1cs, seed, target, control, &mut |_, _| ())
        })
    }

    /// Lets `generate` make parameters of a size in a directory.
    pub(super) fn generate_insecurely(
        &self,
        size: SectorSize,
        directory: &Path,
        control: &Control,
        generate: impl FnOnce(&Templates, &Target<'_>, &Control) -> Result<PathBuf> + Send,
    ) -> Result<PathBuf> {
        let meta = format!("{{\"sector_size\":{}}}", size.bytes());
        let target = Target { directory, stem: size.parameters().stem, meta: &meta };
        target.check()?;
        let (_call, control) = self.begin(control)?;
        let control = &control;
        let (_grant, r1cs) = panics::guard(|| {
            let what = format!("making {size} parameters");
            self.require_bytes(&what, generation_bytes(size))?;
            let r1cs = self.shape(size, directory, control)?;
            Ok((self.enter_with(&what, generation_bytes(size), control)?, r1cs))
        })?;
        self.run(|| control.stage(Stage::Parameters, None, || generate(&r1cs, &target, control)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::groth16::setup::Multipliers;
    use crate::prover::Config;

    #[cfg(feature = "emulator")]
    #[test]
    #[ignore = "for a real GPU; an emulated one takes hours"]
    fn files_that_a_gpu_makes_for_2_kib_have_the_known_digest() {
        let (prover, control) = (Prover::new(Config::default()).unwrap(), Control::new());
        let (base, size) = (tempfile::tempdir().unwrap(), SectorSize::KiB2);
        let gpu = crate::backend::cuda::testing::gpu();
        let device = gpu.properties().ordinal.into();
        prover.generate_insecure_parameters_on(&device, size, 1, base.path(), &control).unwrap();
        let report = prover.check_parameters(size, base.path(), true, &control).unwrap();
        // As of the file that bellperson's generator writes.
        assert_eq!(report.digest.unwrap(), "b08f6c2611e71868c24fc59bb8ee94ab");
    }

    /// For the files in the parameter directory, of every size that it has.
    #[cfg(feature = "emulator")]
    #[test]
    #[ignore = "measurement; needs parameter files"]
    fn measure_loading_on_a_gpu() {
        let prover = Prover::new(Config::default()).unwrap();
        let directory = prover.parameter_dir();
        for size in SectorSize::ALL.into_iter().filter(|&size| prover.has_parameters(size, &directory)) {
            println!("{size}, {}", directory.display());
            let opened = prover.open(size, &directory, &Control::new()).unwrap();
            prover.pool.install(|| crate::backend::cuda::feeder::tests::measure(&opened.file));
        }
    }

    #[test]
    #[ignore = "takes 18 GiB of memory and minutes"]
    fn the_verifying_key_of_32_gib_follows_from_its_seed() {
        let (prover, control) = (Prover::new(Config::default()).unwrap(), Control::new());
        let directory = prover.parameter_dir();
        let begin = Instant::now();
        let templates = prover.shape(SectorSize::GiB32, &directory, &control).unwrap();
        println!("templates: {:.1?}", begin.elapsed());
        let begin = Instant::now();
        let multipliers = prover.run(|| Multipliers::new(&*templates, 1, &control)).unwrap();
        println!("polynomials at tau: {:.1?}", begin.elapsed());
        let key = multipliers.verifying_key(&control).unwrap();
        let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/StackedDrg32GiBV1_1-fab-001/vk.bin");
        assert!(key.to_bytes() == std::fs::read(fixture).unwrap());
    }
}
