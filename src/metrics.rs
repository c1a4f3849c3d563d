//! What a prover counts, as Prometheus reads it. Knows no devices and no proofs, only their labels.
//!
//! Each [`Prover`](crate::Prover) has its own; nothing is global and nothing runs beside the calls. A proof costs some
//! hundred additions. Gauges are looked up when the text is made.

use std::time::Duration;

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::backend::{Device, DeviceMemory};
use crate::error::{Error, Result};
use crate::pipeline::{Observer, Stage};
use crate::porep::RegisteredProof;
use crate::prover::{Fallback, Status, SEPARATOR};

/// What a label says where there is nothing to say, or nobody knows.
const NONE: &str = "none";
const UNKNOWN: &str = "unknown";

/// From the smallest sector on the fastest GPU to the largest on a CPU.
const PROOF_SECONDS: [f64; 19] =
    [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];
const STAGE_SECONDS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
const WAIT_SECONDS: [f64; 14] = [0.001, 0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 600.0, 3600.0];
/// From 1 GB out of the page cache to 47 GB off a slow disk.
const LOAD_SECONDS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0];

/// What a proof is of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct What {
    kind: &'static str,
    size: &'static str,
}

impl What {
    /// A caller's own circuit.
    pub const CIRCUIT: What = What { kind: "circuit", size: NONE };
}

impl From<RegisteredProof> for What {
    fn from(proof: RegisteredProof) -> Self {
        What { kind: proof.kind.name(), size: proof.size.name() }
    }
}

/// The counters of a prover.
pub(crate) struct Metrics {
    registry: Registry,
    proofs: IntCounterVec,
    proof_seconds: Histogram,
    stage_seconds: HistogramVec,
    verify_failures: IntCounterVec,
    fallbacks: IntCounterVec,
    wait_seconds: Histogram,
    load_seconds: Histogram,
}

impl Metrics {
    pub fn new() -> Result<Self> {
        Metrics::register().map_err(|error| Error::internal(format!("metrics: {error}")))
    }

    fn register() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let metrics = Metrics {
            proofs: counters(
                "cuporep_proofs_total",
                "Proofs that were asked for and have ended.",
                &["kind", "size", "backend", "result"],
            )?,
            proof_seconds: Histogram::with_opts(histogram(
                "cuporep_proof_duration_seconds",
                "Time of proofs that were made, from the call to the verified bytes, waiting included.",
                &PROOF_SECONDS,
            ))?,
            stage_seconds: HistogramVec::new(
                histogram(
                    "cuporep_stage_duration_seconds",
                    "Time of the stages that ended, for each partition where a stage works on one.",
                    &STAGE_SECONDS,
                ),
                &["stage"],
            )?,
            verify_failures: counters(
                "cuporep_verify_failures_total",
                "Proofs of partitions that did not verify and were withheld.",
                &["device"],
            )?,
            fallbacks: counters(
                "cuporep_fallbacks_total",
                "Attempts at proofs that a device failed at or was passed over for, by the number of the error.",
                &["from", "to", "reason"],
            )?,
            wait_seconds: Histogram::with_opts(histogram(
                "cuporep_queue_wait_seconds",
                "Time that calls waited for memory and a place on a device.",
                &WAIT_SECONDS,
            ))?,
            load_seconds: Histogram::with_opts(histogram(
                "cuporep_params_load_seconds",
                "Time of reading and decoding parameters that were not loaded yet.",
                &LOAD_SECONDS,
            ))?,
            registry,
        };
        let all: [Box<dyn Collector>; 7] = [
            Box::new(metrics.proofs.clone()),
            Box::new(metrics.proof_seconds.clone()),
            Box::new(metrics.stage_seconds.clone()),
            Box::new(metrics.verify_failures.clone()),
            Box::new(metrics.fallbacks.clone()),
            Box::new(metrics.wait_seconds.clone()),
            Box::new(metrics.load_seconds.clone()),
        ];
        all.into_iter().try_for_each(|one| metrics.registry.register(one))?;
        Ok(metrics)
    }

    /// A proof was made on some devices or could not be. What it is of is known from when its input was checked.
    pub fn proof_ended(&self, what: Option<What>, outcome: Result<&str, &Error>, elapsed: Duration) {
        let What { kind, size } = what.unwrap_or(What { kind: UNKNOWN, size: UNKNOWN });
        let (backend, result) = match outcome {
            Ok(devices) => (backend(devices), "ok"),
            Err(error) => (NONE, error.class().name()),
        };
        self.proofs.with_label_values(&[kind, size, backend, result]).inc();
        if outcome.is_ok() {
            self.proof_seconds.observe(elapsed.as_secs_f64());
        }
    }

    /// Devices failed at a proof or were passed over; `to` are those that made it, if any did.
    pub fn fell_back(&self, fallbacks: &[Fallback], to: Option<&str>) {
        let to = match to {
            None => NONE,
            Some(several) if several.contains(SEPARATOR) => "several",
            Some(one) => Device::label(one),
        };
        for fallback in fallbacks {
            let (from, reason) = (Device::label(&fallback.device), fallback.code.to_string());
            self.fallbacks.with_label_values(&[from, to, &reason]).inc();
        }
    }

    /// All of it, with a prover's state, in Prometheus' text format.
    pub fn text(&self, status: &Status) -> Result<String> {
        let fail = |error| Error::internal(format!("metrics: {error}"));
        let mut families = self.registry.gather();
        families.extend(gauges(status).map_err(fail)?);
        families.sort_by(|one, other| one.name().cmp(other.name()));
        let mut text = Vec::new();
        TextEncoder::new().encode(&families, &mut text).map_err(fail)?;
        String::from_utf8(text).map_err(|_| Error::internal("metrics: not a text"))
    }
}

