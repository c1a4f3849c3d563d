//! How work is ordered, watched and stopped. Knows neither Filecoin nor any device.

mod budget;
mod control;
mod queue;
mod trace;

pub(crate) use budget::return_freed_memory;
#[cfg(feature = "cuda")]
pub(crate) use trace::Span;

pub use budget::available_memory;
pub use control::{CancelToken, Control, Event, Stage};
pub use queue::{Queue, Turn};
pub use trace::Trace;
