//! What is counted of proofs of a small circuit.

use std::time::Duration;

use super::testing::{eventually, prover, prover_of, within, FakeGpus, Step, SMALL};
use super::tests::{prove, prove_with};
use super::*;
use crate::metrics::tests::Read;
use crate::pipeline::CancelToken;

fn prover_on(policy: Policy, gpus: FakeGpus) -> Prover {
    prover(gpus, Placement { policy: Some(policy), devices: Vec::new() })
}

fn read(prover: &Prover) -> Read {
    Read::of(&prover.metrics().unwrap())
}

fn circuits(backend: &str, result: &str) -> String {
    format!("cuporep_proofs_total{{backend={backend:?},kind=\"circuit\",result={result:?},size=\"none\"}}")
}

fn fallback(from: &str, reason: i32, to: &str) -> String {
    format!("cuporep_fallbacks_total{{from={from:?},reason=\"{reason}\",to={to:?}}}")
}

#[test]
fn proofs_move_the_counters_and_end_with_nothing_in_work() {
    let prover = prover_on(Policy::PreferGpu, FakeGpus::new(&["GPU-a"]));
    assert!(read(&prover).some("cuporep_proofs_total").is_empty());
    (0..3).for_each(|_| drop(prove(&prover).unwrap()));
    let after = read(&prover);
    assert_eq!(after.some("cuporep_proofs_total"), [(circuits("cuda", "ok").as_str(), 3.0)]);
    assert!(after.some("cuporep_fallbacks_total").is_empty());
    assert_eq!(after.values["cuporep_proof_duration_seconds_count"], 3.0);
    assert_eq!(after.values["cuporep_queue_wait_seconds_count"], 3.0);
    for stage in ["queue", "parameters", "witness", "evaluate", "sum_h", "verify"] {
        let count = format!("cuporep_stage_duration_seconds_count{{stage={stage:?}}}");
        assert_eq!(after.values[&count], 3.0, "{stage}");
    }
    // Each of the test's proofs has a parameter file of its own.
    assert_eq!(after.values["cuporep_params_load_seconds_count"], 3.0);
    assert_eq!(after.values["cuporep_queue_depth"], 0.0);
    assert_eq!(after.values["cuporep_device_up{uuid=\"GPU-a\"}"], 1.0);
    assert_eq!(after.values["cuporep_inflight_partitions{device=\"GPU-a\"}"], 0.0);
    assert_eq!(after.values["cuporep_inflight_partitions{device=\"cpu\"}"], 0.0);
    let reserved = after.values["cuporep_host_memory_bytes{use=\"reserved\"}"];
    let peak = after.values["cuporep_host_memory_bytes{use=\"peak\"}"];
    assert!(reserved <= peak && peak > 0.0, "{reserved} {peak}");
}

#[test]
fn failures_and_fallbacks_are_counted_by_number_and_class() {
    let lost = FakeGpus::new(&["GPU-a"]).proving(0, &[Step::Lost, Step::Lost]);
    let mut prover = prover_on(Policy::PreferGpu, lost);
    prover.lanes.timing.set_aside = Duration::from_secs(600);
    prove(&prover).unwrap();
    let after = read(&prover);
    assert_eq!(after.some("cuporep_fallbacks_total"), [(fallback("cuda:0", 304, "cpu").as_str(), 2.0)]);
    assert_eq!(after.some("cuporep_proofs_total"), [(circuits("cpu", "ok").as_str(), 1.0)]);
    assert_eq!(after.values["cuporep_device_up{uuid=\"GPU-a\"}"], 0.0, "passed over for a while");

    let full = FakeGpus::new(&["GPU-a"]).proving(0, &[Step::NoMemory]);
    let prover = prover_on(Policy::GpuOnly, full);
    assert!(prove(&prover).is_err());
    let after = read(&prover);
    assert_eq!(after.some("cuporep_fallbacks_total"), [(fallback("cuda:0", 300, "none").as_str(), 1.0)]);
    assert_eq!(after.some("cuporep_proofs_total"), [(circuits("none", "resource").as_str(), 1.0)]);
    assert_eq!(after.values["cuporep_proof_duration_seconds_count"], 0.0, "of proofs that were made");
}

#[test]
fn proofs_that_do_not_verify_are_counted_by_device() {
    let wrong = FakeGpus::new(&["GPU-a"]).proving(0, &[Step::Wrong, Step::Wrong, Step::Well, Step::Wrong]);
    let prover = prover_on(Policy::PreferGpu, wrong);
    prove(&prover).unwrap();
    let after = read(&prover);
    assert_eq!(
        after.some("cuporep_verify_failures_total"),
        [("cuporep_verify_failures_total{device=\"cuda:0\"}", 2.0)]
    );
    assert_eq!(after.some("cuporep_fallbacks_total"), [(fallback("cuda:0", 502, "cpu").as_str(), 1.0)]);
}

#[test]
fn a_cancelled_proof_and_a_refused_input_are_counted_as_such() {
    let prover = prover_on(Policy::Cpu, FakeGpus::new(&[]));
    let token = CancelToken::new();
    token.cancel();
    assert!(prove_with(&prover, &Control::new().with_cancel(token)).is_err());
    let request = ProveRequest {
        c1: b"{}",
        sector: 1,
        miner: Some(1000),
        parameter_dir: None,
        placement: Placement::default(),
        fixed_randomness: None,
        control: Control::new(),
    };
    prover.prove(&request).unwrap_err();
    let refused = "cuporep_proofs_total{backend=\"none\",kind=\"unknown\",result=\"input\",size=\"unknown\"}";
    let after = read(&prover);
    assert_eq!(after.some("cuporep_proofs_total"), [(circuits("none", "cancelled").as_str(), 1.0), (refused, 1.0)]);
}

#[test]
fn provers_count_by_themselves() {
    let (one, other) = (prover_on(Policy::Cpu, FakeGpus::new(&[])), prover_on(Policy::Cpu, FakeGpus::new(&[])));
    prove(&one).unwrap();
    assert!(read(&other).some("cuporep_proofs_total").is_empty());
}

#[test]
fn what_waits_and_what_is_in_work_is_seen_while_it_is_so() {
    within(60, || {
        let gpus = FakeGpus::new(&["GPU-a"]).proving(0, &[Step::Wait]);
        let placement = Placement { policy: Some(Policy::GpuOnly), devices: Vec::new() };
        let prover = prover_of(gpus.clone(), Config { placement, gpu_workers: Some(1), ..Config::default() });
        let gauges = || {
            let read = read(&prover);
            let of = |name: &str| read.values.get(name).copied();
            let device = "cuporep_device_memory_bytes{use=\"held\",uuid=\"GPU-a\"}";
            (of("cuporep_queue_depth"), of("cuporep_inflight_partitions{device=\"GPU-a\"}"), of(device))
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| SMALL.prove(&prover, 3, &Control::new()).is_ok());
            gpus.script.wait_for_waiting(1);
            let second = scope.spawn(|| SMALL.prove(&prover, 2, &Control::new()).is_ok());
            let megabyte = f64::from(1 << 20);
            eventually("the second waits", || gauges() == (Some(1.0), Some(3.0), Some(megabyte)));
            gpus.script.go_on();
            assert!(first.join().unwrap() && second.join().unwrap());
        });
        let (waiting, partitions, _) = gauges();
        assert_eq!((waiting, partitions), (Some(0.0), Some(0.0)));
        let waits = read(&prover).values["cuporep_queue_wait_seconds_sum"];
        assert!(waits > 0.0, "{waits}");
    });
}
