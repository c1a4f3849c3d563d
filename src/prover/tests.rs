use super::testing::{prover, FakeGpus, Step};
use super::*;
use crate::groth16::testing::{Assignment, Chain, Fixture};

const UUIDS: [&str; 2] = ["GPU-a", "GPU-b"];

/// The device that made it, and the devices that failed before with their errors' numbers; or the last error's.
pub(super) type Outcome = std::result::Result<(String, Vec<(String, i32)>), i32>;

/// Proves a small circuit.
pub(super) fn prove(prover: &Prover) -> Result<Made> {
    prove_with(prover, &Control::new())
}

pub(super) fn prove_with(prover: &Prover, control: &Control) -> Result<Made> {
    let circuit = Chain::small();
    let fixture = Fixture::new(circuit.clone(), 1);
    let inputs = Assignment::of(circuit.clone()).inputs;
    prover.make_circuit(circuit, &inputs[1..], &fixture.r1cs, &fixture.open().unwrap(), control)
}

pub(super) fn outcome(made: Result<Made>) -> Outcome {
    let made = made.map_err(|error| error.code())?;
    assert_eq!(made.bytes.len(), PROOF_BYTES);
    let fallbacks = made.fallbacks.into_iter().map(|fallback| (fallback.device, fallback.code));
    Ok((made.device, fallbacks.collect()))
}

fn on(policy: Policy, gpus: FakeGpus) -> Outcome {
    outcome(prove(&prover(gpus, Placement { policy: Some(policy), devices: Vec::new() })))
}

pub(super) fn made(device: &str, fallbacks: &[(&str, i32)]) -> Outcome {
    Ok((device.into(), fallbacks.iter().map(|&(device, code)| (device.into(), code)).collect()))
}

fn gpus(count: usize) -> FakeGpus {
    FakeGpus::new(&UUIDS[..count])
}

#[test]
fn the_first_device_makes_the_proof_if_it_can() {
    assert_eq!(on(Policy::PreferGpu, gpus(2)), made("cuda:0", &[]));
    assert_eq!(on(Policy::GpuOnly, gpus(2)), made("cuda:0", &[]));
    assert_eq!(on(Policy::Cpu, gpus(2)), made("cpu", &[]));
    assert_eq!(on(Policy::PreferGpu, gpus(0)), made("cpu", &[]));
}

#[test]
fn a_lost_context_is_tried_once_more_on_the_same_device() {
    let once = || gpus(1).proving(0, &[Step::Lost]);
    assert_eq!(on(Policy::PreferGpu, once()), made("cuda:0", &[("cuda:0", 304)]));
    assert_eq!(on(Policy::GpuOnly, once()), made("cuda:0", &[("cuda:0", 304)]));
    let twice = || gpus(1).proving(0, &[Step::Lost, Step::Lost]);
    assert_eq!(on(Policy::PreferGpu, twice()), made("cpu", &[("cuda:0", 304), ("cuda:0", 304)]));
    assert_eq!(on(Policy::GpuOnly, twice()), Err(304));
}

#[test]
fn a_device_without_memory_is_passed_over_at_once() {
    let full = |count| gpus(count).proving(0, &[Step::NoMemory]);
    assert_eq!(on(Policy::PreferGpu, full(2)), made("cuda:1", &[("cuda:0", 300)]));
    assert_eq!(on(Policy::GpuOnly, full(2)), made("cuda:1", &[("cuda:0", 300)]));
    assert_eq!(on(Policy::PreferGpu, full(1)), made("cpu", &[("cuda:0", 300)]));
    assert_eq!(on(Policy::GpuOnly, full(1)), Err(300));
}

#[test]
fn a_device_that_does_not_open_is_passed_over_and_tried_again_by_the_next_proof() {
    let gpus = gpus(1).opening(0, &[Step::NoMemory]);
    let prover = prover(gpus.clone(), Placement { policy: Some(Policy::PreferGpu), devices: Vec::new() });
    assert_eq!(outcome(prove(&prover)), made("cpu", &[("cuda:0 Fake (GPU-a)", 300)]));
    assert_eq!(outcome(prove(&prover)), made("cuda:0", &[]));
    assert_eq!(outcome(prove(&prover)), made("cuda:0", &[]));
    assert_eq!(*gpus.script.calls.lock(), ["open 0", "open 0", "prove 0", "prove 0"]);
}

#[test]
fn wrong_sums_are_made_again_and_then_elsewhere() {
    let wrong = |count, times| gpus(count).proving(0, &vec![Step::Wrong; times]);
    assert_eq!(on(Policy::GpuOnly, wrong(1, 1)), made("cuda:0", &[]));
    assert_eq!(on(Policy::GpuOnly, wrong(2, 2)), made("cuda:1", &[("cuda:0", 502)]));
    assert_eq!(on(Policy::PreferGpu, wrong(1, 2)), made("cpu", &[("cuda:0", 502)]));
    assert_eq!(on(Policy::GpuOnly, wrong(1, 2)), Err(502));
    // Memory that may hold the wrong numbers is given back before the next attempt.
    let gpus = wrong(1, 2);
    on(Policy::PreferGpu, gpus.clone()).unwrap();
    assert_eq!(*gpus.script.calls.lock(), ["open 0", "prove 0", "release 0", "prove 0", "release 0"]);
}

#[test]
fn an_error_that_is_not_the_devices_ends_the_proof() {
    let gpus = gpus(2).proving(0, &[Step::BadFile]);
    assert_eq!(on(Policy::PreferGpu, gpus.clone()), Err(203));
    assert_eq!(*gpus.script.calls.lock(), ["open 0", "prove 0"]);
}

#[test]
fn gpus_that_cannot_be_asked_are_a_fallback() {
    assert_eq!(on(Policy::PreferGpu, gpus(1).with_broken_list()), made("cpu", &[("cuda", 302)]));
    assert_eq!(on(Policy::GpuOnly, gpus(1).with_broken_list()), Err(302));
}

#[test]
fn release_reaches_every_opened_device() {
    let gpus = gpus(2).proving(0, &[Step::NoMemory]);
    let prover = prover(gpus.clone(), Placement { policy: Some(Policy::GpuOnly), devices: Vec::new() });
    prove(&prover).unwrap();
    gpus.script.calls.lock().clear();
    prover.release();
    let mut released = gpus.script.calls.lock().clone();
    released.sort();
    assert_eq!(released, ["release 0", "release 1"]);
}
