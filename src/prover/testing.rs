//! GPUs that compute on the CPU and fail as a test plans it, and small circuits to prove on them.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{mpsc, Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use group::Group;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::attempts::{Made, Task};
use super::partitions::{Coming, Work};
use super::{Config, FixedRandomness, Placement, Prover};
use crate::backend::accelerator::Accelerators;
use crate::backend::cpu::CpuBackend;
use crate::backend::{Backend, Device, Job, Load};
use crate::error::{Error, Result};
use crate::groth16::testing::{Assignment, Chain, Fixture};
use crate::groth16::{Counts, Parameters, PreparedVerifyingKey, ProofParts};
use crate::pipeline::Control;
use crate::r1cs::Constraints;

/// What a call of a fake GPU comes to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Well,
    Lost,
    NoMemory,
    /// Sums that are not the right ones, and no error.
    Wrong,
    /// An error that no other device would avoid.
    BadFile,
    Panic,
    /// Nothing happens until [`Script::go_on`] or until the call must stop.
    Wait,
}

impl Step {
    fn outcome(self, device: &str) -> Result<()> {
        match self {
            Step::Well | Step::Wrong | Step::Wait => Ok(()),
            Step::Panic => panic!("planned on {device}"),
            Step::Lost => Err(Error::DeviceLost { device: device.into(), detail: "planned".into() }),
            Step::NoMemory => {
                let (what, advice) = (device.into(), "planned".into());
                Err(Error::Memory { what, needed: 2, available: 1, advice })
            }
            Step::BadFile => Err(Error::ParamsContent { path: "planned".into(), detail: "planned".into() }),
        }
    }
}

/// Calls to come and calls that were made, by device.
#[derive(Default)]
pub(super) struct Script {
    openings: Mutex<HashMap<u32, VecDeque<Step>>>,
    proofs: Mutex<HashMap<u32, VecDeque<Step>>>,
    pub calls: Mutex<Vec<String>>,
    /// The partitions of each call to prove.
    pub ranges: Mutex<Vec<(u32, std::ops::Range<usize>)>>,
    waiting: AtomicU64,
    go_on: AtomicBool,
    /// Draws what is not planned.
    chance: Mutex<Option<StdRng>>,
}

impl Script {
    fn next(plan: &Mutex<HashMap<u32, VecDeque<Step>>>, ordinal: u32) -> Step {
        plan.lock().get_mut(&ordinal).and_then(VecDeque::pop_front).unwrap_or(Step::Well)
    }

    /// What a call to prove comes to.
    fn next_proof(&self, ordinal: u32) -> Step {
        match (Script::next(&self.proofs, ordinal), &mut *self.chance.lock()) {
            (Step::Well, Some(chance)) => match chance.gen_range(0..40) {
                0..3 => Step::Lost,
                3..6 => Step::NoMemory,
                6..9 => Step::Wrong,
                9 => Step::Panic,
                _ => Step::Well,
            },
            (step, _) => step,
        }
    }

    /// Waits until so many calls are at [`Step::Wait`].
    pub fn wait_for_waiting(&self, count: u64) {
        eventually(&format!("{count} proofs on devices"), || self.waiting.load(Ordering::SeqCst) == count);
    }

    /// Lets all go on that are there now or come later.
    pub fn go_on(&self) {
        self.go_on.store(true, Ordering::SeqCst);
    }

    fn wait(&self, control: &Control) -> Result<()> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let outcome = loop {
            if self.go_on.load(Ordering::SeqCst) {
                break Ok(());
            }
            if let Err(error) = control.check("a planned wait") {
                break Err(error);
            }
            thread::sleep(Duration::from_millis(1));
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    fn note(&self, call: &str, ordinal: u32) {
        self.calls.lock().push(format!("{call} {ordinal}"));
    }
}

#[derive(Clone, Default)]
pub(super) struct FakeGpus {
    devices: Vec<Device>,
    broken_list: bool,
    pub script: Arc<Script>,
}

impl FakeGpus {
    pub fn new(uuids: &[&str]) -> Self {
        let devices = uuids.iter().zip(0..).map(|(uuid, ordinal)| Device {
            ordinal,
            name: "Fake".into(),
            uuid: (*uuid).into(),
            compute: (9, 0),
            memory: 1 << 30,
        });
        FakeGpus { devices: devices.collect(), ..FakeGpus::default() }
    }

