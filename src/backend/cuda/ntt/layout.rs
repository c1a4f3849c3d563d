//! How the bits of an index are divided among passes, and the order that this gives to coefficients.

use crate::backend::cuda::gpu::{args, Plain, Span, Stream};
use crate::error::{Error, Result};

/// The largest supported log size. Factors that belong to an index of the third part and one of the first or second
/// are kept in tables, which limits the sizes.
pub const MAX_LOG_SIZE: u32 = 28;

/// The most bits of a pass over distant elements: with so many, four neighbours share 128 bytes of a tile of 2^11.
const STRIDED: u32 = 9;

/// Threads of a block.
pub(super) const THREADS: u32 = 256;

/// Sizes up to this take two passes.
const TWO_PASSES: u32 = 2 * STRIDED;

/// The bits of an index of evaluations, from the highest: a first part (none in two passes), a second and a third.
///
/// Evaluations are in natural order. Coefficients are where the inverse transform leaves them, in place: with
/// k = k1 + k2 2^first + k3 2^(first + second), coefficient k is at position k1 2^(second + third) + k2 2^third + k3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub(super) first: u32,
    pub(super) second: u32,
    pub(super) third: u32,
}

impl Layout {
    /// The layout for transforms of 2^`log_size` elements.
    ///
    /// # Errors
    /// [`Error::Argument`] for sizes outside of 2^1 to 2^[`MAX_LOG_SIZE`].
    pub fn new(log_size: u32) -> Result<Self> {
        match log_size {
            1..=TWO_PASSES => Ok(Layout { first: 0, second: log_size / 2, third: log_size - log_size / 2 }),
            // Parts of nine bits are three whole steps of three bits. The third part may be longer: its elements are
            // neighbours in memory.
            19..=27 => Ok(Layout { first: log_size - TWO_PASSES, second: STRIDED, third: STRIDED }),
            MAX_LOG_SIZE => Ok(Layout { first: STRIDED, second: STRIDED, third: STRIDED + 1 }),
            _ => Err(Error::Argument {
                name: "log_size",
                detail: format!("the GPU transforms 2^1 to 2^{MAX_LOG_SIZE} elements, not 2^{log_size}"),
            }),
        }
    }

    /// log2 of the number of elements.
    pub fn log_size(&self) -> u32 {
        self.first + self.second + self.third
    }

    /// The number of elements.
    pub fn size(&self) -> usize {
        1 << self.log_size()
    }

    /// Where coefficient `k` is. Coefficient N - 1 is the last one in every layout.
    #[cfg(all(test, feature = "emulator"))]
    pub fn position_of_coefficient(&self, k: usize) -> usize {
        debug_assert!(k < self.size());
        let k1 = k & ((1 << self.first) - 1);
        let k2 = (k >> self.first) & ((1 << self.second) - 1);
        let k3 = k >> (self.first + self.second);
        (k1 << (self.second + self.third)) | (k2 << self.third) | k3
    }

    /// Which coefficient is at `position`.
    #[cfg(all(test, feature = "emulator"))]
    pub fn coefficient_at(&self, position: usize) -> usize {
        debug_assert!(position < self.size());
        let k1 = position >> (self.second + self.third);
        let k2 = (position >> self.third) & ((1 << self.second) - 1);
        let k3 = position & ((1 << self.third) - 1);
        k1 | (k2 << self.first) | (k3 << (self.first + self.second))
    }

    /// Queues a copy of what belongs to coefficients, such as bases: value i of `from` belongs to coefficient
    /// `first_coefficient` + i and goes to that one's position in `to`. `to` has a place for every position, except perhaps the last one, of coefficient N - 1.
    ///
    /// # Errors
    /// If a value is not a multiple of 16 bytes long, or a position does not exist in `to`.
    pub fn arrange<T: Plain>(
        &self,
        stream: &Stream,
        to: Span<T>,
        from: Span<T>,
        first_coefficient: usize,
    ) -> Result<()> {
        self.move_coefficients(stream, "ntt_arrange", to, from, first_coefficient, from.len(), to.len())
    }

    /// Queues a copy the other way: the values of the coefficients `first_coefficient` and on, as many as `to` has, from
    /// their positions in `from`.
    ///
    /// # Errors
    /// As [`Layout::arrange`].
    pub fn collect<T: Plain>(
        &self,
        stream: &Stream,
        to: Span<T>,
        from: Span<T>,
        first_coefficient: usize,
    ) -> Result<()> {
        self.move_coefficients(stream, "ntt_collect", to, from, first_coefficient, to.len(), from.len())
    }

    /// `count` coefficients from or to a span of so many positions.
    #[expect(clippy::too_many_arguments, reason = "those of the kernels, and what they are checked against")]
    fn move_coefficients<T: Plain>(
        &self,
        stream: &Stream,
        kernel: &'static str,
        to: Span<T>,
        from: Span<T>,
        first: usize,
        count: usize,
        positions: usize,
    ) -> Result<()> {
        let end = first + count;
        // Only coefficient N - 1 has the last position.
        if !size_of::<T>().is_multiple_of(16) || end > positions || positions + 1 < self.size() {
            let (size, log_size) = (size_of::<T>(), self.log_size());
            return Err(Error::internal(format!(
                "coefficients up to {end} of 2^{log_size} at {positions} places of {size} bytes"
            )));
        }
        let units = size_of::<T>() / 16;
        let grid = (count * units).div_ceil(THREADS as usize) as u32;
        stream.launch(
            kernel,
            grid,
            THREADS,
            0,
            &args![to, from, first as u32, count as u32, units as u32, self.parts()],
        )
    }

    /// The numbers of bits, as kernels take them.
    pub fn parts(&self) -> [u32; 3] {
        [self.first, self.second, self.third]
    }

    /// Whether there is a first part.
    pub(super) fn has_three_passes(&self) -> bool {
        // The kernel for the second of three passes is made for this length.
        debug_assert!(self.first == 0 || self.second == STRIDED);
        self.first > 0
    }
}
