//! Which instructions the CPU backend computes with. Knows no algorithm.

/// The choice of arithmetic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lanes {
    /// The fastest that this processor has.
    #[default]
    Auto,
    /// blst's field functions, on any processor.
    Portable,
}

/// What a [`Lanes`] comes to on this processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Best {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Ifma,
}

impl Lanes {
    pub(crate) fn best(self) -> Best {
        match self {
            #[cfg(target_arch = "x86_64")]
            Lanes::Auto if ifma::available() => Best::Ifma,
            Lanes::Auto | Lanes::Portable => Best::Portable,
        }
    }

    /// The name of the arithmetic that runs on this processor.
    pub fn name(self) -> &'static str {
        match self.best() {
            Best::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Best::Ifma => "avx512-ifma",
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod ifma;
mod points;

pub(crate) use points::{prefetch, PointLane, Portable, Reference, NEGATIVE, NONE};
