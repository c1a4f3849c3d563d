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
        #[cfg(target_arch = "x86_64")]
        return self.best_with(ifma::Features::detected());
        #[cfg(not(target_arch = "x86_64"))]
        Best::Portable
    }

    /// The same on a processor with such instructions.
    #[cfg(target_arch = "x86_64")]
    fn best_with(self, features: ifma::Features) -> Best {
        match self {
            Lanes::Auto if features.are_complete() => Best::Ifma,
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

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn without_any_one_of_the_instructions_the_portable_arithmetic_is_chosen() {
        for features in ifma::tests::feature_sets() {
            assert_eq!(Lanes::Auto.best_with(features), Best::Portable, "{features:?}");
            assert_eq!(Lanes::Portable.best_with(features), Best::Portable);
        }
        assert_eq!(Lanes::Auto.best_with(ifma::tests::ALL), Best::Ifma);
        assert_eq!(Lanes::Portable.best_with(ifma::tests::ALL), Best::Portable);
    }

    #[test]
    fn the_choice_here_is_that_for_what_this_processor_has() {
        let features = ifma::Features::detected();
        assert_eq!(Lanes::Auto.best(), Lanes::Auto.best_with(features));
        assert_eq!(features.are_complete(), ifma::available());
    }
}
