//! The wires of a Merkle path: at each level the index's bits, the siblings, the node inserted among them, their hash.
//! Knows what trees look like, not what they are for.

use blstrs::Scalar;
use ff::Field;

use super::element::{scalar, Element};
use super::poseidon::Poseidon;
use super::sha256::sha256;
use super::wires::Wires;
use crate::error::{Error, Result};
use crate::porep::c1::{MerkleProof, PathElement};

/// The largest arity of a tree.
const MAX_ARITY: usize = 8;

/// Collects the index of a leaf from the levels of its path, as the circuit packs it into a public input.
#[derive(Default)]
struct LeafIndex {
    index: u64,
    bits: u32,
}

impl LeafIndex {
    /// Allocates the bits of the index in one level, lowest first, and gives them.
    fn level(&mut self, element: &PathElement, wires: &mut impl Wires) -> Result<usize> {
        let arity = element.hashes.len() + 1;
        if !arity.is_power_of_two() || element.index >= arity as u64 {
            return Err(Error::internal(format!("index {} in a level of {arity} nodes", element.index)));
        }
        let count = arity.trailing_zeros();
        wires.bits(element.index, count);
        self.index |= element.index.checked_shl(self.bits).unwrap_or(0);
        self.bits += count;
        Ok(element.index as usize)
    }

    fn input(self) -> Scalar {
        Scalar::from(self.index)
    }
}

/// Allocates a path in a Poseidon tree from `leaf` and gives the leaf's index.
pub(super) fn poseidon_path(leaf: Scalar, path: &MerkleProof, wires: &mut impl Wires) -> Result<Scalar> {
    let mut leaf_index = LeafIndex::default();
    let mut node = leaf;
    for element in path.path() {
        let index = leaf_index.level(element, wires)?;
        let mut siblings = [Scalar::ZERO; MAX_ARITY - 1];
        let siblings = siblings
            .get_mut(..element.hashes.len())
            .ok_or_else(|| Error::internal(format!("a level of {} siblings", element.hashes.len())))?;
        for (sibling, hash) in siblings.iter_mut().zip(&element.hashes) {
            *sibling = scalar(hash)?;
            wires.full(*sibling);
        }
        let poseidon = Poseidon::for_arity(siblings.len() + 1);
        node = match (poseidon, &*siblings) {
            (Some(poseidon), &[sibling]) => poseidon.hash(&insert_2(node, index, sibling, wires), wires),
            (Some(poseidon), &[b, c, d, e, f, g, h]) => {
                poseidon.hash(&insert_8(node, index, [b, c, d, e, f, g, h], wires), wires)
            }
            _ => return Err(Error::internal(format!("a tree of arity {}", siblings.len() + 1))),
        };
    }
    Ok(leaf_index.input())
}

/// Allocates a path in a binary SHA-256 tree from `leaf` and gives the leaf's index.
pub(super) fn sha256_path(leaf: Element, path: &MerkleProof, wires: &mut impl Wires) -> Result<Scalar> {
    let mut leaf_index = LeafIndex::default();
    let mut node = leaf;
    for element in path.path() {
        let [sibling] = &element.hashes[..] else {
            return Err(Error::internal(format!("a binary tree with {} siblings", element.hashes.len())));
        };
        let right = leaf_index.level(element, wires)? == 1;
        let sibling = Element::new(sibling)?;
        wires.full(sibling.scalar);
        let children = if right { [sibling, node] } else { [node, sibling] };
        for child in children {
            wires.full(child.scalar);
        }
        let [left, right] = children.map(|child| child.unpack(wires));
        let mut message = [left[0]; 16];
        message[..8].copy_from_slice(&left);
        message[8..].copy_from_slice(&right);
        node = Element::from_digest(sha256(&message, wires))?;
        wires.full(node.scalar);
    }
    Ok(leaf_index.input())
}

/// Allocates the children of a binary node: `node` at `index`, `sibling` beside it.
fn insert_2(node: Scalar, index: usize, sibling: Scalar, wires: &mut impl Wires) -> [Scalar; 2] {
    let children = if index == 1 { [sibling, node] } else { [node, sibling] };
    children.into_iter().for_each(|child| wires.full(child));
    children
}

