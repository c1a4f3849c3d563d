//! Threads of a prover. Parallel loops run in its pool; what waits, for a device or for its turn, does so on a thread of
//! its own, so that the pool never waits for anything but its own loops.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::Prover;
use crate::error::{Error, Result};
use crate::panics;

/// Numbers threads in their names.
static STARTED: AtomicUsize = AtomicUsize::new(0);

impl Prover {
    /// Runs the waiting part of a call on a thread of its own, whatever stack the caller has; a panic in it becomes an
    /// error.
    pub(super) fn on_thread<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        thread::scope(|scope| join(start(scope, work)?))
    }
}

/// Runs all at once, each on a thread of its own but for the last; their outcomes in order. Panics become errors.
///
/// # Errors
/// If a thread cannot be started; those that were are waited for.
pub(super) fn side_by_side<T: Send, F: FnOnce() -> Result<T> + Send>(mut tasks: Vec<F>) -> Result<Vec<Result<T>>> {
    let Some(last) = tasks.pop() else { return Ok(Vec::new()) };
    thread::scope(|scope| {
        let started = tasks.into_iter().map(|task| start(scope, task)).collect::<Result<Vec<_>>>()?;
        let last = panics::guard(last);
        let mut outcomes: Vec<Result<T>> = started.into_iter().map(join).collect();
        outcomes.push(last);
        Ok(outcomes)
    })
}

/// Runs something on a thread of its own beside work on this one; both outcomes. A panic of the former becomes an error.
///
/// # Errors
/// If the thread cannot be started.
pub(super) fn beside<A: Send, T>(
    aside: impl FnOnce() -> Result<A> + Send,
    work: impl FnOnce() -> T,
) -> Result<(Result<A>, T)> {
    thread::scope(|scope| {
        let aside = start(scope, aside)?;
        let outcome = work();
        Ok((join(aside), outcome))
    })
}

type Handle<'scope, T> = thread::ScopedJoinHandle<'scope, Result<T>>;

fn start<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    work: impl FnOnce() -> Result<T> + Send + 'scope,
) -> Result<Handle<'scope, T>> {
    let name = format!("cuporep-work-{}", STARTED.fetch_add(1, Ordering::Relaxed));
    let guarded = || {
        panics::mark_thread();
        panics::guard(work)
    };
    let started = thread::Builder::new().name(name).spawn_scoped(scope, guarded);
    started.map_err(|error| Error::io("starting", "a thread for a proof", error))
}

fn join<T>(handle: Handle<'_, T>) -> Result<T> {
    handle.join().unwrap_or_else(|_| Err(Error::internal("a thread of a proof ended by itself")))
}
