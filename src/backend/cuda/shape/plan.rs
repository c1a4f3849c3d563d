//! A constraint system's rows in the form in which the kernels of `kernels/r1cs.cu` read them. Knows no device.

use blstrs::Scalar;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::r1cs::{Bitmap, Constraints, Layout, Matrix, StoredRows};

/// The most rows of a tile, as a power of two; the kernels have the same.
const LOG_TILE: u32 = 10;
/// The most entries of a row that has a table of sums; the kernels have the same. They are 99 % of the rows of circuits
/// that are mostly bits.
const SHORT: usize = 3;
/// Fills the place of an entry that a short row does not have.
const NONE: u32 = u32::MAX;
/// Marks the number of a long row in its record.
const LONG: u32 = 1 << 31;
/// Marks a pattern that was not met yet.
const UNSEEN: u32 = u32::MAX;
const INPUT: u32 = Layout::INPUT;
const ONE: u32 = INPUT;

/// Rows that are consecutive in the system and in a block: the base of their variables, where their slots begin, the first
/// row's record, its place in the system. The row of the next tile is where it ends; the last one is empty.
pub type Tile = [u32; 4];

/// A row of a block: where its sums begin and its variables, or LONG and a number, and no variables.
pub type Record = [u32; 4];

/// Where the variables and the coefficient numbers of a long row begin, its length, and nothing.
pub type LongRow = [u32; 4];

/// The rows of the matrices A and B.
#[derive(Debug)]
pub struct Plan {
    pub tiles: Vec<Tile>,
    /// The sums of coefficients of short patterns: bit `i` of the place in a pattern's table is the value at entry `i`.
    pub sums: Vec<Scalar>,
    /// A and B.
    pub matrices: [Rows; 2],
}

/// The rows of one matrix.
#[derive(Debug, Default)]
pub struct Rows {
    pub records: Vec<Record>,
    pub long_rows: Vec<LongRow>,
    /// The variables of long rows, as their blocks number them.
    pub variables: Vec<u32>,
    /// The system's short rows that have variables other than bits, as tile << LOG_TILE | row in the tile.
    pub mixed: Vec<u32>,
    /// The system's long rows, in the same form.
    pub long: Vec<u32>,
}

impl Plan {
    /// Fails only for systems out of all proportion.
    pub fn of(system: &dyn Constraints) -> Result<Self> {
        let layout = system.layout();
        let tiles = tiles(&layout)?;
        let mut sums = Sums { layout: &layout, tables: vec![UNSEEN; layout.pattern_starts.len()], values: Vec::new() };
        let [a, b] = [Matrix::A, Matrix::B].map(|matrix| sums.rows(matrix));
        let mut plan = Plan { tiles, sums: sums.values, matrices: [a?, b?] };
        let full = full_bitmap(system);
        for rows in &mut plan.matrices {
            (rows.mixed, rows.long) = listed(&plan.tiles, &rows.records, &layout.slots, &full);
        }
        Ok(plan)
    }
}

/// The full-width positions of a system.
pub fn full_bitmap(system: &dyn Constraints) -> Bitmap {
    let mut full = Bitmap::zeros(system.num_aux());
    system.full_positions().iter().for_each(|&position| full.set(position as usize));
    full
}

/// How many ones lie before each word.
pub fn ranks(bits: &Bitmap) -> Vec<u32> {
    let mut before = 0;
    let rank = |word: &u64| {
        let rank = before;
        before += word.count_ones();
        rank
    };
    bits.words().iter().map(rank).collect()
}

fn tiles(layout: &Layout<'_>) -> Result<Vec<Tile>> {
    let mut records = 0;
    let first_records: Vec<u32> = layout
        .blocks
        .iter()
        .map(|block| {
            let first = records;
            records += block[0].patterns.len() as u32;
            first
        })
        .collect();
    let mut tiles = Vec::new();
    let mut end = 0;
    for run in &layout.runs {
        for row in (0..run.len).step_by(1 << LOG_TILE) {
            let record = first_records[run.block as usize] + run.first + row;
            tiles.push([run.base, run.slots, record, run.row + row]);
        }
        end = run.row + run.len;
    }
    if tiles.len() > 1 << (u32::BITS - LOG_TILE) {
        return Err(too_large(format!("it has {} stretches of rows", tiles.len())));
    }
    tiles.push([0, 0, 0, end]);
    Ok(tiles)
}

