//! bench batch: many proofs at once, as a node asks for them.

mod plot;
mod release;
mod watch;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use cuporep::pipeline::{Control, Stage, Trace};
use cuporep::{Placement, ProveRequest, Prover, Result, SealProof};
use serde_json::{json, Value};

use crate::bench::median;
use crate::bytes::show;
use crate::input::read_c1;
use crate::output::{ms, Output, OutputFile};
use crate::usage::{peak_memory, processor_seconds};
use crate::SectorArgs;
use release::Releases;
use watch::{reset_peak_memory, Busy, Watch};

#[derive(Debug, Args)]
pub struct BatchArgs {
    #[command(flatten)]
    sector: SectorArgs,
    /// Parameter directory [default: FIL_PROOFS_PARAMETER_CACHE, else /var/tmp/filecoin-proof-parameters]
    #[arg(long, value_name = "DIR")]
    params: Option<PathBuf>,
    /// Prove with INSECURE parameters that one GPU (--device, else cuda:0) makes for itself from this seed, without files
    #[cfg(feature = "cuda")]
    #[arg(long, value_name = "SEED", conflicts_with = "params")]
    insecure_seed: Option<u64>,
    /// Where to prove: auto, cpu, gpu, or GPUs by number or UUID, separated by commas
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: Placement,
    /// Bytes of memory that proofs may use on each GPU, e.g. 15GiB [default: what is free]
    #[arg(long, value_name = "BYTES", value_parser = crate::bytes::parse)]
    pub vram: Option<u64>,
    /// How many callers ask for proofs at once; several numbers, separated by commas, are measured one after the other
    #[arg(long, value_name = "N[,N..]", value_delimiter = ',', default_value = "1,2,4", value_parser = clap::value_parser!(u32).range(1..=1024))]
    concurrency: Vec<u32>,
    /// How many proofs to make for each of these numbers, after one that loads what later ones keep
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    proofs: u32,
    /// Give all memory of GPUs back every so many seconds while proofs are made, and say how long that takes; an
    /// interrupted proof begins anew, so that none is ever made if this is shorter than a proof with the loading of its
    /// parameters (or their making, with --insecure-seed)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    release_every: Option<Duration>,
    /// Draw how busy devices are and how many calls wait, over time, as an SVG picture
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// What makes the proofs.
struct Work<'a> {
    prover: &'a Prover,
    request: ProveRequest<'a>,
    #[cfg(feature = "cuda")]
    insecure: Option<cuporep::InsecureGpu>,
}

impl Work<'_> {
    /// Makes a proof.
    fn prove(&self, control: Control) -> Result<SealProof> {
        let request = ProveRequest { control, ..self.request.clone() };
        #[cfg(feature = "cuda")]
        if let Some(gpu) = &self.insecure {
            return self.prover.prove_insecurely(gpu, &request);
        }
        self.prover.prove(&request)
    }
}

/// What was measured with a number of callers.
struct Point {
    concurrency: u32,
    wall: Duration,
    /// From call to proof, of each.
    calls: Vec<Duration>,
    /// For memory and devices, of each.
    waits: Vec<Duration>,
    /// Seconds of processors, of all.
    processor: Option<f64>,
    /// In MiB.
    host_peak: Option<u64>,
    device_peak: u64,
    busy: Vec<Busy>,
    watched: Watch,
    releases: Option<Releases>,
}

impl Point {
    fn each(&self) -> f64 {
        self.wall.as_secs_f64() / self.calls.len() as f64
    }

    /// The share of all processors that worked.
    fn host_share(&self) -> Option<f64> {
        Some(self.processor? / (self.wall.as_secs_f64() * watch::cores()))
    }

