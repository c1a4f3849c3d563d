//! Reading one file by position. Never by mapping it: a file that another process cuts would kill this one.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::environment::PARAMETER_DIR_VARIABLE;
use crate::error::{Error, Result};

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Seconds of the time of the last change of content.
    pub modified_seconds: i64,
    /// Nanoseconds of that time.
    pub modified_nanoseconds: i64,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified_seconds: metadata.mtime(),
            modified_nanoseconds: metadata.mtime_nsec(),
        }
    }
}

/// A regular file, open for reading.
#[derive(Debug)]
pub(super) struct InputFile {
    path: PathBuf,
    file: File,
    identity: Identity,
}

impl InputFile {
    /// Opens a parameter file. [`Error::ParamsMissing`] if it does not exist, [`Error::ParamsRead`] if it cannot be
    /// opened or is no regular file.
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        // Without O_NONBLOCK a named pipe would block here for good.
        let file = match File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::ParamsMissing { path, variable: PARAMETER_DIR_VARIABLE })
            }
            Err(source) => return Err(Error::ParamsRead { path, source }),
        };
        let metadata = match file.metadata() {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(metadata) => {
                let what = if metadata.is_dir() { "it is a directory" } else { "it is not a regular file" };
                return Err(Error::ParamsRead { path, source: io::Error::other(what) });
            }
            Err(source) => return Err(Error::ParamsRead { path, source }),
        };
        let identity = Identity::of(&metadata);
        Ok(InputFile { path, file, identity })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// Fills `buffer` from `offset`, which lies in the file as it was when opened.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => {
                let end = offset + buffer.len() as u64;
                self.changed(format!("it had {} bytes and now ends before byte {end}", self.identity.size))
            }
            _ => Error::ParamsRead { path: self.path.clone(), source },
        })
    }

    /// The first bytes, fewer if the file is shorter.
    pub(super) fn head(&self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length.min(usize::try_from(self.identity.size).unwrap_or(usize::MAX))];
        self.read(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Whether the path still leads to this file and the file is as it was when opened.
    pub(super) fn unchanged(&self) -> Result<bool> {
        match std::fs::metadata(&self.path) {
            Ok(metadata) => Ok(Identity::of(&metadata) == self.identity),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(Error::ParamsRead { path: self.path.clone(), source }),
        }
    }

    pub(super) fn changed(&self, detail: impl Into<String>) -> Error {
        Error::ParamsChanged { path: self.path.clone(), detail: detail.into() }
    }

    pub(super) fn content(&self, detail: impl Into<String>) -> Error {
        Error::ParamsContent { path: self.path.clone(), detail: detail.into() }
    }
}
