//! Test parameters from a seed, byte for byte those that bellperson's generator makes from the same secrets.
//!
//! Their secrets are known, so anyone can forge proofs for them. They are for development networks and tests,
//! and every file set carries a marker that says so.

mod columns;
mod file;
mod fixed_base;
mod qap;
mod secrets;
mod target;

use std::path::PathBuf;

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;
use rayon::prelude::*;

use super::params::{Counts, G1Section, Section};
use super::points::FilePoint;
use super::VerifyingKey;
use crate::curve::AffinePoint;
use crate::error::{Error, Result};
use crate::pipeline::Control;
use crate::r1cs::Constraints;

use fixed_base::{FixedBase, Scratch};
use qap::Qap;
use secrets::Secrets;
use target::Staging;

pub(crate) use file::SectionFile;
pub(crate) use qap::Columns;
pub use target::Target;

/// Points that one task computes before it looks for a cancel: about ten milliseconds.
const TASK: usize = 3072;
/// Points between two progress reports.
const BATCH: usize = 32 * TASK;

/// Makes insecure test parameters for a circuit: `stem.params`, `stem.vk`, `stem.meta` and the marker
/// `stem.insecure`, which is a JSON object with the seed. Returns the path of the `.params` file.
///
/// The files get their names at the very end; until then, and on any failure, there is nothing but temporary
/// files, which are removed. `progress` gets the points written and their total. Runs on the current pool.
///
/// # Errors
/// [`Error::ParamsRefused`] for the default directory and if one of the files exists; [`Error::Argument`] for a
/// circuit with an unconstrained variable or too large for the format; [`Error::Io`]; cancel and deadline.
pub fn generate(
    r1cs: &dyn Constraints,
    seed: u64,
    target: &Target<'_>,
    control: &Control,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PathBuf> {
    generate_with(r1cs, seed, target, control, progress, make_on_cpu)
}

/// As [`generate`]; `make` makes the points.
pub(crate) fn generate_with(
    r1cs: &dyn Constraints,
    seed: u64,
    target: &Target<'_>,
    control: &Control,
    progress: &mut dyn FnMut(u64, u64),
    make: impl FnOnce(Sections, &Output<'_>, &mut dyn FnMut(usize)) -> Result<()>,
) -> Result<PathBuf> {
    let counts = Counts::of(r1cs);
    counts.file_size()?;
    let mut staging = Staging::new(target)?;
    let multipliers = Multipliers::new(r1cs, seed, control)?;

    let marker = serde_json::json!({
        "insecure": true,
        "warning": "The secrets of these parameters are known. Anyone can forge proofs. For tests only.",
        "seed": seed,
        "generator": concat!("cuporep ", env!("CARGO_PKG_VERSION")),
    });
    staging.fill_with("insecure", format!("{marker}\n").as_bytes())?;
    staging.fill_with("meta", target.meta.as_bytes())?;
    let vk = multipliers.verifying_key(control)?.to_bytes();
    staging.fill_with("vk", &vk)?;

    let total = Section::ALL.into_iter().map(|section| counts.points(section) as u64).sum();
    let mut done = 0;
    staging.fill("params", |file, path| {
        let file = SectionFile::begin(file, path, &counts, &vk)?;
        make(multipliers.into_sections(), &Output { counts, file, control }, &mut |points| {
            done += points as u64;
            progress(done, total);
        })
    })?;
    staging.publish()
}

/// Where points go that are made.
pub(crate) struct Output<'a> {
    pub counts: Counts,
    pub file: SectionFile<'a>,
    pub control: &'a Control,
}

fn make_on_cpu(sections: Sections, output: &Output<'_>, advance: &mut dyn FnMut(usize)) -> Result<()> {
    let count = |section| output.counts.len(section);
    let g1 = FixedBase::new(G1Affine::generator(), G1Section::ALL.into_iter().map(count).sum(), output.control)?;
    let g2 = FixedBase::new(G2Affine::generator(), count(G1Section::B), output.control)?;
    let Sections { h, l, a, b } = sections;
    let mut writer = SectionWriter { output, advance };
    writer.section(&g1, Section::G1(G1Section::H), |first, scalars| h.fill(first, scalars))?;
    writer.query(&g1, Section::G1(G1Section::L), &l)?;
    writer.query(&g1, Section::G1(G1Section::A), &a.into_query())?;
    let b = b.into_query();
    writer.query(&g1, Section::G1(G1Section::B), &b)?;
    writer.query(&g2, Section::B2, &b)
}

/// The numbers of which a seed's parameters are multiples of the generators.
pub(crate) struct Multipliers {
    qap: Qap,
    secrets: Secrets,
}

/// What [`Multipliers`] has for each section.
pub(crate) struct Sections {
    /// tau^k times the factor gives h.
    pub h: Powers,
    /// Those of l; none is zero.
    pub l: Vec<Scalar>,
    /// Of all variables; those that are not zero give a.
    pub a: Columns,
    /// Of all variables; those that are not zero give b.
    pub b: Columns,
}

impl Multipliers {
    /// # Errors
    /// [`Error::Argument`] for a circuit with an unconstrained variable; cancel and deadline.
    pub fn new(r1cs: &dyn Constraints, seed: u64, control: &Control) -> Result<Self> {
        let secrets = Secrets::from_seed(seed);
        Ok(Multipliers { qap: Qap::evaluate(r1cs, &secrets, control)?, secrets })
    }

    /// The verifying key.
    pub fn verifying_key(&self, control: &Control) -> Result<VerifyingKey> {
        let Secrets { alpha, beta, gamma, delta, .. } = self.secrets;
        let inputs = &self.qap.ext.inputs;
        let g1 = FixedBase::new(G1Affine::generator(), inputs.len() + 3, control)?;
        let g2 = FixedBase::new(G2Affine::generator(), 3, control)?;
        let [alpha_g1, beta_g1, delta_g1] = products(&g1, [alpha, beta, delta]);
        let [beta_g2, gamma_g2, delta_g2] = products(&g2, [beta, gamma, delta]);
        let mut ic = vec![G1Affine::INFINITY; inputs.len()];
        g1.multiply(inputs, &mut ic, &mut Scratch::new());
        Ok(VerifyingKey { alpha_g1, beta_g1, beta_g2, gamma_g2, delta_g1, delta_g2, ic })
    }

    /// The numbers for each section.
    pub fn into_sections(self) -> Sections {
        let Multipliers { qap, secrets } = self;
        let h = Powers { factor: qap.h_factor, base: secrets.tau };
        Sections { h, l: qap.ext.aux, a: qap.a, b: qap.b }
    }
}

fn products<P: AffinePoint>(base: &FixedBase<P>, scalars: [Scalar; 3]) -> [P; 3] {
    let mut out = [P::INFINITY; 3];
    base.multiply(&scalars, &mut out, &mut Scratch::new());
    out
}

/// factor * base^k.
pub(crate) struct Powers {
    pub factor: Scalar,
    pub base: Scalar,
}

impl Powers {
    /// `scalars[i]` becomes the power with exponent `first + i`.
    fn fill(&self, first: usize, scalars: &mut [Scalar]) {
        let mut power = self.factor * self.base.pow_vartime([first as u64]);
        for scalar in scalars {
            *scalar = power;
            power *= self.base;
        }
    }
}

struct SectionWriter<'a> {
    output: &'a Output<'a>,
    advance: &'a mut dyn FnMut(usize),
}

