//! Provers on emulated GPUs: what the driver's errors come to.

use std::sync::{mpsc, Arc};
use std::thread;
use std::time::{Duration, Instant};

use super::testing::{within, SMALL};
use super::tests::{made, outcome, prove, prove_with};
use super::*;
use crate::backend::accelerator::Accelerators;
use crate::backend::cuda::backend::CudaGpus;
use crate::backend::cuda::card::{devices, Card};
use crate::backend::cuda::gpu::emulated::{self, census};
use crate::backend::cuda::gpu::{args, Gpu};
use crate::backend::cuda::testing;
use crate::backend::{Backend, Device, DeviceMemory, Job};
use crate::groth16::ProofParts;
use crate::pipeline::{CancelToken, Trace};
use crate::r1cs::Constraints;

/// GPUs that do a little work on the device and leave the sums to the CPU.
struct EmulatedGpus;

struct EmulatedGpu {
    card: Card<()>,
    cpu: CpuBackend,
}

impl Accelerators for EmulatedGpus {
    fn list(&self) -> Result<Vec<Device>> {
        devices()
    }

    fn why_none(&self) -> String {
        "there are none".into()
    }

    fn host_memory(&self, load: &Load) -> u64 {
        CpuBackend::default().host_memory(load)
    }

    fn open(&self, device: &Device, _: Option<u64>) -> Result<Arc<dyn Backend>> {
        let gpu = EmulatedGpu { card: Card::new(device), cpu: CpuBackend::default() };
        gpu.card.with(|_, ()| Ok(()))?;
        Ok(Arc::new(gpu))
    }
}

/// Reverses words and compares them.
fn reverse(gpu: &Gpu) -> Result<()> {
    let words: Vec<u32> = (0..256).collect();
    let (stream, buffer) = (gpu.stream()?, gpu.allocate::<u32>(words.len(), "words")?);
    stream.upload(buffer.span(), &words)?;
    stream.launch("selftest_reverse", 1, 256, 1024, &args![buffer.span()])?;
    let mut reversed = vec![0; words.len()];
    stream.download(buffer.span(), &mut reversed)?;
    match reversed.iter().rev().eq(&words) {
        true => Ok(()),
        false => Err(Error::Transform { detail: "words are not in their order".into() }),
    }
}

impl Backend for EmulatedGpu {
    fn name(&self) -> &str {
        self.card.name()
    }

    fn host_memory(&self, load: &Load) -> u64 {
        self.cpu.host_memory(load)
    }

    fn kept_memory(&self) -> u64 {
        self.cpu.kept_memory()
    }

    fn device_memory(&self) -> u64 {
        self.card.memory()
    }

    fn load(&self, r1cs: &dyn Constraints, parameters: &Parameters, witnesses: usize, control: &Control) -> Result<()> {
        self.cpu.load(r1cs, parameters, witnesses, control)
    }

    fn prove(&self, job: &Job<'_>) -> Result<Vec<ProofParts>> {
        self.card.with(|gpu, ()| reverse(gpu))?;
        self.cpu.prove(job)
    }

    fn release(&self) {
        self.card.release();
    }
}

const FIRST: &str = "cuda:0 Emulated GPU (GPU-656d756c-6174-6564-0000-000000000000)";
const SECOND: &str = "cuda:1 Emulated GPU (GPU-656d756c-6174-6564-0000-000000000001)";

fn emulated_prover(placement: &str, policy: Policy) -> Prover {
    let placement = Placement { policy: Some(policy), ..placement.parse().unwrap() };
    let config = Config { placement, threads: Some(1), ..Config::default() };
    let mut prover = Prover::with_accelerators(config, Arc::new(EmulatedGpus)).unwrap();
    prover.lanes.timing.set_aside = Duration::ZERO;
    prover
}

#[test]
fn a_whole_proof_is_made_on_a_gpu_and_traced() {
    let Some(_machine) = testing::machine() else { return };
    let prover = Prover::with_accelerators(Config::default(), Arc::new(CudaGpus)).unwrap();
    let trace = Trace::new();
    assert_eq!(outcome(prove_with(&prover, &Control::new().with_trace(trace.clone()))), made(FIRST, &[]));
    let second = prove(&prover).unwrap();
    assert!(second.device_memory > 0, "bases stay");
    assert_eq!(outcome(Ok(second)), made(FIRST, &[]));
    drop(prover);
    assert_eq!(census(), Default::default());
    let json = trace.to_json();
    let events = json["traceEvents"].as_array().unwrap();
    let count = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    assert_eq!((count("ntt_meet"), count("verify")), (1, 1), "the first proof only, on the device and the host");
}

