//! Test parameters through the public interface. Those of the real 2 KiB circuit take a minute and 1.1 GB of
//! disk; `cargo test --release --test parameters -- --ignored --nocapture` shows the figures.

use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use cuporep::groth16::params::{Counts, Expected, G1Section, Parameters};
use cuporep::groth16::setup::{generate, Target};
use cuporep::pipeline::Control;
use cuporep::r1cs::R1cs;
use filecoin_proofs::constants::{DefaultPieceHasher, SectorShape2KiB};
use filecoin_proofs::parameters::public_params;
use filecoin_proofs_api::RegisteredSealProof;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_porep::stacked::{StackedCircuit, StackedCompound, StackedDrg};

type Tree = SectorShape2KiB;
type Real = StackedCircuit<Tree, DefaultPieceHasher>;
type Compound = StackedCompound<Tree, DefaultPieceHasher>;

/// The most memory that this process has had resident, in MB, where the system tells.
fn peak_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kilobytes| kilobytes / 1000)
}

/// Seconds that the processors have worked for this process, where the system tells.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 14 and 15, counted behind the name, which may hold spaces; in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Runs `work` and prints what it took.
fn measured<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (begin, before) = (Instant::now(), processor_time());
    let value = work();
    let (wall, busy) = (begin.elapsed().as_secs_f64(), processor_time() - before);
    println!("{what}: {wall:.2} s, processor time {busy:.2} s, peak memory {:?} MB", peak_memory());
    value
}

#[test]
#[ignore = "long"]
fn parameters_of_the_real_circuit_have_the_known_key_and_size() {
    let control = Control::new();
    let config = RegisteredSealProof::StackedDrg2KiBV1_1.as_v1_config();
    let public = public_params::<Tree>(&config).expect("public parameters");
    let circuit = <Compound as CompoundProof<StackedDrg<Tree, DefaultPieceHasher>, Real>>::blank_circuit(&public);
    let r1cs = measured("record", || R1cs::record(circuit, &control).expect("recording"));

    let directory = tempfile::tempdir().expect("temporary directory");
    let target = Target { directory: directory.path(), stem: "test", meta: "{\"sector_size\":2048}" };
    let path = measured("generate", || generate(&r1cs, 1, &target, &control, &mut |_, _| {}).expect("parameters"));
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/StackedDrg2KiBV1_1-000/vk.bin");
    assert!(std::fs::read(path.with_extension("vk")).expect("key") == std::fs::read(known).expect("known key"));
    assert_eq!(path.metadata().expect("size").len(), 1_114_707_768);

    let counts = Counts::of(&r1cs);
    let expected = Expected { stem: "test".into(), counts, official: None, known: Vec::new() };
    let params = measured("open", || Parameters::open(directory.path(), &expected, &control).expect("opening"));
    for turn in ["first", "again"] {
        let points = measured(&format!("read all, {turn}"), || {
            let mut sections = [const { Vec::new() }; 4];
            for (section, points) in G1Section::ALL.into_iter().zip(&mut sections) {
                params.read_g1(section, 0..counts.len(section), points, &control).expect("reading");
            }
            let mut b_g2 = Vec::new();
            params.read_g2(0..counts.len(G1Section::B), &mut b_g2, &control).expect("reading");
            sections.iter().map(Vec::len).sum::<usize>() + b_g2.len()
        });
        assert_eq!(points, 4_194_303 + 2_685_673 + 2_674_948 + 2 * 685_522);
    }
    let digests = measured("digest", || params.digests(None, &control, &mut |_, _| {}).expect("digest"));
    assert_ne!(digests.params, digests.vk);
}

/// x is public, and a square.
struct Square;

impl Circuit<Scalar> for Square {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let x = cs.alloc_input(|| "x", || Ok(Scalar::from(9)))?;
        let root = cs.alloc(|| "root", || Ok(Scalar::from(3)))?;
        cs.enforce(|| "square", |lc| lc + root, |lc| lc + root, |lc| lc + x);
        Ok(())
    }
}

struct Collector(Mutex<Vec<(log::Level, String)>>);

impl log::Log for Collector {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        self.0.lock().expect("log").push((record.level(), record.args().to_string()));
    }

    fn flush(&self) {}
}

static LOG: Collector = Collector(Mutex::new(Vec::new()));

#[test]
fn every_opening_of_insecure_parameters_warns_with_their_path() {
    log::set_logger(&LOG).expect("the only logger");
    log::set_max_level(log::LevelFilter::Warn);
    let control = Control::new();
    let directory = tempfile::tempdir().expect("temporary directory");
    let r1cs = R1cs::record(Square, &control).expect("recording");
    let target = Target { directory: directory.path(), stem: "square", meta: "" };
    let path = generate(&r1cs, 1, &target, &control, &mut |_, _| {}).expect("parameters");
    let expected = Expected { stem: "square".into(), counts: Counts::of(&r1cs), official: None, known: Vec::new() };
    let open = || Parameters::open(directory.path(), &expected, &control).expect("opening");
    let warnings = || {
        let log = LOG.0.lock().expect("log");
        let path = path.to_str().expect("path");
        log.iter()
            .filter(|(level, text)| *level == log::Level::Warn && text.contains("INSECURE") && text.contains(path))
            .count()
    };
    for openings in 1..3 {
        assert!(open().is_insecure());
        assert_eq!(warnings(), openings);
    }
    std::fs::remove_file(directory.path().join("square.insecure")).expect("removal");
    assert!(!open().is_insecure());
    assert_eq!(warnings(), 2);
}
