//! What ran when, for people who look for idle time.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{json, Map, Value};

/// Collects what the calls that carry it run: stages on the host, and every kernel and copy on a device. Clones share
/// one collection.
///
/// Its JSON is what chrome://tracing and ui.perfetto.dev show. Collecting costs two events for each kernel and copy.
#[derive(Clone)]
pub struct Trace(Arc<Collected>);

struct Collected {
    begin: Instant,
    spans: Mutex<Vec<Span>>,
}

/// Something that took a time.
pub(crate) struct Span {
    /// A host or device.
    pub machine: String,
    /// What ran there one after the other, such as a stream.
    pub row: String,
    pub name: String,
    pub begin: Instant,
    pub elapsed: Duration,
    /// Whatever else is known, by name.
    pub details: Map<String, Value>,
}

impl Trace {
    /// An empty one, whose time begins now.
    #[allow(clippy::new_without_default, reason = "a clock that starts is no default")]
    pub fn new() -> Self {
        Trace(Arc::new(Collected { begin: Instant::now(), spans: Mutex::default() }))
    }

    pub(crate) fn add(&self, span: Span) {
        self.0.spans.lock().push(span);
    }

    /// Microseconds from the begin of the trace.
    pub(crate) fn microseconds(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.0.begin).as_secs_f64() * 1e6
    }

    /// All that was collected so far, in Chrome's trace format.
    pub fn to_json(&self) -> Value {
        let mut numbers = Numbers::default();
        let spans = self.0.spans.lock();
        let mut events: Vec<Value> = spans.iter().map(|span| self.event(span, &mut numbers)).collect();
        events.extend(numbers.names());
        json!({"displayTimeUnit": "ms", "traceEvents": events})
    }

    fn event(&self, span: &Span, numbers: &mut Numbers) -> Value {
        let (machine, row) = numbers.of(&span.machine, &span.row);
        json!({
            "ph": "X",
            "name": span.name,
            "pid": machine,
            "tid": row,
            "ts": self.microseconds(span.begin),
            "dur": span.elapsed.as_secs_f64() * 1e6,
            "args": span.details,
        })
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({} spans)", self.0.spans.lock().len())
    }
}

/// The numbers that stand for machines and rows in the format.
#[derive(Default)]
struct Numbers {
    machines: HashMap<String, usize>,
    rows: HashMap<(usize, String), usize>,
}

impl Numbers {
    fn of(&mut self, machine: &str, row: &str) -> (usize, usize) {
        let next = self.machines.len();
        let machine = *self.machines.entry(machine.into()).or_insert(next);
        let next = self.rows.len();
        (machine, *self.rows.entry((machine, row.into())).or_insert(next))
    }

    /// The events that name them.
    fn names(self) -> impl Iterator<Item = Value> {
        let named = |what: &str, machine: usize, row: usize, name: String| json!({"ph": "M", "name": what, "pid": machine, "tid": row, "args": {"name": name}});
        let machines = self.machines.into_iter().map(move |(name, machine)| named("process_name", machine, 0, name));
        machines
            .chain(self.rows.into_iter().map(move |((machine, name), row)| named("thread_name", machine, row, name)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Control, Stage};
    use super::*;

    #[test]
    fn stages_of_a_traced_call_are_in_its_trace() {
        let trace = Trace::new();
        let control = Control::new().with_trace(trace.clone());
        control.stage(Stage::Check, None, || Ok(())).unwrap();
        control.fresh_times().stage(Stage::Witness, Some(3), || Ok(())).unwrap();
        control.stage(Stage::Verify, None, || control.check("nothing")).unwrap();
        Control::new().stage(Stage::Decode, None, || Ok(())).unwrap();
        let json = trace.to_json();
        let events = json["traceEvents"].as_array().unwrap();
        let stages: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!(stages.iter().map(|event| &event["name"]).collect::<Vec<_>>(), ["check", "witness", "verify"]);
        assert_eq!(stages[1]["args"]["partition"], 3);
        let numbers = |event: &&Value| event["dur"].as_f64().unwrap() >= 0.0 && event["ts"].as_f64().unwrap() >= 0.0;
        assert!(stages.iter().all(numbers));
        let names: Vec<_> =
            events.iter().filter(|event| event["ph"] == "M").map(|event| &event["args"]["name"]).collect();
        assert_eq!(names.len(), 2);
        assert!(names.iter().any(|name| **name == "host"), "{names:?}");
    }
}
