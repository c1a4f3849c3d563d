//! Where everything lies in a bellperson parameter file, computed from a circuit's counts alone.
//!
//! The verifying key comes first; then the sections h, l, a, b_g1, b_g2, each a big-endian u32 count and
//! its points. a has a base for every input and for the auxiliary variables that occur in A; b for the
//! inputs and the auxiliary variables that occur in B; h has domain size - 1, l all auxiliary variables.

use std::fmt;
use std::ops::Range;

use blstrs::Scalar;
use ff::PrimeField;

use crate::error::{Error, Result};
use crate::groth16::points::{G1_BYTES, G2_BYTES};
use crate::groth16::VerifyingKey;
use crate::r1cs::Constraints;

/// Bytes of the count before a section.
pub(in crate::groth16) const COUNT_BYTES: u64 = 4;

/// The counts of a circuit that determine its parameter file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Public inputs, ONE included.
    pub inputs: usize,
    /// Auxiliary variables.
    pub aux: usize,
    /// The domain has 2^`log_domain` elements.
    pub log_domain: u32,
    /// Auxiliary variables that occur in A.
    pub a_aux: usize,
    /// Inputs that occur in B.
    pub b_input: usize,
    /// Auxiliary variables that occur in B.
    pub b_aux: usize,
}

/// A section of points in G1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum G1Section {
    /// tau^k Z(tau)/delta.
    H,
    /// (beta A_j + alpha B_j + C_j)/delta of each auxiliary variable.
    L,
    /// A_i of each input, then of each auxiliary variable that occurs in A.
    A,
    /// B_i of each input, then of each auxiliary variable, that occurs in B.
    B,
}

impl G1Section {
    /// All, in the order of the file.
    pub const ALL: [G1Section; 4] = [G1Section::H, G1Section::L, G1Section::A, G1Section::B];

    /// The name used in messages.
    pub const fn name(self) -> &'static str {
        match self {
            G1Section::H => "h",
            G1Section::L => "l",
            G1Section::A => "a",
            G1Section::B => "b_g1",
        }
    }
}

impl fmt::Display for G1Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A section of points in either group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Section {
    /// In G1.
    G1(G1Section),
    /// b in G2.
    B2,
}

impl Section {
    /// All, in the order of the file.
    pub(crate) const ALL: [Section; 5] = [
        Section::G1(G1Section::H),
        Section::G1(G1Section::L),
        Section::G1(G1Section::A),
        Section::G1(G1Section::B),
        Section::B2,
    ];

    /// The name used in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Section::G1(section) => section.name(),
            Section::B2 => "b_g2",
        }
    }

    /// Bytes of a point.
    pub(crate) const fn point_bytes(self) -> usize {
        match self {
            Section::G1(_) => G1_BYTES,
            Section::B2 => G2_BYTES,
        }
    }
}

/// Points of one section: their count, and the byte at which the first begins. The section's count stands in
/// the four bytes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::groth16) struct Extent {
    pub(in crate::groth16) name: &'static str,
    pub(in crate::groth16) count: usize,
    pub(in crate::groth16) offset: u64,
}

impl Extent {
    /// [`Error::Internal`] for points that the section does not have.
    pub(in crate::groth16) fn check(&self, range: &Range<usize>) -> Result<()> {
        if range.start > range.end || range.end > self.count {
            let Extent { name, count, .. } = self;
            return Err(Error::internal(format!("points {range:?} of section {name}, which has {count}")));
        }
        Ok(())
    }
}

/// A file's sections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::groth16) struct Layout {
    pub(in crate::groth16) vk_len: usize,
    pub(in crate::groth16) g1: [Extent; 4],
    pub(in crate::groth16) b_g2: Extent,
    pub(in crate::groth16) size: u64,
}

