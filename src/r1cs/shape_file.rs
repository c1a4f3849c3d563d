//! The bytes of a stored constraint system. Knows no directories.
//!
//! All numbers are little-endian:
//!
//! ```text
//! magic (8)   version u32   length of the key u32   ten counts u64   key
//! coefficients (32 bytes each, canonical)   pattern starts u32   pattern entries u32
//! for A, B and C: pattern of each row u32, variables u32
//! full-width positions u32   densities: a_aux, b_input, b_aux, words of 64 bits
//! SHA-256 of everything before it (32)
//! ```
//!
//! A file that was cut, altered or made for something else is never taken for a good one: the length must be
//! exactly what the counts say before anything is allocated, the digest must fit, and after that
//! every number must still be in range, so that no file whatever can make later code read out of bounds.

use std::io::{self, Read, Write};

use blstrs::Scalar;
use sha2::{Digest, Sha256};

use super::rows::{Dictionary, Rows};
use super::system::Densities;
use super::{Bitmap, R1cs};
use crate::error::Result;
use crate::pipeline::Control;

/// Goes up with every change of the bytes or of what they mean, recording and full-width positions included.
pub(super) const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"CUPOR1CS";
const COUNTS: usize = 10;
const HEADER: usize = 8 + 4 + 4 + 8 * COUNTS;
const DIGEST: usize = 32;

/// Bytes per read and write; the control is looked at in between.
const PIECE: usize = 1 << 20;

const DURING: &str = "the reading or writing of a circuit's shape";

/// Why stored bytes cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// They are not what was once written for this key: what is wrong.
    Damaged(String),
    /// They cannot be read.
    Unreadable(io::Error),
    /// The call must stop; not the file's fault.
    Stopped(crate::Error),
}

fn damaged<T>(what: impl Into<String>) -> Result<T, Unusable> {
    Err(Unusable::Damaged(what.into()))
}

/// The lengths of all parts.
struct Counts {
    inputs: usize,
    aux: usize,
    rows: usize,
    coefficients: usize,
    patterns: usize,
    pattern_entries: usize,
    entries: [usize; 3],
    full_positions: usize,
}

impl Counts {
    fn of(r1cs: &R1cs) -> Self {
        Counts {
            inputs: r1cs.inputs,
            aux: r1cs.aux,
            rows: r1cs.num_rows(),
            coefficients: r1cs.dictionary.coefficients().len(),
            patterns: r1cs.dictionary.patterns(),
            pattern_entries: r1cs.dictionary.ids().len(),
            entries: r1cs.matrices.each_ref().map(Rows::entries),
            full_positions: r1cs.full_positions.len(),
        }
    }

    fn to_array(&self) -> [u64; COUNTS] {
        [
            self.inputs,
            self.aux,
            self.rows,
            self.coefficients,
            self.patterns,
            self.pattern_entries,
            self.entries[0],
            self.entries[1],
            self.entries[2],
            self.full_positions,
        ]
        .map(|count| count as u64)
    }

    fn from_array(counts: [u64; COUNTS]) -> Option<Self> {
        let mut sizes = [0; COUNTS];
        for (size, count) in sizes.iter_mut().zip(counts) {
            *size = usize::try_from(count).ok()?;
        }
        let [inputs, aux, rows, coefficients, patterns, pattern_entries, a, b, c, full_positions] = sizes;
        Some(Counts { inputs, aux, rows, coefficients, patterns, pattern_entries, entries: [a, b, c], full_positions })
    }

    /// The length of the whole file.
    fn file_len(&self, key: &str) -> u128 {
        // Each count is below 2^64, so the sum is far below 2^128.
        let words = |bits: usize| bits.div_ceil(64) as u128 * 8;
        let numbers = self.patterns as u128
            + 1
            + self.pattern_entries as u128
            + 3 * self.rows as u128
            + self.entries.iter().map(|&entries| entries as u128).sum::<u128>()
            + self.full_positions as u128;
        (HEADER + key.len() + DIGEST) as u128
            + 32 * self.coefficients as u128
            + 4 * numbers
            + 2 * words(self.aux)
            + words(self.inputs)
    }
}

