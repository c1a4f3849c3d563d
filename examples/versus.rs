//! Proves one sector with this library and with filecoin-proofs' own prover (bellperson on the CPU), side
//! by side, and prints time and peak memory of both.
//!
//! ```text
//! cargo run --release --example versus -- PARAMS_DIR [CASE_DIR] [ROUNDS]
//! ```
//!
//! Every proof is made by a process of its own, alternately, so that both start equally cold and the peak
//! memory is that of one proof. The parameter directory must hold parameters for the case's sector size.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use cuporep::pipeline::Control;
use cuporep::porep::ids::prover_id;
use cuporep::{Config, ProveRequest, Prover};

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

fn prove_there(case: &Case) -> Result<usize, Failure> {
    use filecoin_proofs_api::{seal, SectorId};
    let c1: seal::SealCommitPhase1Output = serde_json::from_slice(&case.c1)?;
    Ok(seal::seal_commit_phase2(c1, prover_id(case.miner), SectorId::from(case.sector))?.proof.len())
}

/// The peak resident memory of this process, in MiB.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? / 1024)
}

fn child(which: &str, params: &Path, directory: &Path) -> Result<(), Failure> {
    let case = read_case(directory)?;
    let begin = Instant::now();
    let length = match which {
        "cuporep" => prove_here(&case, params)?,
        _ => prove_there(&case)?,
    };
    let seconds = begin.elapsed().as_secs_f64();
    println!("{seconds} {} {length}", peak_memory().ok_or("no peak memory in /proc/self/status")?);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let params = PathBuf::from(arguments.get(1).ok_or("usage: versus PARAMS_DIR [CASE_DIR] [ROUNDS]")?);
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/StackedDrg2KiBV1_1-000");
    let case = arguments.get(2).map_or(default, PathBuf::from);
    let rounds: usize = arguments.get(3).map_or(Ok(3), |text| text.parse())?;
    if let Some(which) = arguments.get(4) {
        return child(which, &params, &case);
    }
    let mut figures: [Vec<(f64, u64)>; 2] = Default::default();
    for _ in 0..rounds {
        for (index, which) in ["cuporep", "bellperson"].into_iter().enumerate() {
            let output = Command::new(std::env::current_exe()?)
                .args([params.as_os_str(), case.as_os_str(), "1".as_ref(), which.as_ref()])
                .env(cuporep::environment::PARAMETER_DIR_VARIABLE, &params)
                .env("BELLMAN_NO_GPU", "1")
                .output()?;
            let text = String::from_utf8_lossy(&output.stdout);
            let fields: Vec<&str> = text.split_whitespace().collect();
            let [seconds, memory, _length] = fields[..] else {
                return Err(format!("{which} failed: {}", String::from_utf8_lossy(&output.stderr)).into());
            };
            figures[index].push((seconds.parse()?, memory.parse()?));
            println!("{which:<12} {seconds:>8.6} s {memory:>6} MiB");
        }
    }
    let median = |figures: &[(f64, u64)]| {
        let mut seconds: Vec<f64> = figures.iter().map(|figure| figure.0).collect();
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    };
    let (ours, theirs) = (median(&figures[0]), median(&figures[1]));
    println!("median: cuporep {ours:.2} s, bellperson {theirs:.2} s, {:.2} times as fast", theirs / ours);
    Ok(())
}