/// Allocates the children of a node of arity 8, `a` at `index` among the siblings `b` to `h`, with all that the gadget's
/// selections need: each child depends on few bits of the index, some of them joined.
fn insert_8(a: Scalar, index: usize, [b, c, d, e, f, g, h]: [Scalar; 7], wires: &mut impl Wires) -> [Scalar; 8] {
    let [b0, b1, b2] = [0, 1, 2].map(|bit| index >> bit & 1 == 1);
    let (neither, both) = (!b0 && !b1, b0 && b1);
    wires.bits(u64::from(neither) | u64::from(both) << 1, 2);
    let mut pick = |condition: bool, yes: Scalar, no: Scalar| {
        let picked = if condition { yes } else { no };
        wires.full(picked);
        picked
    };
    let low = pick(neither, a, b);
    let p0 = pick(b2, b, low);
    let low = pick(b0, a, b);
    let low = pick(b1, c, low);
    let p1 = pick(b2, c, low);
    let low = pick(b0, d, a);
    let low = pick(b1, low, c);
    let p2 = pick(b2, d, low);
    let low = pick(both, a, d);
    let p3 = pick(b2, e, low);
    let high = pick(neither, a, f);
    let p4 = pick(b2, high, e);
    let high = pick(b0, a, f);
    let high = pick(b1, g, high);
    let p5 = pick(b2, high, f);
    let high = pick(b0, h, a);
    let high = pick(b1, high, g);
    let p6 = pick(b2, high, g);
    let high = pick(both, a, h);
    let p7 = pick(b2, high, h);
    [p0, p1, p2, p3, p4, p5, p6, p7]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::porep::c1::Node;
    use crate::porep::witness::wires::Layout;
    use bellperson::util_cs::test_cs::TestConstraintSystem;
    use ff::PrimeField;
    use filecoin_hashers::poseidon::PoseidonHasher;
    use filecoin_hashers::sha256::Sha256Hasher;
    use generic_array::typenum::{U0, U2, U8};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use storage_proofs_core::gadgets::por::PoRCircuit;
    use storage_proofs_core::gadgets::variables::Root;
    use storage_proofs_core::merkle::{DiskTree, MerkleTreeTrait};

    fn random_path(base: (usize, usize), sub: usize, top: usize, rng: &mut StdRng) -> MerkleProof {
        let mut level = |arity: usize| PathElement {
            hashes: (1..arity).map(|_| Node(Scalar::random(&mut *rng).to_repr())).collect(),
            index: rng.gen_range(0..arity as u64),
        };
        MerkleProof {
            leaf: Node([0; 32]),
            root: Node([0; 32]),
            base: (0..base.0).map(|_| level(base.1)).collect(),
            sub: (sub > 0).then(|| vec![level(sub)]),
            top: (top > 0).then(|| vec![level(top)]),
        }
    }

    /// The gadget's wires behind the leaf and before the root, and its public input.
    fn gadget<Tree: 'static + MerkleTreeTrait>(leaf: Scalar, path: &MerkleProof) -> (Vec<Scalar>, Scalar) {
        let levels = path.path().map(|element| {
            let hashes = element.hashes.iter().map(|hash| Some(scalar(hash).unwrap())).collect();
            (hashes, Some(element.index as usize))
        });
        let levels: Vec<(Vec<Option<Scalar>>, Option<usize>)> = levels.collect();
        let mut cs = TestConstraintSystem::<Scalar>::new();
        let (leaf, root) = (Root::Val(Some(leaf)), Root::Val(Some(Scalar::ZERO)));
        PoRCircuit::<Tree>::synthesize(&mut cs, leaf, levels.into(), root, true).unwrap();
        let mut wires = cs.scalar_aux();
        wires.pop();
        (wires.split_off(1), cs.scalar_inputs()[1])
    }

    #[test]
    fn paths_of_every_tree_have_the_gadgets_wires() {
        type Tree<Sub, Top> = DiskTree<PoseidonHasher, U8, Sub, Top>;
        let mut rng = StdRng::seed_from_u64(7);
        for round in 0..12 {
            let leaf = if round == 0 { Scalar::ONE } else { Scalar::random(&mut rng) };
            for (sub, top) in [(0, 0), (8, 0), (8, 2)] {
                let path = random_path((1 + round % 3, 8), sub, top, &mut rng);
                let expected = match (sub, top) {
                    (0, _) => gadget::<Tree<U0, U0>>(leaf, &path),
                    (_, 0) => gadget::<Tree<U8, U0>>(leaf, &path),
                    _ => gadget::<Tree<U8, U2>>(leaf, &path),
                };
                let mut wires: Vec<Scalar> = Vec::new();
                let index = poseidon_path(leaf, &path, &mut wires).unwrap();
                assert!((&wires, index) == (&expected.0, expected.1), "{sub} {top}");
            }
        }
        for len in 1..4 {
            let path = random_path((len, 2), 0, 0, &mut rng);
            let leaf = Scalar::random(&mut rng);
            let expected = gadget::<DiskTree<Sha256Hasher, U2, U0, U0>>(leaf, &path);
            let mut wires: Vec<Scalar> = Vec::new();
            let index = sha256_path(Element::new(&Node(leaf.to_repr())).unwrap(), &path, &mut wires).unwrap();
            assert!((wires, index) == expected, "binary tree of {len} levels");
        }
    }

    #[test]
    fn a_level_that_no_tree_has_is_an_internal_error() {
        let leaf = Element::new(&Node([0; 32])).unwrap();
        let path = |siblings: usize, index: u64| MerkleProof {
            leaf: Node([0; 32]),
            root: Node([0; 32]),
            base: vec![PathElement { hashes: vec![Node([0; 32]); siblings], index }],
            sub: None,
            top: None,
        };
        for (siblings, index) in [(0, 0), (2, 0), (3, 0), (7, 8), (8, 0), (15, 0), (1, 2)] {
            let path = path(siblings, index);
            let error = poseidon_path(leaf.scalar, &path, &mut Layout::default()).unwrap_err();
            assert_eq!(error.code(), 500, "{siblings} {index}");
            let error = sha256_path(leaf, &path, &mut Layout::default()).unwrap_err();
            assert_eq!(error.code(), 500, "{siblings} {index}");
        }
        let noncanonical = Node([0xff; 32]);
        assert_eq!(Element::new(&noncanonical).err().unwrap().code(), 500);
    }

    #[test]
    fn a_node_is_inserted_at_its_index() {
        let [a, b, c, d, e, f, g, h] = [1, 2, 3, 4, 5, 6, 7, 8].map(|number: u64| Scalar::from(number));
        for index in 0..8 {
            let mut expected = vec![b, c, d, e, f, g, h];
            expected.insert(index, a);
            assert_eq!(insert_8(a, index, [b, c, d, e, f, g, h], &mut Layout::default()), expected[..], "{index}");
        }
        assert_eq!(insert_2(a, 0, b, &mut Layout::default()), [a, b]);
        assert_eq!(insert_2(a, 1, b, &mut Layout::default()), [b, a]);
    }
}
