//! Who may begin: a call waits until the bytes that it will take, and places where its work is done, are free. Knows
//! neither proofs nor devices, only names and numbers.
//!
//! Order: the oldest call first, where each level of priority counts as [`AGING`] of age. So a call of a higher
//! priority passes those that came at most so much earlier, and nobody waits for ever: of calls that come later than
//! that, none passes. Priorities beyond [`MOST_PRIORITY`] count as that.
//!
//! A call that cannot begin yet holds back those behind it only as far as they would take what it waits for: one that
//! wants other places passes if the bytes suffice for both.
//!
//! A call that may be spread over several places gets one of them where there is a call for each, and more where there
//! are fewer. That is decided when it begins, by what is in work and waits then, and once more before its work is handed
//! out: calls that come at the same moment are to find a place each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{Control, Stage};
use crate::error::{Error, Result};

/// The waiting time that a level of priority stands for.
pub const AGING: Duration = Duration::from_secs(10);

/// The highest priority; its negative is the lowest.
pub const MOST_PRIORITY: i32 = 100;

/// How often a waiting call looks at its cancel token and deadline.
const POLL: Duration = Duration::from_millis(50);

/// What a call asks for.
#[derive(Debug, Clone)]
pub struct Wish {
    /// What it is, for errors.
    pub what: String,
    /// What to do if it can never fit.
    pub advice: &'static str,
    /// Since when it waits; its age.
    pub since: Instant,
    /// Bytes of its own.
    pub own: u64,
    /// Things that it shares with others, with their bytes: counted once, however many use them.
    pub uses: Vec<(Arc<str>, u64)>,
    /// Where its work may be done, the preferred ones first. Each is shared like a thing with so many bytes.
    pub places: Vec<(Arc<str>, u64)>,
    /// How many of these it gets.
    pub want: Want,
}

/// How many of its places a call gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// All of them.
    All,
    /// As many as it does not take from others, at most this number: those where the fewest calls are in work.
    Spread(usize),
}

/// Admits calls.
pub struct Admission {
    state: Mutex<State>,
    moved: Condvar,
    /// Calls that may be in work at one place.
    workers: usize,
    budget: Budget,
}

/// How many bytes there are.
enum Budget {
    Fixed(u64),
    /// What the system has available, and what was taken of it already.
    Available(Box<dyn Fn() -> Option<u64> + Send + Sync>),
}

/// Numbers of an [`Admission`].
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    /// Calls that wait.
    pub waiting: usize,
    /// Calls that were admitted and have not ended.
    pub running: usize,
    /// Bytes that are set aside for them, and for what stays loaded.
    pub reserved: u64,
    /// The most bytes that were ever set aside.
    pub peak: u64,
    /// Bytes that may be set aside, where that is known.
    pub budget: Option<u64>,
    /// Calls in work, by place.
    pub places: BTreeMap<Arc<str>, usize>,
}

#[derive(Default)]
struct State {
    next_ticket: u64,
    /// In the order in which they may begin.
    waiting: Vec<Waiting>,
    /// Those that may begin and have not noticed yet, with the numbers of their places.
    admitted: HashMap<u64, Vec<usize>>,
    /// These and all others that have not ended.
    running: HashMap<u64, Running>,
    ledger: Ledger,
    peak: u64,
    sample: Option<Sample>,
}

struct Waiting {
    /// Since when it waits by the order: milliseconds after the first call, a priority's worth earlier.
    rank: i64,
    ticket: u64,
    wish: Wish,
}

/// A call that may work with what it asked for.
struct Running {
    wish: Wish,
    /// The numbers of its places.
    chosen: Vec<usize>,
}

/// What was seen of the system's memory.
#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    available: u64,
    /// Bytes that we may take in all, by this and earlier samples.
    limit: u64,
}

/// What is set aside.
#[derive(Clone, Default)]
struct Ledger {
    own: u64,
    shared: BTreeMap<Arc<str>, Shared>,
}

/// Something that several calls use at once.
#[derive(Clone, Default)]
struct Shared {
    /// Calls that work there.
    running: usize,
    /// The bytes that each of its users expects it to have.
    claims: Vec<u64>,
    /// Bytes that it has by itself, used or not.
    kept: u64,
}

