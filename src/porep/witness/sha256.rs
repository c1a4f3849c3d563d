//! The wires of bellpepper's SHA-256 gadget, word by word. Knows no message.
//!
//! The gadget folds constants: an operation on a constant bit allocates nothing and passes the other operand on, perhaps
//! negated, and a sum of constants is a constant. So a word carries which of its bits are constants and which are
//! negated views of a variable. Variables appear in the order of the gadget: by round, each word from its lowest bit.

use super::wires::Wires;

const ROUND_CONSTANTS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
];

const INITIAL: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// Words of a block.
const BLOCK: usize = 16;

/// A word of 32 Boolean views: constants, variables and negated variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    /// The values of the views.
    value: u32,
    /// Which bits are constants.
    constant: u32,
    /// Which bits are negations of their variable. A constant is none.
    negated: u32,
}

impl Word {
    /// All bits are constants.
    pub const fn constant(value: u32) -> Self {
        Word { value, constant: u32::MAX, negated: 0 }
    }

    /// All bits are variables.
    pub const fn variables(value: u32) -> Self {
        Word { value, constant: 0, negated: 0 }
    }

    /// The bits in `constant` are constants, the others variables.
    pub const fn mixed(value: u32, constant: u32) -> Self {
        Word { value, constant, negated: 0 }
    }

    const fn is_constant(self) -> bool {
        self.constant == u32::MAX
    }

    #[inline(always)]
    const fn rotate(self, by: u32) -> Self {
        Word {
            value: self.value.rotate_right(by),
            constant: self.constant.rotate_right(by),
            negated: self.negated.rotate_right(by),
        }
    }

    #[inline(always)]
    const fn shift(self, by: u32) -> Self {
        Word { value: self.value >> by, constant: self.constant >> by | !(u32::MAX >> by), negated: self.negated >> by }
    }

    #[inline(always)]
    fn xor(self, other: Word, wires: &mut impl Wires) -> Word {
        let value = self.value ^ other.value;
        let constant = self.constant & other.constant;
        let either = self.constant | other.constant;
        // A negation, or a constant one, of either operand negates the result.
        let flips = self.negated ^ other.negated ^ (self.value & self.constant) ^ (other.value & other.constant);
        let allocated = value ^ self.negated ^ other.negated;
        if either == 0 {
            wires.bits(u64::from(allocated), 32);
        } else {
            put_masked(wires, allocated, !either);
        }
        Word { value, constant, negated: flips & !constant }
    }

    fn bit(self, index: u32) -> Bit {
        Bit { value: self.value >> index & 1 == 1, constant: self.constant >> index & 1 == 1 }
    }
}

/// Allocates the bits where `mask` has ones.
fn put_masked(wires: &mut impl Wires, bits: u32, mut mask: u32) {
    while mask != 0 {
        let start = mask.trailing_zeros();
        let run = (mask >> start).trailing_ones();
        let ones = (1u64 << run) - 1;
        wires.bits(u64::from(bits >> start) & ones, run);
        mask &= !((ones << start) as u32);
    }
}

/// A Boolean view where negation does not matter: conjunctions allocate the same value over negated variables as over
/// plain ones, and what `choose` and `majority` give is only ever added.
#[derive(Clone, Copy)]
struct Bit {
    value: bool,
    constant: bool,
}

impl Bit {
    fn known(self) -> Option<bool> {
        self.constant.then_some(self.value)
    }

    fn not(self) -> Bit {
        Bit { value: !self.value, ..self }
    }

    fn allocated(value: bool, wires: &mut impl Wires) -> Bit {
        wires.bits(u64::from(value), 1);
        Bit { value, constant: false }
    }

    fn and(self, other: Bit, wires: &mut impl Wires) -> Bit {
        match (self.known(), other.known()) {
            (Some(false), _) | (_, Some(false)) => Bit { value: false, constant: true },
            (Some(true), _) => other,
            (_, Some(true)) => self,
            (None, None) => Bit::allocated(self.value & other.value, wires),
        }
    }

    /// `a ? b : c`, with the gadget's cases in the gadget's order.
    fn choose(a: Bit, b: Bit, c: Bit, wires: &mut impl Wires) -> Bit {
        let value = if a.value { b.value } else { c.value };
        match (a.known(), b.known(), c.known()) {
            (Some(_), Some(_), Some(_)) => Bit { value, constant: true },
            (Some(false), _, _) => c,
            (_, Some(false), _) => a.not().and(c, wires),
            (_, _, Some(false)) => a.and(b, wires),
            (_, _, Some(true)) => a.and(b.not(), wires).not(),
            (_, Some(true), _) => a.not().and(c.not(), wires).not(),
            (_, None, None) => Bit::allocated(value, wires),
        }
    }

