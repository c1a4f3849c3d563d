//! How work is ordered, watched and stopped. Knows neither Filecoin nor any device.

mod control;

pub use control::{CancelToken, Control, Event, Stage};
