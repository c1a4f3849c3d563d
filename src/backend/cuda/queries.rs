//! What the sums over the queries take from witnesses: which bases their bits select, and scalars for the full-width values.

use super::evaluate::{blocks, THREADS};
use super::gpu::{args, Buffer, Plain, Span, Stream, Words};
use super::shape::{bytes, RankedBitmap, ShapeTables, Uploader};
use super::witness::DeviceWitness;
use crate::error::{Error, Result};
use crate::r1cs::{Bitmap, Constraints, Layout};

/// Witnesses whose bits are looked at together, at most; the kernel has the same.
pub const MAX_WITNESSES: usize = 10;

/// The variables of one query: some inputs, then some auxiliary variables, each with one base, in this order.
pub struct Query {
    /// Inputs of the query.
    inputs: usize,
    /// All variables of the query.
    len: usize,
    /// Which auxiliary variables the query has; all if there is none.
    density: Option<RankedBitmap>,
    /// The bases of the inputs and of the full-width variables.
    full_bases: Buffer<u32>,
    /// For each of these the input, as its number | INPUT, or the place among the full-width values of a witness.
    full_sources: Buffer<u32>,
}

impl Query {
    /// How many bases the query has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The bases of the variables that are not bits, inputs first: the same for all witnesses.
    pub fn full_bases(&self) -> Span<u32> {
        self.full_bases.span()
    }

    /// Queues a number for each base of the query: bit `j` says whether the base belongs to the sum of witness `j` by a bit
    /// of it. It is zero for the inputs and full-width variables, whatever the bits are there.
    ///
    /// # Errors
    /// [`Error::Internal`] if there are more than [`MAX_WITNESSES`] or `out` has another length; whatever a device may fail
    /// with.
    pub fn keys(
        &self,
        stream: &Stream,
        shape: &ShapeTables,
        witnesses: &[DeviceWitness],
        out: Span<u32>,
    ) -> Result<()> {
        if out.len() != self.len {
            return Err(Error::internal(format!("{} places for the keys of {} bases", out.len(), self.len)));
        }
        if witnesses.len() > MAX_WITNESSES {
            return Err(Error::internal(format!("{} witnesses together, at most {MAX_WITNESSES}", witnesses.len())));
        }
        let mut bits = [0u64; MAX_WITNESSES + 1];
        for (address, witness) in bits.iter_mut().zip(witnesses) {
            *address = witness.bits().address();
        }
        bits[MAX_WITNESSES] = witnesses.len() as u64;
        let density = self.density.as_ref();
        let aux = shape.sizes().aux;
        let args = args![
            bits,
            shape.full.words.span(),
            density.map_or(0, |density| density.words.span().address()),
            density.map_or(0, |density| density.ranks.span().address()),
            aux as u32,
            out.slice(self.inputs..),
        ];
        stream.zero(out.slice(..self.inputs))?;
        stream.launch("r1cs_keys", blocks(aux.div_ceil(u32::BITS as usize)), THREADS, 0, &args)
    }

    /// Queues the scalars of [`Query::full_bases`], in their order, out of Montgomery form.
    ///
    /// # Errors
    /// [`Error::Internal`] if `out` has another length; whatever a device may fail with.
    pub fn full_scalars(&self, stream: &Stream, witness: &DeviceWitness, out: Span<Words>) -> Result<()> {
        let count = self.full_sources.len();
        if out.len() != count {
            return Err(Error::internal(format!("{} places for {count} scalars", out.len())));
        }
        let args = args![witness.argument(), self.full_sources.span(), count as u32, out];
        stream.launch("r1cs_full_scalars", blocks(count), THREADS, 0, &args)
    }

    /// Queues a copy of those of the bases `first` and on that [`Query::full_bases`] lists, each to its place in the list.
    ///
    /// # Errors
    /// [`Error::Internal`] if `out` has another length than the list; whatever a device may fail with.
    pub fn pick_full<T: Plain>(&self, stream: &Stream, bases: Span<T>, first: usize, out: Span<T>) -> Result<()> {
        let count = self.full_bases.len();
        if out.len() != count || !size_of::<T>().is_multiple_of(16) {
            let size = size_of::<T>();
            return Err(Error::internal(format!("{} places for {count} bases of {size} bytes", out.len())));
        }
        let units = size_of::<T>() / 16;
        let args =
            args![out, bases, self.full_bases.span(), count as u32, units as u32, first as u32, bases.len() as u32];
        stream.launch("r1cs_pick", blocks(count * units), THREADS, 0, &args)
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        let density = self.density.as_ref().map_or(0, RankedBitmap::bytes);
        density + bytes(&self.full_bases) + bytes(&self.full_sources)
    }
}

/// A query on the host.
pub(super) struct QueryTables<'a> {
    inputs: usize,
    len: usize,
    density: Option<&'a Bitmap>,
    full_bases: Vec<u32>,
    full_sources: Vec<u32>,
}

impl<'a> QueryTables<'a> {
    /// Those of l, a and b.
    pub fn all(system: &'a dyn Constraints) -> [Self; 3] {
        [
            Self::new(system, Vec::new(), None),
            Self::new(system, (0..system.num_inputs()).collect(), Some(system.a_aux_density())),
            Self::new(system, system.b_input_density().ones().collect(), Some(system.b_aux_density())),
        ]
    }

    fn new(system: &dyn Constraints, inputs: Vec<usize>, density: Option<&'a Bitmap>) -> Self {
        let mut bases: Vec<u32> = (0..inputs.len() as u32).collect();
        let mut sources: Vec<u32> = inputs.iter().map(|&input| Layout::INPUT | input as u32).collect();
        // The base of an auxiliary variable comes after those of all variables before it that the query has.
        let mut next = Places { density, word: 0, before: inputs.len() as u32 };
        for (source, &position) in system.full_positions().iter().enumerate() {
            if let Some(base) = next.base(position as usize) {
                bases.push(base);
                sources.push(source as u32);
            }
        }
        QueryTables {
            inputs: inputs.len(),
            len: inputs.len() + density.map_or(system.num_aux(), Bitmap::count_ones),
            density,
            full_bases: bases,
            full_sources: sources,
        }
    }

    /// How many bases the query has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many of these are of inputs and full-width variables.
    pub fn full(&self) -> usize {
        self.full_bases.len()
    }

    /// Bytes on a device.
    pub fn bytes(&self) -> u64 {
        self.density.map_or(0, RankedBitmap::bytes_of) + 2 * size_of_val(&self.full_bases[..]) as u64
    }

    pub fn upload(&self, uploader: Uploader<'_>) -> Result<Query> {
        Ok(Query {
            inputs: self.inputs,
            len: self.len,
            density: self.density.map(|density| uploader.ranked(density)).transpose()?,
            full_bases: uploader.buffer(&self.full_bases)?,
            full_sources: uploader.buffer(&self.full_sources)?,
        })
    }
}

/// Finds the bases of ascending auxiliary variables.
struct Places<'a> {
    density: Option<&'a Bitmap>,
    word: usize,
    /// Bases before those of the word.
    before: u32,
}

impl Places<'_> {
    /// The base of a variable; `None` if the query does not have it.
    fn base(&mut self, position: usize) -> Option<u32> {
        let Some(density) = self.density else {
            return Some(self.before + position as u32);
        };
        while self.word < position / 64 {
            self.before += density.words()[self.word].count_ones();
            self.word += 1;
        }
        let below = density.words()[self.word] & ((1 << (position % 64)) - 1);
        density.get(position).then(|| self.before + below.count_ones())
    }
}

#[cfg(all(test, feature = "emulator"))]
pub(super) mod tests;
