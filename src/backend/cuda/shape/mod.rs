//! What a device keeps of a constraint system: its rows as templates, and where the variables of each query are. Made once
//! for each shape; no proof changes it.

mod plan;
#[cfg(all(test, feature = "emulator"))]
pub(super) mod testing;

use self::plan::{full_bitmap, ranks, LongRow, Plan, Record, Rows, Tile};
use super::gpu::{scalar_words, Buffer, Gpu, Plain, Stream, Words};
use super::queries::{Query, QueryTables};
use crate::error::Result;
use crate::r1cs::{Bitmap, Constraints, Layout};

/// Tables of one constraint system on a device.
pub struct ShapeTables {
    pub(super) sizes: Sizes,
    pub(super) tiles: Buffer<Tile>,
    pub(super) slots: Buffer<u32>,
    pub(super) sums: Buffer<Words>,
    pub(super) coefficients: Buffer<Words>,
    /// Numbers of coefficients, pattern by pattern.
    pub(super) ids: Buffer<u32>,
    /// A and B.
    pub(super) matrices: [MatrixTables; 2],
    /// Which auxiliary variables are full-width, and how many are before each word.
    pub(super) full: RankedBitmap,
    queries: [Query; 3],
}

/// Counts of a constraint system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Inputs, ONE included.
    pub inputs: usize,
    /// Auxiliary variables.
    pub aux: usize,
    /// Full-width ones of these.
    pub full: usize,
    pub rows: usize,
    pub log_domain: u32,
}

/// The rows of one matrix.
pub(super) struct MatrixTables {
    pub records: Buffer<Record>,
    pub long_rows: Buffer<LongRow>,
    pub variables: Buffer<u32>,
    pub mixed: Buffer<u32>,
    pub long: Buffer<u32>,
}

/// Bits with the number of ones before each word of 64.
pub(super) struct RankedBitmap {
    pub words: Buffer<u64>,
    pub ranks: Buffer<u32>,
}

impl Sizes {
    /// Those of a system.
    pub fn of(system: &dyn Constraints) -> Self {
        Sizes {
            inputs: system.num_inputs(),
            aux: system.num_aux(),
            full: system.full_positions().len(),
            rows: system.num_rows(),
            log_domain: system.log_domain(),
        }
    }
}

/// The tables of a constraint system before they are on a device.
pub(super) struct HostTables<'a> {
    sizes: Sizes,
    layout: Layout<'a>,
    plan: Plan,
    full: Bitmap,
    queries: [QueryTables<'a>; 3],
}

impl<'a> HostTables<'a> {
    /// Makes the tables; takes about half a second of processor time for the largest circuits.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::error::Error::Argument) for a circuit that is too large for the tables' numbers.
    pub fn of(system: &'a dyn Constraints) -> Result<Self> {
        Ok(HostTables {
            sizes: Sizes::of(system),
            layout: system.layout(),
            plan: Plan::of(system)?,
            full: full_bitmap(system),
            queries: QueryTables::all(system),
        })
    }

    /// The system's counts.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The queries l, a and b.
    pub fn queries(&self) -> &[QueryTables<'a>; 3] {
        &self.queries
    }

    /// Bytes on a device.
    pub fn bytes(&self) -> u64 {
        let HostTables { layout, plan, full, queries, .. } = self;
        let of_matrix = |rows: &Rows| {
            size_of_val(&rows.records[..])
                + size_of_val(&rows.long_rows[..])
                + size_of_val(&rows.variables[..])
                + size_of_val(&rows.mixed[..])
                + size_of_val(&rows.long[..])
        };
        let own = size_of_val(&plan.tiles[..])
            + size_of_val(&layout.slots[..])
            + size_of_val(&plan.sums[..])
            + size_of_val(layout.coefficients)
            + size_of_val(layout.pattern_ids)
            + plan.matrices.iter().map(of_matrix).sum::<usize>();
        own as u64 + RankedBitmap::bytes_of(full) + queries.iter().map(QueryTables::bytes).sum::<u64>()
    }