impl Shared {
    fn bytes(&self) -> u64 {
        self.claims.iter().copied().max().unwrap_or(0).max(self.kept)
    }
}

impl Ledger {
    fn total(&self) -> u64 {
        self.shared.values().fold(self.own, |sum, shared| sum.saturating_add(shared.bytes()))
    }

    /// Calls in work at a place.
    fn running(&self, key: &str) -> usize {
        self.shared.get(key).map_or(0, |shared| shared.running)
    }

    /// The places that a wish gets, one of so many calls for them: those with the least work, of equal ones the first.
    fn choose(&self, wish: &Wish, calls: usize) -> Vec<usize> {
        let running = |&place: &usize| self.running(&wish.places[place].0);
        let mut places: Vec<usize> = (0..wish.places.len()).collect();
        places.sort_by_key(running);
        if let Want::Spread(most) = wish.want {
            let idle = places.iter().filter(|place| running(place) == 0).count();
            let count = match idle {
                // What a place does for a part of a call costs more than its share of the whole.
                _ if calls >= places.len() => 1,
                0 => places.len().div_ceil(calls.max(1)),
                idle => idle,
            };
            places.truncate(count.min(most));
        }
        places.sort_unstable();
        places
    }

    fn is_free(&self, wish: &Wish, chosen: &[usize], workers: usize) -> bool {
        chosen.iter().all(|&place| self.shared.get(&wish.places[place].0).is_none_or(|shared| shared.running < workers))
    }

    fn add(&mut self, wish: &Wish, chosen: &[usize]) {
        self.own = self.own.saturating_add(wish.own);
        for &place in chosen {
            let (key, bytes) = &wish.places[place];
            let shared = self.shared.entry(key.clone()).or_default();
            shared.running += 1;
            shared.claims.push(*bytes);
        }
        for (key, bytes) in &wish.uses {
            self.shared.entry(key.clone()).or_default().claims.push(*bytes);
        }
    }

    fn remove(&mut self, wish: &Wish, chosen: &[usize]) {
        self.own -= wish.own;
        let chosen = chosen.iter().map(|&place| (&wish.places[place], 1));
        for ((key, bytes), running) in chosen.chain(wish.uses.iter().map(|used| (used, 0))) {
            let Some(shared) = self.shared.get_mut(key) else { continue };
            shared.running -= running;
            if let Some(index) = shared.claims.iter().position(|claim| claim == bytes) {
                shared.claims.swap_remove(index);
            }
        }
    }
}

impl Wish {
    /// The bytes that it takes when it is alone.
    fn alone(&self) -> u64 {
        self.bytes_at(&Ledger::default().choose(self, 1))
    }

    /// The bytes that it takes with these places.
    fn bytes_at(&self, chosen: &[usize]) -> u64 {
        let mut alone = Ledger::default();
        alone.add(self, chosen);
        alone.total()
    }

    /// Whether it may do with fewer of its places.
    fn is_spread(&self) -> bool {
        matches!(self.want, Want::Spread(_))
    }

    fn refused(&self, available: u64) -> Error {
        let (what, advice) = (self.what.clone(), self.advice.into());
        Error::Memory { what, needed: self.alone(), available, advice }
    }
}

/// The right to work with what was asked for, until it is dropped.
pub struct Grant<'a> {
    admission: &'a Admission,
    ticket: u64,
    chosen: Vec<usize>,
    bytes: u64,
}

impl Grant<'_> {
    /// The numbers of the places that were given.
    pub fn places(&self) -> &[usize] {
        &self.chosen
    }

    /// Bytes that it takes there when it is alone.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps one of several places if there is a call for each by now. To be asked before work is handed out.
    pub fn narrow(&mut self) {
        let mut guard = self.admission.state.lock();
        let state = &mut *guard;
        let budget = self.admission.budget(state);
        let Some(Running { wish, mut chosen }) = state.running.remove(&self.ticket) else { return };
        // As if it were about to begin.
        state.ledger.remove(&wish, &chosen);
        if wish.is_spread() && state.calls_for(&wish, self.ticket, budget) >= wish.places.len() {
            let left = |&place: &usize| state.ledger.running(&wish.places[place].0);
            chosen = chosen.into_iter().min_by_key(left).into_iter().collect();
        }
        state.ledger.add(&wish, &chosen);
        (self.bytes, self.chosen) = (wish.bytes_at(&chosen), chosen.clone());
        state.running.insert(self.ticket, Running { wish, chosen });
        self.admission.admit(state);
    }
}

