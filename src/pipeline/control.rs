//! Cancel, deadline, progress and stage times of one call.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Map;

use super::trace::{Span, Trace};
use crate::error::{Error, Result};

/// A stage of a proof, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// Waiting for earlier proofs of the same prover.
    Queue,
    /// Decoding the C1 bytes.
    Decode,
    /// Checking the C1 output.
    Check,
    /// Loading or recording the circuit's shape.
    Shape,
    /// Opening, checking and loading parameters.
    Parameters,
    /// Making the witness.
    Witness,
    /// a = A w and b = B w.
    Evaluate,
    /// Transforms of the quotient.
    Transform,
    /// The sum over h.
    SumH,
    /// The sum over l.
    SumL,
    /// The sum over a.
    SumA,
    /// The sum over b in G1.
    SumB1,
    /// The sum over b in G2.
    SumB2,
    /// Assembling and verifying the proof.
    Verify,
}

impl Stage {
    /// The lower-case name used in machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Queue => "queue",
            Stage::Decode => "decode",
            Stage::Check => "check",
            Stage::Shape => "shape",
            Stage::Parameters => "parameters",
            Stage::Witness => "witness",
            Stage::Evaluate => "evaluate",
            Stage::Transform => "transform",
            Stage::SumH => "sum_h",
            Stage::SumL => "sum_l",
            Stage::SumA => "sum_a",
            Stage::SumB1 => "sum_b_g1",
            Stage::SumB2 => "sum_b_g2",
            Stage::Verify => "verify",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Progress of one call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    /// The stage that this is about.
    pub stage: Stage,
    /// The partition, where the stage works on one.
    pub partition: Option<usize>,
    /// `None` when the stage begins, its duration when it has ended.
    pub elapsed: Option<Duration>,
}

/// Stops the calls that carry it. Clones share one state; once cancelled it stays so.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks every call that carries this token to stop soon.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether [`CancelToken::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

type Sink = Arc<dyn Fn(&Event) + Send + Sync>;

/// Why a call is stopped by something else than its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    /// The prover is shut down.
    ShutDown,
    /// The work is done elsewhere, or again later: whoever asked for it knows.
    Elsewhere,
}

/// Is told what calls have done.
pub(crate) trait Observer: Send + Sync {
    /// A stage ended.
    fn stage_ended(&self, stage: Stage, elapsed: Duration);

    /// Parameters were read that were not loaded yet.
    fn parameters_loaded(&self, elapsed: Duration);

    /// A proof that was made on a device did not verify.
    fn verify_failed(&self, device: &str);
}

/// What a call carries through all its stages.
#[derive(Clone, Default)]
pub struct Control {
    cancel: Option<CancelToken>,
    deadline: Option<Instant>,
    progress: Option<Sink>,
    priority: i32,
    request_id: Option<Arc<str>>,
    times: Arc<Mutex<Vec<Event>>>,
    trace: Option<Trace>,
    halts: Vec<(CancelToken, Halt)>,
    threads: Option<Arc<rayon::ThreadPool>>,
    subject: Option<Arc<str>>,
    observer: Option<Arc<dyn Observer>>,
}