/// Writes a system under a key.
pub(super) fn write(r1cs: &R1cs, key: &str, file: &mut impl Write, control: &Control) -> Result<io::Result<()>> {
    let mut sink = Sink { file, digest: Sha256::new(), piece: Vec::with_capacity(PIECE), control, stopped: None };
    let outcome = sink.system(r1cs, key).and_then(|()| sink.finish());
    match sink.stopped {
        Some(reason) => Err(reason),
        None => Ok(outcome),
    }
}

struct Sink<'a, W> {
    file: &'a mut W,
    digest: Sha256,
    piece: Vec<u8>,
    control: &'a Control,
    stopped: Option<crate::Error>,
}

impl<W: Write> Sink<'_, W> {
    fn system(&mut self, r1cs: &R1cs, key: &str) -> io::Result<()> {
        self.bytes(&MAGIC)?;
        self.bytes(&VERSION.to_le_bytes())?;
        self.bytes(&(key.len() as u32).to_le_bytes())?;
        for count in Counts::of(r1cs).to_array() {
            self.bytes(&count.to_le_bytes())?;
        }
        self.bytes(key.as_bytes())?;
        for coefficient in r1cs.dictionary.coefficients() {
            self.bytes(&coefficient.to_bytes_le())?;
        }
        self.numbers(r1cs.dictionary.starts())?;
        self.numbers(r1cs.dictionary.ids())?;
        for rows in &r1cs.matrices {
            self.numbers(rows.patterns())?;
            self.numbers(rows.variables())?;
        }
        self.numbers(&r1cs.full_positions)?;
        for bitmap in [&r1cs.densities.a_aux, &r1cs.densities.b_input, &r1cs.densities.b_aux] {
            for word in bitmap.words() {
                self.bytes(&word.to_le_bytes())?;
            }
        }
        Ok(())
    }

    fn numbers(&mut self, numbers: &[u32]) -> io::Result<()> {
        numbers.iter().try_for_each(|number| self.bytes(&number.to_le_bytes()))
    }

    /// Short byte strings only: a piece is let out when it is nearly full.
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.piece.len() + bytes.len() > PIECE {
            self.flush()?;
        }
        self.piece.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Err(reason) = self.control.check(DURING) {
            self.stopped = Some(reason);
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.digest.update(&self.piece);
        self.file.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        let digest = std::mem::take(&mut self.digest).finalize();
        self.file.write_all(&digest)?;
        self.file.flush()
    }
}

/// Reads what [`write`] wrote for the same key from a file of `len` bytes.
pub(super) fn read(key: &str, file: &mut impl Read, len: u64, control: &Control) -> Result<R1cs, Unusable> {
    let mut source = Source { file, digest: Sha256::new(), piece: vec![0; PIECE], control };
    if len < (HEADER + DIGEST) as u64 {
        return damaged(format!("it has {len} bytes, less than any"));
    }
    if source.array::<8>()? != MAGIC {
        return damaged("it is something else");
    }
    let version = u32::from_le_bytes(source.array()?);
    if version != VERSION {
        return damaged(format!("it has format {version}, this version reads {VERSION}"));
    }
    if u32::from_le_bytes(source.array()?) as usize != key.len() {
        return damaged("it is for another circuit");
    }
    let mut counts = [0; COUNTS];
    for count in &mut counts {
        *count = u64::from_le_bytes(source.array()?);
    }
    let Some(counts) = Counts::from_array(counts).filter(|counts| counts.file_len(key) == u128::from(len)) else {
        return damaged(format!("its {len} bytes are not what its header says"));
    };
    // From here on every allocation is within the file's length.
    let mut written_for = vec![0; key.len()];
    source.fill(&mut written_for)?;
    if written_for != key.as_bytes() {
        return damaged("it is for another circuit");
    }
    let coefficients = source.scalars(counts.coefficients)?;
    let starts = source.numbers(counts.patterns + 1)?;
    let ids = source.numbers(counts.pattern_entries)?;
    let mut matrices = Vec::with_capacity(3);
    for entries in counts.entries {
        let patterns = source.numbers(counts.rows)?;
        matrices.push((patterns, source.numbers(entries)?));
    }
    let full_positions = source.numbers(counts.full_positions)?;
    let densities = (source.bitmap(counts.aux)?, source.bitmap(counts.inputs)?, source.bitmap(counts.aux)?);
    let digest = std::mem::take(&mut source.digest).finalize();
    if source.array::<DIGEST>()? != digest[..] {
        return damaged("its digest does not fit its content");
    }
    assemble(&counts, coefficients, starts, ids, matrices, full_positions, densities)
        .map_or_else(|| damaged("its digest fits and its content does not hang together"), Ok)
}

