//! bench stages.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use cuporep::pipeline::{Control, Stage};
use cuporep::{ProveRequest, Prover, Result};
use serde_json::json;

use crate::input::read_c1;
use crate::output::Output;
use crate::SectorArgs;

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Prove a sector several times and print the time of each stage
    Stages(StagesArgs),
}

#[derive(Debug, Args)]
pub struct StagesArgs {
    #[command(flatten)]
    sector: SectorArgs,
    /// Parameter directory [default: FIL_PROOFS_PARAMETER_CACHE, else /var/tmp/filecoin-proof-parameters]
    #[arg(long, value_name = "DIR")]
    params: Option<PathBuf>,
    /// How many proofs to make; the first one also loads what later ones keep
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    proofs: u32,
}

/// The times of one stage: in the first proof, and in the later ones.
struct Line {
    stage: Stage,
    cold: Duration,
    warm: Vec<Duration>,
}

pub fn run(command: &BenchCommand, prover: &Prover, control: &Control, output: &Output) -> Result<()> {
    let BenchCommand::Stages(args) = command;
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
            placement: Default::default(),
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
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
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
    )
}

fn median(times: &[Duration]) -> Option<Duration> {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted.get(sorted.len() / 2).copied()
}