    /// Copies the tables to a device; waits until they are there.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::error::Error::Memory) and whatever else a device may fail with.
    pub fn upload(&self, gpu: &Gpu, stream: &Stream) -> Result<ShapeTables> {
        let uploader = Uploader { gpu, stream };
        let HostTables { layout, plan, queries: [l, a, b], .. } = self;
        let [rows_of_a, rows_of_b] = &plan.matrices;
        let tables = ShapeTables {
            sizes: self.sizes,
            tiles: uploader.buffer(&plan.tiles)?,
            slots: uploader.buffer(&layout.slots)?,
            sums: uploader.buffer(scalar_words(&plan.sums))?,
            coefficients: uploader.buffer(scalar_words(layout.coefficients))?,
            ids: uploader.buffer(layout.pattern_ids)?,
            matrices: [uploader.matrix(rows_of_a)?, uploader.matrix(rows_of_b)?],
            full: uploader.ranked(&self.full)?,
            queries: [l.upload(uploader)?, a.upload(uploader)?, b.upload(uploader)?],
        };
        stream.synchronize()?;
        Ok(tables)
    }
}

impl ShapeTables {
    /// Makes the tables and copies them to the device; waits until they are there. Takes about half a second of processor
    /// time for the largest circuits.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::error::Error::Memory) and whatever else a device may fail with;
    /// [`Error::Argument`](crate::error::Error::Argument) for a circuit that is too large for the tables' numbers.
    pub fn upload(gpu: &Gpu, stream: &Stream, system: &dyn Constraints) -> Result<Self> {
        HostTables::of(system)?.upload(gpu, stream)
    }

    /// The system's counts.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The variables of the sum over l: all auxiliary ones.
    pub fn l(&self) -> &Query {
        &self.queries[0]
    }

    /// The variables of the sum over a: all inputs, and the auxiliary ones that occur in A.
    pub fn a(&self) -> &Query {
        &self.queries[1]
    }

    /// The variables of the sums over b, in both groups: those that occur in B.
    pub fn b(&self) -> &Query {
        &self.queries[2]
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        let own = [bytes(&self.tiles), bytes(&self.slots), bytes(&self.sums), bytes(&self.coefficients)];
        let of_matrix = |rows: &MatrixTables| {
            bytes(&rows.records)
                + bytes(&rows.long_rows)
                + bytes(&rows.variables)
                + bytes(&rows.mixed)
                + bytes(&rows.long)
        };
        own.iter().sum::<u64>()
            + bytes(&self.ids)
            + self.matrices.iter().map(of_matrix).sum::<u64>()
            + self.full.bytes()
            + self.queries.iter().map(Query::bytes).sum::<u64>()
    }
}

impl RankedBitmap {
    pub fn bytes(&self) -> u64 {
        bytes(&self.words) + bytes(&self.ranks)
    }

    /// What it would take on a device.
    pub fn bytes_of(bits: &Bitmap) -> u64 {
        (bits.words().len() * (size_of::<u64>() + size_of::<u32>())) as u64
    }
}

pub(super) fn bytes<T: Plain>(buffer: &Buffer<T>) -> u64 {
    buffer.span().bytes() as u64
}

/// Makes buffers and fills them.
#[derive(Clone, Copy)]
pub(super) struct Uploader<'a> {
    gpu: &'a Gpu,
    stream: &'a Stream,
}

impl Uploader<'_> {
    pub fn buffer<T: Plain>(&self, values: &[T]) -> Result<Buffer<T>> {
        let buffer = self.gpu.allocate(values.len(), "the tables of a circuit")?;
        self.stream.upload(buffer.span(), values)?;
        Ok(buffer)
    }

    pub fn ranked(&self, bits: &Bitmap) -> Result<RankedBitmap> {
        Ok(RankedBitmap { words: self.buffer(bits.words())?, ranks: self.buffer(&ranks(bits))? })
    }

    fn matrix(&self, rows: &Rows) -> Result<MatrixTables> {
        Ok(MatrixTables {
            records: self.buffer(&rows.records)?,
            long_rows: self.buffer(&rows.long_rows)?,
            variables: self.buffer(&rows.variables)?,
            mixed: self.buffer(&rows.mixed)?,
            long: self.buffer(&rows.long)?,
        })
    }
}