impl Observer for Metrics {
    fn stage_ended(&self, stage: Stage, elapsed: Duration) {
        self.stage_seconds.with_label_values(&[stage.name()]).observe(elapsed.as_secs_f64());
        if stage == Stage::Queue {
            self.wait_seconds.observe(elapsed.as_secs_f64());
        }
    }

    fn parameters_loaded(&self, elapsed: Duration) {
        self.load_seconds.observe(elapsed.as_secs_f64());
    }

    fn verify_failed(&self, device: &str) {
        self.verify_failures.with_label_values(&[Device::label(device)]).inc();
    }
}

fn histogram(name: &str, help: &str, buckets: &[f64]) -> HistogramOpts {
    HistogramOpts::new(name, help).buckets(buckets.to_vec())
}

fn counters(name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntCounterVec> {
    IntCounterVec::new(Opts::new(name, help), labels)
}

/// The kinds of devices in a proof's list of them.
fn backend(devices: &str) -> &'static str {
    match (devices.contains("cuda"), devices.split(SEPARATOR).any(|device| device == "cpu")) {
        (true, true) => "cuda+cpu",
        (true, false) => "cuda",
        (false, _) => "cpu",
    }
}

/// What is read off when it is asked for. Made anew each time: a device that is gone leaves nothing behind.
fn gauges(status: &Status) -> prometheus::Result<Vec<MetricFamily>> {
    let features = if cfg!(feature = "cuda") { "cpu,cuda" } else { "cpu" };
    let build = Gauge::new("cuporep_build_info", "1, with what is running.", &["version", "features"])?;
    build.set(&[env!("CARGO_PKG_VERSION"), features], 1);

    let depth = Gauge::new("cuporep_queue_depth", "Calls that wait for memory or a place on a device.", &[])?;
    depth.set(&[], status.waiting as u64);

    let host =
        Gauge::new("cuporep_host_memory_bytes", "Host memory set aside now, the most ever, and the limit.", &["use"])?;
    host.set(&["reserved"], status.host_reserved);
    host.set(&["peak"], status.host_peak);
    if let Some(budget) = status.host_budget {
        host.set(&["limit"], budget);
    }

    let inflight = Gauge::new("cuporep_inflight_partitions", "Partitions in work on a device.", &["device"])?;
    let up =
        Gauge::new("cuporep_device_up", "1 for a GPU that is used, 0 for one passed over since it failed.", &["uuid"])?;
    let memory = Gauge::new(
        "cuporep_device_memory_bytes",
        "Memory of a GPU that this prover holds, and for what.",
        &["uuid", "use"],
    )?;
    for device in &status.devices {
        inflight.set(&[Device::label(&device.name)], device.partitions as u64);
        if !device.uuid.is_empty() {
            up.set(&[&device.uuid], device.is_up().into());
            let DeviceMemory { tables, bases, proofs, .. } = device.memory;
            let uses = [("held", device.bytes), ("tables", tables), ("bases", bases), ("proofs", proofs)];
            uses.into_iter().for_each(|(name, bytes)| memory.set(&[&device.uuid, name], bytes));
        }
    }
    Ok([build, depth, host, inflight, up, memory].into_iter().flat_map(Gauge::families).collect())
}

/// Gauges of one name.
struct Gauge(IntGaugeVec);

impl Gauge {
    fn new(name: &str, help: &str, labels: &[&str]) -> prometheus::Result<Self> {
        IntGaugeVec::new(Opts::new(name, help), labels).map(Gauge)
    }