    /// The mean over GPUs.
    fn device_share(&self) -> Option<f64> {
        let shares: Vec<f64> = self.busy.iter().map(|device| device.share(Duration::ZERO, self.wall)).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    fn row(&self) -> String {
        let seconds = |times: &[Duration]| {
            let most = times.iter().max().copied().unwrap_or_default();
            (median(times).unwrap_or_default().as_secs_f64(), most.as_secs_f64())
        };
        let ((call, call_most), (wait, wait_most)) = (seconds(&self.calls), seconds(&self.waits));
        let percent = |share: Option<f64>| share.map_or("-".into(), |share| format!("{:.0}", 100.0 * share));
        let processor = self.processor.map_or("-".into(), |all| format!("{:.2}", all / self.calls.len() as f64));
        let host = self.host_peak.map_or("-".into(), |mebibytes| show(mebibytes << 20));
        let device = if self.device_peak == 0 { "-".into() } else { show(self.device_peak) };
        format!(
            "{:>7} {:>9.3} {:>9.1} {call:>9.3} {call_most:>8.3} {wait:>9.3} {wait_most:>8.3} {processor:>12} {:>7} {:>6} {host:>11} {device:>11}",
            self.concurrency,
            self.each(),
            3600.0 / self.each(),
            percent(self.host_share()),
            percent(self.device_share()),
        )
    }

    fn json(&self) -> Value {
        let most = |times: &[Duration]| times.iter().max().copied().map(ms);
        let devices = self.busy.iter();
        let devices: Vec<Value> =
            devices.map(|one| json!({"device": one.device, "busy": one.share(Duration::ZERO, self.wall)})).collect();
        json!({
            "concurrency": self.concurrency,
            "wall_ms": ms(self.wall),
            "ms_per_proof": 1e3 * self.each(),
            "proofs_per_hour": 3600.0 / self.each(),
            "call_median_ms": median(&self.calls).map(ms),
            "call_max_ms": most(&self.calls),
            "queue_median_ms": median(&self.waits).map(ms),
            "queue_max_ms": most(&self.waits),
            "most_waiting": self.watched.most_waiting(),
            "processor_seconds": self.processor,
            "host_busy": self.host_share(),
            "devices": devices,
            "host_peak_mib": self.host_peak,
            "device_peak_bytes": self.device_peak,
            "releases": self.releases.as_ref().map(Releases::json),
        })
    }
}

/// Medians, and the most.
const HEAD: &str =
    "at once   s/proof  proofs/h   call, s     most   wait, s     most  cpu s/proof  host %  gpu %   host peak    gpu peak";

pub fn run(args: &BatchArgs, prover: &Prover, control: &Control, output: &Output) -> Result<()> {
    let c1 = read_c1(&args.sector.c1)?;
    let plot = args.plot.as_deref().map(OutputFile::create).transpose()?;
    // A wrong input is known before anything long is done.
    let checked = prover.check(&c1, args.sector.sector, args.sector.miner, control)?;
    let work = Work {
        prover,
        request: ProveRequest {
            c1: &c1,
            sector: args.sector.sector,
            miner: Some(args.sector.miner),
            parameter_dir: args.params.clone(),
            placement: args.device.clone(),
            fixed_randomness: None,
            control: control.clone(),
        },
        #[cfg(feature = "cuda")]
        insecure: insecure(args, prover, checked.registered_proof().size, control, output)?,
    };
    let begin = Instant::now();
    let first = work.prove(control.fresh_times())?;
    let loading = begin.elapsed();
    let name = checked.registered_proof().name();
    output.row(&format!("{name} on {}; the first proof, which loads: {:.3} s", first.device, loading.as_secs_f64()))?;
    output.row(HEAD)?;
    let mut points = Vec::new();
    for &concurrency in &args.concurrency {
        let point = measure(&work, concurrency, args, control)?;
        output.row(&point.row())?;
        if let Some(releases) = &point.releases {
            output.row(&releases.row(point.calls.len()))?;
        }
        points.push(point);
    }
    if let Some(file) = plot {
        file.finish(plot::svg(name, &points).as_bytes())?;
    }
    output.result(
        "",
        &json!({
            "registered_proof": name,
            "device": first.device,
            "insecure": first.insecure_parameters,
            "first_ms": ms(loading),
            "proofs": args.proofs,
            "points": points.iter().map(Point::json).collect::<Vec<_>>(),
        }),
    )
}

/// The GPU that makes parameters for itself, if one is to.
#[cfg(feature = "cuda")]
fn insecure(
    args: &BatchArgs,
    prover: &Prover,
    size: cuporep::porep::SectorSize,
    control: &Control,
    output: &Output,
) -> Result<Option<cuporep::InsecureGpu>> {
    let Some(seed) = args.insecure_seed else { return Ok(None) };
    let device = match &args.device.devices[..] {
        [] => cuporep::DeviceName::Ordinal(0),
        [device] => device.clone(),
        _ => {
            return Err(cuporep::Error::Argument {
                name: "--device",
                detail: "one GPU makes parameters for itself".into(),
            })
        }
    };
    output.notice(&format!("making INSECURE {size} parameters on {device}: proofs made with them can be forged"));
    prover.insecure_gpu(size, seed, &device, &control.fresh_times()).map(Some)
}

/// Reads a time as `20` or `0.5`.
fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time >= Duration::from_millis(1) => Ok(time),
        _ => Err("out of all proportion".into()),
    }
}

/// Lets so many callers ask for proofs until there are as many as are wanted.
fn measure(work: &Work<'_>, concurrency: u32, args: &BatchArgs, control: &Control) -> Result<Point> {
    let proofs = args.proofs;
    reset_peak_memory();
    let trace = Trace::new();
    let (next, made) = (AtomicU32::new(0), Mutex::new(Vec::new()));
    let caller = || {
        while next.fetch_add(1, Ordering::Relaxed) < proofs {
            let begin = Instant::now();
            let proof = work.prove(control.fresh_times().with_trace(trace.clone()));
            if proof.is_err() {
                // The others are not begun.
                next.store(proofs, Ordering::Relaxed);
            }
            made.lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .push(proof.map(|proof| (begin.elapsed(), proof)));
        }
    };
    let (begin, worked) = (Instant::now(), processor_seconds());
    let (mut wall, mut releases) = (Duration::ZERO, None);
    let watched = Watch::during(work.prover, begin, || {
        releases = Releases::during(work.prover, args.release_every, || {
            thread::scope(|scope| (0..concurrency.min(proofs)).for_each(|_| drop(scope.spawn(caller))));
            wall = begin.elapsed();
        });
    });
    let processor = worked.and_then(|worked| Some(processor_seconds()? - worked));
    let made = made.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let made = made.into_iter().collect::<Result<Vec<(Duration, SealProof)>>>()?;
    let wait = |proof: &SealProof| {
        let waits = proof.stages.iter().filter(|event| event.stage == Stage::Queue);
        waits.filter_map(|event| event.elapsed).sum::<Duration>()
    };
    Ok(Point {
        concurrency,
        wall,
        calls: made.iter().map(|(elapsed, _)| *elapsed).collect(),
        waits: made.iter().map(|(_, proof)| wait(proof)).collect(),
        processor,
        host_peak: peak_memory(),
        device_peak: made.iter().map(|(_, proof)| proof.device_memory).max().unwrap_or(0).max(watched.device_peak()),
        busy: Busy::of_devices(&trace.to_json()),
        watched,
        releases,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_and_parts_of_them() {
        assert_eq!(seconds("20"), Ok(Duration::from_secs(20)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "x", "0", "-1", "1e300", "nan", "inf", "0.0001"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