impl Control {
    /// No cancel token, no deadline, nobody watching.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops when `token` is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, token: CancelToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Stops at `deadline`.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Calls `sink` at the begin and the end of each stage, from the thread that runs the stage.
    #[must_use]
    pub fn with_progress(mut self, sink: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(sink));
        self
    }

    /// Passes waiting calls of a lower priority, from -100 to 100, that came at most ten seconds earlier for each level
    /// between them; the default is 0. Calls of one priority begin in the order in which they came.
    #[must_use]
    pub fn with_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Names the call in logs.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.request_id = Some(id.into());
        self
    }

    /// Collects what runs, and when.
    #[must_use]
    pub fn with_trace(mut self, trace: Trace) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Stops also when `token` is cancelled, for another reason than the caller's.
    #[must_use]
    pub(crate) fn with_halt(mut self, token: CancelToken, halt: Halt) -> Self {
        self.halts.push((token, halt));
        self
    }

    /// Lets parallel loops run on these threads.
    #[must_use]
    pub(crate) fn with_threads(mut self, threads: Arc<rayon::ThreadPool>) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Runs what has parallel loops on the threads that are there for that. It must not wait for anything but its own
    /// loops: a waiting thread may begin with any other work of the same threads, which then ends first.
    pub(crate) fn compute<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.threads {
            Some(threads) => threads.install(work),
            None => work(),
        }
    }

    /// When the call must end.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// What the call's log lines begin with, such as its sector.
    #[must_use]
    pub(crate) fn with_subject(mut self, subject: impl Into<Arc<str>>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Also names the device that works for the call.
    #[must_use]
    pub(crate) fn on_device(self, device: &str) -> Self {
        let subject = format!("{} device={device:?}", self.subject());
        self.with_subject(subject)
    }

    /// Tells an observer what is done.
    #[must_use]
    pub(crate) fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// What the call's log lines begin with.
    pub(crate) fn subject(&self) -> &str {
        self.subject.as_deref().unwrap_or("call")
    }

    /// Where what runs is collected.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// The priority among waiting calls.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// The name of the call, empty if it has none.
    pub fn request_id(&self) -> &str {
        self.request_id.as_deref().unwrap_or_default()
    }

    /// The same token, deadline and watcher with no ended stages: for the next of several calls.
    #[must_use]
    pub fn fresh_times(&self) -> Self {
        Control { times: Arc::default(), ..self.clone() }
    }

    /// Fails when the call must stop. Long loops call this at least every 100 ms of work.
    pub fn check(&self, during: impl fmt::Display) -> Result<()> {
        if self.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(Error::Cancelled { during: format!("during {during}") });
        }
        if self.deadline.is_some_and(|at| Instant::now() >= at) {
            return Err(Error::Deadline { during: format!("during {during}") });
        }
        match self.halts.iter().find(|(token, _)| token.is_cancelled()) {
            Some((_, Halt::ShutDown)) => Err(Error::ShutDown),
            Some((_, Halt::Elsewhere)) => Err(Error::Cancelled { during: format!("during {during}") }),
            None => Ok(()),
        }
    }

    /// Runs one stage: checks, reports its begin and end, keeps its time.
    pub fn stage<T>(&self, stage: Stage, partition: Option<usize>, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.check(stage)?;
        let begin = Instant::now();
        self.begin(stage, partition);
        let value = work()?;
        self.end(stage, partition, begin.elapsed());
        if let Some(trace) = &self.trace {
            trace.add(host_span(stage, partition, begin));
        }
        Ok(value)
    }

    /// Reports the begin of a stage that runs elsewhere.
    pub(crate) fn begin(&self, stage: Stage, partition: Option<usize>) {
        self.report(Event { stage, partition, elapsed: None });
    }

    /// Reports its end, and keeps its time.
    pub(crate) fn end(&self, stage: Stage, partition: Option<usize>, elapsed: Duration) {
        let ms = elapsed.as_secs_f64() * 1e3;
        match partition {
            Some(partition) => log::debug!("{} partition={partition} stage={stage} ms={ms:.1}", self.subject()),
            None => log::debug!("{} stage={stage} ms={ms:.1}", self.subject()),
        }
        self.observe(|observer| observer.stage_ended(stage, elapsed));
        let event = Event { stage, partition, elapsed: Some(elapsed) };
        self.times.lock().push(event.clone());
        self.report(event);
    }

    /// Tells the observer something, if there is one.
    pub(crate) fn observe(&self, tell: impl FnOnce(&dyn Observer)) {
        if let Some(observer) = &self.observer {
            tell(&**observer);
        }
    }

    /// The ended stages so far, in the order in which they ended.
    pub fn times(&self) -> Vec<Event> {
        self.times.lock().clone()
    }

    fn report(&self, event: Event) {
        if let Some(sink) = &self.progress {
            sink(&event);
        }
    }
}

/// A stage that ended now.
fn host_span(stage: Stage, partition: Option<usize>, begin: Instant) -> Span {
    // Threads of a pool work side by side.
    let row = match rayon::current_thread_index() {
        Some(index) => format!("thread {index}"),
        None => std::thread::current().name().unwrap_or("caller").to_owned(),
    };
    let mut details = Map::new();
    details.extend(partition.map(|partition| ("partition".to_owned(), partition.into())));
    let (machine, name) = ("host".into(), stage.name().into());
    Span { machine, row, name, begin, elapsed: begin.elapsed(), details }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("cancel", &self.cancel)
            .field("deadline", &self.deadline)
            .field("progress", &self.progress.is_some())
            .field("priority", &self.priority)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Observer for Told {
        fn stage_ended(&self, stage: Stage, _: Duration) {
            self.0.lock().push(stage.to_string());
        }

        fn parameters_loaded(&self, _: Duration) {
            self.0.lock().push("loaded".into());
        }

        fn verify_failed(&self, device: &str) {
            self.0.lock().push(device.into());
        }
    }

    #[test]
    fn an_observer_is_told_what_ended_by_all_that_is_made_of_its_control() {
        let told = Arc::new(Told::default());
        let control = Control::new().with_observer(told.clone());
        control.stage(Stage::Check, None, || Ok(())).unwrap();
        control.fresh_times().on_device("cpu").stage(Stage::Witness, Some(3), || Ok(())).unwrap();
        control.stage(Stage::SumH, None, || Err::<(), _>(Error::internal("not ended"))).unwrap_err();
        control.observe(|observer| observer.verify_failed("gpu"));
        Control::new().stage(Stage::Decode, None, || Ok(())).unwrap();
        assert_eq!(*told.0.lock(), ["check", "witness", "gpu"]);
        assert_eq!(control.times().len(), 1, "those of the other control are its own");
    }

    #[test]
    fn log_lines_begin_with_the_subject_and_then_the_device() {
        let control = Control::new().with_subject("proof sector=7");
        assert_eq!(control.subject(), "proof sector=7");
        assert_eq!(control.on_device("cuda:0 A").subject(), "proof sector=7 device=\"cuda:0 A\"");
        assert_eq!(Control::new().subject(), "call");
    }
}
