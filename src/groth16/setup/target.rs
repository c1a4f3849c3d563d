//! The four files of a set of test parameters: they appear whole, marked insecure, and never over others.

use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use tempfile::NamedTempFile;

use crate::environment::DEFAULT_PARAMETER_DIR;
use crate::error::{Error, Result};
use crate::groth16::params::sibling;

/// In the order in which the files appear: whoever sees a file sees that it is insecure, and the largest,
/// without which nothing works, comes last.
const EXTENSIONS: [&str; 4] = ["insecure", "meta", "vk", "params"];

/// Where test parameters go, and under which name.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// A directory; it is created if it does not exist. The default directory is refused.
    pub directory: &'a Path,
    /// The files' name without extension.
    pub stem: &'a str,
    /// The content of the `.meta` file.
    pub meta: &'a str,
}

impl Target<'_> {
    /// [`Error::ParamsRefused`] for the default directory and if any of the files exists.
    pub fn check(&self) -> Result<()> {
        refuse_default(self.directory, Path::new(DEFAULT_PARAMETER_DIR))?;
        match self.paths().iter().find(|path| path.symlink_metadata().is_ok()) {
            Some(path) => Err(exists(path)),
            None => Ok(()),
        }
    }

    fn paths(&self) -> [PathBuf; EXTENSIONS.len()] {
        EXTENSIONS.map(|extension| sibling(self.directory, self.stem, extension))
    }
}

/// The temporary files behind a [`Target`]. Dropped, it leaves nothing behind.
pub(super) struct Staging {
    directory: PathBuf,
    files: Vec<(PathBuf, NamedTempFile)>,
}

impl Staging {
    /// [`Error::ParamsRefused`] for the default directory and if any of the files exists.
    pub(super) fn new(target: &Target<'_>) -> Result<Self> {
        target.check()?;
        let paths = target.paths();
        std::fs::create_dir_all(target.directory)
            .map_err(|source| Error::io("creating directory", target.directory, source))?;
        let files = paths.into_iter().map(|path| {
            let created = tempfile::Builder::new()
                .prefix(".unfinished-")
                // As other files; the umask applies.
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(target.directory);
            created.map(|file| (path.clone(), file)).map_err(|source| Error::io("creating", path, source))
        });
        Ok(Staging { directory: target.directory.to_path_buf(), files: files.collect::<Result<_>>()? })
    }

    /// Lets `write` fill the file with an extension of [`EXTENSIONS`], and makes it durable. The path is the one that the
    /// file will have.
    pub(super) fn fill(&mut self, extension: &str, write: impl FnOnce(&File, &Path) -> Result<()>) -> Result<()> {
        let index = EXTENSIONS.iter().position(|known| *known == extension);
        let (path, file) = index
            .and_then(|index| self.files.get(index))
            .ok_or_else(|| Error::internal(format!("no file .{extension}")))?;
        write(file.as_file(), path)?;
        file.as_file().sync_all().map_err(|source| Error::io("writing", path, source))
    }

    /// Fills a file with these bytes.
    pub(super) fn fill_with(&mut self, extension: &str, bytes: &[u8]) -> Result<()> {
        self.fill(extension, |mut file, path| {
            file.write_all(bytes).map_err(|source| Error::io("writing", path, source))
        })
    }

    /// Gives all files their names. Returns the path of the `.params` file.
    pub(super) fn publish(self) -> Result<PathBuf> {
        let mut published: Vec<PathBuf> = Vec::new();
        for (path, file) in self.files {
            if let Err(error) = file.persist_noclobber(&path) {
                for path in &published {
                    // The first error is the one to report.
                    let _ = std::fs::remove_file(path);
                }
                return Err(match error.error.kind() {
                    ErrorKind::AlreadyExists => exists(&path),
                    _ => Error::io("naming", path, error.error),
                });
            }
            published.push(path);
        }
        File::open(&self.directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|source| Error::io("writing directory", &self.directory, source))?;
        published.pop().ok_or_else(|| Error::internal("no files to publish"))
    }
}

fn exists(path: &Path) -> Error {
    let detail = format!(
        "{} exists and is not written over; take another directory, or remove the old parameters first",
        path.display()
    );
    Error::ParamsRefused { detail }
}

/// Test parameters among the published ones would be taken for them.
fn refuse_default(directory: &Path, default: &Path) -> Result<()> {
    let same_inode = match (directory.metadata(), default.metadata()) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    };
    if same_inode || resolve(directory)? == resolve(default)? {
        let detail = format!(
            "{} is the default directory of parameters; insecure test parameters need one of their own",
            directory.display()
        );
        return Err(Error::ParamsRefused { detail });
    }
    Ok(())
}

