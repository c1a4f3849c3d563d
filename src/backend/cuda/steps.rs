//! The steps of a proof: queued ahead of the device, timed, and cancelled between them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::gpu::{Event, Stream};
use crate::error::Result;
use crate::pipeline::{Control, Stage};

/// Steps that may be queued while another runs.
const AHEAD: usize = 2;

/// Queued steps of a proof: the host stays a few ahead of the device, so that a cancelled proof stops soon and the device
/// never waits.
pub(super) struct Steps<'a> {
    stream: &'a Stream,
    control: &'a Control,
    queued: VecDeque<Step>,
    pace: Pace<'a>,
}

/// Keeps the host a few kernels ahead of the device within a step whose kernels take long and cannot be told to end.
pub(super) struct Pace<'a> {
    stream: &'a Stream,
    control: &'a Control,
    stage: Cell<Stage>,
    ahead: RefCell<VecDeque<Event>>,
}

impl Pace<'_> {
    /// To be called before such a kernel is queued: waits until all but a few before it are done.
    pub fn rest(&self) -> Result<()> {
        let mut ahead = self.ahead.borrow_mut();
        while ahead.len() >= AHEAD {
            if let Some(event) = ahead.front() {
                event.wait_while(|| self.control.check(self.stage.get()))?;
            }
            ahead.pop_front();
        }
        let event = self.stream.gpu().event()?;
        self.stream.record(&event)?;
        ahead.push_back(event);
        Ok(())
    }
}

struct Step {
    stage: Stage,
    partition: Option<usize>,
    begin: Event,
    end: Event,
}

impl<'a> Steps<'a> {
    pub fn new(stream: &'a Stream, control: &'a Control) -> Self {
        let pace = Pace { stream, control, stage: Cell::new(Stage::Evaluate), ahead: RefCell::default() };
        Steps { stream, control, queued: VecDeque::new(), pace }
    }

    /// Queues a step when all but a few before it are done.
    pub fn queue(&mut self, stage: Stage, partition: Option<usize>, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.queue_paced(stage, partition, |_| work())
    }

    /// As [`Steps::queue`], of work that may [`Pace::rest`].
    pub fn queue_paced(
        &mut self,
        stage: Stage,
        partition: Option<usize>,
        work: impl FnOnce(&Pace<'a>) -> Result<()>,
    ) -> Result<()> {
        while self.queued.len() > AHEAD {
            self.retire()?;
        }
        self.control.check(stage)?;
        self.control.begin(stage, partition);
        let gpu = self.stream.gpu();
        gpu.queue_for(stage.name(), partition);
        let (begin, end) = (gpu.event()?, gpu.event()?);
        self.stream.record(&begin)?;
        // A part of the work may be queued.
        self.pace.stage.set(stage);
        work(&self.pace).and_then(|()| self.stream.record(&end)).inspect_err(|_| drop(self.stream.abandon()))?;
        self.queued.push_back(Step { stage, partition, begin, end });
        Ok(())
    }

    /// Waits for the oldest step.
    fn retire(&mut self) -> Result<()> {
        // Taken away when it is done: until then there is something to abandon.
        if let Some(step) = self.queued.front() {
            self.stream.gpu().queue_for(step.stage.name(), step.partition);
            step.end.wait_while(|| self.control.check(step.stage))?;
            let milliseconds = step.end.since(&step.begin)?;
            let elapsed = std::time::Duration::from_secs_f32(milliseconds.max(0.0) / 1e3);
            self.control.end(step.stage, step.partition, elapsed);
            self.queued.pop_front();
        }
        Ok(())
    }

    /// Waits for all steps.
    pub fn finish(mut self) -> Result<()> {
        while !self.queued.is_empty() {
            self.retire()?;
        }
        self.control.check("the sums on the device")
    }
}

impl Drop for Steps<'_> {
    fn drop(&mut self) {
        // After an error or a cancel nothing of this proof may still run when the next one begins.
        if !self.queued.is_empty() {
            if let Err(error) = self.stream.abandon() {
                log::debug!("{error}");
            }
        }
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::backend::cuda::testing;

    #[test]
    fn a_step_may_rest_often_and_stays_a_few_kernels_ahead() {
        let gpu = testing::gpu();
        let (stream, control) = (gpu.stream().unwrap(), Control::new());
        let mut steps = Steps::new(&stream, &control);
        for _ in 0..3 {
            let rests = |pace: &Pace| {
                (0..5).try_for_each(|_| {
                    pace.rest()?;
                    assert!((1..=AHEAD).contains(&pace.ahead.borrow().len()));
                    Ok(())
                })
            };
            steps.queue_paced(Stage::Transform, None, rests).unwrap();
        }
        steps.finish().unwrap();
    }
}