#[test]
fn a_prover_opens_a_gpu_when_it_first_proves_and_closes_it_when_it_is_dropped() {
    let Some(_machine) = testing::machine() else { return };
    let prover = emulated_prover("auto", Policy::PreferGpu);
    assert_eq!(census().contexts, 0);
    assert_eq!(outcome(prove(&prover)), made(FIRST, &[]));
    assert_eq!(outcome(prove(&prover)), made(FIRST, &[]));
    assert_eq!((census().contexts, census().allocations), (1, 0));
    prover.release();
    assert_eq!(census(), Default::default());
    assert_eq!(outcome(prove(&prover)), made(FIRST, &[]));
    drop(prover);
    assert_eq!(census(), Default::default());
}

#[test]
fn an_error_that_spoils_the_context_is_mended_by_a_new_one() {
    for call in ["cuLaunchKernel", "cuStreamSynchronize", "cuMemcpyDtoHAsync"] {
        let Some(_machine) = testing::machine() else { return };
        let prover = emulated_prover("gpu", Policy::GpuOnly);
        prove(&prover).unwrap();
        emulated::fault(call, 0, 719, true);
        assert_eq!(outcome(prove(&prover)), made(FIRST, &[(FIRST, 304)]), "{call}");
        assert_eq!((census().contexts, census().faults), (1, 0));
        assert_eq!(outcome(prove(&prover)), made(FIRST, &[]));
    }
}

#[test]
fn a_device_that_stays_broken_is_an_error_or_a_fallback() {
    let Some(_machine) = testing::machine() else { return };
    let break_for_good = || {
        emulated::reset();
        (0..4).for_each(|nth| emulated::fault("cuLaunchKernel", nth, 719, true));
    };
    break_for_good();
    assert_eq!(outcome(prove(&emulated_prover("gpu", Policy::GpuOnly))), Err(304));
    break_for_good();
    // Already the self-test fails.
    assert_eq!(outcome(prove(&emulated_prover("auto", Policy::PreferGpu))), made("cpu", &[(FIRST, 304)]));
    assert_eq!(census().contexts, 0);
}

#[test]
fn a_device_without_memory_or_with_wrong_results_is_passed_over() {
    let Some(_machine) = testing::machine() else { return };
    emulated::set_devices(2);
    let prover = emulated_prover("auto", Policy::PreferGpu);
    prove(&prover).unwrap();
    emulated::fault("cuMemAlloc", 0, 2, false);
    assert_eq!(outcome(prove(&prover)), made(SECOND, &[(FIRST, 300)]));
    // The first three copies are those of the self-test.
    emulated::corrupt(3);
    assert_eq!(outcome(prove(&prover)), made(SECOND, &[(FIRST, 503)]));
    assert_eq!(outcome(prove(&prover)), made(FIRST, &[]));
    // Two devices, the first asked for by name.
    assert_eq!(outcome(prove(&emulated_prover("cuda:1,cuda:0", Policy::GpuOnly))), made(SECOND, &[]));
}

#[test]
fn a_build_without_kernels_for_the_device_falls_back_and_says_so() {
    let Some(_machine) = testing::machine() else { return };
    emulated::fault("cuModuleLoadData", 0, 209, false);
    let made_on = prove(&emulated_prover("auto", Policy::PreferGpu)).unwrap();
    assert_eq!(made_on.device, "cpu");
    assert!(made_on.fallbacks[0].reason.contains("compute capability is 9.0"), "{:?}", made_on.fallbacks);
    emulated::fault("cuModuleLoadData", 0, 209, false);
    assert_eq!(outcome(prove(&emulated_prover("cuda:0", Policy::GpuOnly))), Err(302));
    emulated::set_devices(0);
    assert_eq!(outcome(prove(&emulated_prover("gpu", Policy::GpuOnly))), Err(302));
    assert_eq!(outcome(prove(&emulated_prover("auto", Policy::PreferGpu))), made("cpu", &[]));
}

#[test]
fn a_hundred_proofs_leave_nothing_on_the_device() {
    let Some(_machine) = testing::machine() else { return };
    let prover = emulated_prover("gpu", Policy::GpuOnly);
    prove(&prover).unwrap();
    let before = census();
    for _ in 0..100 {
        prove(&prover).unwrap();
    }
    assert_eq!(census(), before);
}

fn cuda_prover() -> Prover {
    let placement = Placement { policy: Some(Policy::GpuOnly), devices: Vec::new() };
    Prover::with_accelerators(Config { placement, ..Config::default() }, Arc::new(CudaGpus)).unwrap()
}