impl Layout {
    /// Fails when a count does not fit the format's 32 bits.
    pub(in crate::groth16) fn new(counts: &Counts) -> Result<Self> {
        let Counts { inputs, aux, log_domain, a_aux, b_input, b_aux } = *counts;
        let limit = u32::MAX as usize;
        if [inputs, aux, a_aux, b_input, b_aux].into_iter().any(|n| n > limit / 2)
            || log_domain > Scalar::S
            || inputs == 0
        {
            let detail = format!("no parameter file can hold {counts:?}");
            return Err(Error::Argument { name: "circuit", detail });
        }
        let vk_len = VerifyingKey::byte_len(inputs);
        let mut end = vk_len as u64;
        let mut next = |name, count, bytes: usize| {
            let offset = end + COUNT_BYTES;
            end = offset + count as u64 * bytes as u64;
            Extent { name, count, offset }
        };
        let g1 = G1Section::ALL.map(|section| next(section.name(), counts.len(section), G1_BYTES));
        let b_g2 = next(Section::B2.name(), counts.len(G1Section::B), G2_BYTES);
        Ok(Layout { vk_len, g1, b_g2, size: end })
    }

    pub(in crate::groth16) fn sections(&self) -> impl Iterator<Item = &Extent> {
        self.g1.iter().chain([&self.b_g2])
    }

    pub(in crate::groth16) fn extent(&self, section: Section) -> &Extent {
        match section {
            Section::G1(section) => &self.g1[section as usize],
            Section::B2 => &self.b_g2,
        }
    }
}

impl Counts {
    /// Those of a constraint system.
    pub fn of(r1cs: &dyn Constraints) -> Self {
        Counts {
            inputs: r1cs.num_inputs(),
            aux: r1cs.num_aux(),
            log_domain: r1cs.log_domain(),
            a_aux: r1cs.a_aux_density().count_ones(),
            b_input: r1cs.b_input_density().count_ones(),
            b_aux: r1cs.b_aux_density().count_ones(),
        }
    }

    /// The size of the parameter file in bytes. Fails for counts beyond the format's 32 bits.
    pub fn file_size(&self) -> Result<u64> {
        Layout::new(self).map(|layout| layout.size)
    }

    /// How many points a section of either group has.
    pub(crate) fn points(&self, section: Section) -> usize {
        match section {
            Section::G1(section) => self.len(section),
            Section::B2 => self.len(G1Section::B),
        }
    }

    /// How many points a section has; b has as many in G2.
    pub fn len(&self, section: G1Section) -> usize {
        match section {
            G1Section::H => (1 << self.log_domain) - 1,
            G1Section::L => self.aux,
            G1Section::A => self.inputs + self.a_aux,
            G1Section::B => self.b_input + self.b_aux,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_published_files() {
        let counts =
            |inputs, aux, log_domain, a_aux, b_aux| Counts { inputs, aux, log_domain, a_aux, b_input: 1, b_aux };
        for (counts, size) in [
            (counts(40, 2_685_673, 22, 2_674_908, 685_521), 1_114_707_768),
            (counts(40, 3_842_449, 22, 3_814_996, 1_011_289), 1_429_027_896),
            (counts(40, 4_420_837, 23, 4_385_040, 1_174_173), 1_988_841_144),
            (counts(328, 130_169_893, 27, 129_753_292, 33_112_281), 47_373_928_632),
            (counts(328, 131_076_643, 27, 130_637_542, 33_386_943), 47_624_967_288),
        ] {
            assert_eq!(counts.file_size().unwrap(), size);
        }
    }

    #[test]
    fn counts_beyond_the_format_are_refused() {
        let good = Counts { inputs: 1, aux: 1, log_domain: 1, a_aux: 1, b_input: 1, b_aux: 1 };
        assert!(good.file_size().is_ok());
        for bad in [Counts { aux: usize::MAX, ..good }, Counts { log_domain: 33, ..good }, Counts { inputs: 0, ..good }]
        {
            assert!(matches!(bad.file_size(), Err(Error::Argument { .. })));
        }
    }
}
