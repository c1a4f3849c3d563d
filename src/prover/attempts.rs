//! Makes a proof on the devices that may make it: waits until it is admitted to one or several, spreads its partitions
//! over these, makes elsewhere what a device failed at, and keeps account of that.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;

use super::lanes::Lane;
use super::partitions::{prove_share, while_made, Coming, Share, Work};
use super::threads::side_by_side;
use super::{Candidate, Fallback, Placement, Prover, SEPARATOR};
use crate::backend::Load;
use crate::error::{Error, Result};
use crate::groth16::PROOF_BYTES;
use crate::pipeline::{CancelToken, Control, Grant, Halt, Stage, Want, Wish};

/// What to do about a proof that does not fit into memory.
pub(super) const NO_MEMORY: &str = "use a machine with more memory or one with a supported device";

/// A proof to be made.
pub(super) struct Task<'a> {
    /// How errors call it.
    pub what: String,
    /// When its call began.
    pub began: Instant,
    pub placement: &'a Placement,
    pub work: Work<'a>,
    pub load: Load,
    /// Bytes of host memory that it takes beside witnesses and devices.
    pub input_bytes: u64,
    /// What it shares with other proofs.
    pub uses: Vec<(Arc<str>, u64)>,
    /// Makes the witnesses; again each time that it was not admitted for long.
    pub witnesses: &'a (dyn Fn(&Control, &Coming) -> Result<()> + Sync),
}

/// A proof that was made.
pub(super) struct Made {
    pub bytes: Vec<u8>,
    /// What made it.
    pub device: String,
    pub fallbacks: Vec<Fallback>,
    /// Bytes of host memory that were set aside for it.
    pub memory: u64,
    /// Bytes of device memory that were in use.
    pub device_memory: u64,
}

/// Lanes that are tried at the same time, and those that are tried when none of the first is left.
pub(super) struct Choice {
    pub groups: Vec<Vec<Arc<Lane>>>,
    pub fallbacks: Vec<Fallback>,
}

/// A proof that is being made.
struct Attempt<'a> {
    prover: &'a Prover,
    task: &'a Task<'a>,
    /// The bytes of each partition.
    done: Vec<OnceLock<[u8; PROOF_BYTES]>>,
    /// What made which, in the order of lanes.
    made_on: Mutex<Vec<String>>,
    fallbacks: Vec<Fallback>,
    /// Lanes that are not tried any more.
    failed: HashSet<Arc<str>>,
    /// Lanes whose context was lost once.
    lost: HashSet<Arc<str>>,
    memory: u64,
    device_memory: AtomicU64,
}

impl Prover {
    /// What may be tried under a placement: GPUs, then the CPU.
    pub(super) fn choose(&self, placement: &Placement) -> Result<Choice> {
        let found = self.candidates(placement)?;
        let (gpus, cpu): (Vec<_>, Vec<_>) =
            found.candidates.iter().partition(|candidate| matches!(candidate, Candidate::Gpu(_)));
        let lanes = |candidates: Vec<&Candidate>| candidates.into_iter().map(|one| self.lanes.get(one)).collect();
        let groups: Vec<Vec<Arc<Lane>>> = vec![lanes(gpus), lanes(cpu)];
        let groups = groups.into_iter().filter(|group| !group.is_empty()).collect();
        Ok(Choice { groups, fallbacks: found.fallbacks })
    }

    /// Refuses what cannot fit into memory wherever it may be made.
    pub(super) fn require_room(&self, what: &str, choice: &Choice, load: &Load) -> Result<()> {
        let wish = |lane: &Arc<Lane>| self.wish(what, Instant::now(), 0, &[], std::slice::from_ref(lane), load);
        let mut all = choice.groups.iter().map(|group| self.admission.possible(&wish(&group[0])));
        let first = all.next().unwrap_or(Ok(()));
        all.fold(first, |before, next| before.or(next))
    }

    /// What a proof asks for to be admitted to some of these lanes.
    pub(super) fn wish(
        &self,
        what: &str,
        since: Instant,
        own: u64,
        uses: &[(Arc<str>, u64)],
        lanes: &[Arc<Lane>],
        load: &Load,
    ) -> Wish {
        let name = match lanes {
            [lane] => lane.name(),
            _ => format!("{} devices", lanes.len()),
        };
        Wish {
            what: format!("{what} on {name}"),
            advice: NO_MEMORY,
            since,
            own,
            uses: uses.to_vec(),
            places: lanes.iter().map(|lane| (lane.key().clone(), self.lanes.host_memory(lane, load))).collect(),
            want: Want::Spread(load.witnesses),
        }
    }

