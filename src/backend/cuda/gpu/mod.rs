//! GPUs through the CUDA driver: memory, streams, events and launches of the embedded kernels. Knows nothing of what
//! the kernels compute.
//!
//! libcuda is opened when the first device is asked for; a machine without it has no devices. Every return code is
//! checked and becomes an error that names the device, the call and the code.

mod buffer;
mod context;
mod device;
mod driver;
#[cfg(feature = "emulator")]
pub mod emulated;
mod launch;
mod modules;
mod pinned;
mod plain;
mod stream;
#[cfg(all(test, feature = "emulator"))]
mod tests;
mod tracer;

pub use buffer::{Buffer, Span};
pub use context::{Gpu, WeakGpu};
pub use device::{properties_of_all, why_none, Limits, Properties};
pub use launch::{args, Arg, Argument};
pub use pinned::Pinned;
pub use plain::{scalar_words, scalar_words_mut, Plain, Words};
pub use stream::{Event, Stream};