impl Drop for Grant<'_> {
    fn drop(&mut self) {
        let mut state = self.admission.state.lock();
        state.leave(self.ticket);
        self.admission.admit(&mut state);
    }
}

impl Admission {
    /// With a number of calls that may be in work at each place, and of bytes that all of them may take; `None`: what
    /// the system has available.
    pub fn new(workers: usize, budget: Option<u64>) -> Self {
        let budget = budget.map_or_else(|| Budget::Available(Box::new(super::available_memory)), Budget::Fixed);
        Admission::with(workers, budget)
    }

    fn with(workers: usize, budget: Budget) -> Self {
        Admission { state: Mutex::default(), moved: Condvar::new(), workers, budget }
    }

    /// Refuses what can never fit.
    ///
    /// # Errors
    /// [`Error::Memory`] with the numbers.
    pub fn possible(&self, wish: &Wish) -> Result<()> {
        match self.budget(&mut self.state.lock()) {
            Some(budget) if wish.alone() > budget => Err(wish.refused(budget)),
            _ => Ok(()),
        }
    }

    /// Waits until a call may begin. `reclaim` gives back an unused thing of this name, and says so by
    /// [`Admission::keep`].
    ///
    /// # Errors
    /// [`Error::Memory`] at once for what can never fit; what `control` says.
    pub fn enter(&self, wish: Wish, control: &Control, reclaim: &dyn Fn(&str)) -> Result<Grant<'_>> {
        self.possible(&wish)?;
        let priority = i64::from(control.priority().clamp(-MOST_PRIORITY, MOST_PRIORITY));
        // Dropped after the lock is.
        let mut entry = Entry { admission: self, ticket: None };
        let mut state = self.state.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        entry.ticket = Some(ticket);
        let age = i64::try_from(wish.since.elapsed().as_millis()).unwrap_or(i64::MAX);
        let now = milliseconds();
        let rank = now.saturating_sub(age) - priority * AGING.as_millis() as i64;
        let place = state.waiting.partition_point(|other| (other.rank, other.ticket) < (rank, ticket));
        state.waiting.insert(place, Waiting { rank, ticket, wish: wish.clone() });
        self.admit(&mut state);
        loop {
            if let Some(chosen) = state.admitted.remove(&ticket) {
                entry.ticket = None;
                let bytes = wish.bytes_at(&chosen);
                return Ok(Grant { admission: self, ticket, chosen, bytes });
            }
            control.check(Stage::Queue)?;
            if state.waiting.first().is_some_and(|first| first.ticket == ticket) {
                let idle = self.reclaimable(&mut state);
                if !idle.is_empty() {
                    MutexGuard::unlocked(&mut state, || idle.iter().for_each(|key| reclaim(key)));
                    self.admit(&mut state);
                    continue;
                }
                // Alone, with nothing left to give back: what the system had available has become less.
                if state.running.is_empty() {
                    return Err(wish.refused(self.budget(&mut state).unwrap_or(0)));
                }
                if matches!(self.budget, Budget::Available(_)) {
                    self.admit(&mut state);
                }
            }
            let wait = control.deadline().map_or(POLL, |at| at.saturating_duration_since(Instant::now()).min(POLL));
            if !state.admitted.contains_key(&ticket) {
                self.moved.wait_for(&mut state, wait);
            }
        }
    }

    /// Says how many bytes something has by itself, used or not.
    pub fn keep(&self, key: &Arc<str>, bytes: u64) {
        let mut state = self.state.lock();
        state.ledger.shared.entry(key.clone()).or_default().kept = bytes;
        state.peak = state.peak.max(state.ledger.total());
        self.admit(&mut state);
    }

    /// How things are now.
    pub fn numbers(&self) -> Numbers {
        let mut state = self.state.lock();
        let budget = self.budget(&mut state);
        let running = |(key, shared): (&Arc<str>, &Shared)| (key.clone(), shared.running);
        Numbers {
            waiting: state.waiting.len(),
            running: state.running.len(),
            reserved: state.ledger.total(),
            peak: state.peak,
            budget,
            places: state.ledger.shared.iter().map(running).collect(),
        }
    }

    /// Bytes that may be set aside in all; `None` where nobody knows.
    fn budget(&self, state: &mut State) -> Option<u64> {
        let available = match &self.budget {
            Budget::Fixed(bytes) => return Some(*bytes),
            Budget::Available(available) => available,
        };
        let fresh = state.sample.filter(|sample| sample.at.elapsed() < POLL);
        let sample = match fresh {
            Some(sample) => sample,
            None => {
                let available = available()?;
                // What is loaded has been taken already. What those in work have taken so far is not known: with them
                // the limit is what an earlier look, or this one, allows at least.
                let kept = state.ledger.shared.values().map(|shared| shared.kept).sum();
                let limit = available.saturating_add(kept);
                let before = if state.running.is_empty() { None } else { state.sample };
                let limit = before.map_or(limit, |before| before.limit.max(limit));
                Sample { at: Instant::now(), available, limit }
            }
        };
        state.sample = Some(sample);
        Some(sample.limit)
    }

    /// Lets in whoever may begin.
    fn admit(&self, state: &mut State) {
        let budget = self.budget(state);
        // What those in work have not taken yet is missing from what is available now.
        let mut room = match (&self.budget, state.sample) {
            (Budget::Available(_), Some(sample)) => Some(sample.available),
            _ => None,
        };
        let mut sketch = state.ledger.clone();
        let mut index = 0;
        let mut any = false;
        while let Some(Waiting { wish, ticket, .. }) = state.waiting.get(index) {
            let chosen = sketch.choose(wish, state.calls_for(wish, *ticket, budget));
            let free = sketch.is_free(wish, &chosen, self.workers);
            // Whether it begins or not: nobody behind it may take this from it.
            sketch.add(wish, &chosen);
            let mut with = state.ledger.clone();
            with.add(wish, &chosen);
            let more = with.total() - state.ledger.total();
            let fits = budget.is_none_or(|budget| sketch.total() <= budget) && room.is_none_or(|room| more <= room);
            if !free || !fits {
                index += 1;
                continue;
            }
            let Waiting { wish, ticket, .. } = state.waiting.remove(index);
            state.admitted.insert(ticket, chosen.clone());
            state.running.insert(ticket, Running { wish, chosen });
            state.ledger = with;
            room = room.map(|room| room - more);
            any = true;
        }
        state.peak = state.peak.max(state.ledger.total());
        if any {
            self.moved.notify_all();
        }
    }

    /// Unused things without which the first call in the order could begin; those that it would not use itself first.
    fn reclaimable(&self, state: &mut State) -> Vec<Arc<str>> {
        let Some(budget) = self.budget(state) else { return Vec::new() };
        let Some(Waiting { wish, ticket, .. }) = state.waiting.first() else { return Vec::new() };
        let chosen = state.ledger.choose(wish, state.calls_for(wish, *ticket, Some(budget)));
        if !state.ledger.is_free(wish, &chosen, self.workers) {
            return Vec::new();
        }
        let mut with = state.ledger.clone();
        with.add(wish, &chosen);
        let idle = state.ledger.shared.iter().filter(|(_, shared)| shared.claims.is_empty() && shared.kept > 0);
        let mut idle: Vec<(&Arc<str>, u64)> = idle
            .map(|(key, shared)| {
                (key, shared.kept - with.shared[key].claims.iter().copied().max().unwrap_or(0).min(shared.kept))
            })
            .filter(|&(_, freed)| freed > 0)
            .collect();
        idle.sort_by_key(|(key, _)| !with.shared[*key].claims.is_empty());
        let missing = with.total().saturating_sub(budget);
        let mut freed = 0;
        let mut wanted = Vec::new();
        for (key, bytes) in idle {
            if freed < missing {
                freed += bytes;
                wanted.push(key.clone());
            }
        }
        if freed >= missing {
            wanted
        } else {
            Vec::new()
        }
    }
}

