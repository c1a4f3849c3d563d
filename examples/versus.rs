//! Proves one sector with this library and with filecoin-proofs' own prover (bellperson on the CPU), side
//! by side, and prints time and peak memory of both.
//!
//! ```text
//! cargo run --release --example versus -- PARAMS_DIR [CASE_DIR] [ROUNDS] [portable]
//! ```
//!
//! Every proof is made by a process of its own, alternately, so that all start equally cold and the peak
//! memory is that of one proof. The parameter directory must hold parameters for the case's sector size. With
//! `portable` a third proof is made by this library without the instructions that only some processors have.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use cuporep::backend::cpu::lane::Lanes;
use cuporep::backend::cpu::CpuBackend;
use cuporep::backend::{Backend, Job};
use cuporep::groth16::{assemble, Counts, Expected, Parameters, PreparedVerifyingKey, Randomness};
use cuporep::pipeline::Control;
use cuporep::porep::ids::prover_id;
use cuporep::porep::{check, public_inputs, templates, witness, C1Output};
use cuporep::r1cs::ShapeStore;
use cuporep::{Config, ProveRequest, Prover};

#[path = "../src/bin/cuporep/usage.rs"]
mod usage;

type Failure = Box<dyn std::error::Error>;

struct Case {
    c1: Vec<u8>,
    miner: u64,
    sector: u64,
}

fn read_case(directory: &Path) -> Result<Case, Failure> {
    let packed = std::fs::read(directory.join("c1.json.xz"))?;
    let mut c1 = Vec::new();
    lzma_rs::xz_decompress(&mut packed.as_slice(), &mut c1)?;
    let meta: serde_json::Value = serde_json::from_slice(&std::fs::read(directory.join("meta.json"))?)?;
    let number = |key: &str| meta[key].as_u64().ok_or(format!("meta.json has no number {key}"));
    Ok(Case { c1, miner: number("miner")?, sector: number("sector_id")? })
}

fn prove_here(case: &Case, params: &Path) -> Result<usize, Failure> {
    let proof = Prover::new(Config::default())?.prove(&ProveRequest {
        c1: &case.c1,
        sector: case.sector,
        miner: Some(case.miner),
        parameter_dir: Some(params.to_path_buf()),
        placement: Default::default(),
        fixed_randomness: None,
        control: Control::new(),
    })?;
    Ok(proof.bytes.len())
}

/// The same stage by stage, for the one partition of a small sector, on a backend that `Prover` would not choose.
fn prove_portably(case: &Case, params: &Path) -> Result<usize, Failure> {
    let control = Control::new();
    let c1 = check(C1Output::decode(&case.c1)?, case.sector, Some(case.miner), &control)?;
    let size = c1.registered_proof().size;
    let store = ShapeStore::for_parameters(params, None);
    let stem = size.parameters().stem;
    let r1cs = store.load_or_record(&format!("{stem} versus"), &control, || templates(size, &control))?;
    let expected = Expected { stem: stem.into(), counts: Counts::of(&r1cs), official: None, known: Vec::new() };
    let parameters = Parameters::open(params, &expected, &control)?;
    let witnesses = [witness(&c1, 0, r1cs.full_positions(), &control)?];
    let job = Job {
        r1cs: &r1cs,
        parameters: &parameters,
        witnesses: (&witnesses[..]).into(),
        first_partition: 0,
        control: &control,
    };
    let parts = CpuBackend::new(Lanes::Portable).prove(&job)?;
    let bytes = assemble(parameters.vk(), &parts[0], &Randomness::fresh()?)?.to_bytes();
    PreparedVerifyingKey::new(parameters.vk()).verify_all(&bytes, &[public_inputs(&c1, 0)?])?;
    Ok(bytes.len())
}

fn prove_there(case: &Case) -> Result<usize, Failure> {
    use filecoin_proofs_api::{seal, SectorId};
    let c1: seal::SealCommitPhase1Output = serde_json::from_slice(&case.c1)?;
    Ok(seal::seal_commit_phase2(c1, prover_id(case.miner), SectorId::from(case.sector))?.proof.len())
}

fn child(which: &str, params: &Path, directory: &Path) -> Result<(), Failure> {
    let case = read_case(directory)?;
    let begin = Instant::now();
    let length = match which {
        "cuporep" => prove_here(&case, params)?,
        "portable" => prove_portably(&case, params)?,
        _ => prove_there(&case)?,
    };
    let seconds = begin.elapsed().as_secs_f64();
    let memory = usage::peak_memory().ok_or("no peak memory in /proc/self/status")?;
    let processor = usage::processor_seconds().ok_or("no times in /proc/self/stat")?;
    println!("{seconds} {processor} {memory} {length}");
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let usage = "usage: versus PARAMS_DIR [CASE_DIR] [ROUNDS] [portable]";
    let params = PathBuf::from(arguments.get(1).ok_or(usage)?);
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/StackedDrg2KiBV1_1-000");
    let case = arguments.get(2).map_or(default, PathBuf::from);
    let rounds: usize = arguments.get(3).map_or(Ok(3), |text| text.parse())?;
    if let Some(which) = arguments.get(5) {
        return child(which, &params, &case);
    }
    let provers: &[&str] = match arguments.get(4).map(String::as_str) {
        None => &["cuporep", "bellperson"],
        Some("portable") => &["cuporep", "portable", "bellperson"],
        Some(_) => return Err(usage.into()),
    };
    let mut seconds = vec![Vec::new(); provers.len()];
    for _ in 0..rounds {
        for (index, which) in provers.iter().enumerate() {
            let output = Command::new(std::env::current_exe()?)
                .args([params.as_os_str(), case.as_os_str(), "1".as_ref(), "".as_ref(), which.as_ref()])
                .env(cuporep::environment::PARAMETER_DIR_VARIABLE, &params)
                .env("BELLMAN_NO_GPU", "1")
                .output()?;
            let text = String::from_utf8_lossy(&output.stdout);
            let fields: Vec<&str> = text.split_whitespace().collect();
            let [wall, processor, memory, _length] = fields[..] else {
                return Err(format!("{which} failed: {}", String::from_utf8_lossy(&output.stderr)).into());
            };
            let wall: f64 = wall.parse()?;
            seconds[index].push([wall, processor.parse()?]);
            println!("{which:<12} {wall:>8.2} s, {processor:>7} s of processor time, {memory:>6} MiB");
        }
    }
    let median = |index: usize, figure: usize| {
        let mut sorted: Vec<f64> = seconds[index].iter().map(|figures| figures[figure]).collect();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let last = provers.len() - 1;
    for (index, which) in provers.iter().enumerate() {
        let [wall, processor] = [0, 1].map(|figure| median(index, figure));
        let [faster, less] = [0, 1].map(|figure| median(last, figure) / median(index, figure));
        println!("median: {which:<12} {wall:.2} s ({faster:.2} times as fast as bellperson), {processor:.2} s of processor time ({less:.2})");
    }
    Ok(())
}