#[test]
fn release_in_the_middle_leaves_nothing_on_the_device_and_the_proof_is_made() {
    within(120, || {
        let Some(_machine) = testing::machine() else { return };
        let mut prover = cuda_prover();
        prover.lanes.timing.pause = Duration::from_millis(300);
        for stage in [Stage::Parameters, Stage::Shape, Stage::Evaluate, Stage::SumH, Stage::SumB2] {
            // Everything is to be loaded again.
            prover.release();
            let (sender, reached) = mpsc::channel();
            let control = Control::new().with_progress(move |event| {
                // Once: after that nobody listens.
                if event.stage == stage && event.elapsed.is_none() && sender.send(()).is_ok() {
                    thread::sleep(Duration::from_millis(5));
                }
            });
            thread::scope(|scope| {
                let call = scope.spawn(|| SMALL.prove(&prover, 2, &control));
                reached.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("{stage} does not begin"));
                drop(reached);
                let begin = Instant::now();
                prover.release();
                let took = begin.elapsed();
                assert_eq!(census(), Default::default(), "{stage}");
                assert!(took < Duration::from_secs(2), "{stage}: {took:?}");
                let made = call.join().unwrap().unwrap();
                assert_eq!((made.device.as_str(), made.fallbacks.len()), (FIRST, 0), "{stage}");
            });
        }
        drop(prover);
        assert_eq!(census(), Default::default());
    });
}

#[test]
fn whole_and_divided_proofs_of_two_devices_have_the_bytes_of_one() {
    within(120, || {
        let Some(_machine) = testing::machine() else { return };
        let alone = SMALL.prove_fixed(&cuda_prover(), 4).unwrap();
        assert_eq!(alone.device, FIRST);
        emulated::set_devices(2);
        let prover = cuda_prover();
        let divided = SMALL.prove_fixed(&prover, 4).unwrap();
        assert_eq!((divided.device, divided.bytes == alone.bytes), (format!("{FIRST}, {SECOND}"), true));
        let made: Vec<Made> = thread::scope(|scope| {
            let calls: Vec<_> = (0..5).map(|_| scope.spawn(|| SMALL.prove_fixed(&prover, 4).unwrap())).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        assert!(made.iter().all(|made| made.bytes == alone.bytes && made.fallbacks.is_empty()));
        let whole = |device: &str| made.iter().any(|made| made.device == device);
        assert!(whole(FIRST) && whole(SECOND), "each device has proofs of its own");
        drop(prover);
        assert_eq!(census(), Default::default());
    });
}

#[test]
fn a_part_of_a_proof_finds_what_a_whole_one_left() {
    let Some(_machine) = testing::machine() else { return };
    let prover = cuda_prover();
    let shapes = |partitions| {
        let control = Control::new();
        SMALL.prove(&prover, partitions, &control).unwrap();
        control.times().iter().filter(|event| event.stage == Stage::Shape).count()
    };
    assert!(shapes(3) > 0);
    assert_eq!((shapes(3), shapes(2)), (0, 0));
    assert!(shapes(4) > 0, "more at once were not planned for");
}

#[test]
fn proofs_side_by_side_some_cancelled_leave_the_device_as_it_was() {
    within(120, || {
        let Some(_machine) = testing::machine() else { return };
        emulated::set_devices(2);
        let prover = cuda_prover();
        // Two partitions on each device, as a whole proof of those below has.
        SMALL.prove(&prover, 4, &Control::new()).unwrap();
        let before = census();
        thread::scope(|scope| {
            for stage in [Stage::Witness, Stage::Evaluate, Stage::SumH, Stage::SumL, Stage::SumB2, Stage::Verify] {
                let prover = &prover;
                scope.spawn(move || {
                    let token = CancelToken::new();
                    let cancel = token.clone();
                    let control = Control::new().with_cancel(token).with_progress(move |event| {
                        if event.stage == stage {
                            cancel.cancel();
                        }
                    });
                    SMALL.prove(prover, 2, &Control::new()).unwrap();
                    assert_eq!(SMALL.prove(prover, 2, &control).map(drop).unwrap_err().code(), 400, "{stage}");
                    SMALL.prove(prover, 2, &Control::new()).unwrap();
                });
            }
        });
        assert_eq!(census(), before);
        for device in &prover.status().devices[..2] {
            let DeviceMemory { tables, bases, proofs } = device.memory;
            assert!(tables > 0 && bases > 0 && proofs > 0, "{device:?}");
            assert!((tables + bases + proofs).abs_diff(device.bytes) * 20 <= device.bytes, "nearly all: {device:?}");
        }
        prover.release();
        assert_eq!(census(), Default::default());
        assert!(prover.status().devices.iter().all(|device| device.memory == DeviceMemory::default()));
    });
}
