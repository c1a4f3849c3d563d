//! Reads files that may be compressed, never more than a bound.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use cuporep::porep::MAX_C1_BYTES;
use cuporep::{Error, Result};

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const XZ_MAGIC: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// The bytes of a C1 output from a file, or from standard input for `-`; .gz and .xz are told by their
/// first bytes and decompressed.
pub fn read_c1(path: &Path) -> Result<Vec<u8>> {
    let fail = |source| Error::Io { action: "read", path: path.to_path_buf(), source };
    let source: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(File::open(path).map_err(fail)?),
    };
    let mut source = BufReader::with_capacity(1 << 20, source);
    let head = source.fill_buf().map_err(fail)?;
    let mut bytes = Bounded::default();
    let read = if head.starts_with(GZIP_MAGIC) {
        io::copy(&mut flate2::bufread::MultiGzDecoder::new(source), &mut bytes).map(drop)
    } else if head.starts_with(XZ_MAGIC) {
        lzma_rs::xz_decompress(&mut source, &mut bytes).map_err(|error| match error {
            lzma_rs::error::Error::IoError(error) => error,
            other => io::Error::new(io::ErrorKind::InvalidData, format!("not valid xz: {other:?}")),
        })
    } else {
        io::copy(&mut source, &mut bytes).map(drop)
    };
    match read {
        _ if bytes.full => Err(Error::C1TooLarge { length: bytes.held.len(), maximum: MAX_C1_BYTES }),
        Err(error) => Err(fail(error)),
        Ok(()) => Ok(bytes.held),
    }
}

/// Collects bytes and refuses the first one past the maximum.
#[derive(Default)]
struct Bounded {
    held: Vec<u8>,
    full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.held.len() + bytes.len() > MAX_C1_BYTES {
            self.full = true;
            return Err(io::Error::other("larger than any C1 output"));
        }
        self.held.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
