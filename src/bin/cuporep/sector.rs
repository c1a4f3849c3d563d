//! bench sector: proofs with INSECURE parameters that a GPU makes for itself.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use clap::Args;
use cuporep::pipeline::{Control, Event};
use cuporep::porep::SectorSize;
use cuporep::{DeviceName, Error, FixedRandomness, ProveRequest, Prover, Result};
use parking_lot::Mutex;
use serde_json::{json, Value};

use crate::input::{read_c1, read_proof};
use crate::output::{ms, stage_times, Output};
use crate::prove::Tracing;
use crate::usage::{peak_memory, processor_seconds};
use crate::SectorArgs as Sector;

#[derive(Debug, Args)]
pub struct SectorArgs {
    #[command(flatten)]
    sector: Sector,
    /// Sector size: 2KiB, 8MiB, 512MiB, 32GiB, 64GiB
    #[arg(long)]
    size: SectorSize,
    /// Seed of the secrets; whoever knows it can forge proofs
    #[arg(long, value_name = "SEED")]
    insecure_seed: u64,
    /// The GPU, by number or UUID
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    device: DeviceName,
    /// Bytes of memory that proofs may use there, e.g. 15GiB [default: what is free]; the parameters are made with more
    #[arg(long, value_name = "BYTES", value_parser = crate::bytes::parse)]
    pub vram: Option<u64>,
    /// How many proofs to make; the first one also makes what later ones keep
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// How many of them at once: their rate is that of a node under load
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    at_once: u32,
    /// Fixed randomness for tests, two hexadecimal numbers; partition k uses R+k and S+k
    #[arg(long, value_name = "R,S")]
    insecure_randomness: Option<FixedRandomness>,
    /// The bytes that each proof must have
    #[arg(long, value_name = "FILE", requires = "insecure_randomness")]
    expect: Option<PathBuf>,
    /// The bytes that the verifying key must have
    #[arg(long, value_name = "FILE")]
    expect_vk: Option<PathBuf>,
    /// Write what ran when in the proofs, every kernel and copy included, to FILE for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

pub fn run(args: &SectorArgs, prover: &Prover, control: &Control, output: &Output) -> Result<()> {
    let c1 = read_c1(&args.sector.c1)?;
    let expected = args.expect.as_deref().map(read_proof).transpose()?;
    let expected_vk = args
        .expect_vk
        .as_ref()
        .map(|path| std::fs::read(path).map_err(|source| Error::Io { action: "read", path: path.clone(), source }));
    let expected_vk = expected_vk.transpose()?;
    let trace = Tracing::begin(args.trace.as_deref())?;

    // A wrong input is known before anything long is done.
    prover.check(&c1, args.sector.sector, args.sector.miner, control)?;
    output.notice(&format!(
        "making INSECURE {} parameters on {}: proofs made with them can be forged",
        args.size, args.device
    ));
    let setup_control = control.fresh_times();
    let begin = Instant::now();
    let gpu = prover.insecure_gpu(args.size, args.insecure_seed, &args.device, &setup_control)?;
    let setup = begin.elapsed();
    if expected_vk.is_some_and(|expected| expected != gpu.vk_bytes()) {
        return Err(Error::Argument { name: "--expect-vk", detail: "the seed gives another verifying key".into() });
    }

    let mut text = format!("setup: {:.1} ms\n{}", ms(setup), lines(&setup_control.times()));
    let prove = |run: u32| {
        let (begin, worked) = (Instant::now(), processor_seconds());
        let proof = prover.prove_insecurely(
            &gpu,
            &ProveRequest {
                c1: &c1,
                sector: args.sector.sector,
                miner: Some(args.sector.miner),
                parameter_dir: None,
                placement: Default::default(),
                fixed_randomness: args.insecure_randomness.clone(),
                control: trace.watch(control.fresh_times()),
            },
        )?;
        let elapsed = begin.elapsed();
        let worked = worked.and_then(|worked| Some(processor_seconds()? - worked));
        let same = expected.as_ref().map(|expected| *expected == proof.bytes);
        if same == Some(false) {
            return Err(Error::ProofInvalid { detail: "the proof verifies, but has not the expected bytes".into() });
        }
        let verdict = if same.is_some() { "verified, the expected bytes" } else { "verified" };
        let text = format!(
            "run {run}: {:.1} ms, {verdict}, {:.1} s of processor time, {} bytes on {}\n{}",
            ms(elapsed),
            worked.unwrap_or_default(),
            proof.device_memory,
            proof.device,
            lines(&proof.stages)
        );
        let run = json!({
            "ms": ms(elapsed),
            "processor_seconds": worked,
            "expected_bytes": same,
            "device": proof.device,
            "device_memory": proof.device_memory,
            "proof": hex::encode(&proof.bytes),
            "stages": stage_times(&proof.stages),
        });
        Ok((text, run))
    };
    let begin = Instant::now();
    let made = at_once(args.at_once, args.runs, prove)?;
    let each = ms(begin.elapsed()) / f64::from(args.runs);
    let (texts, runs): (Vec<String>, Vec<Value>) = made.into_iter().unzip();
    text += &texts.concat();
    text += &format!("one every {each:.1} ms, {} at once\n", args.at_once);
    let setup = json!({"ms": ms(setup), "stages": stage_times(&setup_control.times())});
    let memory = peak_memory();
    text += &format!("peak memory of the host, set-up included: {} MiB", memory.unwrap_or(0));
    output.result(
        &text,
        &json!({"insecure": true, "setup": setup, "runs": runs, "ms_each": each, "peak_memory_mib": memory}),
    )?;
    trace.finish()
}

/// The outcomes of runs 1 to `runs`, so many at a time, in the order in which they end.
fn at_once<T: Send>(threads: u32, runs: u32, run: impl Fn(u32) -> Result<T> + Sync) -> Result<Vec<T>> {
    let (next, outcomes) = (AtomicU32::new(1), Mutex::new(Vec::new()));
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number > runs {
            return;
        }
        let outcome = run(number);
        if outcome.is_err() {
            next.store(runs + 1, Ordering::Relaxed);
        }
        outcomes.lock().push(outcome);
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    outcomes.into_inner().into_iter().collect()
}

fn lines(stages: &[Event]) -> String {
    let line = |event: &Event| {
        let partition = event.partition.map_or(String::new(), |partition| partition.to_string());
        format!("  {:<12} {partition:>3} {:>12.1} ms\n", event.stage.name(), ms(event.elapsed.unwrap_or_default()))
    };
    stages.iter().map(line).collect()
}
