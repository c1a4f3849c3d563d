//! GPUs that compute on the CPU and fail as a test plans it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use group::Group;
use parking_lot::Mutex;

use super::{Config, Placement, Prover};
use crate::backend::accelerator::Accelerators;
use crate::backend::cpu::CpuBackend;
use crate::backend::{Backend, Device, Job};
use crate::error::{Error, Result};
use crate::groth16::{Expected, Parameters, ProofParts};
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
}

impl Step {
    fn outcome(self, device: &str) -> Result<()> {
        match self {
            Step::Well | Step::Wrong => Ok(()),
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
}

impl Script {
    fn next(plan: &Mutex<HashMap<u32, VecDeque<Step>>>, ordinal: u32) -> Step {
        plan.lock().get_mut(&ordinal).and_then(VecDeque::pop_front).unwrap_or(Step::Well)
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

    fn open(&self, device: &Device, _: Option<u64>) -> Result<Arc<dyn Backend>> {
        let name = format!("cuda:{}", device.ordinal);
        self.script.note("open", device.ordinal);
        Script::next(&self.script.openings, device.ordinal).outcome(&name)?;
        let (ordinal, script) = (device.ordinal, self.script.clone());
        Ok(Arc::new(FakeGpu { name, ordinal, script, cpu: CpuBackend::default() }))
    }
}

struct FakeGpu {
    name: String,
    ordinal: u32,
    script: Arc<Script>,
    cpu: CpuBackend,
}

impl Backend for FakeGpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn memory_needed(&self, expected: &Expected) -> u64 {
        self.cpu.memory_needed(expected)
    }

    fn load(&self, r1cs: &dyn Constraints, parameters: &Parameters, witnesses: usize, control: &Control) -> Result<()> {
        self.cpu.load(r1cs, parameters, witnesses, control)
    }

    fn prove(&self, job: &Job<'_>) -> Result<Vec<ProofParts>> {
        self.script.note("prove", self.ordinal);
        let step = Script::next(&self.script.proofs, self.ordinal);
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
    }
}

/// A prover with these GPUs.
pub(super) fn prover(gpus: FakeGpus, placement: Placement) -> Prover {
    let config = Config { placement, threads: Some(1), ..Config::default() };
    Prover::with_accelerators(config, Arc::new(gpus)).unwrap()
}
