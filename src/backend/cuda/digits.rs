//! How scalars are cut into windows of signed digits.

use std::ops::Range;

use super::gpu::Plain;

/// Scalars above r / 2 are negated, which leaves 254 bits; one more for the sign of the top digit.
const SCALAR_BITS: u32 = 255;

/// Wider windows would need more buckets than are counted with 32 bits in all.
const WIDEST: u32 = 24;

/// Windows of two widths that differ by one, the wider ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Windows {
    /// How many there are.
    pub count: u32,
    /// Bits of the narrower ones.
    pub bits: u32,
    /// How many have one bit more.
    pub wide: u32,
}

/// What the kernel takes; see `DigitPlan` in kernels/msm.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct DigitPlan {
    bits: u32,
    wide: u32,
    first: u32,
    count: u32,
    rounding: [u32; 8],
}

// SAFETY: words only.
unsafe impl Plain for DigitPlan {}

impl Windows {
    /// So many windows.
    pub fn new(count: u32) -> Self {
        Windows { count, bits: SCALAR_BITS / count, wide: SCALAR_BITS % count }
    }

    /// All choices, from few wide windows to many narrow ones.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=64).map(Windows::new).filter(|windows| windows.widest() <= WIDEST && windows.bits >= 4)
    }

    /// Bits of the widest window.
    pub fn widest(&self) -> u32 {
        self.bits + u32::from(self.wide > 0)
    }

    /// Bits of window `window`.
    pub fn width(&self, window: u32) -> u32 {
        self.bits + u32::from(window < self.wide)
    }

    /// Windows of the same width: the wider ones, and the others.
    pub fn alike(&self) -> impl Iterator<Item = Range<u32>> {
        [0..self.wide, self.wide..self.count].into_iter().filter(|windows| !windows.is_empty())
    }

    /// Buckets of window `window`: one for each size of a digit from 1 on.
    pub fn buckets(&self, window: u32) -> usize {
        1 << (self.width(window) - 1)
    }

    /// Buckets of the windows before window `window`.
    pub fn buckets_before(&self, window: u32) -> usize {
        (0..window).map(|window| self.buckets(window)).sum()
    }

    /// The digits of the windows `first .. first + count`.
    pub fn plan(&self, first: u32, count: u32) -> DigitPlan {
        let mut rounding = [0u32; 8];
        let mut offset = 0;
        for window in 0..self.count {
            // The top bit of the window.
            let bit = offset + self.width(window) - 1;
            rounding[(bit / 32) as usize] |= 1 << (bit % 32);
            offset += self.width(window);
        }
        DigitPlan { bits: self.bits, wide: self.wide, first, count, rounding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_a_scalar_exactly() {
        for windows in Windows::all() {
            let bits: u32 = (0..windows.count).map(|window| windows.width(window)).sum();
            assert_eq!(bits, SCALAR_BITS, "{windows:?}");
            assert!((0..windows.count).all(|window| windows.width(window) <= windows.widest()));
            let alike: Vec<u32> = windows.alike().flatten().collect();
            assert_eq!(alike, (0..windows.count).collect::<Vec<_>>());
            assert!(windows.alike().all(|mut alike| {
                let width = windows.width(alike.start);
                alike.all(|window| windows.width(window) == width)
            }));
        }
        let counts: Vec<_> = Windows::all().map(|windows| windows.count).collect();
        assert_eq!((counts.first(), counts.last()), (Some(&11), Some(&63)));
    }
}
