//! How work is ordered, watched and stopped. Knows neither Filecoin nor any device.

mod admission;
mod budget;
mod control;
mod promise;
mod queue;
mod trace;

pub(crate) use admission::{Admission, Grant, Want, Wish};
pub(crate) use budget::return_freed_memory;
pub(crate) use control::{Halt, Observer};
pub(crate) use promise::Promise;
pub(crate) use queue::Queue;
#[cfg(feature = "cuda")]
pub(crate) use trace::Span;

pub use budget::available_memory;
pub use control::{CancelToken, Control, Event, Stage};
pub use trace::Trace;