/// The absolute path without links and dots of a directory that need not exist yet.
fn resolve(path: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(path).map_err(|source| Error::io("resolving", path, source))?;
    let mut resolved = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            other => resolved.push(other),
        }
        match resolved.canonicalize() {
            Ok(canonical) => resolved = canonical,
            // What does not exist yet has no links to follow.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(Error::io("resolving", path, source)),
        }
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groth16::params::Counts;
    use crate::groth16::setup::SectionFile;

    fn target<'a>(directory: &'a Path) -> Target<'a> {
        Target { directory, stem: "v28-x", meta: "{}" }
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            directory.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_appear_together_and_only_when_published() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("new/deep");
        let mut staging = Staging::new(&target(&directory)).unwrap();
        staging.fill_with("vk", b"key").unwrap();
        assert!(names(&directory).iter().all(|name| name.starts_with(".unfinished-")));
        assert_eq!(staging.publish().unwrap(), directory.join("v28-x.params"));
        assert_eq!(names(&directory), ["v28-x.insecure", "v28-x.meta", "v28-x.params", "v28-x.vk"]);
        assert_eq!(std::fs::read(directory.join("v28-x.vk")).unwrap(), b"key");
        // Others may read them as any file that this process makes.
        std::fs::write(directory.join("ordinary"), b"").unwrap();
        let mode = |name| directory.join(name).metadata().unwrap().mode();
        assert_eq!(mode("v28-x.params"), mode("ordinary"));
    }

    #[test]
    fn nothing_stays_behind_when_dropped() {
        let base = tempfile::tempdir().unwrap();
        drop(Staging::new(&target(base.path())).unwrap());
        assert!(names(base.path()).is_empty());
    }

    #[test]
    fn any_existing_file_is_refused_and_kept() {
        for extension in EXTENSIONS {
            let base = tempfile::tempdir().unwrap();
            let old = base.path().join(format!("v28-x.{extension}"));
            std::fs::write(&old, b"old").unwrap();
            assert!(matches!(Staging::new(&target(base.path())), Err(Error::ParamsRefused { .. })));
            assert_eq!(std::fs::read(&old).unwrap(), b"old");
        }
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_kept_and_ours_are_taken_back() {
        for extension in EXTENSIONS {
            let base = tempfile::tempdir().unwrap();
            let staging = Staging::new(&target(base.path())).unwrap();
            let theirs = format!("v28-x.{extension}");
            std::fs::write(base.path().join(&theirs), b"theirs").unwrap();
            assert!(matches!(staging.publish(), Err(Error::ParamsRefused { .. })));
            assert_eq!(names(base.path()), [theirs]);
        }
    }

    #[test]
    fn a_full_disk_is_reported_with_the_systems_error() {
        let base = tempfile::tempdir().unwrap();
        let mut staging = Staging::new(&target(base.path())).unwrap();
        // Every write to this device fails like one to a full disk.
        let full = File::options().write(true).open("/dev/full").unwrap();
        *staging.files[3].1.as_file_mut() = full;
        let counts = Counts { inputs: 1, aux: 1, log_domain: 1, a_aux: 1, b_input: 1, b_aux: 1 };
        let points = staging.fill("params", |file, path| SectionFile::begin(file, path, &counts, &[0; 1000]).map(drop));
        for result in [staging.fill_with("params", &[0; 1 << 20]), points] {
            let Err(Error::Io { path, source, .. }) = result else { panic!("{result:?}") };
            assert_eq!(source.raw_os_error(), Some(libc::ENOSPC));
            assert_eq!(path, base.path().join("v28-x.params"));
        }
        drop(staging);
        assert!(names(base.path()).is_empty());
    }

    #[test]
    fn the_default_directory_is_refused_however_it_is_spelled() {
        let base = tempfile::tempdir().unwrap();
        let default = base.path().join("default");
        let refused =
            |directory: &Path| matches!(refuse_default(directory, &default), Err(Error::ParamsRefused { .. }));
        for exists in [false, true] {
            if exists {
                std::fs::create_dir(&default).unwrap();
                std::os::unix::fs::symlink(&default, base.path().join("link")).unwrap();
                assert!(refused(&base.path().join("link")));
            }
            assert!(refused(&default));
            assert!(refused(&base.path().join("./missing/../default/")));
            assert!(!refused(&default.join("sub")));
            assert!(!refused(&base.path().join("other")));
        }
        assert!(matches!(Staging::new(&target(Path::new(DEFAULT_PARAMETER_DIR))), Err(Error::ParamsRefused { .. })));
    }
}
