//! bench stages, bench kernels; bench sector, bench fabricate and bench batch are elsewhere.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use cuporep::pipeline::{Control, Stage};
use cuporep::{measure_kernels, DeviceName, ProveRequest, Prover, Result, MEASURED_SIZES};
use serde_json::json;

use crate::input::read_c1;
use crate::output::{ms, Output};
use crate::prove::OnArgs;
use crate::SectorArgs;

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Prove a sector several times and print the time of each stage
    Stages(StagesArgs),
    /// Let several callers ask for proofs of a sector at once: rate, waits, how busy devices are, memory
    Batch(crate::batch::BatchArgs),
    /// Time the kernels of a GPU beside what its multipliers or its memory allow
    Kernels(KernelsArgs),
    /// Prove a sector with INSECURE parameters that a GPU makes for itself from a seed; no file is written
    #[cfg(feature = "cuda")]
    Sector(crate::sector::SectorArgs),
    /// Make a valid C1 output without sealing, for tests and measurements; it proves nothing about stored data
    Fabricate(crate::fabricate::FabricateArgs),
}

#[derive(Debug, Args)]
pub struct StagesArgs {
    #[command(flatten)]
    sector: SectorArgs,
    /// Parameter directory [default: FIL_PROOFS_PARAMETER_CACHE, else /var/tmp/filecoin-proof-parameters]
    #[arg(long, value_name = "DIR")]
    params: Option<PathBuf>,
    #[command(flatten)]
    on: OnArgs,
    /// How many proofs to make; the first one also loads what later ones keep
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    proofs: u32,
}

#[derive(Debug, Args)]
pub struct KernelsArgs {
    /// The GPU, by number or UUID
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    device: DeviceName,
    /// The largest size, as a power of two: 22 as in a proof for 2 KiB, 27 for 32 GiB
    #[arg(long, value_name = "N", default_value_t = 27, value_parser = clap::value_parser!(u32).range(i64::from(*MEASURED_SIZES.start())..=i64::from(*MEASURED_SIZES.end())))]
    largest: u32,
}

impl BenchCommand {
    /// The bytes that may be used on a device, if the command says so.
    pub fn vram(&self) -> Option<u64> {
        match self {
            BenchCommand::Stages(args) => args.on.vram,
            BenchCommand::Batch(args) => args.vram,
            BenchCommand::Kernels(_) | BenchCommand::Fabricate(_) => None,
            #[cfg(feature = "cuda")]
            BenchCommand::Sector(args) => args.vram,
        }
    }
}

/// The times of one stage: in the first proof, and in the later ones.
struct Line {
    stage: Stage,
    cold: Duration,
    warm: Vec<Duration>,
}

pub fn run(command: &BenchCommand, prover: &Prover, control: &Control, output: &Output) -> Result<()> {
    match command {
        BenchCommand::Stages(args) => stages(args, prover, control, output),
        BenchCommand::Batch(args) => crate::batch::run(args, prover, control, output),
        BenchCommand::Kernels(args) => kernels(args, control, output),
        #[cfg(feature = "cuda")]
        BenchCommand::Sector(args) => crate::sector::run(args, prover, control, output),
        BenchCommand::Fabricate(args) => crate::fabricate::run(args, prover, control, output),
    }
}

/// Prints each figure when it is there; for machines all at the end.
fn kernels(args: &KernelsArgs, control: &Control, output: &Output) -> Result<()> {
    let mut figures = Vec::new();
    let head = format!("{:>10} {:>10} {:>6}  kernels of {}", "ms", "floor, ms", "ratio", args.device);
    let mut printed = Ok(());
    measure_kernels(&args.device, args.largest, control, &mut |figure| {
        let ratio = figure.milliseconds / figure.floor;
        let row = format!("{:>10.3} {:>10.3} {ratio:>6.2}  {}", figure.milliseconds, figure.floor, figure.name);
        if printed.is_ok() && figures.is_empty() {
            printed = output.row(&head);
        }
        if printed.is_ok() {
            printed = output.row(&row);
        }
        figures.push(json!({"name": figure.name, "ms": figure.milliseconds, "floor_ms": figure.floor, "ratio": ratio}));
    })?;
    printed?;
    output.result("", &json!({"device": args.device.to_string(), "figures": figures}))
}

fn stages(args: &StagesArgs, prover: &Prover, control: &Control, output: &Output) -> Result<()> {
    let trace = args.on.trace()?;
    let control = trace.watch(control.clone());
    let c1 = read_c1(&args.sector.c1)?;
    let mut lines: Vec<Line> = Vec::new();
    let (mut cold, mut warm) = (Duration::ZERO, Vec::new());
    for round in 0..args.proofs {
        let begin = Instant::now();
        let proof = prover.prove(&ProveRequest {
            c1: &c1,
            sector: args.sector.sector,
            miner: Some(args.sector.miner),
            parameter_dir: args.params.clone(),
            placement: args.on.device.clone(),
            fixed_randomness: None,
            control: control.fresh_times(),
        })?;
        let whole = begin.elapsed();
        for event in &proof.stages {
            let index = lines.iter().position(|line| line.stage == event.stage).unwrap_or_else(|| {
                lines.push(Line { stage: event.stage, cold: Duration::ZERO, warm: Vec::new() });
                lines.len() - 1
            });
            let (line, elapsed) = (&mut lines[index], event.elapsed.unwrap_or_default());
            if round == 0 {
                line.cold += elapsed;
                continue;
            }
            // Stages of several partitions add up.
            line.warm.resize(round as usize, Duration::ZERO);
            line.warm[round as usize - 1] += elapsed;
        }
        if round == 0 {
            cold = whole;
        } else {
            warm.push(whole);
        }
    }
    lines.sort_by_key(|line| line.stage);
    let mut text = format!("{:<12} {:>12} {:>16}\n", "stage", "first, ms", "later median, ms");
    let mut row = |name: &str, cold: Duration, warm: Option<Duration>| {
        let warm = warm.map_or("-".into(), |warm| format!("{:.1}", ms(warm)));
        text += &format!("{name:<12} {:>12.1} {warm:>16}\n", ms(cold));
    };
    for line in &lines {
        row(line.stage.name(), line.cold, median(&line.warm));
    }
    row("whole", cold, median(&warm));
    let stages: Vec<_> = lines
        .iter()
        .map(|line| json!({"stage": line.stage.name(), "first_ms": ms(line.cold), "median_ms": median(&line.warm).map(ms)}))
        .collect();
    output.result(
        text.trim_end(),
        &json!({"stages": stages, "first_ms": ms(cold), "median_ms": median(&warm).map(ms), "proofs": args.proofs}),
    )?;
    trace.finish()
}

/// The median of times, if there are any.
pub fn median(times: &[Duration]) -> Option<Duration> {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted.get(sorted.len() / 2).copied()
}
