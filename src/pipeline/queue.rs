//! One at a time, in the order of arrival.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::{Control, Stage};
use crate::error::Result;

/// How often a waiting call looks at its cancel token and deadline.
const POLL: Duration = Duration::from_millis(50);

/// A queue with one place at its head. One that is cancelled while it waits leaves without disturbing the others.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next_ticket: u64,
    tickets: VecDeque<u64>,
}

/// The place at the head of a [`Queue`]; dropping it lets the next one in.
#[derive(Debug)]
pub struct Turn<'a> {
    queue: &'a Queue,
    ticket: u64,
}

impl Queue {
    /// Waits until this call is at the head, or until `control` says stop.
    pub fn enter(&self, control: &Control) -> Result<Turn<'_>> {
        // Dropped after the lock is.
        let turn;
        let mut state = self.state.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.tickets.push_back(ticket);
        turn = Turn { queue: self, ticket };
        while state.tickets.front() != Some(&ticket) {
            control.check(Stage::Queue)?;
            self.moved.wait_for(&mut state, POLL);
        }
        Ok(turn)
    }

    /// How many calls are at the head or waiting.
    #[cfg(test)]
    pub fn depth(&self) -> usize {
        self.state.lock().tickets.len()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.queue.state.lock().tickets.retain(|ticket| *ticket != self.ticket);
        self.queue.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::error::Class;
    use crate::pipeline::CancelToken;

    fn wait_for_depth(queue: &Queue, depth: usize) {
        while queue.depth() != depth {
            thread::yield_now();
        }
    }

    #[test]
    fn calls_enter_in_the_order_of_arrival() {
        let queue = Arc::new(Queue::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        let head = queue.enter(&Control::new()).unwrap();
        let waiting: Vec<_> = (0..8)
            .map(|index| {
                let (shared, order) = (queue.clone(), order.clone());
                let handle = thread::spawn(move || {
                    let _turn = shared.enter(&Control::new()).unwrap();
                    order.lock().push(index);
                });
                wait_for_depth(&queue, index + 2);
                handle
            })
            .collect();
        assert!(order.lock().is_empty(), "nobody may pass the head");
        drop(head);
        waiting.into_iter().for_each(|handle| handle.join().unwrap());
        assert_eq!(*order.lock(), (0..8).collect::<Vec<_>>());
        assert_eq!(queue.depth(), 0);
    }

    #[test]
    fn a_cancelled_call_leaves_and_the_next_one_gets_its_turn() {
        let queue = Arc::new(Queue::default());
        let head = queue.enter(&Control::new()).unwrap();
        let token = CancelToken::new();
        let cancelled = {
            let (queue, control) = (queue.clone(), Control::new().with_cancel(token.clone()));
            thread::spawn(move || queue.enter(&control).map(drop).unwrap_err().class())
        };
        wait_for_depth(&queue, 2);
        let next = {
            let queue = queue.clone();
            thread::spawn(move || queue.enter(&Control::new()).map(drop).is_ok())
        };
        wait_for_depth(&queue, 3);
        token.cancel();
        assert_eq!(cancelled.join().unwrap(), Class::Cancelled);
        drop(head);
        assert!(next.join().unwrap());
    }

    #[test]
    fn a_deadline_ends_the_wait() {
        let queue = Queue::default();
        let _head = queue.enter(&Control::new()).unwrap();
        let control = Control::new().with_deadline(Instant::now() + Duration::from_millis(20));
        assert_eq!(queue.enter(&control).unwrap_err().code(), 401);
        assert_eq!(queue.depth(), 1);
    }

    #[test]
    fn a_panic_at_the_head_does_not_block_the_queue() {
        let queue = Arc::new(Queue::default());
        let shared = queue.clone();
        let panicked = thread::spawn(move || {
            let _turn = shared.enter(&Control::new()).unwrap();
            std::panic::resume_unwind(Box::new("injected"));
        });
        assert!(panicked.join().is_err());
        assert!(queue.enter(&Control::new()).is_ok());
    }
}
