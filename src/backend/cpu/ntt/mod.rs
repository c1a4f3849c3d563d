//! Number-theoretic transforms over Fr: the six-step algorithm in two passes. Knows no circuit.
//!
//! With N = R C, input index r C + c and output index k1 + R k2, the first pass transforms each column (over
//! r) and multiplies by w^(c k1); the second transforms each row (over c) and writes it as a column. Both work
//! on eight columns or rows at a time (`vector::Eight`), so that every memory access is 256 bytes or more.
//! Coset and 1/N factors are part of the twiddle factors, except for the coset's powers on the output side,
//! which cost one product an element.

#[cfg(target_arch = "x86_64")]
mod ifma;
mod kernel;
mod plan;
mod portable;
mod vector;

use blstrs::Scalar;
use ff::{Field, PrimeField};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::groth16::domain::{root_of_unity, Transform};
use crate::pipeline::Control;

use super::lane::{Best, Lanes};
use crate::memory::huge_vec;
use plan::Plan;
use vector::Eight;

/// Below this log size the eight-wide passes do not fit.
const SMALL: u32 = 6;

/// The largest supported log size.
pub const MAX_LOG_SIZE: u32 = 27;

/// Transforms of one size. Holds twiddle factors of order sqrt(N); each running transform uses a scratch
/// buffer of N elements (32 bytes each), which is kept for the next one.
pub struct Ntt {
    log_size: u32,
    engine: Engine,
}

enum Engine {
    Small,
    Portable(Box<Passes<portable::Scalars>>),
    #[cfg(target_arch = "x86_64")]
    Ifma(Box<Passes<ifma::Registers>>),
}

/// The four directions and the scratch buffers of one vector type.
struct Passes<V: Eight> {
    forward: Plan<V>,
    inverse: Plan<V>,
    coset_forward: Plan<V>,
    coset_inverse: Plan<V>,
    scratch: Mutex<Vec<Vec<V>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Inverse,
    CosetForward,
    CosetInverse,
}

impl Ntt {
    /// Transforms of size 2^`log_size`, which is at most [`MAX_LOG_SIZE`].
    pub fn new(log_size: u32, lanes: Lanes) -> Result<Self> {
        if log_size > MAX_LOG_SIZE {
            return Err(Error::Argument {
                name: "log_size",
                detail: format!("a transform of size 2^{log_size} is not supported; the maximum is 2^{MAX_LOG_SIZE}"),
            });
        }
        let engine = match lanes.best() {
            _ if log_size < SMALL => Engine::Small,
            #[cfg(target_arch = "x86_64")]
            Best::Ifma => Engine::Ifma(Box::new(Passes::new(log_size))),
            Best::Portable => Engine::Portable(Box::new(Passes::new(log_size))),
        };
        Ok(Ntt { log_size, engine })
    }

    /// Bytes that transforms of a size keep, one running at a time.
    pub(super) fn scratch_bytes(log_size: u32, lanes: Lanes) -> u64 {
        let vector = match lanes.best() {
            _ if log_size < SMALL => 0,
            #[cfg(target_arch = "x86_64")]
            Best::Ifma => size_of::<ifma::Registers>(),
            Best::Portable => size_of::<portable::Scalars>(),
        };
        (vector as u64) << log_size >> 3
    }

    fn run(&self, direction: Direction, values: &mut [Scalar], control: &Control) -> Result<()> {
        if values.len() != 1 << self.log_size {
            return Err(Error::internal(format!(
                "a transform of size 2^{} was given {} elements",
                self.log_size,
                values.len()
            )));
        }
        control.check("a transform")?;
        match &self.engine {
            Engine::Small => {
                small(direction, values);
                Ok(())
            }
            Engine::Portable(passes) => passes.run(direction, values, control),
            #[cfg(target_arch = "x86_64")]
            Engine::Ifma(passes) => passes.run(direction, values, control),
        }
    }
}

impl Transform for Ntt {
    fn log_size(&self) -> u32 {
        self.log_size
    }

    fn forward(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
        self.run(Direction::Forward, values, control)
    }

    fn inverse(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
        self.run(Direction::Inverse, values, control)
    }

    fn coset_forward(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
        self.run(Direction::CosetForward, values, control)
    }

    fn coset_inverse(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
        self.run(Direction::CosetInverse, values, control)
    }
}

impl<V: Eight> Passes<V> {
    fn new(log_size: u32) -> Self {
        Passes {
            forward: Plan::new(log_size, Direction::Forward),
            inverse: Plan::new(log_size, Direction::Inverse),
            coset_forward: Plan::new(log_size, Direction::CosetForward),
            coset_inverse: Plan::new(log_size, Direction::CosetInverse),
            scratch: Mutex::new(Vec::new()),
        }
    }

    fn run(&self, direction: Direction, values: &mut [Scalar], control: &Control) -> Result<()> {
        let plan = match direction {
            Direction::Forward => &self.forward,
            Direction::Inverse => &self.inverse,
            Direction::CosetForward => &self.coset_forward,
            Direction::CosetInverse => &self.coset_inverse,
        };
        let kept = self.scratch.lock().pop();
        let mut scratch = kept.unwrap_or_else(|| huge_vec(V::ZERO, values.len() / 8));
        let outcome = plan.columns(values, &mut scratch, control).and_then(|()| plan.rows(&scratch, values, control));
        self.scratch.lock().push(scratch);
        outcome
    }
}

/// Textbook radix-2 transform for sizes below 2^[`SMALL`].
fn small(direction: Direction, values: &mut [Scalar]) {
    let inverted = matches!(direction, Direction::Inverse | Direction::CosetInverse);
    let log_size = values.len().trailing_zeros();
    if direction == Direction::CosetForward {
        scale_by_powers(values, Scalar::ONE, Scalar::MULTIPLICATIVE_GENERATOR);
    }
    for index in 0..values.len() {
        let mirror = reverse_bits(index, log_size);
        if index < mirror {
            values.swap(index, mirror);
        }
    }
    for level in 1..=log_size {
        let root = root_of_unity(level);
        let root = if inverted { inverse_of(root) } else { root };
        for block in values.chunks_exact_mut(1 << level) {
            let (low, high) = block.split_at_mut(1 << (level - 1));
            let mut twiddle = Scalar::ONE;
            for (a, b) in low.iter_mut().zip(high) {
                let product = *b * twiddle;
                *b = *a - product;
                *a += product;
                twiddle *= root;
            }
        }
    }
    let size_inverse = inverse_of(Scalar::from(values.len() as u64));
    match direction {
        Direction::Forward | Direction::CosetForward => {}
        Direction::Inverse => scale_by_powers(values, size_inverse, Scalar::ONE),
        Direction::CosetInverse => scale_by_powers(values, size_inverse, inverse_of(Scalar::MULTIPLICATIVE_GENERATOR)),
    }
}

/// `values[i] *= first * ratio^i`
fn scale_by_powers(values: &mut [Scalar], first: Scalar, ratio: Scalar) {
    let mut factor = first;
    for value in values {
        *value *= factor;
        factor *= ratio;
    }
}

/// 1 / `value`, for a value that is not zero.
fn inverse_of(value: Scalar) -> Scalar {
    value.invert().unwrap()
}

/// The lowest `width` bits of `index` in reverse order.
fn reverse_bits(index: usize, width: u32) -> usize {
    if width == 0 {
        0
    } else {
        index.reverse_bits() >> (usize::BITS - width)
    }
}

#[cfg(test)]
mod tests;
