//! The devices of a prover: each computes for one proof at a time, in the order in which proofs come to it. Knows when a
//! device may be used, not what for.
//!
//! A device whose memory was asked back interrupts the proof that it computes for, which waits a little and begins the
//! interrupted part again. One that failed is set aside for a while.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::placement::Candidate;
use super::{DeviceStatus, Fallback};
use crate::backend::accelerator::Accelerators;
#[cfg(feature = "cuda")]
use crate::backend::Device;
use crate::backend::{Backend, DeviceMemory, Load};
use crate::error::{Error, Result};
use crate::pipeline::{CancelToken, Control, Halt, Queue};

/// For how long a device that failed is passed over.
const SET_ASIDE: Duration = Duration::from_secs(60);

/// For how long a proof that was interrupted, or waited, leaves a device alone whose memory was asked back. Calls that
/// come after that need not wait: whoever makes them has the device.
const PAUSE: Duration = Duration::from_secs(1);

/// How long giving back waits for a proof that is interrupted.
const GIVING_BACK: Duration = Duration::from_millis(480);

/// How often a paused proof looks at its cancel token and deadline.
const POLL: Duration = Duration::from_millis(20);

/// All devices that were named so far, and the CPU.
pub(super) struct Lanes {
    cpu: Arc<Lane>,
    accelerators: Arc<dyn Accelerators>,
    /// By UUID.
    gpus: Mutex<BTreeMap<String, Arc<Lane>>>,
    /// Bytes that may be used on each device.
    device_memory: Option<u64>,
    pub timing: Timing,
}

/// How long things take; tests have less time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    pub set_aside: Duration,
    pub pause: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { set_aside: SET_ASIDE, pause: PAUSE }
    }
}

/// One device.
pub(super) struct Lane {
    candidate: Candidate,
    key: Arc<str>,
    backend: Mutex<Option<Arc<dyn Backend>>>,
    turn: Queue,
    state: Mutex<State>,
    /// Whoever computed there has left.
    left: Condvar,
    /// Partitions in work, waiting ones included.
    partitions: AtomicUsize,
}

#[derive(Default)]
struct State {
    set_aside: Option<SetAside>,
    /// When its memory was asked back last, and how often.
    released: Option<Instant>,
    releases: u64,
    /// The number of releases when whoever computes there came.
    holder: Option<u64>,
    /// Interrupts whoever computes there.
    interrupt: CancelToken,
}

struct SetAside {
    until: Instant,
    why: Fallback,
}

/// While it lives somebody computes on a lane.
struct Holder<'a> {
    lane: &'a Lane,
    interrupt: CancelToken,
}

impl Drop for Holder<'_> {
    fn drop(&mut self) {
        self.lane.state.lock().holder = None;
        self.lane.left.notify_all();
    }
}

/// While it lives partitions are in work on a lane.
pub(super) struct InWork<'a> {
    lane: &'a Lane,
    partitions: usize,
}

impl Drop for InWork<'_> {
    fn drop(&mut self) {
        self.lane.partitions.fetch_sub(self.partitions, Ordering::Relaxed);
    }
}

impl Lanes {
    pub fn new(cpu: Arc<dyn Backend>, accelerators: Arc<dyn Accelerators>, device_memory: Option<u64>) -> Self {
        let cpu = Arc::new(Lane::new(Candidate::Cpu, "cpu".into(), Some(cpu)));
        Lanes { cpu, accelerators, gpus: Mutex::default(), device_memory, timing: Timing::default() }
    }

    pub fn accelerators(&self) -> &dyn Accelerators {
        &*self.accelerators
    }

    /// The lane of a candidate.
    pub fn get(&self, candidate: &Candidate) -> Arc<Lane> {
        let Candidate::Gpu(device) = candidate else { return self.cpu.clone() };
        let mut gpus = self.gpus.lock();
        let new = || Arc::new(Lane::new(candidate.clone(), device.uuid.as_str().into(), None));
        gpus.entry(device.uuid.clone()).or_insert_with(new).clone()
    }

    fn all(&self) -> Vec<Arc<Lane>> {
        let gpus: Vec<_> = self.gpus.lock().values().cloned().collect();
        gpus.into_iter().chain([self.cpu.clone()]).collect()
    }

