//! Gives the devices back again and again while proofs are made, and says how long that takes.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use cuporep::{devices, Prover, Status};
use serde_json::{json, Value};

use crate::bench::median;
use crate::bytes::show;
use crate::output::ms;

/// What was given back, in order.
pub struct Releases(Vec<Release>);

struct Release {
    took: Duration,
    /// Partitions were in work on a GPU.
    interrupting: bool,
    /// Bytes that the prover held on its GPUs when the call began, and when it had returned.
    held: [u64; 2],
    /// Bytes of these GPUs that are in use by the driver's account: likewise, and by whomever.
    used: [Option<u64>; 2],
}

impl Releases {
    /// Gives back every so often while work is done; `None` if not at all.
    pub fn during(prover: &Prover, every: Option<Duration>, work: impl FnOnce()) -> Option<Releases> {
        thread::scope(|scope| {
            // Dropped at the end of the work, also by a panic.
            let (working, over) = mpsc::channel::<()>();
            let releasing = every.map(|every| {
                scope.spawn(move || {
                    let mut each = Vec::new();
                    while over.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                        each.push(Release::make(prover));
                    }
                    each
                })
            });
            work();
            drop(working);
            releasing.map(|releasing| Releases(releasing.join().unwrap_or_default()))
        })
    }

    pub fn row(&self, proofs: usize) -> String {
        let (times, interrupting) = (self.times(), self.interrupting());
        let used = |which| self.used(which).map_or("unknown".into(), show);
        format!(
            "        all {proofs} proofs were made; {} releases, {interrupting} of them while GPUs were at work: median {:.1} ms, longest {:.1} ms; held before at most {}, after at most {}; in use on GPUs before at most {}, after at least {}",
            times.len(),
            median(&times).map_or(0.0, ms),
            times.iter().max().copied().map_or(0.0, ms),
            show(self.held(0)),
            show(self.held(1)),
            used(0),
            used(1),
        )
    }

    pub fn json(&self) -> Value {
        let times = self.times();
        json!({
            "count": times.len(),
            "interrupting": self.interrupting(),
            "median_ms": median(&times).map(ms),
            "max_ms": times.iter().max().copied().map(ms),
            "held_before_bytes": self.held(0),
            "held_after_bytes": self.held(1),
            "used_before_bytes": self.used(0),
            "used_after_bytes": self.used(1),
        })
    }

    fn times(&self) -> Vec<Duration> {
        self.0.iter().map(|release| release.took).collect()
    }

    fn interrupting(&self) -> usize {
        self.0.iter().filter(|release| release.interrupting).count()
    }

    /// The most before (0) or after (1) a call.
    fn held(&self, which: usize) -> u64 {
        self.0.iter().map(|release| release.held[which]).max().unwrap_or(0)
    }

    /// The most before a call (0), the least after one (1): while the driver is asked, a call that came after the release may
    /// have begun to load again.
    fn used(&self, which: usize) -> Option<u64> {
        let used = self.0.iter().filter_map(|release| release.used[which]);
        match which {
            0 => used.max(),
            _ => used.min(),
        }
    }
}

impl Release {
    fn make(prover: &Prover) -> Self {
        let used_before = used(&prover.status());
        let before = prover.status();
        let begin = Instant::now();
        prover.release();
        let took = begin.elapsed();
        let after = prover.status();
        Release {
            took,
            interrupting: before.devices.iter().any(|device| !device.uuid.is_empty() && device.partitions > 0),
            held: [held(&before), held(&after)],
            used: [used_before, used(&after)],
        }
    }
}

fn held(status: &Status) -> u64 {
    status.devices.iter().map(|device| device.bytes).sum()
}

/// Bytes in use on the GPUs that a prover knows, what it takes to ask included; `None` if there is none, or one cannot
/// be asked.
fn used(status: &Status) -> Option<u64> {
    let known = |uuid: &str| status.devices.iter().any(|device| device.uuid == uuid);
    let found = devices();
    let known: Vec<_> = found.iter().filter(|device| known(&device.uuid)).collect();
    let used = known.iter().map(|device| Some(device.memory.saturating_sub(device.free_memory()?)));
    if known.is_empty() {
        return None;
    }
    used.sum()
}

#[cfg(test)]
mod tests {
    use cuporep::Config;

    use super::*;

    #[test]
    fn devices_are_given_back_until_the_work_is_done() {
        let prover = Prover::new(Config { threads: Some(1), ..Config::default() }).unwrap();
        assert!(Releases::during(&prover, None, || ()).is_none());
        let begin = Instant::now();
        let long = Some(Duration::from_secs(3600));
        assert_eq!(Releases::during(&prover, long, || ()).unwrap().times().len(), 0);
        assert!(begin.elapsed() < Duration::from_secs(60), "the end of the work is not waited for");
        let short = Some(Duration::from_millis(2));
        let releases = Releases::during(&prover, short, || thread::sleep(Duration::from_millis(100))).unwrap();
        assert!((2..=50).contains(&releases.times().len()), "{}", releases.times().len());
    }

    #[test]
    fn figures_are_those_of_the_worst_release_and_of_the_least_in_use() {
        let release =
            |took, interrupting, held, used| Release { took: Duration::from_millis(took), interrupting, held, used };
        let releases = Releases(vec![
            release(30, true, [5 << 30, 0], [Some(6 << 30), Some(2 << 30)]),
            release(10, false, [0, 1 << 20], [Some(1 << 30), Some(1 << 30)]),
            release(20, true, [7 << 30, 0], [None, None]),
        ]);
        let expected = json!({
            "count": 3,
            "interrupting": 2,
            "median_ms": 20.0,
            "max_ms": 30.0,
            "held_before_bytes": 7u64 << 30,
            "held_after_bytes": 1 << 20,
            "used_before_bytes": 6u64 << 30,
            "used_after_bytes": 1 << 30,
        });
        assert_eq!(releases.json(), expected);
        let row = releases.row(9);
        assert!(row.contains("all 9 proofs") && row.contains("3 releases, 2 of them"), "{row}");
        assert!(row.contains("median 20.0 ms, longest 30.0 ms") && row.ends_with("after at least 1.00 GiB"), "{row}");
    }
}