    /// The value that two of three have, with the gadget's cases in the gadget's order.
    fn majority(a: Bit, b: Bit, c: Bit, wires: &mut impl Wires) -> Bit {
        let value = (a.value & b.value) | (a.value & c.value) | (b.value & c.value);
        match (a.known(), b.known(), c.known()) {
            (Some(_), Some(_), Some(_)) => Bit { value, constant: true },
            (Some(false), _, _) => b.and(c, wires),
            (_, Some(false), _) => a.and(c, wires),
            (_, _, Some(false)) => a.and(b, wires),
            (_, _, Some(true)) => a.not().and(b.not(), wires).not(),
            (_, Some(true), _) => a.not().and(c.not(), wires).not(),
            (Some(true), _, _) => b.not().and(c.not(), wires).not(),
            (None, None, None) => {
                let majority = Bit::allocated(value, wires);
                b.and(c, wires);
                majority
            }
        }
    }
}

/// Applies a function of three bits to each bit of three words.
fn by_bits<W: Wires>([a, b, c]: [Word; 3], wires: &mut W, function: impl Fn(Bit, Bit, Bit, &mut W) -> Bit) -> Word {
    (0..32).fold(Word::variables(0), |mut word, index| {
        let bit = function(a.bit(index), b.bit(index), c.bit(index), wires);
        word.value |= u32::from(bit.value) << index;
        word.constant |= u32::from(bit.constant) << index;
        word
    })
}

#[inline(always)]
fn choose(a: Word, b: Word, c: Word, wires: &mut impl Wires) -> Word {
    if a.constant | b.constant | c.constant != 0 {
        return by_bits([a, b, c], wires, Bit::choose);
    }
    let value = (a.value & b.value) | (!a.value & c.value);
    wires.bits(u64::from(value), 32);
    Word::variables(value)
}

#[inline(always)]
fn majority(a: Word, b: Word, c: Word, wires: &mut impl Wires) -> Word {
    if a.constant | b.constant | c.constant != 0 {
        return by_bits([a, b, c], wires, Bit::majority);
    }
    let both = b.value & c.value;
    let value = both | (a.value & (b.value | c.value));
    // For each bit the majority, then the conjunction that its row needs.
    wires.bits(spread(value) | spread(both) << 1, 64);
    Word::variables(value)
}

/// Moves bit i to bit 2 i.
#[inline(always)]
fn spread(word: u32) -> u64 {
    let mut bits = u64::from(word);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & 0x5555_5555_5555_5555
}

/// Words to be added. The result has as many bits as the largest sum of that many words, constants counted too.
#[derive(Clone, Copy)]
struct Sum {
    total: u64,
    terms: u64,
    all_constant: bool,
}

impl Sum {
    const EMPTY: Sum = Sum { total: 0, terms: 0, all_constant: true };

    #[inline(always)]
    fn of<const N: usize>(words: [Word; N]) -> Self {
        words.into_iter().fold(Sum::EMPTY, Sum::and)
    }

    #[inline(always)]
    fn and(self, word: Word) -> Self {
        Sum {
            total: self.total + u64::from(word.value),
            terms: self.terms + 1,
            all_constant: self.all_constant && word.is_constant(),
        }
    }

    /// Allocates the sum and gives it modulo 2^32.
    #[inline(always)]
    fn word(self, wires: &mut impl Wires) -> Word {
        let value = self.total as u32;
        if self.all_constant {
            return Word::constant(value);
        }
        let width = 64 - (self.terms * u64::from(u32::MAX)).leading_zeros();
        wires.bits(self.total, width);
        Word::variables(value)
    }
}

/// Allocates one block and gives the next state.
fn compress(state: &[Word; 8], block: &[Word], wires: &mut impl Wires) -> [Word; 8] {
    let mut w = [Word::constant(0); 64];
    w[..BLOCK].copy_from_slice(block);
    for i in BLOCK..64 {
        let (far, near) = (w[i - 15], w[i - 2]);
        let s0 = far.rotate(7).xor(far.rotate(18), wires).xor(far.shift(3), wires);
        let s1 = near.rotate(17).xor(near.rotate(19), wires).xor(near.shift(10), wires);
        w[i] = Sum::of([w[i - 16], s0, w[i - 7], s1]).word(wires);
    }

    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    // The sums that make the next a and e are allocated when they are needed.
    let (mut next_a, mut next_e) = (Sum::EMPTY, Sum::EMPTY);
    for round in 0..64 {
        if round > 0 {
            e = next_e.word(wires);
        }
        let s1 = e.rotate(6).xor(e.rotate(11), wires).xor(e.rotate(25), wires);
        let choice = choose(e, f, g, wires);
        let first = Sum::of([h, s1, choice, Word::constant(ROUND_CONSTANTS[round]), w[round]]);
        if round > 0 {
            a = next_a.word(wires);
        }
        let s0 = a.rotate(2).xor(a.rotate(13), wires).xor(a.rotate(22), wires);
        let majority = majority(a, b, c, wires);
        next_e = first.and(d);
        next_a = first.and(s0).and(majority);
        (h, g, f) = (g, f, e);
        (d, c, b) = (c, b, a);
    }

    // The last a and e are added to the state unallocated.
    let h0 = next_a.and(state[0]).word(wires);
    let [h1, h2, h3] = [(1, b), (2, c), (3, d)].map(|(i, word)| Sum::of([state[i], word]).word(wires));
    let h4 = next_e.and(state[4]).word(wires);
    let [h5, h6, h7] = [(5, f), (6, g), (7, h)].map(|(i, word)| Sum::of([state[i], word]).word(wires));
    [h0, h1, h2, h3, h4, h5, h6, h7]
}