/// Checks every number and puts the system together.
fn assemble(
    counts: &Counts,
    coefficients: Vec<Option<Scalar>>,
    starts: Vec<u32>,
    ids: Vec<u32>,
    matrices: Vec<(Vec<u32>, Vec<u32>)>,
    full_positions: Vec<u32>,
    densities: (Option<Bitmap>, Option<Bitmap>, Option<Bitmap>),
) -> Option<R1cs> {
    let coefficients = coefficients.into_iter().collect::<Option<Vec<_>>>()?;
    let dictionary = Dictionary::from_parts(coefficients, starts, ids)?;
    let matrices = matrices
        .into_iter()
        .map(|(patterns, variables)| Rows::from_parts(variables, patterns, &dictionary, counts.inputs, counts.aux))
        .collect::<Option<Vec<_>>>()?;
    let densities = Densities { a_aux: densities.0?, b_input: densities.1?, b_aux: densities.2? };
    R1cs::from_parts(counts.inputs, counts.aux, dictionary, matrices.try_into().ok()?, densities, full_positions)
}

struct Source<'a, R> {
    file: &'a mut R,
    digest: Sha256,
    piece: Vec<u8>,
    control: &'a Control,
}

impl<R: Read> Source<'_, R> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Unusable> {
        match self.file.read_exact(bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return damaged("it became shorter"),
            Err(error) => return Err(Unusable::Unreadable(error)),
        }
        self.digest.update(bytes);
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unusable> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn numbers(&mut self, count: usize) -> Result<Vec<u32>, Unusable> {
        let mut numbers = Vec::with_capacity(count);
        self.pieces(count, 4, |bytes| {
            numbers.extend(bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))));
        })?;
        Ok(numbers)
    }

    /// `None` inside where an element is not canonical.
    fn scalars(&mut self, count: usize) -> Result<Vec<Option<Scalar>>, Unusable> {
        let mut scalars = Vec::with_capacity(count);
        self.pieces(count, 32, |bytes| {
            let scalar = |bytes: &[u8]| Option::from(Scalar::from_bytes_le(bytes.try_into().expect("32 bytes")));
            scalars.extend(bytes.chunks_exact(32).map(scalar));
        })?;
        Ok(scalars)
    }

    /// `None` inside if bits past the end are set.
    fn bitmap(&mut self, len: usize) -> Result<Option<Bitmap>, Unusable> {
        let mut words = Vec::with_capacity(len.div_ceil(64));
        self.pieces(len.div_ceil(64), 8, |bytes| {
            words.extend(bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))));
        })?;
        Ok(Bitmap::from_words(words, len))
    }

    /// Reads `count` elements of `size` bytes, which divides `PIECE`, piece by piece.
    fn pieces(&mut self, count: usize, size: usize, mut each: impl FnMut(&[u8])) -> Result<(), Unusable> {
        let mut piece = std::mem::take(&mut self.piece);
        let mut rest = count * size;
        while rest > 0 {
            self.control.check(DURING).map_err(Unusable::Stopped)?;
            let bytes = &mut piece[..rest.min(PIECE)];
            self.fill(bytes)?;
            each(bytes);
            rest -= bytes.len();
        }
        self.piece = piece;
        Ok(())
    }
}
