//! Turns panics on our threads into errors that keep their message and place, without printing them.
//!
//! The first guarded call chains a panic hook before the process's own: a panic on a thread that works for
//! us is noted and stays silent, every other one goes to the hook that was there before.

use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use parking_lot::Mutex;

use crate::error::{Error, Result};

thread_local! {
    static WORKS_FOR_US: Cell<bool> = const { Cell::new(false) };
}

/// Places of panics that were noted and not yet turned into errors, with their messages. A rayon worker
/// panics on one thread and its payload arrives on another, so the message is what connects the two.
static NOTED: Mutex<VecDeque<Noted>> = Mutex::new(VecDeque::new());

/// More panics than this at once lose their place, never their message.
const NOTED_AT_MOST: usize = 64;

struct Noted {
    message: String,
    place: String,
}

/// Marks the current thread as one that only ever works for us.
pub(crate) fn mark_thread() {
    WORKS_FOR_US.set(true);
}

/// Runs `work`; a panic in it, on this thread or on marked ones that it waits for, becomes [`Error::Panic`].
pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if WORKS_FOR_US.get() {
                note(info);
            } else {
                previous(info);
            }
        }));
    });
    let before = WORKS_FOR_US.replace(true);
    // Unwind safety: whatever our closures share is behind locks that do not poison, and is changed by
    // single insertions and removals only.
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    WORKS_FOR_US.set(before);
    outcome.unwrap_or_else(|payload| {
        let message = message(payload.as_ref());
        let mut noted = NOTED.lock();
        let index = noted.iter().position(|noted| noted.message == message);
        let place = index.and_then(|index| noted.remove(index)).map(|noted| noted.place);
        Err(Error::Panic { place: place.unwrap_or_else(|| "an unknown place".into()), message })
    })
}

fn note(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let mut noted = NOTED.lock();
    if noted.len() == NOTED_AT_MOST {
        noted.pop_front();
    }
    noted.push_back(Noted { message: message(info.payload()), place });
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message").to_string()
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;

    fn caught(work: impl FnOnce() -> Result<()>) -> (String, String) {
        match guard(work) {
            Err(Error::Panic { place, message }) => (place, message),
            other => panic!("expected a panic, got {other:?}"),
        }
    }

    #[test]
    fn a_formatted_message_and_its_place_arrive() {
        let (place, message) = caught(|| panic!("broken {}", 17));
        assert_eq!(message, "broken 17");
        assert!(place.contains("panics.rs:"), "{place}");
    }

    #[test]
    fn a_panic_of_a_worker_thread_keeps_its_place() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).start_handler(|_| mark_thread()).build().unwrap();
        let work = || -> Result<()> {
            pool.install(|| (0..100).into_par_iter().for_each(|index| assert!(index != 63, "worker {index}")));
            Ok(())
        };
        let (place, message) = caught(work);
        assert_eq!(message, "worker 63");
        assert!(place.contains("panics.rs:"), "{place}");
    }

    #[test]
    fn a_payload_that_is_no_text_is_still_an_error() {
        assert_eq!(caught(|| panic::panic_any(5u8)).1, "no message");
    }

    #[test]
    fn results_pass_through_and_the_next_call_works() {
        caught(|| panic!("once"));
        assert_eq!(guard(|| Ok(5)).unwrap(), 5);
        assert!(matches!(guard::<()>(|| Err(Error::internal("as it is"))), Err(Error::Internal { .. })));
    }
}