/// Allocates the hash of a message of whole words and gives its digest, in big-endian words.
pub(super) fn sha256(message: &[Word], wires: &mut impl Wires) -> [u32; 8] {
    let bits = message.len() as u64 * 32;
    let mut state = INITIAL.map(Word::constant);
    let whole = message.chunks_exact(BLOCK);
    // One bit, zeros, and the length in two words, in one block or two.
    let rest = whole.remainder();
    let mut tail = [Word::constant(0); 2 * BLOCK];
    tail[..rest.len()].copy_from_slice(rest);
    tail[rest.len()] = Word::constant(1 << 31);
    let end = if rest.len() + 3 <= BLOCK { BLOCK } else { 2 * BLOCK };
    tail[end - 2] = Word::constant((bits >> 32) as u32);
    tail[end - 1] = Word::constant(bits as u32);
    for block in whole.chain(tail[..end].chunks_exact(BLOCK)) {
        state = compress(&state, block, wires);
    }
    state.map(|word| word.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
    use bellperson::util_cs::test_cs::TestConstraintSystem;
    use bellperson::ConstraintSystem;
    use blstrs::Scalar;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use sha2::{Digest, Sha256};

    /// The gadget's wires behind those of the message, and its digest.
    fn gadget(message: &[Word]) -> (Vec<Scalar>, Vec<bool>) {
        let mut cs = TestConstraintSystem::<Scalar>::new();
        let mut bits = Vec::new();
        for (i, word) in message.iter().enumerate() {
            for j in (0..32).rev() {
                let [value, constant, negated] =
                    [word.value, word.constant, word.negated].map(|word| word >> j & 1 == 1);
                let variable = |cs: &mut TestConstraintSystem<Scalar>, value| {
                    let bit = AllocatedBit::alloc(cs.namespace(|| format!("{i} {j}")), Some(value)).unwrap();
                    Boolean::from(bit)
                };
                bits.push(match (constant, negated) {
                    (true, _) => Boolean::constant(value),
                    (false, false) => variable(&mut cs, value),
                    (false, true) => variable(&mut cs, !value).not(),
                });
            }
        }
        let allocated = cs.scalar_aux().len();
        let digest = bellperson::gadgets::sha256::sha256(&mut cs, &bits).unwrap();
        assert!(cs.is_satisfied());
        (cs.scalar_aux().split_off(allocated), digest.iter().map(|bit| bit.get_value().unwrap()).collect())
    }

    fn compare(message: &[Word]) {
        let (expected, digest_bits) = gadget(message);
        let mut wires: Vec<Scalar> = Vec::new();
        let digest = sha256(message, &mut wires);
        assert_eq!(wires.len(), expected.len());
        assert_eq!(wires.iter().zip(&expected).position(|(wire, expected)| wire != expected), None);
        let bytes: Vec<u8> = message.iter().flat_map(|word| word.value.to_be_bytes()).collect();
        assert_eq!(digest.map(u32::to_be_bytes).concat(), Sha256::digest(bytes).as_slice());
        let bits: Vec<bool> = digest.iter().flat_map(|word| (0..32).rev().map(move |j| word >> j & 1 == 1)).collect();
        assert_eq!(bits, digest_bits);
    }

    #[test]
    fn wires_are_the_gadgets_for_every_mixture_of_constants_variables_and_negations() {
        let mut rng = StdRng::seed_from_u64(5);
        // Each length at which the padding changes its form.
        for len in [0, 1, 12, 13, 14, 15, 16, 17, 29, 32] {
            for [constants, negations] in [[0.0, 0.0], [0.03, 0.03], [0.5, 0.5], [0.97, 0.1], [1.0, 0.0]] {
                let mut mask = |density: f64| (0..32).fold(0, |mask, _| mask << 1 | u32::from(rng.gen_bool(density)));
                let message: Vec<Word> = (0..len)
                    .map(|_| {
                        let constant = mask(constants);
                        Word { value: mask(0.5), constant, negated: mask(negations) & !constant }
                    })
                    .collect();
                compare(&message);
            }
        }
    }

    #[test]
    fn messages_of_equal_bits_have_the_gadgets_wires() {
        for value in [0, u32::MAX] {
            compare(&[Word::variables(value); 16]);
            compare(&[Word::constant(value); 16]);
        }
    }
}
