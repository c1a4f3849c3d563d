//! Calls back into the caller's code: progress of one call, and the one log sink of the process.

use std::ffi::{c_void, CString};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use log::{LevelFilter, Log, Metadata, Record};
use parking_lot::{Mutex, RwLock};

use super::status::cuporep_stage;
use super::types::{cuporep_event, cuporep_log_fn, cuporep_progress_fn};
use super::unwind::survives;
use crate::error::{Error, Result};
use crate::pipeline::Event;

/// A pointer that belongs to the caller and is only passed back.
#[derive(Clone, Copy)]
struct User(*mut c_void);

// SAFETY: we never look behind it; the header says from which threads callbacks come.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

/// The progress callback of one call.
pub(super) struct Progress {
    function: cuporep_progress_fn,
    user: User,
    request_id: CString,
    /// Held while the callback runs, so that it never runs twice at once.
    one_at_a_time: Mutex<()>,
    failed: AtomicBool,
}

impl Progress {
    pub fn new(function: cuporep_progress_fn, user: *mut c_void, request_id: &str) -> Arc<Self> {
        let request_id = CString::new(request_id).unwrap_or_default();
        Arc::new(Progress {
            function,
            user: User(user),
            request_id,
            one_at_a_time: Mutex::default(),
            failed: AtomicBool::new(false),
        })
    }

    /// Passes an event on.
    pub fn report(&self, event: &Event) {
        let Some(function) = self.function else { return };
        let _one = self.one_at_a_time.lock();
        if self.failed() {
            return;
        }
        let event = cuporep_event {
            struct_size: size_of::<cuporep_event>(),
            request_id: self.request_id.as_ptr(),
            stage: cuporep_stage::from(event.stage) as i32,
            partition: event.partition.and_then(|partition| partition.try_into().ok()).unwrap_or(-1),
            ended: event.elapsed.is_some().into(),
            elapsed_ns: event.elapsed.map_or(0, super::nanoseconds),
        };
        // SAFETY: the caller promised that this function may be called with this pointer during its call.
        if !survives(|| unsafe { function(self.user.0, &raw const event) }) {
            self.failed.store(true, Ordering::Relaxed);
            log::warn!("the progress callback threw; it is not called again in this call");
        }
    }

    /// Whether the callback threw.
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// Where log lines go.
struct Sink {
    function: cuporep_log_fn,
    user: User,
    level: LevelFilter,
    failed: AtomicBool,
}

static SINK: RwLock<Sink> = RwLock::new(Sink {
    function: None,
    user: User(std::ptr::null_mut()),
    level: LevelFilter::Off,
    failed: AtomicBool::new(false),
});

/// Passes this crate's log lines to the sink. Those of the crates below it are theirs.
struct Forward;

impl Log for Forward {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().split("::").next() == Some(env!("CARGO_CRATE_NAME"))
    }

    fn log(&self, record: &Record<'_>) {
        // Recursive: a thread that logs from within a callback must not wait for a writer that waits for it.
        let sink = SINK.read_recursive();
        let Some(function) = sink.function else { return };
        if !self.enabled(record.metadata()) || record.level() > sink.level || sink.failed.load(Ordering::Relaxed) {
            return;
        }
        let text = |text: String| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let (target, message) = (text(record.target().to_string()), text(record.args().to_string()));
        // SAFETY: the caller promised that this function may be called with this pointer until it sets another.
        let call = || unsafe { function(sink.user.0, record.level() as i32, target.as_ptr(), message.as_ptr()) };
        if !survives(call) {
            sink.failed.store(true, Ordering::Relaxed);
        }
    }

    fn flush(&self) {}
}

/// Makes `function` the sink of the process, or none. When this returns, the previous one is not called any more.
pub(super) fn set_log(function: cuporep_log_fn, user: *mut c_void, level: i32) -> Result<()> {
    let levels = [
        LevelFilter::Off,
        LevelFilter::Error,
        LevelFilter::Warn,
        LevelFilter::Info,
        LevelFilter::Debug,
        LevelFilter::Trace,
    ];
    let level = usize::try_from(level).ok().and_then(|level| levels.get(level)).ok_or_else(|| Error::Argument {
        name: "level",
        detail: format!("{level} is none of enum cuporep_log_level"),
    })?;
    let level = if function.is_some() { *level } else { LevelFilter::Off };
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock();
    if !*installed && level != LevelFilter::Off {
        log::set_logger(&Forward).map_err(|_| Error::Argument {
            name: "log",
            detail: "this process has a logger for Rust already; read the log there".into(),
        })?;
        *installed = true;
    }
    *SINK.write() = Sink { function, user: User(user), level, failed: AtomicBool::new(false) };
    if *installed {
        log::set_max_level(level);
    }
    Ok(())
}
