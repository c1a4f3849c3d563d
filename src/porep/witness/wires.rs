//! Where wires go: the values of auxiliary variables in the order in which the circuit allocates them. Knows no gadget.

use blstrs::Scalar;
use ff::Field;

use crate::error::{Error, Result};

/// Takes the values of a circuit's auxiliary variables in the order of allocation.
pub(super) trait Wires {
    /// The next `count` variables, at most 64, are the low bits of `bits`, lowest first. The bits above are zero.
    fn bits(&mut self, bits: u64, count: u32);

    /// The next variable is a field element.
    fn full(&mut self, value: Scalar);
}

/// Packs the variables of one stretch of a partition: a bit each, and the values at the full-width positions.
///
/// What is full-width is the circuit's to say (`positions`), not the caller's: a field element that falls on a bit's
/// position must be 0 or 1, and a bit on a full-width position becomes a field element.
pub(super) struct Packer<'a> {
    /// The position of the next variable.
    at: usize,
    /// Complete words, from the one that holds the stretch's first position.
    words: Vec<u64>,
    first_word: usize,
    /// The word in progress, of which `filled` bits are done.
    pending: u64,
    filled: u32,
    /// Full-width positions from the stretch's first position on, and the places of their values.
    positions: &'a [u32],
    values: &'a mut [Scalar],
    done: usize,
    /// The position that follows in `positions`.
    next_full: usize,
    /// The first position of a bit that got another value than 0 and 1.
    fault: Option<usize>,
}

/// The packed bits of one stretch, to be merged into the partition's.
pub(super) struct Segment {
    /// The index of the first of `words` in the partition's.
    pub first_word: usize,
    /// Bits outside of the stretch are zero.
    pub words: Vec<u64>,
    /// The position after the last variable.
    pub end: usize,
    /// How many values at full-width positions there were.
    pub full: usize,
}

impl Segment {
    /// Adds the bits to a partition's words, which must be long enough.
    pub fn merge_into(&self, words: &mut [u64]) {
        for (to, from) in words[self.first_word..].iter_mut().zip(&self.words) {
            *to |= from;
        }
    }
}

impl<'a> Packer<'a> {
    /// A stretch that begins at position `start` and has about `len` variables. `positions` are the circuit's full-width
    /// positions from `start` on, and `values` has a place for each of them that the stretch covers.
    pub fn new(start: usize, len: usize, positions: &'a [u32], values: &'a mut [Scalar]) -> Self {
        let positions = &positions[..positions.len().min(values.len())];
        let mut packer = Packer {
            at: start,
            words: Vec::with_capacity(len / 64 + 2),
            first_word: start / 64,
            pending: 0,
            filled: (start % 64) as u32,
            positions,
            values,
            done: 0,
            next_full: 0,
            fault: None,
        };
        packer.look_ahead();
        packer
    }

    /// The stretch as packed.
    ///
    /// # Errors
    /// [`Error::Internal`] if a position of a bit got another value.
    pub fn finish(mut self) -> Result<Segment> {
        if let Some(position) = self.fault {
            return Err(Error::internal(format!(
                "auxiliary variable {position} is a bit in the circuit and no bit in the witness"
            )));
        }
        if self.filled > 0 {
            self.words.push(self.pending);
        }
        Ok(Segment { first_word: self.first_word, words: self.words, end: self.at, full: self.done })
    }

    fn look_ahead(&mut self) {
        self.next_full = self.positions.get(self.done).map_or(usize::MAX, |&position| position as usize);
    }

    #[inline(always)]
    fn append(&mut self, bits: u64, count: u32) {
        self.at += count as usize;
        self.pending |= bits << self.filled;
        let filled = self.filled + count;
        if filled < 64 {
            self.filled = filled;
            return;
        }
        self.words.push(self.pending);
        // What did not fit; nothing if all fitted into an empty word.
        self.pending = bits.checked_shr(64 - self.filled).unwrap_or(0);
        self.filled = filled - 64;
    }

    fn keep(&mut self, value: Scalar) {
        self.values[self.done] = value;
        self.done += 1;
        self.look_ahead();
        self.append(0, 1);
    }

    #[cold]
    fn bits_with_full_positions(&mut self, bits: u64, count: u32) {
        for bit in (0..count).map(|index| bits >> index & 1) {
            if self.at == self.next_full {
                self.keep(Scalar::from(bit));
            } else {
                self.append(bit, 1);
            }
        }
    }
}