    /// The lane of a device, with this backend from now on.
    #[cfg(feature = "cuda")]
    pub fn adopt(&self, device: Device, backend: Arc<dyn Backend>) -> Arc<Lane> {
        let lane = self.get(&Candidate::Gpu(device));
        // What another one keeps would only be in the way.
        lane.forget();
        *lane.backend.lock() = Some(backend);
        lane
    }

    /// The lane of this key, if there is one.
    pub fn find(&self, key: &str) -> Option<Arc<Lane>> {
        self.all().into_iter().find(|lane| &**lane.key() == key)
    }

    /// Bytes of host memory that proofs take on a lane beside their witnesses.
    pub fn host_memory(&self, lane: &Lane, load: &Load) -> u64 {
        match (lane.opened(), &lane.candidate) {
            (Some(backend), _) => backend.host_memory(load),
            (None, _) => self.accelerators.host_memory(load),
        }
    }

    /// Gives back what devices keep between proofs and nobody uses.
    pub fn forget(&self) {
        self.all().iter().for_each(|lane| lane.forget());
    }

    /// Gives back all that devices hold: proofs on GPUs are interrupted. Returns when that is done or has taken too long.
    pub fn release(&self) {
        let lanes = self.all();
        lanes.iter().for_each(|lane| lane.interrupt());
        let interrupted: Vec<_> = lanes.iter().filter(|lane| lane.is_interrupted()).collect();
        lanes.iter().for_each(|lane| lane.forget());
        let until = Instant::now() + GIVING_BACK;
        for lane in interrupted {
            if !lane.wait_for_interrupted(until) {
                log::warn!("{} is not given back yet", lane.name());
            }
            // What came up between the interruption and the end of the interrupted work.
            lane.forget();
        }
    }

    /// How the devices are; `proofs` are those in work by key.
    pub fn status(&self, proofs: impl Fn(&str) -> usize) -> Vec<DeviceStatus> {
        self.all().iter().map(|lane| lane.status(proofs(&lane.key))).collect()
    }

    /// Computes on a lane when it is its turn, with the device opened. Work that was interrupted because the device's
    /// memory was asked back is done again; `began` is when the call that it belongs to did.
    pub fn with<T>(
        &self,
        lane: &Lane,
        began: Instant,
        control: &Control,
        mut work: impl FnMut(&dyn Backend, &Control) -> Result<T>,
    ) -> Result<T> {
        loop {
            self.leave_alone(lane, began, control)?;
            let _turn = lane.turn.enter(control)?;
            let Some(holder) = lane.hold(began, self.timing.pause) else { continue };
            let backend = self.open(lane)?;
            let outcome = work(&*backend, &control.clone().with_halt(holder.interrupt.clone(), Halt::Elsewhere));
            match outcome {
                Err(Error::Cancelled { .. }) if holder.interrupt.is_cancelled() => {
                    control.check("the device's release")?
                }
                outcome => return outcome,
            }
            log::info!(
                "{} was interrupted: the device was asked back, and what was made there begins again",
                control.subject()
            );
        }
    }

    /// Waits while others may use a device.
    fn leave_alone(&self, lane: &Lane, began: Instant, control: &Control) -> Result<()> {
        while lane.state.lock().is_paused(began, self.timing.pause) {
            control.check("the pause after a device's release")?;
            thread::sleep(POLL.min(self.timing.pause));
        }
        Ok(())
    }

    /// The backend of a lane whose turn it is.
    fn open(&self, lane: &Lane) -> Result<Arc<dyn Backend>> {
        let opened = lane.opened();
        match (opened, &lane.candidate) {
            (Some(backend), _) => Ok(backend),
            (None, Candidate::Gpu(device)) => {
                // Without a lock: opening takes long, and nobody else may open it meanwhile.
                let opened = self.accelerators.open(device, self.device_memory)?;
                *lane.backend.lock() = Some(opened.clone());
                Ok(opened)
            }
            (None, Candidate::Cpu) => Err(Error::internal("a prover without a CPU")),
        }
    }
}

