//! AVX-512 IFMA: eight field elements at a time in limbs of 52 bits. Knows no algorithm.
//!
//! Everything here may only run where [`available`] is true; the types that algorithms use check that when
//! they are made.

mod field;
mod limbs;
mod points;
mod wide;

#[cfg(test)]
pub(crate) use field::add;
pub(crate) use field::{multiply, multiply_beside, normalize, transpose, Field, Fr, Limbs, Modulus, Vector};
pub(crate) use limbs::split;
pub(crate) use points::{G1, G2};

/// The instruction sets that this module is compiled with. They are the ones that `enable` lists everywhere in it.
macro_rules! features {
    ($($feature:tt),*) => {
        /// Their names.
        const NAMES: [&str; [$($feature),*].len()] = [$($feature),*];

        impl Features {
            /// Those of this processor.
            pub(crate) fn detected() -> Self {
                Features([$(is_x86_feature_detected!($feature)),*])
            }
        }
    };
}

features!("avx512f", "avx512ifma", "avx512vl", "avx512dq", "avx512bw", "avx512vbmi");

/// Which of the instruction sets a processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features([bool; NAMES.len()]);

impl Features {
    /// Whether code of this module can run there.
    pub(crate) fn are_complete(self) -> bool {
        self.0.iter().all(|&present| present)
    }
}

/// Whether this processor has every instruction that this module uses.
pub(crate) fn available() -> bool {
    Features::detected().are_complete()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// All of them, then all but each one, then none.
    pub(crate) fn feature_sets() -> impl Iterator<Item = Features> {
        let without = |missing: usize| Features(std::array::from_fn(|index| index != missing));
        (0..NAMES.len()).map(without).chain([Features([false; NAMES.len()])])
    }

    pub(crate) const ALL: Features = Features([true; NAMES.len()]);

    #[test]
    fn code_is_compiled_with_the_instructions_that_are_asked_for_and_no_others() {
        let sources = [include_str!("field.rs"), include_str!("points.rs"), include_str!("wide.rs")];
        let sources = sources.into_iter().chain([include_str!("../../ntt/ifma.rs")]);
        for source in sources {
            let mut lists = source.split("enable = \"").skip(1).map(|rest| rest.split('"').next().unwrap()).peekable();
            assert!(lists.peek().is_some());
            for list in lists {
                assert!(list.split(',').eq(NAMES), "{list}");
            }
        }
    }
}