    /// Lets what is not planned come to anything, by the numbers of a seed.
    pub fn by_chance(self, seed: u64) -> Self {
        *self.script.chance.lock() = Some(StdRng::seed_from_u64(seed));
        self
    }

    pub fn with_broken_list(self) -> Self {
        FakeGpus { broken_list: true, ..self }
    }

    /// What the next openings of a device come to.
    pub fn opening(self, ordinal: u32, steps: &[Step]) -> Self {
        self.script.openings.lock().entry(ordinal).or_default().extend(steps);
        self
    }

    /// What the next proofs on a device come to.
    pub fn proving(self, ordinal: u32, steps: &[Step]) -> Self {
        self.script.proofs.lock().entry(ordinal).or_default().extend(steps);
        self
    }
}

impl Accelerators for FakeGpus {
    fn list(&self) -> Result<Vec<Device>> {
        match self.broken_list {
            true => Err(Error::Device { device: "cuda".into(), detail: "planned".into() }),
            false => Ok(self.devices.clone()),
        }
    }

    fn why_none(&self) -> String {
        "there are none in this test".into()
    }

    fn host_memory(&self, load: &Load) -> u64 {
        CpuBackend::default().host_memory(load)
    }

    fn open(&self, device: &Device, _: Option<u64>) -> Result<Arc<dyn Backend>> {
        let name = format!("cuda:{}", device.ordinal);
        self.script.note("open", device.ordinal);
        Script::next(&self.script.openings, device.ordinal).outcome(&name)?;
        let (ordinal, script) = (device.ordinal, self.script.clone());
        Ok(Arc::new(FakeGpu { name, ordinal, script, cpu: CpuBackend::default(), memory: Mutex::default() }))
    }
}

struct FakeGpu {
    name: String,
    ordinal: u32,
    script: Arc<Script>,
    cpu: CpuBackend,
    memory: Mutex<Memory>,
}

/// A device's memory: given back when nobody computes there.
#[derive(Default)]
struct Memory {
    held: bool,
    in_use: usize,
    wanted_back: bool,
}

/// While it lives somebody computes.
struct InUse<'a>(&'a FakeGpu);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let mut memory = self.0.memory.lock();
        memory.in_use -= 1;
        if std::mem::take(&mut memory.wanted_back) {
            memory.held = false;
        }
    }
}

impl Backend for FakeGpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn host_memory(&self, load: &Load) -> u64 {
        self.cpu.host_memory(load)
    }

    fn kept_memory(&self) -> u64 {
        self.cpu.kept_memory()
    }

    fn load(&self, r1cs: &dyn Constraints, parameters: &Parameters, witnesses: usize, control: &Control) -> Result<()> {
        self.cpu.load(r1cs, parameters, witnesses, control)
    }

    fn prove(&self, job: &Job<'_>) -> Result<Vec<ProofParts>> {
        self.script.note("prove", self.ordinal);
        let end = job.first_partition + job.witnesses.len();
        self.script.ranges.lock().push((self.ordinal, job.first_partition..end));
        {
            let mut memory = self.memory.lock();
            (memory.held, memory.in_use) = (true, memory.in_use + 1);
            assert_eq!(memory.in_use, 1, "one computes on a device");
        }
        let _in_use = InUse(self);
        let step = self.script.next_proof(self.ordinal);
        if matches!(step, Step::Wait) {
            self.script.wait(job.control)?;
        }
        step.outcome(&self.name)?;
        let mut parts = self.cpu.prove(job)?;
        if matches!(step, Step::Wrong) {
            parts.iter_mut().for_each(|parts| parts.h = parts.h.double());
        }
        Ok(parts)
    }

    fn release(&self) {
        self.script.note("release", self.ordinal);
        self.cpu.release();
        let mut memory = self.memory.lock();
        match memory.in_use {
            0 => memory.held = false,
            _ => memory.wanted_back = true,
        }
    }

    fn device_memory(&self) -> u64 {
        u64::from(self.memory.lock().held) << 20
    }
}

/// A prover with these GPUs.
pub(super) fn prover(gpus: FakeGpus, placement: Placement) -> Prover {
    prover_of(gpus, Config { placement, ..Config::default() })
}

