//! Recorded constraint systems kept on disk between processes. A cache only: whatever is wrong with it is
//! logged, and the system is recorded anew.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::checked_file::{self, Stored, Unusable};
use super::{R1cs, Templates};
use crate::error::Result;
use crate::pipeline::Control;

/// The cache directory's name beside the parameter files.
const BESIDE_PARAMETERS: &str = "cuporep-cache";

/// The cache directory's name in the user's cache directory.
const IN_USER_CACHE: &str = "cuporep";

/// How unfinished files begin. One that is left by a killed process is removed when it is an hour old: no write takes that long.
const UNFINISHED: &str = ".unfinished-shape-";
const ABANDONED: Duration = Duration::from_secs(3600);

/// Directories where constraint systems are looked for and kept, in order of preference.
///
/// Processes and threads may share them: a file appears whole under its name or not at all, and is
/// the same whoever writes it.
#[derive(Debug, Clone)]
pub struct ShapeStore {
    directories: Vec<PathBuf>,
}

impl ShapeStore {
    /// Uses these directories; they are made when something is first kept. None at all: nothing is kept.
    pub fn new(directories: Vec<PathBuf>) -> Self {
        ShapeStore { directories }
    }

    /// Uses the configured directory and no other; without one, `cuporep-cache` in the existing directory
    /// `parameters`, or where that cannot be written, `cuporep` in the user's cache directory (`XDG_CACHE_HOME`, or
    /// `.cache` in `HOME`) unless that is temporary (below `TMPDIR`). The environment is read by this call.
    pub fn for_parameters(parameters: &Path, configured: Option<&Path>) -> Self {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        Self::new(directories(parameters, configured, variable))
    }

    /// The directories in use.
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// The file name under which the system of `key` is kept, as it is or as templates.
    pub fn file_name<T: Shape>(key: &str) -> String {
        // The name carries the format, so that two versions of the library do not replace each other's files.
        let digest = Sha256::digest(format!("{}\n{key}", T::VERSION));
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let readable: String = key.chars().map(plain).take(64).collect();
        format!("{readable}-{}.{}", hex::encode(&digest[..8]), T::EXTENSION)
    }

    /// The stored system of `key`, or the one that `record` makes, which is then stored. `key` names the circuit, its
    /// parameters and whatever else decides its constraints.
    ///
    /// # Errors
    /// Those of `record`, [`Error::Cancelled`](crate::Error::Cancelled), [`Error::Deadline`](crate::Error::Deadline). Everything
    /// that goes wrong with the files is logged as a warning only.
    pub fn load_or_record<T: Shape>(
        &self,
        key: &str,
        control: &Control,
        record: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if let Some(shape) = self.load(key, control)? {
            return Ok(shape);
        }
        let shape = record()?;
        self.keep(key, &shape, control)?;
        Ok(shape)
    }

    /// The stored system of `key`, if a directory has a good one.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled), [`Error::Deadline`](crate::Error::Deadline).
    pub fn load<T: Shape>(&self, key: &str, control: &Control) -> Result<Option<T>> {
        for directory in &self.directories {
            let path = directory.join(Self::file_name::<T>(key));
            let outcome = open_regular(&path);
            let outcome = match outcome {
                Ok((len, mut file)) => checked_file::read(key, &mut file, len, control),
                Err(error) if is_absent(&error) => continue,
                Err(error) => Err(Unusable::Unreadable(error)),
            };
            match outcome {
                Ok(shape) => return Ok(Some(shape)),
                Err(Unusable::Stopped(reason)) => return Err(reason),
                Err(Unusable::Damaged(what)) => {
                    log::warn!("cached circuit shape {} is not used and will be made anew: {what}", path.display());
                }
                Err(Unusable::Unreadable(error)) => {
                    log::warn!("cached circuit shape {} cannot be read: {error}", path.display());
                }
            }
        }
        Ok(None)
    }

    /// Stores a system in the first directory that takes it; says whether one did.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled), [`Error::Deadline`](crate::Error::Deadline).
    pub fn keep<T: Shape>(&self, key: &str, shape: &T, control: &Control) -> Result<bool> {
        for directory in &self.directories {
            match write_whole(directory, key, shape, control)? {
                Ok(()) => return Ok(true),
                Err(error) => log::warn!("a circuit shape cannot be kept in {}: {error}", directory.display()),
            }
        }
        if !self.directories.is_empty() {
            log::warn!("no cache directory can be written; the circuit is recorded anew by every process");
        }
        Ok(false)
    }
}