impl State {
    fn leave(&mut self, ticket: u64) {
        if let Some(Running { wish, chosen }) = self.running.remove(&ticket) {
            self.ledger.remove(&wish, &chosen);
        }
    }

    /// How many calls, a waiting one among them, are in work at its places or wait for them. Of others that wait only
    /// those count that bytes suffice for: places that lack of bytes keeps idle are to be used.
    fn calls_for(&self, wish: &Wish, ticket: u64, budget: Option<u64>) -> usize {
        let wanted = |(key, _): &(Arc<str>, u64)| wish.places.iter().any(|(own, _)| own == key);
        let is_here = |Running { wish, chosen }: &&Running| {
            wish.is_spread() && chosen.iter().any(|&place| wanted(&wish.places[place]))
        };
        let running = self.running.values().filter(is_here).count();
        let waits =
            |other: &&Waiting| other.ticket != ticket && other.wish.is_spread() && other.wish.places.iter().any(wanted);
        let mut room = budget.map(|budget| budget.saturating_sub(self.ledger.total().saturating_add(wish.own)));
        let fits = self.waiting.iter().filter(waits).map_while(|Waiting { wish, .. }| match &mut room {
            None => Some(()),
            Some(room) => room.checked_sub(wish.own).map(|left| *room = left),
        });
        // More than there are places make no difference.
        1 + running + fits.take(wish.places.len()).count()
    }
}

