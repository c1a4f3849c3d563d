//! The calls of a prover that are in progress, and their end when it is shut down.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Prover;
use crate::error::{Error, Result};
use crate::pipeline::{CancelToken, Control, Halt};

#[derive(Default)]
pub(super) struct Calls {
    state: Mutex<State>,
    ended: Condvar,
    halt: CancelToken,
}

#[derive(Default)]
struct State {
    over: bool,
    running: usize,
}

/// A call in progress.
pub(super) struct Call<'a> {
    calls: &'a Calls,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.calls.state.lock().running -= 1;
        self.calls.ended.notify_all();
    }
}

impl Calls {
    /// Begins a call.
    ///
    /// # Errors
    /// [`Error::ShutDown`].
    pub fn begin(&self) -> Result<Call<'_>> {
        let mut state = self.state.lock();
        if state.over {
            return Err(Error::ShutDown);
        }
        state.running += 1;
        Ok(Call { calls: self })
    }

    /// Whether no more calls are accepted.
    pub fn are_over(&self) -> bool {
        self.state.lock().over
    }

    /// What stops a call that is in progress when the time for its end has passed.
    pub fn watch(&self, control: Control) -> Control {
        control.with_halt(self.halt.clone(), Halt::ShutDown)
    }

    fn end(&self, drain: Duration) -> bool {
        let until = Instant::now().checked_add(drain);
        let mut state = self.state.lock();
        state.over = true;
        while state.running > 0 {
            match until {
                None => self.ended.wait(&mut state),
                Some(until) if self.ended.wait_until(&mut state, until).timed_out() => break,
                Some(_) => (),
            }
        }
        let drained = state.running == 0;
        self.halt.cancel();
        while state.running > 0 {
            self.ended.wait(&mut state);
        }
        drained
    }
}

impl Prover {
    /// Accepts no more calls ([`Error::ShutDown`]), lets those in progress, waiting ones included, end for so long, then
    /// stops the rest of them, which fail with that error within 500 ms; gives everything back. `Duration::ZERO` stops
    /// all of them now, `Duration::MAX` none. Whether none had to be stopped.
    ///
    /// It returns when no call is in progress any more. It must not be called from a progress callback, which belongs to
    /// one. A prover that is shut down stays so.
    pub fn shutdown(&self, drain: Duration) -> bool {
        let drained = self.calls.end(drain);
        self.release();
        drained
    }
}