impl State {
    fn holder_is_interrupted(&self) -> bool {
        self.holder.is_some_and(|came| came < self.releases)
    }

    fn is_paused(&self, began: Instant, pause: Duration) -> bool {
        self.released.is_some_and(|at| began <= at && at.elapsed() < pause)
    }
}

impl Lane {
    fn new(candidate: Candidate, key: Arc<str>, backend: Option<Arc<dyn Backend>>) -> Self {
        Lane {
            candidate,
            key,
            backend: Mutex::new(backend),
            turn: Queue::default(),
            state: Mutex::default(),
            left: Condvar::new(),
            partitions: AtomicUsize::new(0),
        }
    }

    /// What tells it apart from all others.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// How reports call it.
    pub fn name(&self) -> String {
        match (self.opened(), &self.candidate) {
            (Some(backend), _) => backend.name().to_owned(),
            (None, Candidate::Gpu(device)) => device.to_string(),
            (None, Candidate::Cpu) => "cpu".into(),
        }
    }

    pub fn opened(&self) -> Option<Arc<dyn Backend>> {
        self.backend.lock().clone()
    }

    /// Notes partitions that are in work there.
    pub fn work_on(&self, partitions: usize) -> InWork<'_> {
        self.partitions.fetch_add(partitions, Ordering::Relaxed);
        InWork { lane: self, partitions }
    }

    /// Why it is passed over, if it is.
    pub fn set_aside(&self) -> Option<Fallback> {
        let state = self.state.lock();
        state.set_aside.as_ref().filter(|set| set.until > Instant::now()).map(|set| set.why.clone())
    }

    /// Passes it over for a while.
    pub fn fail(&self, why: &Fallback, time: Duration) {
        if matches!(self.candidate, Candidate::Gpu(_)) {
            self.state.lock().set_aside = Some(SetAside { until: Instant::now() + time, why: why.clone() });
        }
    }

    /// Uses it as any other again.
    pub fn succeed(&self) {
        self.state.lock().set_aside = None;
    }

    /// Notes that somebody computes there, unless the device is to be left alone.
    fn hold(&self, began: Instant, pause: Duration) -> Option<Holder<'_>> {
        let mut state = self.state.lock();
        if state.is_paused(began, pause) {
            return None;
        }
        state.holder = Some(state.releases);
        Some(Holder { lane: self, interrupt: state.interrupt.clone() })
    }

    /// Gives back what it keeps between proofs.
    pub fn forget(&self) {
        if let Some(backend) = self.opened() {
            backend.release();
        }
    }

    /// Interrupts whoever computes there, if it is a GPU.
    fn interrupt(&self) {
        if matches!(self.candidate, Candidate::Cpu) {
            return;
        }
        let mut state = self.state.lock();
        state.released = Some(Instant::now());
        state.releases += 1;
        std::mem::take(&mut state.interrupt).cancel();
    }

    /// Whether somebody computes there who was interrupted.
    fn is_interrupted(&self) -> bool {
        self.state.lock().holder_is_interrupted()
    }

    /// Waits until whoever was interrupted has left; `false` if that takes longer.
    fn wait_for_interrupted(&self, until: Instant) -> bool {
        let mut state = self.state.lock();
        while state.holder_is_interrupted() {
            if self.left.wait_until(&mut state, until).timed_out() {
                return false;
            }
        }
        true
    }

    fn status(&self, proofs: usize) -> DeviceStatus {
        let (name, uuid) = match &self.candidate {
            Candidate::Gpu(device) => (device.to_string(), device.uuid.clone()),
            Candidate::Cpu => ("cpu".into(), String::new()),
        };
        let now = Instant::now();
        let set_aside = self.state.lock().set_aside.as_ref().map(|set| set.until.saturating_duration_since(now));
        let backend = self.opened();
        DeviceStatus {
            name,
            uuid,
            set_aside: set_aside.filter(|left| !left.is_zero()),
            proofs,
            partitions: self.partitions.load(Ordering::Relaxed),
            bytes: backend.as_ref().map_or(0, |backend| backend.device_memory()),
            memory: backend.map_or_else(DeviceMemory::default, |backend| backend.device_memory_uses()),
        }
    }
}