/// A call that waits: leaves without disturbing the others, whatever ends its wait.
struct Entry<'a> {
    admission: &'a Admission,
    /// `None` when it does not wait any more.
    ticket: Option<u64>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.admission.state.lock();
        state.waiting.retain(|waiting| waiting.ticket != ticket);
        if state.admitted.remove(&ticket).is_some() {
            state.leave(ticket);
        }
        self.admission.admit(&mut state);
    }
}

/// Milliseconds since some moment of this process.
fn milliseconds() -> i64 {
    static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    i64::try_from(BEGIN.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::pipeline::CancelToken;

    fn key(name: &str) -> Arc<str> {
        name.into()
    }

    /// A wish for bytes and for one of these places.
    fn wish(own: u64, places: &[&str]) -> Wish {
        Wish {
            what: "a test".into(),
            advice: "nothing",
            since: Instant::now(),
            own,
            uses: Vec::new(),
            places: places.iter().map(|&place| (key(place), 0)).collect(),
            want: Want::Spread(1),
        }
    }

    fn nothing(_: &str) {}

    fn enter(admission: &Admission, wish: Wish) -> Grant<'_> {
        let control = Control::new().with_deadline(Instant::now() + Duration::from_secs(20));
        admission.enter(wish, &control, &nothing).expect("admitted within 20 s")
    }

    fn is_let_in(admission: &Admission, wish: Wish) -> bool {
        let control = Control::new().with_deadline(Instant::now() + Duration::from_millis(20));
        admission.enter(wish, &control, &nothing).is_ok()
    }

    fn wait_for(admission: &Admission, waiting: usize) {
        let until = Instant::now() + Duration::from_secs(20);
        while admission.numbers().waiting != waiting {
            assert!(Instant::now() < until, "{waiting} calls wait: {:?}", admission.numbers());
            thread::yield_now();
        }
    }

    /// The order in which calls of these priorities and ages begin, one at a time.
    fn order(calls: &[(i32, u64)]) -> Vec<usize> {
        let admission = Admission::new(1, Some(100));
        let (sender, receiver) = mpsc::channel();
        let first = enter(&admission, wish(100, &[]));
        thread::scope(|scope| {
            for (index, &(priority, age)) in calls.iter().enumerate() {
                let (admission, sender) = (&admission, sender.clone());
                scope.spawn(move || {
                    let since = Instant::now() - Duration::from_secs(age);
                    let control = Control::new().with_priority(priority);
                    let grant = admission.enter(Wish { since, ..wish(100, &[]) }, &control, &nothing).unwrap();
                    sender.send(index).unwrap();
                    drop(grant);
                });
                wait_for(admission, index + 1);
            }
            drop(first);
        });
        drop(sender);
        receiver.iter().collect()
    }

    #[test]
    fn the_oldest_is_first_and_priority_counts_as_age() {
        assert_eq!(order(&[(0, 0); 6]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(order(&[(0, 0), (7, 0), (0, 0), (7, 0), (-1, 0)]), [1, 3, 0, 2, 4]);
        // Ten seconds a level: the second is younger by less, the third by more.
        assert_eq!(order(&[(0, 25), (2, 6), (2, 4)]), [1, 0, 2]);
        // Whatever the priority, it is that of 100 levels.
        assert_eq!(order(&[(0, 1001), (i32::MAX, 0), (i32::MIN, 0)]), [0, 1, 2]);
        assert_eq!(order(&[(0, 999), (i32::MAX, 0), (i32::MIN, 0)]), [1, 0, 2]);
    }

    #[test]
    fn bytes_and_places_are_never_given_twice() {
        let admission = Admission::new(2, Some(100));
        let first = enter(&admission, wish(60, &["a"]));
        assert!(!is_let_in(&admission, wish(41, &["b"])), "no bytes");
        let second = enter(&admission, wish(10, &["a"]));
        assert!(!is_let_in(&admission, wish(1, &["a"])), "no place");
        assert!(is_let_in(&admission, wish(1, &["a", "b"])), "another place");
        assert_eq!((admission.numbers().running, admission.numbers().reserved), (2, 70));
        drop(first);
        let third = enter(&admission, wish(90, &["a"]));
        assert_eq!(admission.numbers().reserved, 100);
        drop((second, third));
        assert_eq!((admission.numbers().running, admission.numbers().reserved, admission.numbers().peak), (0, 0, 100));
    }

    #[test]
    fn what_is_shared_counts_once_and_the_places_with_the_least_work_are_given() {
        let admission = Admission::new(4, Some(1000));
        let shared = |own| Wish {
            uses: vec![(key("circuit"), 100)],
            places: vec![(key("a"), 200), (key("b"), 200)],
            ..wish(own, &[])
        };
        let grants: Vec<_> = (0..4).map(|_| enter(&admission, shared(10))).collect();
        let places: Vec<&[usize]> = grants.iter().map(|grant| grant.places()).collect();
        assert_eq!(places, [[0], [1], [0], [1]]);
        assert_eq!(admission.numbers().reserved, 100 + 2 * 200 + 4 * 10);
        let both = enter(&admission, Wish { want: Want::All, ..shared(1) });
        assert_eq!((both.places(), both.bytes()), (&[0, 1][..], 501));
        drop((grants, both));
        assert_eq!(admission.numbers().reserved, 0);
    }

    fn spread(own: u64) -> Wish {
        Wish { want: Want::Spread(10), ..wish(own, &["a", "b", "c"]) }
    }

    #[test]
    fn a_call_gets_one_place_where_there_is_a_call_for_each_and_idle_ones_where_there_are_fewer() {
        let admission = Admission::new(4, Some(1000));
        let first = enter(&admission, spread(1));
        assert_eq!(first.places(), [0, 1, 2], "nobody else is there");
        let second = enter(&admission, spread(1));
        assert_eq!(second.places(), [0, 1], "two calls for three places, of which none is idle");
        let whole: Vec<_> = (0..3).map(|_| enter(&admission, spread(1))).collect();
        let places: Vec<&[usize]> = whole.iter().map(|grant| grant.places()).collect();
        assert_eq!(places, [[2], [0], [1]], "where the fewest are in work");
        drop((first, second));
        let mut whole = whole.into_iter();
        drop(whole.next());
        assert_eq!(enter(&admission, spread(1)).places(), [2], "the third call for three places");
        drop(whole.next());
        assert_eq!(enter(&admission, spread(1)).places(), [0, 2], "the second one has the idle ones");
        assert_eq!(enter(&admission, Wish { want: Want::Spread(1), ..spread(1) }).places(), [0]);
        // One that has all places takes none from others.
        let _loading = enter(&admission, Wish { want: Want::All, ..spread(1) });
        assert_eq!(enter(&admission, spread(1)).places(), [0, 2]);
        drop(whole);
        assert_eq!(enter(&admission, spread(1)).places(), [0, 1, 2]);
    }

    #[test]
    fn one_that_has_not_begun_leaves_places_to_those_that_came_since() {
        let admission = Admission::new(1, Some(1000));
        let mut first = enter(&admission, spread(1));
        first.narrow();
        assert_eq!(first.places(), [0, 1, 2], "nobody has come");
        thread::scope(|scope| {
            let others: Vec<_> = (1..=2)
                .map(|count| {
                    let call = scope.spawn(|| enter(&admission, spread(1)).places().to_vec());
                    wait_for(&admission, count);
                    call
                })
                .collect();
            first.narrow();
            assert_eq!(first.places(), [0]);
            let mut others: Vec<_> = others.into_iter().map(|call| call.join().unwrap()).collect();
            others.sort();
            assert_eq!(others, [[1], [2]]);
        });
        // Where others are in work already it keeps the place with the fewest.
        drop(first);
        let admission = Admission::new(2, Some(1000));
        let mut first = enter(&admission, spread(1));
        let others: Vec<_> = ["a", "c"].map(|place| enter(&admission, wish(1, &[place]))).into();
        first.narrow();
        assert_eq!(first.places(), [1]);
        drop((first, others));
        assert_eq!((admission.numbers().running, admission.numbers().reserved), (0, 0));
        assert!(admission.numbers().places.values().all(|&running| running == 0));
    }

    #[test]
    fn calls_that_wait_count_as_far_as_bytes_suffice_for_them() {
        // The places of three calls that waited for all places, with so many bytes beside those of one.
        let places = |others: u64| {
            let admission = Admission::new(1, Some(100 + others));
            let busy = enter(&admission, Wish { want: Want::All, ..spread(100 + others) });
            thread::scope(|scope| {
                let calls: Vec<_> = (0..3)
                    .map(|index| {
                        let admission = &admission;
                        let call = scope.spawn(move || {
                            let grant = enter(admission, spread(100));
                            // Until the next ones have had the same chance.
                            thread::sleep(Duration::from_millis(20));
                            grant.places().to_vec()
                        });
                        wait_for(admission, index + 1);
                        call
                    })
                    .collect();
                drop(busy);
                calls.into_iter().map(|call| call.join().unwrap()).collect::<Vec<_>>()
            })
        };
        assert_eq!(places(200), [[0], [1], [2]]);
        assert_eq!(places(99), [[0, 1, 2]; 3], "one at a time has all of them");
    }

    #[test]
    fn nobody_passes_at_the_cost_of_those_before() {
        let admission = Admission::new(1, Some(100));
        let on_a = enter(&admission, wish(30, &["a"]));
        thread::scope(|scope| {
            let waits = scope.spawn(|| enter(&admission, wish(60, &["a"])).places().len());
            wait_for(&admission, 1);
            assert!(is_let_in(&admission, wish(10, &["b"])), "bytes for both, another place");
            assert!(!is_let_in(&admission, wish(11, &["b"])), "it would take bytes of the one before");
            assert!(!is_let_in(&admission, wish(1, &["a"])));
            drop(on_a);
            assert_eq!(waits.join().unwrap(), 1);
        });
    }

    #[test]
    fn what_never_fits_is_refused_at_once_with_the_numbers() {
        let admission = Admission::new(1, Some(100));
        let _busy = enter(&admission, wish(100, &["a"]));
        match admission.enter(wish(101, &["a"]), &Control::new(), &nothing).map(drop).unwrap_err() {
            Error::Memory { needed, available, .. } => assert_eq!((needed, available), (101, 100)),
            other => panic!("{other}"),
        }
        assert_eq!(admission.numbers().waiting, 0);
    }

    #[test]
    fn a_cancelled_or_late_call_leaves_and_the_others_go_on() {
        let admission = Admission::new(1, Some(100));
        let busy = enter(&admission, wish(50, &["a"]));
        let token = CancelToken::new();
        thread::scope(|scope| {
            let cancelled = scope.spawn(|| {
                let control = Control::new().with_cancel(token.clone());
                admission.enter(wish(100, &["a"]), &control, &nothing).map(drop).unwrap_err().code()
            });
            wait_for(&admission, 1);
            let next = scope.spawn(|| enter(&admission, wish(50, &["b"])).bytes());
            wait_for(&admission, 2);
            let begin = Instant::now();
            assert!(!is_let_in(&admission, wish(1, &["a"])));
            assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
            token.cancel();
            assert_eq!(cancelled.join().unwrap(), 400);
            assert_eq!(next.join().unwrap(), 50, "it need not wait for what is busy");
        });
        drop(busy);
        assert_eq!(admission.numbers().reserved, 0);
    }

    #[test]
    fn a_panic_while_waiting_or_working_gives_everything_back() {
        let admission = Admission::new(1, Some(100));
        admission.keep(&key("idle"), 50);
        let panics = || {
            let _ =
                admission.enter(wish(60, &["a"]), &Control::new(), &|_| std::panic::resume_unwind(Box::new("test")));
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(
            (admission.numbers().waiting, admission.numbers().running, admission.numbers().reserved),
            (0, 0, 50)
        );
        assert!(is_let_in(&admission, wish(50, &["a"])));
    }

    #[test]
    fn what_is_kept_and_unused_is_given_back_for_those_who_need_it() {
        let admission = Admission::new(2, Some(100));
        let kept = |name: &str, bytes| Wish { places: vec![(key(name), bytes)], ..wish(10, &[]) };
        drop(enter(&admission, kept("cpu", 60)));
        admission.keep(&key("cpu"), 60);
        assert_eq!(admission.numbers().reserved, 60, "it stays loaded");
        // Used again, it counts once.
        assert_eq!((enter(&admission, kept("cpu", 60)).bytes(), admission.numbers().reserved), (70, 70));
        let reclaimed = Mutex::new(Vec::new());
        let reclaim = |name: &str| {
            reclaimed.lock().push(name.to_owned());
            admission.keep(&key(name), 0);
        };
        assert!(admission.enter(wish(40, &["gpu"]), &Control::new(), &reclaim).is_ok());
        assert!(reclaimed.lock().is_empty(), "there was room");
        assert!(admission.enter(wish(41, &["gpu"]), &Control::new(), &reclaim).is_ok());
        assert_eq!(*reclaimed.lock(), ["cpu"]);
    }

    #[test]
    fn without_a_number_the_budget_is_what_the_system_has() {
        let available = Arc::new(AtomicU64::new(100));
        let shown = available.clone();
        let look = Box::new(move || Some(shown.load(Ordering::Relaxed)));
        let admission = Admission::with(4, Budget::Available(look));
        let first = enter(&admission, wish(60, &[]));
        // What it takes is not available any more, and is not counted twice.
        available.store(40, Ordering::Relaxed);
        thread::sleep(2 * POLL);
        let second = enter(&admission, wish(40, &[]));
        available.store(0, Ordering::Relaxed);
        thread::sleep(2 * POLL);
        assert!(!is_let_in(&admission, wish(1, &[])));
        drop((first, second));
        // Others took it: there is nothing to wait for.
        thread::sleep(2 * POLL);
        let error = admission.enter(wish(1, &[]), &Control::new(), &nothing).map(drop).unwrap_err();
        assert!(matches!(error, Error::Memory { needed: 1, available: 0, .. }), "{error}");
    }

    #[test]
    fn many_calls_of_all_kinds_keep_the_numbers_and_all_end() {
        let admission = Admission::new(2, Some(1000));
        thread::scope(|scope| {
            for index in 0..64u64 {
                let admission = &admission;
                scope.spawn(move || {
                    let places = ["a", "b", "c"];
                    let wish = wish(100 + index * 7 % 300, &places[..1 + index as usize % 3]);
                    let want = if index % 7 == 0 { Want::All } else { Want::Spread(1 + index as usize % 2) };
                    let wish = Wish { want, ..wish };
                    let control = Control::new().with_priority(index as i32 % 5);
                    let grant = admission.enter(wish, &control, &nothing).unwrap();
                    thread::sleep(Duration::from_micros(100 * (index % 7)));
                    let numbers = admission.numbers();
                    assert!(
                        numbers.reserved <= 1000 && numbers.places.values().all(|&running| running <= 2),
                        "{numbers:?}"
                    );
                    drop(grant);
                });
            }
        });
        let numbers = admission.numbers();
        assert_eq!((numbers.waiting, numbers.running, numbers.reserved), (0, 0, 0));
        assert!(numbers.peak > 500 && numbers.peak <= 1000, "{numbers:?}");
    }
}
