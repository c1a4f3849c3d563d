//! What happens while proofs are made: samples of the prover's state, and what a trace says of its devices.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cuporep::Prover;
use serde_json::Value;

use crate::usage::processor_seconds;

/// Between two samples.
const PERIOD: Duration = Duration::from_millis(20);

/// Samples, in their order.
pub struct Watch {
    samples: Vec<Sample>,
}

struct Sample {
    at: Duration,
    waiting: usize,
    /// Seconds that processors have worked so far.
    processor: f64,
    /// Of all devices.
    device_bytes: u64,
}

impl Watch {
    /// Watches a prover while work is done.
    pub fn during(prover: &Prover, begin: Instant, work: impl FnOnce()) -> Watch {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut samples = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    samples.push(Sample::take(prover, begin));
                    thread::sleep(PERIOD);
                }
                samples.push(Sample::take(prover, begin));
                samples
            });
            work();
            over.store(true, Ordering::Relaxed);
            Watch { samples: watcher.join().unwrap_or_default() }
        })
    }

    pub fn most_waiting(&self) -> usize {
        self.samples.iter().map(|sample| sample.waiting).max().unwrap_or(0)
    }

    pub fn device_peak(&self) -> u64 {
        self.samples.iter().map(|sample| sample.device_bytes).max().unwrap_or(0)
    }

    /// The most calls that waited between two moments, and the last that did before if nothing was seen between.
    pub fn waiting(&self, from: Duration, to: Duration) -> usize {
        let before = self.samples.iter().take_while(|sample| sample.at < from).last();
        let between = self.samples.iter().filter(|sample| (from..to).contains(&sample.at));
        between.map(|sample| sample.waiting).max().or(before.map(|sample| sample.waiting)).unwrap_or(0)
    }

    /// The share of all processors that worked between two moments.
    pub fn host_share(&self, from: Duration, to: Duration) -> f64 {
        let time = (to.saturating_sub(from)).as_secs_f64() * cores();
        if time > 0.0 {
            ((self.processor(to) - self.processor(from)) / time).min(1.0)
        } else {
            0.0
        }
    }

    /// Seconds that processors had worked at a moment; evenly between two samples.
    fn processor(&self, at: Duration) -> f64 {
        let next = self.samples.partition_point(|sample| sample.at < at);
        match (next.checked_sub(1).and_then(|index| self.samples.get(index)), self.samples.get(next)) {
            (Some(before), Some(after)) => {
                let passed = (at - before.at).as_secs_f64() / (after.at - before.at).as_secs_f64();
                before.processor + passed * (after.processor - before.processor)
            }
            (Some(only), None) | (None, Some(only)) => only.processor,
            (None, None) => 0.0,
        }
    }
}

impl Sample {
    fn take(prover: &Prover, begin: Instant) -> Self {
        let status = prover.status();
        Sample {
            at: begin.elapsed(),
            waiting: status.waiting,
            processor: processor_seconds().unwrap_or(0.0),
            device_bytes: status.devices.iter().map(|device| device.bytes).sum(),
        }
    }
}

/// Lets the peak begin anew. Where that is not allowed it stays that of the whole process.
pub fn reset_peak_memory() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Processors that this process may use.
pub fn cores() -> f64 {
    thread::available_parallelism().map_or(1, usize::from) as f64
}

/// When a GPU computed.
pub struct Busy {
    pub device: String,
    /// Begins and ends, in microseconds; apart from each other, in their order.
    stretches: Vec<(f64, f64)>,
}

impl Busy {
    /// The GPUs of a trace, which began when the work did. Copies do not count.
    pub fn of_devices(trace: &Value) -> Vec<Busy> {
        let events = trace["traceEvents"].as_array().map_or(&[][..], Vec::as_slice);
        let mut names = BTreeMap::new();
        for event in events.iter().filter(|event| event["name"] == "process_name") {
            names.insert(event["pid"].as_u64(), event["args"]["name"].as_str().unwrap_or_default());
        }
        let mut kernels: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for event in events.iter().filter(|event| event["args"]["threads"].is_u64()) {
            let (begin, length) = (event["ts"].as_f64().unwrap_or(0.0), event["dur"].as_f64().unwrap_or(0.0));
            let device = names.get(&event["pid"].as_u64()).copied().unwrap_or_default();
            kernels.entry(device).or_default().push((begin, begin + length));
        }
        let busy = |(device, spans): (&str, _)| Busy { device: device.into(), stretches: united(spans) };
        kernels.into_iter().map(busy).collect()
    }

