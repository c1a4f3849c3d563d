//! The wires of neptune's legacy Poseidon gadget. Knows no tree.
//!
//! Each S-box allocates its input, square, fourth power and fifth power (with the following round's key added); the
//! first round's inputs are the caller's own variables, and the first S-box of all, on the tag of the arity, is a
//! constant. Mixing allocates nothing.

use blstrs::Scalar;
use ff::Field;
use filecoin_hashers::PoseidonArity;
use generic_array::typenum::{U11, U2, U8};
use std::sync::LazyLock;

use super::wires::{Layout, Wires};

/// The widest state in use: eleven layers and the tag.
const MAX_WIDTH: usize = 12;

static ARITY_2: LazyLock<Poseidon> = LazyLock::new(Poseidon::new::<U2>);
static ARITY_8: LazyLock<Poseidon> = LazyLock::new(Poseidon::new::<U8>);
static ARITY_11: LazyLock<Poseidon> = LazyLock::new(Poseidon::new::<U11>);

/// One permutation with the constants of the storage-proofs crates, for one arity.
pub(super) struct Poseidon {
    width: usize,
    /// The tag after the first round's S-box.
    tag: Scalar,
    /// Keys added before the first round's S-boxes.
    first_keys: Vec<Scalar>,
    /// Keys added behind S-boxes, in the order of use.
    keys: Vec<Scalar>,
    /// Full rounds at each end.
    half_full_rounds: usize,
    /// Matrices by columns: an element of the result is the product with one column.
    mds: Vec<Scalar>,
    /// The last full round's before the partial rounds.
    pre_sparse: Vec<Scalar>,
    /// For each partial round, the dense first column, then the dense first row without its first element.
    sparse: Vec<(Vec<Scalar>, Vec<Scalar>)>,
}

impl Poseidon {
    /// The permutation that hashes this many elements; `None` if no tree and no column has so many.
    pub fn for_arity(arity: usize) -> Option<&'static Poseidon> {
        match arity {
            2 => Some(&ARITY_2),
            8 => Some(&ARITY_8),
            11 => Some(&ARITY_11),
            _ => None,
        }
    }

    fn new<A: PoseidonArity>() -> Self {
        let constants = A::PARAMETERS();
        let width = constants.width();
        assert!(width <= MAX_WIDTH);
        let columns = |matrix: &[Vec<Scalar>]| -> Vec<Scalar> {
            (0..width).flat_map(|column| matrix.iter().map(move |row| row[column])).collect()
        };
        let (first_keys, keys) = constants.compressed_round_constants.split_at(width);
        let sparse = constants.sparse_matrixes.iter().map(|matrix| (matrix.w_hat.clone(), matrix.v_rest.clone()));
        Poseidon {
            width,
            tag: powers(constants.domain_tag + first_keys[0], keys[0], &mut Layout::default()),
            first_keys: first_keys.to_vec(),
            keys: keys.to_vec(),
            half_full_rounds: constants.half_full_rounds,
            mds: columns(&constants.mds_matrices.m),
            pre_sparse: columns(&constants.pre_sparse_matrix),
            sparse: sparse.collect(),
        }
    }

    /// Allocates the hash of `preimage`, which has as many elements as the arity, and gives it.
    pub fn hash(&self, preimage: &[Scalar], wires: &mut impl Wires) -> Scalar {
        debug_assert_eq!(preimage.len() + 1, self.width);
        let mut buffer = [Scalar::ZERO; MAX_WIDTH];
        let state = &mut buffer[..self.width];
        let (keys, later) = self.keys.split_at(self.width);
        let mut keys_of_rounds = later.chunks_exact(self.width);

        state[0] = self.tag;
        for (i, input) in (1..).zip(preimage) {
            state[i] = powers(input + self.first_keys[i], keys[i], wires);
        }
        for _ in 1..self.half_full_rounds {
            mix(state, &self.mds);
            full_round(state, keys_of_rounds.next(), wires);
        }
        mix(state, &self.pre_sparse);

        let partial = (self.half_full_rounds - 1) * self.width;
        let (partial_keys, last_keys) = later[partial..].split_at(self.sparse.len());
        for ((column, row), &key) in self.sparse.iter().zip(partial_keys) {
            let first = s_box(state[0], key, wires);
            state[0] = first;
            let mixed = product(state, column);
            for (element, factor) in state[1..].iter_mut().zip(row) {
                *element += first * factor;
            }
            state[0] = mixed;
        }

        // The last round adds no keys.
        let mut last_keys = last_keys.chunks_exact(self.width);
        for _ in 0..self.half_full_rounds {
            full_round(state, last_keys.next(), wires);
            mix(state, &self.mds);
        }
        wires.full(state[1]);
        state[1]
    }
}

fn full_round(state: &mut [Scalar], keys: Option<&[Scalar]>, wires: &mut impl Wires) {
    for (i, element) in state.iter_mut().enumerate() {
        *element = s_box(*element, keys.map_or(Scalar::ZERO, |keys| keys[i]), wires);
    }
}

/// Allocates an S-box with its input.
fn s_box(input: Scalar, key: Scalar, wires: &mut impl Wires) -> Scalar {
    wires.full(input);
    powers(input, key, wires)
}

/// Allocates the square and the fourth power of `input`, and the fifth with `key` added, which it gives.
fn powers(input: Scalar, key: Scalar, wires: &mut impl Wires) -> Scalar {
    let square = input.square();
    wires.full(square);
    let fourth = square.square();
    wires.full(fourth);
    let fifth = fourth * input + key;
    wires.full(fifth);
    fifth
}

fn mix(state: &mut [Scalar], columns: &[Scalar]) {
    let mut mixed = [Scalar::ZERO; MAX_WIDTH];
    for (element, column) in mixed.iter_mut().zip(columns.chunks_exact(state.len())) {
        *element = product(state, column);
    }
    state.copy_from_slice(&mixed[..state.len()]);
}

fn product(state: &[Scalar], column: &[Scalar]) -> Scalar {
    state.iter().zip(column).map(|(element, factor)| element * factor).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonFunction, PoseidonHasher};
    use filecoin_hashers::HashFunction;
    use rand::rngs::StdRng;
    use rand::SeedableRng;
    use storage_proofs_porep::stacked::Column;

    #[test]
    fn hashes_are_those_of_the_trees_and_columns() {
        let mut rng = StdRng::seed_from_u64(3);
        for arity in [2, 8, 11] {
            let random: Vec<Scalar> = (0..arity).map(|_| Scalar::random(&mut rng)).collect();
            for preimage in [random, vec![Scalar::ZERO; arity], vec![-Scalar::ONE; arity]] {
                let domains: Vec<PoseidonDomain> = preimage.iter().map(|&element| element.into()).collect();
                let expected = if arity == 11 {
                    Column::<PoseidonHasher>::new(0, domains).unwrap().hash()
                } else {
                    let bytes: Vec<u8> = domains.iter().flat_map(|domain| <[u8; 32]>::from(*domain)).collect();
                    Scalar::from(<PoseidonFunction as HashFunction<_>>::hash(&bytes))
                };
                let mut layout = Layout::default();
                let hash = Poseidon::for_arity(arity).unwrap().hash(&preimage, &mut layout);
                assert_eq!(hash, expected, "arity {arity}");
                assert_eq!(layout.count, layout.full.len());
            }
        }
        assert!(Poseidon::for_arity(4).is_none());
    }
}
