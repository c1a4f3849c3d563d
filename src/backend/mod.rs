//! Where the heavy work of a proof is done.

pub mod cpu;
