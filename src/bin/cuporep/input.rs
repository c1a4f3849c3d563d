//! Reads files that may be compressed, never more than a bound.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use cuporep::porep::{RegisteredProof, MAX_C1_BYTES};
use cuporep::{Error, Result};

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const XZ_MAGIC: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

static READING: AtomicBool = AtomicBool::new(false);

/// Whether input is being read right now.
pub fn is_reading() -> bool {
    READING.load(Ordering::Relaxed)
}

/// The bytes of a C1 output from a file, or from standard input for `-`; .gz and .xz are told by their
/// first bytes and decompressed.
pub fn read_c1(path: &Path) -> Result<Vec<u8>> {
    READING.store(true, Ordering::Relaxed);
    let bytes = read_packed(path);
    READING.store(false, Ordering::Relaxed);
    bytes
}

fn read_packed(path: &Path) -> Result<Vec<u8>> {
    let source: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(open("--c1", path)?),
    };
    let fail = |source| Error::Io { action: "read", path: path.to_path_buf(), source };
    let mut source = BufReader::with_capacity(1 << 20, source);
    let head = source.fill_buf().map_err(fail)?;
    let mut bytes = Bounded::default();
    let outcome = if head.starts_with(GZIP_MAGIC) {
        let copied = io::copy(&mut flate2::bufread::MultiGzDecoder::new(source), &mut bytes);
        copied.map(drop).map_err(|error| damaged("gzip", &error.to_string()))
    } else if head.starts_with(XZ_MAGIC) {
        lzma_rs::xz_decompress(&mut source, &mut bytes).map_err(|error| {
            let detail = match error {
                lzma_rs::error::Error::IoError(error) => error.to_string(),
                lzma_rs::error::Error::LzmaError(detail) | lzma_rs::error::Error::XzError(detail) => detail,
                lzma_rs::error::Error::HeaderTooShort(error) => error.to_string(),
            };
            damaged("xz", &format!("{detail}; if xz itself reads it, pipe it: xz -dc FILE | cuporep ... --c1 -"))
        })
    } else {
        io::copy(&mut source, &mut bytes).map(drop).map_err(fail)
    };
    match outcome {
        _ if bytes.full => Err(Error::C1TooLarge { length: bytes.held.len(), maximum: MAX_C1_BYTES }),
        Err(error) => Err(error),
        Ok(()) => Ok(bytes.held),
    }
}

fn damaged(packing: &str, detail: &str) -> Error {
    Error::Argument {
        name: "--c1",
        detail: format!("the {packing} data is damaged or of a kind that is not read: {detail}"),
    }
}

/// Opens an input file; one that is not there is a wrong argument.
fn open(name: &'static str, path: &Path) -> Result<File> {
    let wrong = |detail: String| Error::Argument { name, detail: format!("{}: {detail}", path.display()) };
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => wrong(error.to_string()),
        _ => Error::Io { action: "read", path: path.to_path_buf(), source: error },
    })?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(wrong("is a directory".into()));
    }
    Ok(file)
}

/// Reads a proof as raw bytes or as hexadecimal digits; compressed points begin with a byte of 0x80 or
/// more, so the two cannot be confused.
pub fn read_proof(path: &Path) -> Result<Vec<u8>> {
    // Digits of the longest proof, and white space.
    let longest = RegisteredProof::all().map(RegisteredProof::proof_len).max().unwrap_or(0);
    let bound = 2 * longest as u64 + 1024;
    let mut bytes = Vec::new();
    let read = open("--proof", path)?.take(bound + 1).read_to_end(&mut bytes);
    read.map_err(|source| Error::Io { action: "read", path: path.to_path_buf(), source })?;
    if bytes.len() as u64 > bound {
        return Err(Error::ProofForm { detail: format!("{} is longer than any proof", path.display()) });
    }
    let text = std::str::from_utf8(&bytes).ok().map(str::trim);
    match text.filter(|text| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_hexdigit())) {
        Some(text) => hex::decode(text).map_err(|error| Error::ProofForm { detail: error.to_string() }),
        None => Ok(bytes),
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