/// Opens a file and tells its length; never waits, as opening a pipe would.
fn open_regular(path: &Path) -> io::Result<(u64, File)> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((metadata.len(), file)),
        false => Err(io::Error::other("not a regular file")),
    }
}

/// What a [`ShapeStore`] keeps: [`R1cs`] or [`Templates`].
#[expect(private_bounds, reason = "the form of the bytes is the library's own business")]
pub trait Shape: Stored {}

impl Shape for R1cs {}

impl Shape for Templates {}

/// No file there, or not even a directory where it could be.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Writes beside and renames. What was written before a failure is removed again.
fn write_whole<T: Shape>(directory: &Path, key: &str, shape: &T, control: &Control) -> Result<io::Result<()>> {
    let file = fs::create_dir_all(directory).and_then(|()| {
        remove_abandoned(directory);
        // Readable by all: other users' processes may share the parameters and this directory.
        let mode = Permissions::from_mode(0o644);
        tempfile::Builder::new().prefix(UNFINISHED).permissions(mode).tempfile_in(directory)
    });
    let mut file = match file {
        Ok(file) => file,
        Err(error) => return Ok(Err(error)),
    };
    let written = checked_file::write(shape, key, file.as_file_mut(), control)?;
    Ok(written.and_then(|()| {
        file.as_file().sync_all()?;
        file.persist(directory.join(ShapeStore::file_name::<T>(key))).map_err(|failure| failure.error)?;
        // So that the new name survives a power cut; not every file system offers it, and nothing depends on it.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        Ok(())
    }))
}