    fn set(&self, labels: &[&str], value: u64) {
        self.0.with_label_values(labels).set(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// None if nothing was set.
    fn families(self) -> impl Iterator<Item = MetricFamily> {
        self.0.collect().into_iter().filter(|family| !family.get_metric().is_empty())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::prover::DeviceStatus;

    /// A text as a scraper understands it: types by name, and values by name with labels.
    pub(crate) struct Read {
        pub types: BTreeMap<String, String>,
        pub values: BTreeMap<String, f64>,
    }

    impl Read {
        /// Every sample must belong to the family before it, whose help and type must be said once.
        pub(crate) fn of(text: &str) -> Self {
            let mut read = Read { types: BTreeMap::new(), values: BTreeMap::new() };
            let (mut helped, mut family) = (String::new(), String::new());
            assert!(text.ends_with('\n'));
            for line in text.lines() {
                if let Some(help) = line.strip_prefix("# HELP ") {
                    let (name, help) = help.split_once(' ').unwrap();
                    assert!(name.starts_with("cuporep_") && help.ends_with('.'), "{line}");
                    helped = name.into();
                } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                    let (name, kind) = kind.split_once(' ').unwrap();
                    assert_eq!(name, helped, "help first");
                    assert!(read.types.insert(name.into(), kind.into()).is_none(), "{name} twice");
                    family = name.into();
                } else {
                    let (sample, value) = line.rsplit_once(' ').unwrap();
                    let rest = sample.strip_prefix(&family).unwrap_or_else(|| panic!("{line} in {family}"));
                    let suffix = rest.split('{').next().unwrap();
                    let suffixes: &[&str] = match read.types[&family].as_str() {
                        "histogram" => &["_bucket", "_sum", "_count"],
                        _ => &[""],
                    };
                    assert!(suffixes.contains(&suffix), "{line}");
                    assert!(read.values.insert(sample.into(), value.parse().unwrap()).is_none(), "{sample} twice");
                }
            }
            read
        }

        /// The samples whose names with labels begin so, without buckets.
        pub(crate) fn some(&self, begin: &str) -> Vec<(&str, f64)> {
            let wanted = self.values.iter().filter(|(name, _)| name.starts_with(begin) && !name.contains("_bucket"));
            wanted.map(|(name, value)| (name.as_str(), *value)).collect()
        }
    }

    fn device(uuid: &str, partitions: usize, bytes: u64, set_aside: Option<Duration>) -> DeviceStatus {
        let name = if uuid.is_empty() { "cpu".into() } else { format!("cuda:0 Some GPU ({uuid})") };
        let memory = DeviceMemory { tables: bytes / 10, bases: bytes / 2, proofs: bytes / 3 };
        DeviceStatus { name, uuid: uuid.into(), set_aside, proofs: 1, partitions, bytes, memory }
    }

    fn status(devices: Vec<DeviceStatus>) -> Status {
        Status {
            waiting: 3,
            running: 1,
            host_reserved: 5 << 40,
            host_peak: 6 << 40,
            host_budget: None,
            shut_down: false,
            devices,
        }
    }

    #[test]
    fn every_metric_has_its_name_type_and_labels() {
        let metrics = Metrics::new().unwrap();
        let proof = RegisteredProof::all().next().unwrap();
        let second = Duration::from_secs(1);
        metrics.proof_ended(Some(proof.into()), Ok("cuda:0 Some GPU (GPU-1), cpu"), second);
        metrics.proof_ended(None, Err(&Error::internal("free text")), second);
        let device_error = Error::DeviceLost { device: "free text".into(), detail: "free text".into() };
        metrics.fell_back(&[Fallback::new("cuda:0 Some GPU (GPU-1)", &device_error)], Some("cuda:1 Some GPU (GPU-2)"));
        metrics.fell_back(&[Fallback::new("cuda", &device_error)], Some("cuda:0 A (GPU-1), cuda:1 B (GPU-2)"));
        metrics.fell_back(&[Fallback::new("cpu", &device_error)], None);
        metrics.verify_failed("cuda:1 Some GPU (GPU-2)");
        metrics.stage_ended(Stage::Queue, Duration::from_millis(250));
        metrics.stage_ended(Stage::SumH, second);
        metrics.parameters_loaded(4 * second);
        let down = device("GPU-2", 0, 0, Some(second));
        let text = metrics.text(&status(vec![device("GPU-1", 7, 123, None), down, device("", 2, 0, None)])).unwrap();
        assert!(!text.contains("free"), "{text}");
        let read = Read::of(&text);
        let types: Vec<(&str, &str)> = read.types.iter().map(|(name, kind)| (name.as_str(), kind.as_str())).collect();
        assert_eq!(
            types,
            [
                ("cuporep_build_info", "gauge"),
                ("cuporep_device_memory_bytes", "gauge"),
                ("cuporep_device_up", "gauge"),
                ("cuporep_fallbacks_total", "counter"),
                ("cuporep_host_memory_bytes", "gauge"),
                ("cuporep_inflight_partitions", "gauge"),
                ("cuporep_params_load_seconds", "histogram"),
                ("cuporep_proof_duration_seconds", "histogram"),
                ("cuporep_proofs_total", "counter"),
                ("cuporep_queue_depth", "gauge"),
                ("cuporep_queue_wait_seconds", "histogram"),
                ("cuporep_stage_duration_seconds", "histogram"),
                ("cuporep_verify_failures_total", "counter"),
            ]
        );
        let features = if cfg!(feature = "cuda") { "cpu,cuda" } else { "cpu" };
        let build = format!("cuporep_build_info{{features=\"{features}\",version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
        assert_eq!(
            read.some(""),
            [
                (build.as_str(), 1.0),
                ("cuporep_device_memory_bytes{use=\"bases\",uuid=\"GPU-1\"}", 61.0),
                ("cuporep_device_memory_bytes{use=\"bases\",uuid=\"GPU-2\"}", 0.0),
                ("cuporep_device_memory_bytes{use=\"held\",uuid=\"GPU-1\"}", 123.0),
                ("cuporep_device_memory_bytes{use=\"held\",uuid=\"GPU-2\"}", 0.0),
                ("cuporep_device_memory_bytes{use=\"proofs\",uuid=\"GPU-1\"}", 41.0),
                ("cuporep_device_memory_bytes{use=\"proofs\",uuid=\"GPU-2\"}", 0.0),
                ("cuporep_device_memory_bytes{use=\"tables\",uuid=\"GPU-1\"}", 12.0),
                ("cuporep_device_memory_bytes{use=\"tables\",uuid=\"GPU-2\"}", 0.0),
                ("cuporep_device_up{uuid=\"GPU-1\"}", 1.0),
                ("cuporep_device_up{uuid=\"GPU-2\"}", 0.0),
                ("cuporep_fallbacks_total{from=\"GPU-1\",reason=\"304\",to=\"GPU-2\"}", 1.0),
                ("cuporep_fallbacks_total{from=\"cpu\",reason=\"304\",to=\"none\"}", 1.0),
                ("cuporep_fallbacks_total{from=\"cuda\",reason=\"304\",to=\"several\"}", 1.0),
                ("cuporep_host_memory_bytes{use=\"peak\"}", (6u64 << 40) as f64),
                ("cuporep_host_memory_bytes{use=\"reserved\"}", (5u64 << 40) as f64),
                ("cuporep_inflight_partitions{device=\"GPU-1\"}", 7.0),
                ("cuporep_inflight_partitions{device=\"GPU-2\"}", 0.0),
                ("cuporep_inflight_partitions{device=\"cpu\"}", 2.0),
                ("cuporep_params_load_seconds_count", 1.0),
                ("cuporep_params_load_seconds_sum", 4.0),
                ("cuporep_proof_duration_seconds_count", 1.0),
                ("cuporep_proof_duration_seconds_sum", 1.0),
                ("cuporep_proofs_total{backend=\"cuda+cpu\",kind=\"V1\",result=\"ok\",size=\"2KiB\"}", 1.0),
                ("cuporep_proofs_total{backend=\"none\",kind=\"unknown\",result=\"internal\",size=\"unknown\"}", 1.0),
                ("cuporep_queue_depth", 3.0),
                ("cuporep_queue_wait_seconds_count", 1.0),
                ("cuporep_queue_wait_seconds_sum", 0.25),
                ("cuporep_stage_duration_seconds_count{stage=\"queue\"}", 1.0),
                ("cuporep_stage_duration_seconds_count{stage=\"sum_h\"}", 1.0),
                ("cuporep_stage_duration_seconds_sum{stage=\"queue\"}", 0.25),
                ("cuporep_stage_duration_seconds_sum{stage=\"sum_h\"}", 1.0),
                ("cuporep_verify_failures_total{device=\"GPU-2\"}", 1.0),
            ]
        );
        assert_eq!(read.values["cuporep_queue_wait_seconds_bucket{le=\"0.5\"}"], 1.0);
        assert_eq!(read.values["cuporep_queue_wait_seconds_bucket{le=\"0.1\"}"], 0.0);
    }

    #[test]
    fn buckets_ascend_and_reach_from_the_fastest_to_the_slowest() {
        for buckets in [&PROOF_SECONDS[..], &STAGE_SECONDS, &WAIT_SECONDS, &LOAD_SECONDS] {
            assert!(buckets.windows(2).all(|pair| pair[0] < pair[1]), "{buckets:?}");
        }
    }

    #[test]
    fn devices_are_called_by_their_uuids() {
        let gpu =
            Device { ordinal: 3, name: "A (strange) name".into(), uuid: "GPU-5e3a".into(), compute: (9, 0), memory: 0 };
        assert_eq!(Device::label(&gpu.to_string()), "GPU-5e3a");
        assert_eq!((Device::label("cpu"), Device::label("cuda")), ("cpu", "cuda"));
    }
}
