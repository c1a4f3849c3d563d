//! Times of every launch and copy, while somebody wants them: events around each in its stream, read at the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{json, Map, Value};

use super::{Event, Gpu, Stream};
use crate::error::Result;
use crate::pipeline::{Span, Trace};

/// What is noted of a device; nothing as long as it is off.
#[derive(Default)]
pub(super) struct Tracer {
    on: AtomicBool,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    label: Label,
    work: Vec<Work>,
    waits: Vec<Wait>,
}

/// What work is for.
#[derive(Debug, Clone, Copy, Default)]
struct Label {
    stage: &'static str,
    partition: Option<usize>,
}

/// A launch or copy.
struct Work {
    name: &'static str,
    label: Label,
    size: Size,
    /// The stream, by its address.
    stream: usize,
    queued: Instant,
    begin: Event,
    end: Event,
}

/// Of launches and copies.
#[derive(Debug, Clone, Copy)]
pub(super) enum Size {
    Threads { grid: u32, block: u32 },
    Bytes(usize),
}

/// The host waited.
struct Wait {
    label: Label,
    begin: Instant,
    elapsed: Duration,
}

impl Gpu {
    /// Does something on the device; with a trace, adds all that it queues to that. One at a time.
    pub fn traced<T>(&self, trace: Option<&Trace>, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(trace) = trace else { return work() };
        let tracing = Tracing::start(self)?;
        let outcome = work()?;
        tracing.finish(trace)?;
        Ok(outcome)
    }

    /// Says what is queued from now on is for.
    pub fn queue_for(&self, stage: &'static str, partition: Option<usize>) {
        if self.0.tracer.is_on() {
            self.0.tracer.notes.lock().label = Label { stage, partition };
        }
    }
}

impl Tracer {
    fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Waits for something, and notes how long.
    pub fn wait(&self, wait: impl FnOnce() -> Result<()>) -> Result<()> {
        if !self.is_on() {
            return wait();
        }
        let begin = Instant::now();
        let outcome = wait();
        let mut notes = self.notes.lock();
        let label = notes.label;
        notes.waits.push(Wait { label, begin, elapsed: begin.elapsed() });
        outcome
    }
}

impl Stream {
    /// Queues something, between two events if the device is traced.
    pub(super) fn note(&self, name: &'static str, size: Size, queue: impl FnOnce() -> Result<()>) -> Result<()> {
        let tracer = &self.gpu().0.tracer;
        if !tracer.is_on() {
            return queue();
        }
        let (begin, end) = (self.gpu().event()?, self.gpu().event()?);
        let queued = Instant::now();
        self.record(&begin)?;
        queue()?;
        self.record(&end)?;
        let mut notes = tracer.notes.lock();
        let (label, stream) = (notes.label, self.address());
        notes.work.push(Work { name, label, size, stream, queued, begin, end });
        Ok(())
    }
}

/// While it lives the device is traced. What was noted is dropped with it at the latest: the events hold the device.
struct Tracing<'a> {
    gpu: &'a Gpu,
    /// A moment in the device's time and in the host's.
    origin: Event,
    origin_at: Instant,
}

impl<'a> Tracing<'a> {
    fn start(gpu: &'a Gpu) -> Result<Self> {
        let (stream, origin) = (gpu.stream()?, gpu.event()?);
        stream.record(&origin)?;
        stream.synchronize()?;
        let tracing = Tracing { gpu, origin, origin_at: Instant::now() };
        gpu.0.tracer.on.store(true, Ordering::Relaxed);
        Ok(tracing)
    }

    /// Waits for all that was queued and adds it to a trace.
    fn finish(self, trace: &Trace) -> Result<()> {
        let Notes { work, waits, .. } = self.stop();
        let machine = self.gpu.label();
        let mut streams: Vec<usize> = Vec::new();
        for work in &work {
            work.end.synchronize()?;
            let row = streams.iter().position(|&stream| stream == work.stream).unwrap_or_else(|| {
                streams.push(work.stream);
                streams.len() - 1
            });
            trace.add(Span {
                machine: machine.clone(),
                row: format!("stream {row}"),
                name: work.name.into(),
                begin: self.origin_at + milliseconds(work.begin.since(&self.origin)?),
                elapsed: milliseconds(work.end.since(&work.begin)?),
                details: details(work.label, work.size, trace.microseconds(work.queued)),
            });
        }
        for wait in waits {
            let (row, name) = ("host".into(), "wait".into());
            let details = wait.label.details();
            trace.add(Span { machine: machine.clone(), row, name, begin: wait.begin, elapsed: wait.elapsed, details });
        }
        Ok(())
    }

    fn stop(&self) -> Notes {
        self.gpu.0.tracer.on.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.gpu.0.tracer.notes.lock())
    }
}

impl Drop for Tracing<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Label {
    fn details(self) -> Map<String, Value> {
        let mut details = Map::new();
        if !self.stage.is_empty() {
            details.insert("stage".into(), self.stage.into());
        }
        details.extend(self.partition.map(|partition| ("partition".to_owned(), partition.into())));
        details
    }
}

fn details(label: Label, size: Size, queued: f64) -> Map<String, Value> {
    let mut details = label.details();
    details.insert("queued".into(), json!(queued));
    match size {
        Size::Threads { grid, block } => {
            details.extend([("blocks".to_owned(), grid.into()), ("threads".to_owned(), block.into())])
        }
        Size::Bytes(bytes) => details.extend([("bytes".to_owned(), bytes.into())]),
    }
    details
}

fn milliseconds(milliseconds: f32) -> Duration {
    Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3)
}
