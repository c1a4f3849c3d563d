//! Packed witnesses on a device, and their way there.

use blstrs::Scalar;
use ff::Field;

use super::gpu::{scalar_words, Event, Gpu, Pinned, Span, Stream, Words};
use super::shape::Sizes;
use crate::error::{Error, Result};
use crate::r1cs::PartitionWitness;

/// Words that a copy has at most: 64 MiB, so that other copies need not wait long.
const PIECE: usize = 8 << 20;

/// Words of an element.
const SCALAR: usize = size_of::<Scalar>() / size_of::<u64>();

/// Room for one witness on a device: all bits, then the inputs, then the full-width values.
#[derive(Debug, Clone, Copy)]
pub struct DeviceWitness {
    words: Span<u64>,
    sizes: Sizes,
}

impl Sizes {
    /// 64-bit words that a witness takes, on the device or pinned.
    pub fn witness_words(&self) -> usize {
        self.bit_words() + SCALAR * (self.inputs + self.full)
    }

    /// Words of bits, so many that elements behind them are aligned.
    fn bit_words(&self) -> usize {
        self.aux.div_ceil(64).next_multiple_of(SCALAR)
    }
}

impl DeviceWitness {
    /// Takes memory for one; the span has [`Sizes::witness_words`] words and begins at a multiple of 32 bytes.
    ///
    /// # Panics
    /// If it does not.
    pub fn new(words: Span<u64>, sizes: Sizes) -> Self {
        assert_eq!(words.len(), sizes.witness_words(), "the room for a witness");
        assert!(words.address().is_multiple_of(size_of::<Words>() as u64), "the room for a witness is not aligned");
        DeviceWitness { words, sizes }
    }

    /// A bit for each auxiliary variable.
    pub fn bits(&self) -> Span<u32> {
        self.words.slice(..self.sizes.aux.div_ceil(64)).cast()
    }

    /// Inputs, in Montgomery form.
    pub fn inputs(&self) -> Span<Words> {
        let first = self.sizes.bit_words();
        self.words.slice(first..first + SCALAR * self.sizes.inputs).cast()
    }

    /// Full-width values, in Montgomery form.
    pub fn full(&self) -> Span<Words> {
        self.words.slice(self.sizes.bit_words() + SCALAR * self.sizes.inputs..).cast()
    }

    /// As the kernels take it.
    pub(super) fn argument(&self) -> [u64; 3] {
        [self.bits().address(), self.full().address(), self.inputs().address()]
    }
}

/// Pinned memory through which witnesses go to a device.
pub struct Staging {
    words: Pinned<u64>,
    sizes: Sizes,
    /// The last copy from it.
    copied: Event,
}

impl Staging {
    /// Room for one witness.
    ///
    /// # Errors
    /// [`Error::Memory`] and whatever else a device may fail with.
    pub fn new(gpu: &Gpu, sizes: Sizes) -> Result<Self> {
        let words = gpu.pinned(sizes.witness_words(), "a witness on its way to a device")?;
        Ok(Staging { words, sizes, copied: gpu.event()? })
    }

    /// Takes a copy of a witness and queues its way to the device. Waits for the copies that were queued before, not for
    /// this one.
    ///
    /// # Errors
    /// [`Error::Internal`] if the witness has the wrong size, [`Error::Unsatisfied`] if input 0 is not 1; whatever a
    /// device may fail with.
    pub fn upload(&mut self, stream: &Stream, witness: &PartitionWitness, to: &DeviceWitness) -> Result<()> {
        self.check(witness, to)?;
        self.copied.synchronize()?;
        let inputs = self.sizes.bit_words();
        let full = inputs + SCALAR * self.sizes.inputs;
        let words = &mut *self.words;
        words[..witness.bits.words().len()].copy_from_slice(witness.bits.words());
        fill(&mut words[inputs..full], &witness.inputs);
        fill(&mut words[full..], &witness.full);
        for first in (0..self.words.len()).step_by(PIECE) {
            let piece = to.words.slice(first..(first + PIECE).min(self.words.len()));
            // SAFETY: the words are next written to or freed behind the event, which is recorded behind the copies even
            // if one of them fails.
            let queued = unsafe { stream.upload_later(piece, &self.words, first) };
            queued.inspect_err(|_| drop(stream.record(&self.copied)))?;
        }
        stream.record(&self.copied)
    }

    /// Behind the copies that were queued last.
    pub fn copied(&self) -> &Event {
        &self.copied
    }

    fn check(&self, witness: &PartitionWitness, to: &DeviceWitness) -> Result<()> {
        let sizes = self.sizes;
        let given = (witness.inputs.len(), witness.bits.len(), witness.full.len());
        if given != (sizes.inputs, sizes.aux, sizes.full) || to.sizes != sizes {
            return Err(Error::internal(format!(
                "a witness of {} inputs, {} bits and {} full-width values for {sizes:?} and {:?}",
                given.0, given.1, given.2, to.sizes
            )));
        }
        if witness.inputs[0] != Scalar::ONE {
            return Err(Error::Unsatisfied { detail: "input 0 must be the constant 1".into() });
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Whatever the error, nothing is copied any more.
        if let Err(error) = self.copied.synchronize() {
            log::warn!("{error}");
        }
    }
}

/// Copies elements as they are in memory.
fn fill(words: &mut [u64], values: &[Scalar]) {
    for (words, value) in words.chunks_exact_mut(SCALAR).zip(scalar_words(values)) {
        for (word, halves) in words.iter_mut().zip(value.chunks_exact(2)) {
            *word = u64::from(halves[1]) << 32 | u64::from(halves[0]);
        }
    }
}