    /// The share of a time that it computed.
    pub fn share(&self, from: Duration, to: Duration) -> f64 {
        let (from, to) = (from.as_secs_f64() * 1e6, to.as_secs_f64() * 1e6);
        let inside = |&(begin, end): &(f64, f64)| (end.min(to) - begin.max(from)).max(0.0);
        let first = self.stretches.partition_point(|stretch| stretch.1 <= from);
        let within = self.stretches[first..].iter().take_while(|stretch| stretch.0 < to);
        if to > from {
            within.map(inside).sum::<f64>() / (to - from)
        } else {
            0.0
        }
    }
}

/// Stretches of time that overlap as one.
fn united(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut united: Vec<(f64, f64)> = Vec::new();
    for (begin, end) in spans {
        match united.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => united.push((begin, end)),
        }
    }
    united
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn samples_tell_who_waited_and_how_processors_worked() {
        let sample = |at, waiting, processor| Sample {
            at: Duration::from_millis(at),
            waiting,
            processor: processor * cores(),
            device_bytes: at,
        };
        let watch = Watch { samples: vec![sample(0, 2, 5.0), sample(100, 3, 5.05), sample(200, 0, 5.15)] };
        let millis = Duration::from_millis;
        let share = |from, to| watch.host_share(millis(from), millis(to));
        for ((from, to), expected) in [((0, 100), 0.5), ((50, 150), 0.75), ((100, 200), 1.0), ((200, 300), 0.0)] {
            assert!((share(from, to) - expected).abs() < 1e-9, "{from} {to}: {}", share(from, to));
        }
        let waiting = |from, to| watch.waiting(millis(from), millis(to));
        assert_eq!([waiting(0, 50), waiting(0, 150), waiting(110, 150), waiting(150, 250)], [2, 3, 3, 0]);
        assert_eq!((watch.most_waiting(), watch.device_peak()), (3, 200));
        assert_eq!(Watch { samples: Vec::new() }.host_share(millis(0), millis(9)), 0.0);
    }

    #[test]
    fn kernels_of_a_trace_count_once_where_they_overlap_and_copies_do_not() {
        let kernel = |pid: u32, begin: f64, length: f64| json!({"ph": "X", "name": "k", "pid": pid, "ts": begin, "dur": length, "args": {"threads": 256}});
        let copy = json!({"ph": "X", "name": "copy", "pid": 1, "ts": 0.0, "dur": 1e6, "args": {"bytes": 77}});
        let stage = json!({"ph": "X", "name": "witness", "pid": 0, "ts": 0.0, "dur": 1e6, "args": {}});
        let name =
            |pid: u32, name: &str| json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}});
        let events = vec![
            stage,
            copy,
            kernel(1, 600_000.0, 100_000.0),
            kernel(1, 100_000.0, 200_000.0),
            kernel(1, 200_000.0, 200_000.0),
            kernel(2, 0.0, 1e6),
            name(0, "host"),
            name(1, "cuda:0"),
            name(2, "cuda:1"),
        ];
        let busy = Busy::of_devices(&json!({"traceEvents": events}));
        assert_eq!(busy.iter().map(|one| one.device.as_str()).collect::<Vec<_>>(), ["cuda:0", "cuda:1"]);
        let share = |from, to| busy[0].share(Duration::from_millis(from), Duration::from_millis(to));
        for ((from, to), expected) in [((0, 1000), 0.4), ((0, 100), 0.0), ((150, 350), 1.0), ((350, 650), 1.0 / 3.0)] {
            assert!((share(from, to) - expected).abs() < 1e-9, "{from} {to}: {}", share(from, to));
        }
        assert_eq!((share(5, 5), busy[1].share(Duration::ZERO, Duration::from_secs(2))), (0.0, 0.5));
        assert!(Busy::of_devices(&json!({})).is_empty());
    }
}
