//! Eight transforms side by side in cache. Knows no memory layout beyond its buffer.
//!
//! Polynomials are reduced modulo X^(2 len) - s^2 = (X^len - s)(X^len + s) from the top down, two levels a
//! sweep. A coset of the domain only changes the values of s.

use blstrs::Scalar;
use ff::Field;

use super::reverse_bits;
use super::vector::Eight;

/// The roots s of every node of the reduction tree: node i of the level with m nodes is at m + i.
pub(super) struct Tree<V: Eight> {
    roots: Vec<V::Factor>,
    /// Whether the leftmost roots are all one.
    plain: bool,
}

impl<V: Eight> Tree<V> {
    /// For transforms of size 2^`log_size` with the primitive root `root`, evaluating on `shift` times its powers.
    pub(super) fn new(log_size: u32, root: Scalar, shift: Scalar) -> Self {
        let size = 1usize << log_size;
        let mut powers = vec![Scalar::ONE; size];
        for index in 1..size {
            powers[index] = powers[index - 1] * root;
        }
        let mut roots = vec![V::factor(&Scalar::ONE); size];
        for level in 0..log_size {
            let nodes = 1usize << level;
            let scale = shift.pow_vartime([(size / (2 * nodes)) as u64]);
            for node in 0..nodes {
                let exponent = reverse_bits(node, level) * (size / (2 * nodes));
                roots[nodes + node] = V::factor(&(powers[exponent] * scale));
            }
        }
        Tree { roots, plain: shift == Scalar::ONE }
    }

    /// Coefficients in natural order to evaluations in bit-reversed order, for each of the eight elements.
    #[inline(always)]
    pub(super) fn transform(&self, buffer: &mut [V]) {
        let size = buffer.len();
        assert!(size.is_power_of_two() && size == self.roots.len());
        let mut nodes = 1;
        if size.trailing_zeros() % 2 == 1 {
            let (low, high) = buffer.split_at_mut(size / 2);
            for (a, b) in low.iter_mut().zip(high) {
                if self.plain {
                    V::cross_first(a, b);
                } else {
                    b.scale(&self.roots[1]);
                    V::cross(a, b);
                }
            }
            nodes = 2;
        }
        while nodes < size {
            for node in 0..nodes {
                let block = &mut buffer[node * (size / nodes)..(node + 1) * (size / nodes)];
                let upper = &self.roots[nodes + node];
                let lower = [&self.roots[2 * (nodes + node)], &self.roots[2 * (nodes + node) + 1]];
                let ones = self.plain && node == 0 && (V::REDUCED || nodes == 1);
                two_levels(block, (!ones).then_some((upper, lower[0])), lower[1]);
            }
            nodes *= 4;
        }
    }
}

/// One node and its two children. `left` has the node's root and its left child's, or nothing if both are one.
#[inline(always)]
fn two_levels<V: Eight>(block: &mut [V], left: Option<(&V::Factor, &V::Factor)>, right: &V::Factor) {
    let quarter = block.len() / 4;
    let (low, high) = block.split_at_mut(2 * quarter);
    let (first, second) = low.split_at_mut(quarter);
    let (third, fourth) = high.split_at_mut(quarter);
    let quads = first.iter_mut().zip(second).zip(third.iter_mut().zip(fourth));
    match left {
        Some((upper, lower)) => {
            for ((a, b), (c, d)) in quads {
                c.scale(upper);
                d.scale(upper);
                V::cross(a, c);
                V::cross(b, d);
                b.scale(lower);
                d.scale(right);
                V::cross(a, b);
                V::cross(c, d);
            }
        }
        None => {
            for ((a, b), (c, d)) in quads {
                V::cross_first(a, c);
                V::cross_first(b, d);
                d.scale(right);
                V::cross_first(a, b);
                V::cross(c, d);
            }
        }
    }
}