/// With one thread, so that whatever could wait for itself does. A device that failed is used by the next proof again.
pub(super) fn prover_of(gpus: FakeGpus, config: Config) -> Prover {
    let mut prover = Prover::with_accelerators(Config { threads: Some(1), ..config }, Arc::new(gpus)).unwrap();
    prover.lanes.timing.set_aside = Duration::ZERO;
    prover
}

/// A small circuit with its parameters.
pub(super) struct Small {
    pub fixture: Fixture,
    pub parameters: Parameters,
    pub verifying_key: PreparedVerifyingKey,
}

pub(super) static SMALL: LazyLock<Small> = LazyLock::new(|| {
    let fixture = Fixture::new(Chain::small(), 1);
    let parameters = fixture.open().unwrap();
    let verifying_key = PreparedVerifyingKey::new(parameters.vk());
    Small { fixture, parameters, verifying_key }
});

impl Small {
    /// The circuit with other values for each partition.
    pub fn circuit(partition: usize) -> Chain {
        Chain { start: 3 + 77 * partition as u64, ..Chain::small() }
    }

    pub fn load(&self, partitions: usize) -> Load {
        let r1cs = &self.fixture.r1cs;
        let full = crate::r1cs::Constraints::full_positions(r1cs).len();
        Load { counts: Counts::of(r1cs), full, witnesses: partitions, threads: 1 }
    }

    fn witnesses(&self, partitions: usize, control: &Control, coming: &Coming) -> Result<()> {
        (0..partitions).try_for_each(|partition| {
            let circuit = Small::circuit(partition);
            let inputs = Assignment::of(circuit.clone()).inputs[1..].to_vec();
            let assign = || control.compute(|| self.fixture.r1cs.assign(circuit, control));
            let witness = control.stage(crate::pipeline::Stage::Witness, Some(partition), assign)?;
            coming.put(partition, Arc::new(witness), inputs)
        })
    }

    /// Makes a proof of several partitions, as one of a sector is made, and verifies it.
    pub fn prove(&self, prover: &Prover, partitions: usize, control: &Control) -> Result<Made> {
        self.prove_as(prover, partitions, None, control)
    }

    /// As [`Small::prove`], with bytes that are always the same.
    pub fn prove_fixed(&self, prover: &Prover, partitions: usize) -> Result<Made> {
        let fixed = FixedRandomness::new(5.into(), 7.into());
        self.prove_as(prover, partitions, Some(&fixed), &Control::new())
    }

    fn prove_as(
        &self,
        prover: &Prover,
        partitions: usize,
        randomness: Option<&FixedRandomness>,
        control: &Control,
    ) -> Result<Made> {
        let (_call, control) = prover.begin(control)?;
        let began = Instant::now();
        let made = crate::panics::guard(|| {
            let work = Work {
                r1cs: &self.fixture.r1cs,
                parameters: &self.parameters,
                verifying_key: &self.verifying_key,
                randomness,
                control: &control,
            };
            prover.make(&Task {
                what: "a test".into(),
                began,
                placement: &Placement::default(),
                work,
                load: self.load(partitions),
                input_bytes: 0,
                uses: Vec::new(),
                witnesses: &|control, coming| self.witnesses(partitions, control, coming),
            })
        })?;
        for (partition, bytes) in made.bytes.chunks(crate::groth16::PROOF_BYTES).enumerate() {
            let inputs = Assignment::of(Small::circuit(partition)).inputs;
            assert!(self.verifying_key.verify(bytes, &inputs[1..]).unwrap(), "partition {partition} is not valid");
        }
        assert_eq!(made.bytes.len(), partitions * crate::groth16::PROOF_BYTES);
        Ok(made)
    }
}

/// Waits until something is so, for 20 seconds at most.
pub(super) fn eventually(what: &str, is: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is() {
        assert!(Instant::now() < until, "not within 20 s: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs a test that fails when it takes too long, instead of hanging.
pub(super) fn within(seconds: u64, test: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let running = thread::spawn(move || {
        test();
        sender.send(()).unwrap();
    });
    match receiver.recv_timeout(Duration::from_secs(seconds)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs: not done within {seconds} s"),
        _ => running.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)),
    }
}