    /// Makes a proof.
    pub(super) fn make(&self, task: &Task<'_>) -> Result<Made> {
        let Choice { groups, fallbacks } = self.choose(task.placement)?;
        let mut attempt = Attempt {
            prover: self,
            task,
            done: (0..task.load.witnesses).map(|_| OnceLock::new()).collect(),
            made_on: Mutex::default(),
            fallbacks,
            failed: HashSet::new(),
            lost: HashSet::new(),
            memory: 0,
            device_memory: AtomicU64::new(0),
        };
        let outcome = attempt.on_any(&groups);
        let fallbacks = attempt.fallbacks.clone();
        let made = outcome.and_then(|()| attempt.finish());
        self.metrics.fell_back(&fallbacks, made.as_ref().ok().map(|made| made.device.as_str()));
        made
    }

    /// Notes what lanes keep in memory.
    pub(super) fn note_kept(&self, lanes: &[Arc<Lane>]) {
        for lane in lanes {
            let kept = lane.opened().map_or(0, |backend| backend.kept_memory());
            self.admission.keep(lane.key(), kept);
        }
    }
}

impl Attempt<'_> {
    /// Tries one group of lanes after the other until the proof is made.
    fn on_any(&mut self, groups: &[Vec<Arc<Lane>>]) -> Result<()> {
        let last = groups.len().checked_sub(1).ok_or_else(|| Error::internal("no device to try"))?;
        for (index, lanes) in groups.iter().enumerate() {
            if self.on(lanes, index == last)? {
                break;
            }
        }
        Ok(())
    }

    /// Tries these lanes until the proof is made. `false`: none of them is left, and there are others.
    fn on(&mut self, lanes: &[Arc<Lane>], last: bool) -> Result<bool> {
        let mut error = None;
        loop {
            let left: Vec<Arc<Lane>> = lanes.iter().filter(|lane| !self.failed.contains(lane.key())).cloned().collect();
            let up: Vec<Arc<Lane>> = left.iter().filter(|lane| lane.set_aside().is_none()).cloned().collect();
            // One that is set aside is better than none.
            let left = if up.is_empty() && last { left } else { up };
            if left.is_empty() {
                return match (error, last) {
                    (Some(error), true) => Err(error),
                    (Some(_), false) => Ok(false),
                    (None, _) => {
                        self.fallbacks.extend(lanes.iter().filter_map(|lane| lane.set_aside()));
                        Ok(false)
                    }
                };
            }
            match self.admitted(&left, last)? {
                None => return Ok(true),
                Some(failure) => error = Some(failure),
            }
        }
    }

    /// Waits until some lanes are free and tries those. The last failure if all of them failed.
    fn admitted(&mut self, lanes: &[Arc<Lane>], last: bool) -> Result<Option<Error>> {
        let Task { what, began, input_bytes, uses, load, work, .. } = self.task;
        let own = input_bytes + load.witness_bytes();
        let wish = self.prover.wish(what, *began, own, uses, lanes, load);
        let grant = match work.control.stage(Stage::Queue, None, || self.prover.enter(wish, work.control)) {
            Ok(grant) => grant,
            Err(error @ Error::Memory { .. }) => {
                for lane in lanes {
                    self.failed.insert(lane.key().clone());
                }
                self.note(&lanes[0].name(), &error);
                return Ok(Some(error));
            }
            Err(error) => return Err(error),
        };
        let prover = self.prover;
        prover.on_thread(|| self.work(lanes, grant, last))
    }

    /// Makes witnesses and what is left of the proof, on all admitted lanes that have not failed.
    fn work(&mut self, lanes: &[Arc<Lane>], mut grant: Grant<'_>, last: bool) -> Result<Option<Error>> {
        let (prover, task) = (self.prover, self.task);
        let (count, control) = (self.done.len(), task.work.control);
        while_made(count, control, task.witnesses, |witnesses| {
            // Whoever came until there is something to hand out shall have devices as well.
            witnesses.witnesses().get(0, control)?;
            grant.narrow();
            self.memory = self.memory.max(grant.bytes());
            let chosen: Vec<Arc<Lane>> = grant.places().iter().map(|&place| lanes[place].clone()).collect();
            let outcome = self.rounds(lanes, &chosen, witnesses, last);
            prover.note_kept(&chosen);
            outcome
        })
    }

    /// Goes on until nothing is missing, or no lane is left.
    fn rounds(
        &mut self,
        lanes: &[Arc<Lane>],
        chosen: &[Arc<Lane>],
        witnesses: &Coming,
        last: bool,
    ) -> Result<Option<Error>> {
        let mut failure = None;
        loop {
            let missing: Vec<usize> = (0..self.done.len()).filter(|&index| self.done[index].get().is_none()).collect();
            let on: Vec<&Arc<Lane>> = chosen.iter().filter(|lane| !self.failed.contains(lane.key())).collect();
            if missing.is_empty() {
                return Ok(None);
            }
            if on.is_empty() {
                return Ok(failure);
            }
            // The one that is left to a proof whose other devices have failed.
            let alone = last && lanes.iter().filter(|lane| !self.failed.contains(lane.key())).count() == 1;
            failure = self.round(&on, &missing, witnesses, alone)?.or(failure);
        }
    }

    /// Spreads what is missing over lanes, and waits for all of them.
    fn round(
        &mut self,
        lanes: &[&Arc<Lane>],
        missing: &[usize],
        witnesses: &Coming,
        alone: bool,
    ) -> Result<Option<Error>> {
        let abort = CancelToken::new();
        let control = self.task.work.control.clone().with_halt(abort.clone(), Halt::Elsewhere);
        let shares = spread(missing, lanes.len());
        let tasks = lanes.iter().zip(&shares).map(|(lane, partitions)| {
            let share = Share { lane, partitions, witnesses, done: &self.done, last: alone };
            let (attempt, control, abort) = (&*self, &control, &abort);
            move || {
                let outcome = attempt.share(&share, control);
                if outcome.as_ref().is_err_and(|error| !error.is_of_device()) {
                    abort.cancel();
                }
                outcome
            }
        });
        let outcomes = side_by_side(tasks.collect())?;
        // What the caller asked for comes first, then whatever stopped the others.
        if outcomes.iter().any(Result::is_err) {
            self.task.work.control.check("the proof")?;
        }
        let mut failure = None;
        let mut fatal = None;
        for (lane, outcome) in lanes.iter().zip(outcomes) {
            match outcome {
                Ok(()) => lane.succeed(),
                Err(error) if error.is_of_device() => {
                    self.failed_on(lane, &error);
                    failure = Some(error);
                }
                Err(Error::Cancelled { .. }) if abort.is_cancelled() => (),
                Err(error) => fatal = fatal.or(Some(error)),
            }
        }
        match fatal {
            Some(error) => Err(error),
            None if abort.is_cancelled() => Err(Error::internal("partitions were stopped without a reason")),
            None => Ok(failure),
        }
    }

    /// A lane's part of a round.
    fn share(&self, share: &Share<'_>, control: &Control) -> Result<()> {
        let _in_work = share.lane.work_on(share.partitions.len());
        let control = control.clone().on_device(&share.lane.name());
        let work = Work { control: &control, ..self.task.work };
        prove_share(&self.prover.lanes, share, &work, self.task.began)?;
        let backend = share.lane.opened();
        let bytes = backend.map_or(0, |backend| backend.device_memory());
        self.device_memory.fetch_add(bytes, Ordering::Relaxed);
        let (name, mut made_on) = (share.lane.name(), self.made_on.lock());
        if !made_on.contains(&name) {
            made_on.push(name);
        }
        Ok(())
    }

    /// A context that was lost is opened anew and tried once more before the device is passed over.
    fn failed_on(&mut self, lane: &Arc<Lane>, error: &Error) {
        let why = self.note(&lane.name(), error);
        let opened = lane.opened().is_some();
        if opened && matches!(error, Error::DeviceLost { .. }) && self.lost.insert(lane.key().clone()) {
            return;
        }
        self.failed.insert(lane.key().clone());
        lane.fail(&why, self.prover.lanes.timing.set_aside);
        // What it keeps may be what is wrong, and the next device may want the host's part of it.
        lane.forget();
    }

    fn note(&mut self, device: &str, error: &Error) -> Fallback {
        let (subject, class, code) = (self.task.work.control.subject(), error.class(), error.code());
        log::warn!("{subject} device={device:?} failed class={class} code={code}: {error}");
        let why = Fallback::new(device, error);
        self.fallbacks.push(why.clone());
        why
    }

    fn finish(self) -> Result<Made> {
        let mut bytes = Vec::with_capacity(self.done.len() * PROOF_BYTES);
        for partition in &self.done {
            bytes.extend(partition.get().ok_or_else(|| Error::internal("a partition was not made"))?);
        }
        let mut made_on = self.made_on.into_inner();
        made_on.sort();
        Ok(Made {
            bytes,
            device: made_on.join(SEPARATOR),
            fallbacks: self.fallbacks,
            memory: self.memory,
            device_memory: self.device_memory.into_inner(),
        })
    }
}

/// Contiguous parts of nearly equal length, one for each lane as far as they go round.
fn spread(partitions: &[usize], lanes: usize) -> Vec<Vec<usize>> {
    let parts = lanes.min(partitions.len());
    let bound = |part: usize| part * partitions.len() / parts;
    (0..parts).map(|part| partitions[bound(part)..bound(part + 1)].to_vec()).collect()
}