/// Removes what killed processes left. Failures do not matter: another process may be doing the same.
fn remove_abandoned(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(UNFINISHED));
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if ours && age().is_some_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The rule of [`ShapeStore::for_parameters`] for any environment.
fn directories(
    parameters: &Path,
    configured: Option<&Path>,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> Vec<PathBuf> {
    if let Some(directory) = configured {
        return vec![directory.to_path_buf()];
    }
    let mut directories = Vec::new();
    if parameters.is_dir() {
        directories.push(parameters.join(BESIDE_PARAMETERS));
    }
    // A relative path is to be ignored, says the XDG specification; an unset HOME gives none.
    let absolute = |path: &PathBuf| path.is_absolute();
    let user = variable("XDG_CACHE_HOME")
        .filter(absolute)
        .or_else(|| variable("HOME").filter(absolute).map(|home| home.join(".cache")));
    let temporary = variable("TMPDIR").filter(absolute);
    directories.extend(
        user.filter(|path| !temporary.is_some_and(|temporary| path.starts_with(temporary)))
            .map(|path| path.join(IN_USER_CACHE)),
    );
    directories
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::SystemTime;

    use blstrs::Scalar;
    use ff::Field;

    use super::*;
    use crate::error::Class;
    use crate::pipeline::CancelToken;
    use crate::r1cs::testing::{Bare, Mixed, Sha};
    use crate::r1cs::{Matrix, PartitionWitness};

    const KEY: &str = "a circuit/of some kind";

    fn record() -> Result<R1cs> {
        R1cs::record(Mixed::default(), &Control::new())
    }

    /// A system whose file has few bytes.
    fn small() -> R1cs {
        let rows = vec![
            [vec![(None, 1), (Some(0), -1)], vec![(Some(0), 1)], vec![]],
            [vec![(Some(1), 2), (Some(0), 3)], vec![(Some(1), 1)], vec![(None, 1)]],
        ];
        R1cs::record(Bare { count: 2, rows, values: Vec::new() }, &Control::new()).expect("recording")
    }

    fn files(directory: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("entry").file_name().into_string().expect("UTF-8");
        fs::read_dir(directory).expect("directory").map(name).collect()
    }

    /// A store with one directory, and where it keeps the system of `KEY`.
    fn store() -> (tempfile::TempDir, ShapeStore, PathBuf) {
        let directory = tempfile::tempdir().expect("directory");
        let store = ShapeStore::new(vec![directory.path().to_path_buf()]);
        let path = directory.path().join(ShapeStore::file_name::<R1cs>(KEY));
        (directory, store, path)
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let (_directory, store, path) = store();
        let status = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(status.success());
        assert!(store.load::<R1cs>(KEY, &Control::new()).expect("load").is_none());
        assert!(store.load_or_record(KEY, &Control::new(), record).is_ok());
    }

    #[test]
    fn a_system_is_recorded_once_and_then_read_back_equal() {
        let (directory, store, path) = store();
        let control = Control::new();
        for _ in 0..2 {
            let recorded = Cell::new(0);
            for _ in 0..3 {
                let count = || {
                    recorded.set(recorded.get() + 1);
                    record()
                };
                let r1cs = store.load_or_record(KEY, &control, count).expect("system");
                assert_eq!(r1cs, record().expect("recording"));
            }
            assert_eq!(recorded.get(), 1);
            assert_eq!(files(directory.path()), [ShapeStore::file_name::<R1cs>(KEY)]);
            fs::remove_file(&path).expect("remove");
        }
        assert_eq!(store.load::<R1cs>(KEY, &control).expect("load"), None);
    }

    #[test]
    fn a_large_system_goes_through_many_pieces() {
        let (_directory, store, path) = store();
        let r1cs = R1cs::record(Sha::default(), &Control::new()).expect("recording");
        assert!(store.keep(KEY, &r1cs, &Control::new()).expect("keep"));
        assert!(fs::metadata(path).expect("file").len() > 1 << 20);
        assert_eq!(store.load(KEY, &Control::new()).expect("load"), Some(r1cs));
    }

    #[test]
    fn a_file_cut_at_any_length_or_longer_is_made_anew() {
        let (_directory, store, path) = store();
        let control = Control::new();
        let r1cs = small();
        store.keep(KEY, &r1cs, &control).expect("keep");
        let whole = fs::read(&path).expect("file");
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).expect("write");
            assert_eq!(store.load::<R1cs>(KEY, &control).expect("load"), None, "{len}");
        }
        fs::write(&path, [whole.as_slice(), &[0]].concat()).expect("write");
        assert_eq!(store.load::<R1cs>(KEY, &control).expect("load"), None);
        store.load_or_record(KEY, &control, || Ok(r1cs.clone())).expect("system");
        assert_eq!(fs::read(&path).expect("file"), whole);
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found() {
        let (_directory, store, path) = store();
        let control = Control::new();
        store.keep(KEY, &small(), &control).expect("keep");
        let whole = fs::read(&path).expect("file");
        for index in 0..whole.len() {
            for bit in [0, 7] {
                let mut flipped = whole.clone();
                flipped[index] ^= 1 << bit;
                fs::write(&path, flipped).expect("write");
                assert_eq!(store.load::<R1cs>(KEY, &control).expect("load"), None, "byte {index}");
            }
        }
    }

    #[test]
    fn hostile_content_under_a_good_digest_never_reads_out_of_bounds() {
        let (_directory, store, path) = store();
        let control = Control::new();
        store.keep(KEY, &small(), &control).expect("keep");
        let whole = fs::read(&path).expect("file");
        let content = whole.len() - 32;
        let (mut refused, mut taken) = (0, 0);
        for index in 0..content {
            for value in [0, 1, 2, 3, 0x7f, 0x80, 0xff] {
                let mut hostile = whole[..content].to_vec();
                hostile[index] = value;
                let digest = Sha256::digest(&hostile);
                hostile.extend_from_slice(&digest);
                fs::write(&path, hostile).expect("write");
                let Some(r1cs) = store.load::<R1cs>(KEY, &control).expect("load") else {
                    refused += 1;
                    continue;
                };
                taken += 1;
                let witness = PartitionWitness {
                    inputs: vec![Scalar::ONE; r1cs.num_inputs()],
                    bits: crate::r1cs::Bitmap::zeros(r1cs.num_aux()),
                    full: vec![Scalar::ONE; r1cs.full_positions().len()],
                };
                let mut out = vec![Scalar::ZERO; 1 << r1cs.log_domain()];
                for matrix in [Matrix::A, Matrix::B, Matrix::C] {
                    r1cs.evaluate(matrix, &witness, &mut out, &control).expect("evaluation");
                    r1cs.rows(matrix, 0..r1cs.num_rows()).for_each(|row| assert!(row.iter().count() == row.len()));
                }
            }
        }
        assert!(refused > 500 && taken > 100, "{refused} {taken}");
    }

    #[test]
    fn counts_that_promise_too_much_allocate_nothing() {
        let (_directory, store, path) = store();
        let control = Control::new();
        store.keep(KEY, &small(), &control).expect("keep");
        let whole = fs::read(&path).expect("file");
        for count in 0..10 {
            for value in [u64::MAX, u64::MAX / 4, 1 << 40] {
                let mut hostile = whole.clone();
                hostile[16 + 8 * count..24 + 8 * count].copy_from_slice(&value.to_le_bytes());
                fs::write(&path, hostile).expect("write");
                assert_eq!(store.load::<R1cs>(KEY, &control).expect("load"), None, "count {count}");
            }
        }
    }

    #[test]
    fn what_is_not_a_shape_of_this_circuit_is_replaced() {
        let (directory, store, path) = store();
        let control = Control::new();
        store.keep("another key", &record().expect("recording"), &control).expect("keep");
        let other = fs::read(directory.path().join(ShapeStore::file_name::<R1cs>("another key"))).expect("file");
        let long_key = KEY.replace('/', "-");
        store.keep(&long_key, &record().expect("recording"), &control).expect("keep");
        let same_length = fs::read(directory.path().join(ShapeStore::file_name::<R1cs>(&long_key))).expect("file");
        let html = b"<html><body>404</body></html>".repeat(40);
        for foreign in [other, same_length, html, Vec::new(), vec![0; 1 << 16]] {
            fs::write(&path, foreign).expect("write");
            assert_eq!(store.load::<R1cs>(KEY, &control).expect("load"), None);
            store.load_or_record(KEY, &control, record).expect("system");
            assert_eq!(store.load(KEY, &control).expect("load"), Some(record().expect("recording")));
        }
    }

    #[test]
    fn an_unusable_directory_is_passed_over_and_without_any_nothing_fails() {
        let good = tempfile::tempdir().expect("directory");
        let control = Control::new();
        // Below a regular file no directory can be, whoever asks.
        let file = good.path().join("file");
        fs::write(&file, b"").expect("write");
        let below = |name: &str| file.join(name);
        let kept = good.path().join("made/when/needed");
        let store = ShapeStore::new(vec![below("a"), below("b/c"), kept.clone()]);
        let r1cs = store.load_or_record(KEY, &control, record).expect("system");
        assert_eq!(files(&kept), [ShapeStore::file_name::<R1cs>(KEY)]);
        let again: R1cs = store.load_or_record(KEY, &control, || panic!("must be read")).expect("system");
        assert_eq!(again, r1cs);

        for directories in [vec![], vec![below("a")]] {
            let store = ShapeStore::new(directories);
            assert!(!store.keep(KEY, &r1cs, &control).expect("keep"));
            assert_eq!(store.load_or_record(KEY, &control, record).expect("system"), r1cs);
        }
        // Something in the way of the very file: it cannot be read nor replaced.
        let (_directory, store, path) = self::store();
        fs::create_dir_all(path.join("full")).expect("directory");
        assert_eq!(store.load_or_record(KEY, &control, record).expect("system"), r1cs);
        assert!(!store.keep(KEY, &r1cs, &control).expect("keep"));
        assert_eq!(files(path.parent().expect("parent")), [ShapeStore::file_name::<R1cs>(KEY)]);
    }

    #[test]
    fn a_full_disk_leaves_nothing_behind() {
        const DIRECTORY: &str = "CUPOREP_TEST_FULL_DISK_DIRECTORY";
        if let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) {
            // In the child, where no file may grow past 4000 bytes.
            let store = ShapeStore::new(vec![directory.join("first"), directory.join("second")]);
            let r1cs = store.load_or_record(KEY, &Control::new(), record).expect("system");
            assert!(!store.keep(KEY, &r1cs, &Control::new()).expect("keep"));
            let small = small();
            assert!(store.keep("small", &small, &Control::new()).expect("keep"));
            return;
        }
        let directory = tempfile::tempdir().expect("directory");
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        child.args(["--exact", "r1cs::store::tests::a_full_disk_leaves_nothing_behind"]);
        child.env(DIRECTORY, directory.path());
        // SAFETY: between fork and exec only two async-signal-safe system calls are made, on values of the child's own.
        unsafe {
            child.pre_exec(|| {
                let limit = libc::rlimit { rlim_cur: 4000, rlim_max: 4000 };
                // With the signal ignored, a write past the limit fails as one to a full disk does.
                if libc::signal(libc::SIGXFSZ, libc::SIG_IGN) == libc::SIG_ERR
                    || libc::setrlimit(libc::RLIMIT_FSIZE, &limit) != 0
                {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let output = child.output().expect("child");
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
        assert_eq!(files(&directory.path().join("first")), [ShapeStore::file_name::<R1cs>("small")]);
        assert!(files(&directory.path().join("second")).is_empty());
    }

    #[test]
    fn threads_that_write_and_read_the_same_file_see_whole_ones_only() {
        let (directory, store, _) = store();
        let r1cs = R1cs::record(Sha::default(), &Control::new()).expect("recording");
        let control = Control::new();
        store.keep(KEY, &r1cs, &control).expect("keep");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        assert!(store.keep(KEY, &r1cs, &control).expect("keep"));
                    }
                });
                scope.spawn(|| {
                    for _ in 0..5 {
                        assert!(store.load::<R1cs>(KEY, &control).expect("load").as_ref() == Some(&r1cs));
                    }
                });
            }
        });
        assert_eq!(files(directory.path()), [ShapeStore::file_name::<R1cs>(KEY)]);
    }

    #[test]
    fn only_abandoned_unfinished_files_are_removed() {
        let (directory, store, _) = store();
        let old = SystemTime::now() - 2 * ABANDONED;
        for (name, modified) in
            [(".unfinished-shape-a", old), (".unfinished-shape-b", SystemTime::now()), ("else", old)]
        {
            let file = File::create(directory.path().join(name)).expect("file");
            file.set_modified(modified).expect("time");
        }
        store.keep(KEY, &small(), &Control::new()).expect("keep");
        let mut left = files(directory.path());
        left.sort();
        let mut expected = vec![".unfinished-shape-b".to_string(), "else".into(), ShapeStore::file_name::<R1cs>(KEY)];
        expected.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_cancel_stops_reading_and_writing_and_leaves_nothing_behind() {
        let (directory, store, _) = store();
        let token = CancelToken::new();
        token.cancel();
        let cancelled = Control::new().with_cancel(token);
        assert_eq!(store.keep(KEY, &small(), &cancelled).expect_err("cancelled").class(), Class::Cancelled);
        assert!(files(directory.path()).is_empty());
        store.keep(KEY, &small(), &Control::new()).expect("keep");
        assert_eq!(store.load::<R1cs>(KEY, &cancelled).expect_err("cancelled").class(), Class::Cancelled);
    }

    #[test]
    fn the_cache_is_where_the_caller_says_or_beside_the_parameters_or_the_users_never_temporary() {
        let parameters = tempfile::tempdir().expect("directory");
        let beside = parameters.path().join("cuporep-cache");
        let missing = parameters.path().join("missing");
        let find = |parameters: &Path, configured: Option<&Path>, variables: &[(&str, &str)]| {
            directories(parameters, configured, |name| {
                variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| PathBuf::from(value))
            })
        };
        let home = ("HOME", "/home/someone");
        let users = PathBuf::from("/home/someone/.cache/cuporep");
        let cases = [
            (parameters.path(), Some("/here"), vec![home], vec![PathBuf::from("/here")]),
            (parameters.path(), None, vec![home], vec![beside.clone(), users.clone()]),
            (&missing, None, vec![home], vec![users.clone()]),
            (&missing, None, vec![home, ("XDG_CACHE_HOME", "/caches")], vec![PathBuf::from("/caches/cuporep")]),
            (&missing, None, vec![home, ("XDG_CACHE_HOME", "relative")], vec![users.clone()]),
            (&missing, None, vec![home, ("TMPDIR", "/home/someone")], vec![]),
            (&missing, None, vec![home, ("TMPDIR", "/home/some")], vec![users]),
            (parameters.path(), None, vec![], vec![beside]),
        ];
        for (parameters, configured, variables, expected) in cases {
            assert_eq!(find(parameters, configured.map(Path::new), &variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn file_names_are_plain_and_differ_by_key() {
        let names = ["a/b", "a_b", "../a", "", &"x".repeat(500)].map(ShapeStore::file_name::<R1cs>);
        for (index, name) in names.iter().enumerate() {
            assert!(!name.contains('/') && name.len() < 100, "{name}");
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
