//! Files that are written once, and read only if they are exactly what was written: cut, altered and foreign ones are
//! told apart. Knows no content.
//!
//! All numbers are little-endian. The last 32 bytes are the SHA-256 of everything before them. Before that
//! was compared, a reader allocates no more than a small multiple of the file's length, whatever the file says.

use std::io::{self, Read, Write};

use blstrs::Scalar;
use sha2::{Digest, Sha256};

use super::Bitmap;
use crate::error::Result;
use crate::pipeline::Control;

/// Bytes of the digest at the end.
pub(super) const DIGEST: usize = 32;

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

pub(super) fn damaged<T>(what: impl Into<String>) -> Result<T, Unusable> {
    Err(Unusable::Damaged(what.into()))
}

/// Content that has a form of bytes.
pub(super) trait Stored: Sized {
    /// What files of it begin with.
    const MAGIC: [u8; 8];
    /// Goes up with every change of the bytes or of what they mean.
    const VERSION: u32;
    /// The end of their names.
    const EXTENSION: &'static str;

    /// Writes everything between the length of the key and the digest.
    fn write_to<W: Write>(&self, key: &str, sink: &mut Sink<'_, W>) -> io::Result<()>;

    /// Its parts, which may be anything.
    type Parts;

    /// Reads what [`Stored::write_to`] wrote. The digest is compared afterwards.
    fn read_from<R: Read>(key: &str, source: &mut Source<'_, R>) -> Result<Self::Parts, Unusable>;

    /// Checks every number and puts the content together; `None` if the parts do not hang together.
    fn assemble(parts: Self::Parts) -> Option<Self>;
}

/// Writes content under a key.
pub(super) fn write<T: Stored>(
    content: &T,
    key: &str,
    file: &mut impl Write,
    control: &Control,
) -> Result<io::Result<()>> {
    let mut sink = Sink { file, digest: Sha256::new(), piece: Vec::with_capacity(PIECE), control, stopped: None };
    let outcome = sink
        .bytes(&T::MAGIC)
        .and_then(|()| sink.numbers(&[T::VERSION, key.len() as u32]))
        .and_then(|()| content.write_to(key, &mut sink))
        .and_then(|()| sink.finish());
    match sink.stopped {
        Some(reason) => Err(reason),
        None => Ok(outcome),
    }
}

/// Reads what [`write`] wrote for the same key from a file of `len` bytes.
pub(super) fn read<T: Stored>(key: &str, file: &mut impl Read, len: u64, control: &Control) -> Result<T, Unusable> {
    let Some(rest) = len.checked_sub(DIGEST as u64) else {
        return damaged(format!("it has {len} bytes, less than any"));
    };
    let mut source = Source { file, rest, digest: Sha256::new(), piece: vec![0; PIECE], control };
    if source.array::<8>()? != T::MAGIC {
        return damaged("it is something else");
    }
    let version = source.number()?;
    if version != T::VERSION {
        return damaged(format!("it has format {version}, this version reads {}", T::VERSION));
    }
    if source.number()? as usize != key.len() {
        return damaged("it is for another circuit");
    }
    let parts = T::read_from(key, &mut source)?;
    if source.rest > 0 {
        return damaged(format!("it has {} bytes more than its counts say", source.rest));
    }
    let digest = std::mem::take(&mut source.digest).finalize();
    source.rest = DIGEST as u64;
    if source.array::<DIGEST>()? != digest[..] {
        return damaged("its digest does not fit its content");
    }
    T::assemble(parts).map_or_else(|| damaged("its digest fits and its content does not hang together"), Ok)
}

/// Takes the bytes of a file.
pub(super) struct Sink<'a, W> {
    file: &'a mut W,
    digest: Sha256,
    piece: Vec<u8>,
    control: &'a Control,
    stopped: Option<crate::Error>,
}

impl<W: Write> Sink<'_, W> {
    pub fn numbers(&mut self, numbers: &[u32]) -> io::Result<()> {
        numbers.iter().try_for_each(|number| self.bytes(&number.to_le_bytes()))
    }

    /// Short byte strings only: a piece is let out when it is nearly full.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.piece.len() + bytes.len() > PIECE {
            self.flush()?;
        }
        self.piece.extend_from_slice(bytes);
        Ok(())
    }

    pub fn bitmap(&mut self, bitmap: &Bitmap) -> io::Result<()> {
        bitmap.words().iter().try_for_each(|word| self.bytes(&word.to_le_bytes()))
    }

    pub fn scalars(&mut self, scalars: &[Scalar]) -> io::Result<()> {
        scalars.iter().try_for_each(|scalar| self.bytes(&scalar.to_bytes_le()))
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

/// Gives the bytes of a file.
pub(super) struct Source<'a, R> {
    file: &'a mut R,
    /// Bytes that are left before the digest.
    rest: u64,
    digest: Sha256,
    piece: Vec<u8>,
    control: &'a Control,
}

impl<R: Read> Source<'_, R> {
    /// Bytes that are left before the digest.
    pub fn rest(&self) -> u64 {
        self.rest
    }

    /// Reads the key again that the file was written for.
    pub fn key(&mut self, expected: &str) -> Result<(), Unusable> {
        self.promise(expected.len(), 1)?;
        let mut written_for = vec![0; expected.len()];
        self.fill(&mut written_for)?;
        if written_for != expected.as_bytes() {
            return damaged("it is for another circuit");
        }
        Ok(())
    }

    /// Whether so many elements of `size` bytes can follow.
    fn promise(&self, count: usize, size: usize) -> Result<(), Unusable> {
        if count as u128 * size as u128 > u128::from(self.rest) {
            return damaged(format!("{} bytes are left for {count} elements of {size}", self.rest));
        }
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Unusable> {
        let Some(rest) = self.rest.checked_sub(bytes.len() as u64) else {
            return damaged("it is too short");
        };
        self.rest = rest;
        match self.file.read_exact(bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return damaged("it became shorter"),
            Err(error) => return Err(Unusable::Unreadable(error)),
        }
        self.digest.update(bytes);
        Ok(())
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Unusable> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub fn number(&mut self) -> Result<u32, Unusable> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn numbers(&mut self, count: usize) -> Result<Vec<u32>, Unusable> {
        self.promise(count, 4)?;
        let mut numbers = Vec::with_capacity(count);
        self.pieces(count, 4, |bytes| {
            numbers.extend(bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))));
        })?;
        Ok(numbers)
    }

    /// `None` inside where an element is not canonical.
    pub fn scalars(&mut self, count: usize) -> Result<Vec<Option<Scalar>>, Unusable> {
        self.promise(count, 32)?;
        let mut scalars = Vec::with_capacity(count);
        self.pieces(count, 32, |bytes| {
            let scalar = |bytes: &[u8]| Option::from(Scalar::from_bytes_le(bytes.try_into().expect("32 bytes")));
            scalars.extend(bytes.chunks_exact(32).map(scalar));
        })?;
        Ok(scalars)
    }

    /// `None` inside if bits past the end are set.
    pub fn bitmap(&mut self, len: usize) -> Result<Option<Bitmap>, Unusable> {
        self.promise(len.div_ceil(64), 8)?;
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
