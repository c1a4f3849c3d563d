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
        let clean = len % 64 == 0 || words.last().is_none_or(|last| last >> (len % 64) == 0);
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

    /// Adds one bit at the end.
    pub fn push(&mut self, bit: bool) {
        if self.len % 64 == 0 {
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

    /// The words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::Bitmap;

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
