//! Digests of parameter files, cached beside the identity of the file that they belong to.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::file::{Identity, InputFile};
use crate::error::{Error, Result};
use crate::pipeline::Control;

/// Bytes between two checks for a cancel: some milliseconds of hashing.
const PIECE_BYTES: usize = 4 << 20;

/// A file that changed this recently could change again within the same tick of its file system's clock.
const SETTLED: Duration = Duration::from_secs(2);

/// The published form of a digest: the first 16 bytes of BLAKE2b-512, in lower-case hex.
pub fn of_bytes(bytes: &[u8]) -> String {
    published(blake2b_simd::blake2b(bytes))
}

fn published(hash: blake2b_simd::Hash) -> String {
    hex::encode(&hash.as_bytes()[..16])
}

/// The digest of a file: from the cache if it knows this very state of the file, else by reading all of it.
///
/// `progress` gets the bytes done and the total. A cache that cannot be read or written costs time only.
pub(super) fn of_file(
    file: &InputFile,
    cache: Option<&Path>,
    control: &Control,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<String> {
    let entry = cache.and_then(|directory| entry_path(directory, file.path()));
    if let Some(digest) = entry.as_deref().and_then(|entry| load(entry, &file.identity())) {
        return Ok(digest);
    }
    let digest = compute(file, control, progress)?;
    if let Some(entry) = entry.filter(|_| settled(&file.identity())) {
        if let Err(error) = store(&entry, &file.identity(), &digest) {
            log::warn!("the digest of {} is not cached: {error}", file.path().display());
        }
    }
    Ok(digest)
}

fn compute(file: &InputFile, control: &Control, progress: &mut dyn FnMut(u64, u64)) -> Result<String> {
    let total = file.identity().size;
    let mut state = blake2b_simd::State::new();
    let (mut current, mut next) = (vec![0u8; PIECE_BYTES], vec![0u8; PIECE_BYTES]);
    let piece = |offset: u64| (total - offset).min(PIECE_BYTES as u64) as usize;
    let mut offset = 0;
    file.read(&mut current[..piece(0)], 0)?;
    while offset < total {
        control.check("computing a digest")?;
        let (length, following) = (piece(offset), offset + piece(offset) as u64);
        let (_, read) = rayon::join(
            || {
                state.update(&current[..length]);
            },
            || file.read(&mut next[..piece(following)], following),
        );
        read?;
        std::mem::swap(&mut current, &mut next);
        offset = following;
        progress(offset, total);
    }
    if !file.unchanged()? {
        return Err(file.changed("while its digest was computed"));
    }
    Ok(published(state.finalize()))
}

fn entry_path(directory: &Path, file: &Path) -> Option<PathBuf> {
    let mut name = file.file_name()?.to_os_string();
    name.push(".digest");
    Some(directory.join(name))
}

fn settled(identity: &Identity) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    identity.modified_seconds.saturating_add(SETTLED.as_secs() as i64) < now
}

/// The line that an entry must begin with for its digest to hold.
fn key(identity: &Identity) -> String {
    let Identity { device, inode, size, modified_seconds, modified_nanoseconds } = identity;
    format!("blake2b-512/16 {device} {inode} {size} {modified_seconds}.{modified_nanoseconds:09}")
}

fn load(entry: &Path, identity: &Identity) -> Option<String> {
    // An entry has some hundred bytes; anything much longer is not one.
    let length = fs::metadata(entry).ok().filter(fs::Metadata::is_file)?.len();
    let text = (length < 1024).then(|| fs::read_to_string(entry).ok())??;
    let digest = text.strip_prefix(&key(identity))?.strip_prefix(' ')?.strip_suffix('\n')?;
    (digest.len() == 32 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
        .then(|| digest.to_owned())
}

fn store(entry: &Path, identity: &Identity, digest: &str) -> Result<()> {
    let directory = entry.parent().unwrap_or(Path::new("."));
    let failed = |source| Error::io("writing", entry, source);
    fs::create_dir_all(directory).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    writeln!(file, "{} {digest}", key(identity)).map_err(failed)?;
    file.persist(entry).map_err(|error| failed(error.error))?;
    Ok(())
}