impl SectionWriter<'_> {
    /// A section of the multiples by `scalars`, whose number must be the circuit's.
    fn query<P: AffinePoint + FilePoint>(
        &mut self,
        base: &FixedBase<P>,
        section: Section,
        scalars: &[Scalar],
    ) -> Result<()> {
        let count = self.output.counts.points(section);
        if scalars.len() != count {
            // A polynomial that is not zero vanishes at tau: impossible but for a fault.
            return Err(Error::internal(format!("a query of {} points, expected {count}", scalars.len())));
        }
        self.section(base, section, |first, out| out.copy_from_slice(&scalars[first..first + out.len()]))
    }

    /// A section of multiples; `fill(first, scalars)` gives the scalars from `first` on.
    fn section<P: AffinePoint + FilePoint>(
        &mut self,
        base: &FixedBase<P>,
        section: Section,
        fill: impl Fn(usize, &mut [Scalar]) + Sync,
    ) -> Result<()> {
        let Output { counts, file, control } = self.output;
        let count = counts.points(section);
        for start in (0..count).step_by(BATCH) {
            let end = count.min(start + BATCH);
            let tasks: Vec<_> = (start..end).step_by(TASK).collect();
            tasks.into_par_iter().try_for_each_init(Scratch::new, |scratch, first| {
                control.check("making parameters")?;
                let length = TASK.min(end - first);
                let mut scalars = vec![Scalar::ZERO; length];
                fill(first, &mut scalars);
                let mut points = vec![P::INFINITY; length];
                base.multiply(&scalars, &mut points, scratch);
                let mut bytes = Vec::with_capacity(length * P::BYTES);
                points.iter().for_each(|point| point.encode_to(&mut bytes));
                file.write(section, first, &bytes)
            })?;
            (self.advance)(end - start);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bellperson::{Circuit, ConstraintSystem, SynthesisError};

    use super::*;
    use crate::groth16::testing::{Chain, Fixture, STEM};
    use crate::pipeline::CancelToken;
    use crate::r1cs::R1cs;

    fn generate_in(directory: &Path, circuit: impl Circuit<Scalar>, control: &Control) -> Result<PathBuf> {
        let r1cs = R1cs::record(circuit, &Control::new()).unwrap();
        let target = Target { directory, stem: STEM, meta: "{}" };
        generate(&r1cs, 1, &target, control, &mut |_, _| {})
    }

    fn is_empty(directory: &Path) -> bool {
        directory.read_dir().unwrap().next().is_none()
    }

    #[test]
    fn writes_four_files_with_seed_and_meta() {
        let fixture = Fixture::new(Chain::small(), 77);
        assert_eq!(fixture.directory.path().read_dir().unwrap().count(), 4);
        let marker = std::fs::read_to_string(fixture.path("insecure")).unwrap();
        let marker: serde_json::Value = serde_json::from_str(&marker).unwrap();
        assert_eq!((&marker["seed"], &marker["insecure"]), (&77.into(), &true.into()));
        assert_eq!(std::fs::read_to_string(fixture.path("meta")).unwrap(), "{\"sector_size\":0}");
    }

    #[test]
    fn progress_ends_at_the_number_of_points() {
        let base = tempfile::tempdir().unwrap();
        let r1cs = R1cs::record(Chain::small(), &Control::new()).unwrap();
        let target = Target { directory: base.path(), stem: STEM, meta: "{}" };
        let mut last = (0, 0);
        generate(&r1cs, 1, &target, &Control::new(), &mut |done, total| {
            assert!(done > last.0);
            last = (done, total);
        })
        .unwrap();
        let counts = Counts::of(&r1cs);
        let points: usize = G1Section::ALL.iter().map(|section| counts.len(*section)).sum();
        let points = (points + counts.len(G1Section::B)) as u64;
        assert_eq!(last, (points, points));
    }

    #[test]
    fn existing_parameters_are_kept() {
        let fixture = Fixture::new(Chain::small(), 1);
        let before = std::fs::read(fixture.path("params")).unwrap();
        let result = generate_in(fixture.directory.path(), Chain::small(), &Control::new());
        assert!(matches!(result, Err(Error::ParamsRefused { .. })));
        assert_eq!(std::fs::read(fixture.path("params")).unwrap(), before);
        assert_eq!(fixture.directory.path().read_dir().unwrap().count(), 4);
    }

    #[test]
    fn cancel_at_any_time_leaves_nothing_behind() {
        let base = tempfile::tempdir().unwrap();
        let r1cs = R1cs::record(Chain::small(), &Control::new()).unwrap();
        let target = Target { directory: base.path(), stem: STEM, meta: "{}" };
        for stop_at in 0..5 {
            let token = CancelToken::new();
            if stop_at == 0 {
                token.cancel();
            }
            let mut calls = 0;
            let result = generate(&r1cs, 1, &target, &Control::new().with_cancel(token.clone()), &mut |_, _| {
                calls += 1;
                if calls == stop_at {
                    token.cancel();
                }
            });
            assert!(matches!(result, Err(Error::Cancelled { .. })), "{result:?}");
            assert!(is_empty(base.path()));
        }
    }

    #[derive(Clone)]
    struct Unconstrained;

    impl Circuit<Scalar> for Unconstrained {
        fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
            Chain::small().synthesize(cs)?;
            cs.alloc(|| "loose", || Ok(Scalar::ONE)).map(drop)
        }
    }

    #[test]
    fn an_unconstrained_variable_is_an_error_that_names_it() {
        let base = tempfile::tempdir().unwrap();
        let result = generate_in(base.path(), Unconstrained, &Control::new());
        let Err(Error::Argument { detail, .. }) = result else { panic!("{result:?}") };
        assert_eq!(detail, "auxiliary variable 40 is in no constraint");
        assert!(is_empty(base.path()));
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_an_error_of_the_system() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("file");
        std::fs::write(&file, b"").unwrap();
        let result = generate_in(&file.join("below"), Chain::small(), &Control::new());
        assert!(matches!(result, Err(Error::Io { .. })), "{result:?}");
    }
}
