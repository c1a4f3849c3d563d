//! A value that one thread makes while others wait for it.

use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Control;
use crate::error::{Error, Result};

/// How often a waiting call looks at its cancel token and deadline.
const POLL: Duration = Duration::from_millis(20);

/// A value that will be there, unless its maker gives up.
#[derive(Debug)]
pub(crate) struct Promise<T> {
    value: OnceLock<T>,
    given_up: Mutex<bool>,
    changed: Condvar,
}

impl<T> Promise<T> {
    pub fn new() -> Self {
        Promise { value: OnceLock::new(), given_up: Mutex::new(false), changed: Condvar::new() }
    }

    /// Gives the value to all who wait.
    ///
    /// # Errors
    /// [`Error::Internal`] if there is one already.
    pub fn keep(&self, value: T) -> Result<()> {
        self.value.set(value).map_err(|_| Error::internal("a value was made twice"))?;
        // Whoever looked for it just before waits now.
        drop(self.given_up.lock());
        self.changed.notify_all();
        Ok(())
    }

    /// There will be no value, if there is none yet.
    pub fn give_up(&self) {
        *self.given_up.lock() = true;
        self.changed.notify_all();
    }

    /// The value, when it is there.
    ///
    /// # Errors
    /// [`Error::Internal`] if its maker gave up, who knows why; cancel and deadline.
    pub fn wait(&self, control: &Control) -> Result<&T> {
        let mut given_up = self.given_up.lock();
        loop {
            if let Some(value) = self.value.get() {
                return Ok(value);
            }
            if *given_up {
                return Err(Error::internal("what was waited for could not be made"));
            }
            control.check("the wait for a witness")?;
            self.changed.wait_for(&mut given_up, POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::error::Class;

    #[test]
    fn a_value_reaches_all_who_wait_for_it() {
        let promise = Promise::new();
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| *promise.wait(&Control::new()).unwrap())).collect();
            promise.keep(7).unwrap();
            waiting.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), 7));
        });
        assert_eq!(promise.keep(8).unwrap_err().class(), Class::Internal);
        promise.give_up();
        assert_eq!(*promise.wait(&Control::new()).unwrap(), 7, "what is there stays");
    }

    #[test]
    fn a_wait_ends_without_a_value() {
        let promise = Promise::<u8>::new();
        let late = Control::new().with_deadline(Instant::now() + Duration::from_millis(30));
        assert_eq!(promise.wait(&late).unwrap_err().code(), 401);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| promise.wait(&Control::new()).unwrap_err().class());
            promise.give_up();
            assert_eq!(waiting.join().unwrap(), Class::Internal);
        });
    }
}