impl Wires for Packer<'_> {
    #[inline(always)]
    fn bits(&mut self, bits: u64, count: u32) {
        debug_assert!(count <= 64 && bits.checked_shr(count).unwrap_or(0) == 0);
        if self.next_full < self.at + count as usize {
            return self.bits_with_full_positions(bits, count);
        }
        self.append(bits, count);
    }

    fn full(&mut self, value: Scalar) {
        if self.at == self.next_full {
            return self.keep(value);
        }
        if value != Scalar::ONE && !value.is_zero_vartime() {
            self.fault.get_or_insert(self.at);
        }
        self.append(u64::from(value == Scalar::ONE), 1);
    }
}

/// Counts variables and notes which ones are field elements; drops all values.
#[derive(Default)]
pub(super) struct Layout {
    /// How many variables there are.
    pub count: usize,
    /// The positions of the field elements, ascending.
    pub full: Vec<usize>,
}

impl Wires for Layout {
    fn bits(&mut self, _: u64, count: u32) {
        self.count += count as usize;
    }

    fn full(&mut self, _: Scalar) {
        self.full.push(self.count);
        self.count += 1;
    }
}

/// Keeps every variable as a field element.
#[cfg(test)]
impl Wires for Vec<Scalar> {
    fn bits(&mut self, bits: u64, count: u32) {
        assert!(count <= 64 && bits.checked_shr(count).unwrap_or(0) == 0);
        self.extend((0..count).map(|index| Scalar::from(bits >> index & 1)));
    }

    fn full(&mut self, value: Scalar) {
        self.push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Writes a random mixture of bits and field elements; the same for the same seed.
    fn write(seed: u64, wires: &mut impl Wires) {
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..400 {
            let count = [0, 1, 2, 31, 32, 33, 35, 63, 64][rng.gen_range(0..9)];
            let bits = rng.gen::<u64>().checked_shr(64 - count).unwrap_or(0);
            wires.bits(bits, count);
            for _ in 0..rng.gen_range(0..3) {
                // Some field elements are as small as bits.
                let small = Scalar::from(rng.gen_range(0..2u64));
                wires.full(if rng.gen() { small } else { Scalar::random(&mut rng) });
            }
        }
    }

    /// Packs at every kind of place inside a word and compares with the plain list.
    fn compare(seed: u64, positions: &[usize]) {
        let mut plain: Vec<Scalar> = Vec::new();
        write(seed, &mut plain);
        for start in [0, 1, 63, 64, 65, 1000] {
            let shifted: Vec<u32> = positions.iter().map(|position| (position + start) as u32).collect();
            let mut values = vec![Scalar::ZERO; positions.len()];
            let mut packer = Packer::new(start, plain.len(), &shifted, &mut values);
            write(seed, &mut packer);
            let segment = packer.finish().unwrap();
            assert_eq!((segment.end, segment.full), (start + plain.len(), positions.len()));
            let mut words = vec![0; segment.end.div_ceil(64)];
            segment.merge_into(&mut words);
            let bit = |position: usize| words[position / 64] >> (position % 64) & 1;
            assert!((0..start).all(|position| bit(position) == 0));
            let mut full = values.iter();
            for (index, value) in plain.iter().enumerate() {
                let expected = if positions.contains(&index) {
                    assert_eq!(bit(start + index), 0);
                    *full.next().unwrap()
                } else {
                    Scalar::from(bit(start + index))
                };
                assert_eq!(expected, *value, "{index}");
            }
        }
    }

    #[test]
    fn wires_are_packed_as_the_positions_say_from_any_place_in_a_word() {
        for seed in 0..4 {
            let mut layout = Layout::default();
            write(seed, &mut layout);
            compare(seed, &layout.full);
            // A field element that happens to be a bit may stand at a bit's position, and any bit at a full-width one.
            let mut plain: Vec<Scalar> = Vec::new();
            write(seed, &mut plain);
            let is_bit = |value: &Scalar| *value == Scalar::ZERO || *value == Scalar::ONE;
            let wide: Vec<usize> = (0..plain.len()).filter(|&index| !is_bit(&plain[index])).collect();
            assert!(!wide.is_empty() && wide.len() < layout.full.len());
            compare(seed, &wide);
            let more: Vec<usize> =
                (0..plain.len()).filter(|index| index.is_multiple_of(37) || wide.contains(index)).collect();
            compare(seed, &more);
            compare(seed, &(0..plain.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_field_element_at_the_position_of_a_bit_is_an_internal_error_that_names_the_first() {
        let mut packer = Packer::new(7, 10, &[], &mut []);
        packer.bits(5, 3);
        packer.full(Scalar::ONE);
        packer.full(Scalar::from(2));
        packer.full(Scalar::from(3));
        let error = packer.finish().err().unwrap();
        assert_eq!(error.class(), Class::Internal);
        assert!(error.to_string().contains("auxiliary variable 11 is a bit"), "{error}");
    }
}
