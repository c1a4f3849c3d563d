//! A fixed-length row of bits in 64-bit words, the form in which witnesses travel to devices.

/// Bits `0..len`, bit `i` in word `i / 64` at position `i % 64`. Bits past `len` are zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// `len` zero bits.
    pub fn zeros(len: usize) -> Self {
        Bitmap { words: vec![0; len.div_ceil(64)], len }
    }

    /// From words as [`Bitmap::words`] gives them; `None` unless their count fits `len` and all bits past it are zero.
    pub fn from_words(words: Vec<u64>, len: usize) -> Option<Self> {
        let fits = words.len() == len.div_ceil(64);
        let clean = len.is_multiple_of(64) || words.last().is_none_or(|last| last >> (len % 64) == 0);
        (fits && clean).then_some(Bitmap { words, len })
    }

    /// How many bits there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bit `index`; panics past the end.
    pub fn get(&self, index: usize) -> bool {
        assert!(index < self.len);
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// Sets bit `index` to one; panics past the end.
    pub fn set(&mut self, index: usize) {
        assert!(index < self.len);
        self.words[index / 64] |= 1 << (index % 64);
    }

    /// Sets bit `index` to zero; panics past the end.
    pub fn clear(&mut self, index: usize) {
        assert!(index < self.len);
        self.words[index / 64] &= !(1 << (index % 64));
    }

    /// Sets the bits from `start` on where `other` has ones; panics if they do not all lie within.
    pub fn or_at(&mut self, start: usize, other: &Bitmap) {
        assert!(start + other.len <= self.len);
        let (first, shift) = (start / 64, start % 64);
        for (index, &word) in (first..).zip(&other.words) {
            self.words[index] |= word << shift;
            let carried = word.checked_shr(64 - shift as u32).unwrap_or(0);
            // Beyond the last word there is nothing to carry: the bits past an end are zero.
            if carried != 0 {
                self.words[index + 1] |= carried;
            }
        }
    }

    /// Adds one bit at the end.
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
        if bit {
            self.set(self.len - 1);
        }
    }

    /// How many bits are one.
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The positions of the one bits, ascending.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            std::iter::successors((word != 0).then_some(word), |rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| index * 64 + rest.trailing_zeros() as usize)
        })
    }

    /// The bits at the positions where `mask` has ones, in order; panics unless both have the same length.
    pub fn compact(&self, mask: &Bitmap) -> Bitmap {
        assert_eq!(self.len, mask.len);
        let len = mask.count_ones();
        let mut words = Vec::with_capacity(len.div_ceil(64));
        let (mut pending, mut filled) = (0u64, 0);
        for (&word, &mask) in self.words.iter().zip(&mask.words) {
            let count = mask.count_ones();
            let bits = gather(word, mask);
            pending |= bits << filled;
            if filled + count >= 64 {
                words.push(pending);
                pending = bits.checked_shr(64 - filled).unwrap_or(0);
                filled += count - 64;
            } else {
                filled += count;
            }
        }
        if filled > 0 {
            words.push(pending);
        }
        Bitmap { words, len }
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

/// The bits of `word` where `mask` has ones, moved together at the low end ("compress" in Hacker's Delight,
/// section 7-4): each round moves the bits that have 2^round more zeros of the mask below them.
fn gather(word: u64, mask: u64) -> u64 {
    if mask == u64::MAX {
        return word;
    }
    let (mut word, mut mask) = (word & mask, mask);
    // Ones where the number of remaining zeros below is odd come from a prefix parity of `zeros`.
    let mut zeros = !mask << 1;
    for round in 0..6 {
        let parity = (0..6).fold(zeros, |parity, step| parity ^ (parity << (1 << step)));
        let moving = parity & mask;
        mask = (mask ^ moving) | (moving >> (1 << round));
        let bits = word & moving;
        word = (word ^ bits) | (bits >> (1 << round));
        zeros &= !parity;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::Bitmap;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn compact_keeps_the_bits_at_the_masks_ones_in_order() {
        let mut rng = StdRng::seed_from_u64(1);
        for len in [0, 1, 63, 64, 65, 127, 128, 200, 1000, 4096] {
            for density in [0.0, 0.02, 0.5, 0.98, 1.0] {
                let (mut bits, mut mask, mut expected) = (Bitmap::default(), Bitmap::default(), Bitmap::default());
                for _ in 0..len {
                    let (bit, kept) = (rng.gen_bool(0.5), rng.gen_bool(density));
                    bits.push(bit);
                    mask.push(kept);
                    if kept {
                        expected.push(bit);
                    }
                }
                assert_eq!(bits.compact(&mask), expected, "{len} bits, density {density}");
            }
        }
    }

    #[test]
    fn ones_lists_exactly_the_set_bits_across_word_borders() {
        let mut bits = Bitmap::zeros(200);
        let set = [0, 1, 63, 64, 65, 127, 128, 199];
        for index in set {
            bits.set(index);
        }
        assert_eq!(bits.ones().collect::<Vec<_>>(), set);
        assert_eq!(bits.count_ones(), set.len());
        bits.clear(64);
        assert!(!bits.get(64) && bits.get(65));
    }

    #[test]
    fn bits_are_set_from_any_place_on() {
        let mut rng = StdRng::seed_from_u64(2);
        for (start, len) in [(0, 0), (0, 64), (1, 63), (1, 64), (63, 1), (63, 66), (64, 130), (70, 130), (200, 0)] {
            let draw = |rng: &mut StdRng, len| (0..len).map(|_| rng.gen_bool(0.5)).collect::<Vec<_>>();
            let (mut expected, other) = (draw(&mut rng, 200), draw(&mut rng, len));
            let [mut found, added] = [&expected, &other].map(|list| {
                let mut bits = Bitmap::default();
                list.iter().for_each(|&bit| bits.push(bit));
                bits
            });
            found.or_at(start, &added);
            other.iter().enumerate().for_each(|(index, &bit)| expected[start + index] |= bit);
            assert!((0..200).all(|index| found.get(index) == expected[index]), "{start} {len}");
        }
    }

    #[test]
    fn from_words_refuses_bits_past_the_end() {
        assert!(Bitmap::from_words(vec![0b111], 3).is_some());
        assert!(Bitmap::from_words(vec![0b1000], 3).is_none());
        assert!(Bitmap::from_words(vec![0, 0], 64).is_none());
    }

    #[test]
    fn push_grows_by_one_bit() {
        let mut bits = Bitmap::default();
        for index in 0..130 {
            bits.push(index % 3 == 0);
        }
        assert_eq!((bits.len(), bits.count_ones()), (130, 44));
    }
}
