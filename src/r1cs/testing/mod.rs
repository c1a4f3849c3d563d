//! Circuits and a reference for the tests of this module.

mod circuits;
mod reference;

pub use circuits::{Bare, BareRow, Mixed, Sha};
pub use reference::Reference;
