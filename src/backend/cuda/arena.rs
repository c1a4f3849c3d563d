//! Carving one allocation into parts: inside a proof nothing is allocated.

use super::gpu::{Plain, Span};

/// Parts begin at multiples of this many bytes.
const ALIGNMENT: usize = 256;

/// Hands out parts of a span of bytes, one after the other. Without a span it only counts, so that a plan and what is
/// carved by it cannot differ.
#[derive(Debug)]
pub(super) struct Arena {
    bytes: Option<Span<u8>>,
    used: usize,
}

impl Arena {
    /// Over these bytes.
    pub fn new(bytes: Span<u8>) -> Self {
        Arena { bytes: Some(bytes), used: 0 }
    }

    /// One that only counts; the spans that it gives are not to be used.
    pub fn counting() -> Self {
        Arena { bytes: None, used: 0 }
    }

    /// The next `len` values.
    ///
    /// # Panics
    /// If the bytes do not suffice.
    pub fn take<T: Plain>(&mut self, len: usize) -> Span<T> {
        let begin = self.used;
        let size = len * size_of::<T>();
        self.used = begin + size.next_multiple_of(ALIGNMENT);
        match &self.bytes {
            Some(bytes) => bytes.slice(begin..begin + size).cast(),
            None => Span::none(len),
        }
    }

    /// Two uses of the same bytes, of which the later may write over the earlier.
    pub fn either<A, B>(
        &mut self,
        first: impl FnOnce(&mut Arena) -> A,
        second: impl FnOnce(&mut Arena) -> B,
    ) -> (A, B) {
        let begin = self.used;
        let first = first(self);
        let end = std::mem::replace(&mut self.used, begin);
        let second = second(self);
        self.used = self.used.max(end);
        (first, second)
    }

    /// Bytes handed out so far.
    pub fn used(&self) -> usize {
        self.used
    }
}