fn too_large(detail: String) -> Error {
    Error::Argument { name: "circuit", detail: format!("{detail}, too many for a device") }
}

/// Collects tables of sums.
struct Sums<'a> {
    layout: &'a Layout<'a>,
    /// For each pattern where its table begins, or UNSEEN.
    tables: Vec<u32>,
    values: Vec<Scalar>,
}

impl Sums<'_> {
    fn rows(&mut self, matrix: Matrix) -> Result<Rows> {
        let layout = self.layout;
        let mut rows = Rows::default();
        for block in &layout.blocks {
            let StoredRows { variables, patterns } = block[matrix as usize];
            let mut rest = variables;
            for &pattern in patterns {
                let (own, after) = rest.split_at(layout.pattern(pattern).len());
                rest = after;
                let record = match self.table(pattern) {
                    Some(table) => {
                        let entry = |index: usize| own.get(index).copied().unwrap_or(NONE);
                        [table, entry(0), entry(1), entry(2)]
                    }
                    None => [LONG | rows.add_long(layout, pattern, own)?, NONE, NONE, NONE],
                };
                rows.records.push(record);
            }
        }
        Ok(rows)
    }

    /// Where the sums of a pattern begin; `None` if it is long.
    fn table(&mut self, pattern: u32) -> Option<u32> {
        let ids = &self.layout.pattern_ids[self.layout.pattern(pattern)];
        let table = &mut self.tables[pattern as usize];
        if *table == UNSEEN {
            let begin = self.values.len();
            if ids.len() > SHORT || begin + (1 << SHORT) > LONG as usize {
                return None;
            }
            *table = begin as u32;
            self.values.extend((0..1usize << ids.len()).map(|values| {
                let chosen = ids.iter().enumerate().filter(|(entry, _)| values >> entry & 1 == 1);
                chosen.map(|(_, &id)| self.layout.coefficients[id as usize]).sum::<Scalar>()
            }));
        }
        Some(*table)
    }
}

impl Rows {
    fn add_long(&mut self, layout: &Layout<'_>, pattern: u32, variables: &[u32]) -> Result<u32> {
        let number = self.long_rows.len() as u32;
        if number >= LONG || self.variables.len() + variables.len() > u32::MAX as usize {
            return Err(too_large(format!("it has more than {number} rows of more than {SHORT} entries")));
        }
        let ids = layout.pattern(pattern);
        self.long_rows.push([self.variables.len() as u32, ids.start as u32, ids.len() as u32, 0]);
        self.variables.extend_from_slice(variables);
        Ok(number)
    }
}

/// The rows that are not short rows over bits: short ones with other variables, and long ones.
fn listed(tiles: &[Tile], records: &[Record], slots: &[u32], full: &Bitmap) -> (Vec<u32>, Vec<u32>) {
    let is_full = |number: u32, tile: &Tile| {
        if number == ONE || number == NONE {
            return false;
        }
        let variable = match number & INPUT {
            0 => tile[0] + number,
            _ => slots[(tile[1] + (number & !INPUT)) as usize],
        };
        match variable & INPUT {
            0 => full.get(variable as usize),
            _ => variable != ONE,
        }
    };
    let add = |(mut mixed, mut long): (Vec<u32>, Vec<u32>), (index, pair): (usize, &[Tile])| {
        let (tile, first) = (&pair[0], pair[0][2] as usize);
        let own = &records[first..first + (pair[1][3] - tile[3]) as usize];
        for (row, record) in own.iter().enumerate() {
            let place = (index << LOG_TILE | row) as u32;
            if record[0] & LONG != 0 {
                long.push(place);
            } else if record[1..].iter().any(|&number| is_full(number, tile)) {
                mixed.push(place);
            }
        }
        (mixed, long)
    };
    let join = |mut left: (Vec<u32>, Vec<u32>), right: (Vec<u32>, Vec<u32>)| {
        left.0.extend(right.0);
        left.1.extend(right.1);
        left
    };
    tiles.par_windows(2).enumerate().fold(Default::default, add).reduce(Default::default, join)
}
