//! The environment variables that users of Filecoin provers already set, and our own. Read at call time,
//! never at load time.

use std::env;
use std::path::PathBuf;

use crate::error::{Error, Result};

/// Names the directory of the proving parameters.
pub const PARAMETER_DIR_VARIABLE: &str = "FIL_PROOFS_PARAMETER_CACHE";

/// Anything but `0` in it: prove on the CPU.
pub const NO_GPU_VARIABLE: &str = "BELLMAN_NO_GPU";

/// Where proving parameters are when nothing else is said.
pub const DEFAULT_PARAMETER_DIR: &str = "/var/tmp/filecoin-proof-parameters";

/// Names the directory for recorded circuit shapes and cached digests.
pub const CACHE_DIR_VARIABLE: &str = "CUPOREP_CACHE_DIR";

/// How many threads the CPU backend uses.
pub const THREADS_VARIABLE: &str = "CUPOREP_THREADS";

/// How many bytes of memory a prover may use.
pub const MEMORY_VARIABLE: &str = "CUPOREP_MEMORY";

/// How many proofs may be in work on each device.
pub const GPU_WORKERS_VARIABLE: &str = "CUPOREP_GPU_WORKERS";

/// The log filter of the tool, in env_logger's syntax.
pub const LOG_VARIABLE: &str = "CUPOREP_LOG";

/// Read when the kernels are built; a shell may still have it afterwards.
const ARCHITECTURES_VARIABLE: &str = "CUPOREP_CUDA_ARCH";

/// Lets the tests of kernels run on the real device of this number. With `emulated` a build with the emulator uses that
/// instead of the driver, everywhere.
pub(crate) const TEST_GPU_VARIABLE: &str = "CUPOREP_TEST_GPU";

const PREFIX: &str = "CUPOREP_";
const KNOWN: [&str; 7] = [
    CACHE_DIR_VARIABLE,
    THREADS_VARIABLE,
    MEMORY_VARIABLE,
    GPU_WORKERS_VARIABLE,
    LOG_VARIABLE,
    ARCHITECTURES_VARIABLE,
    TEST_GPU_VARIABLE,
];

/// The parameter directory that the environment asks for, or the default one.
pub fn parameter_dir() -> PathBuf {
    path(PARAMETER_DIR_VARIABLE).unwrap_or_else(|| PathBuf::from(DEFAULT_PARAMETER_DIR))
}

/// The cache directory that the environment asks for.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    path(CACHE_DIR_VARIABLE)
}

/// The thread count that the environment asks for.
pub(crate) fn threads() -> Result<Option<usize>> {
    number(THREADS_VARIABLE)
}

/// The memory budget in bytes that the environment asks for.
pub(crate) fn memory() -> Result<Option<u64>> {
    number(MEMORY_VARIABLE)
}

/// The number of proofs in work on each device that the environment asks for.
pub(crate) fn gpu_workers() -> Result<Option<usize>> {
    number(GPU_WORKERS_VARIABLE)
}

/// Whether the environment asks to leave GPUs alone, as users of other provers do.
pub(crate) fn no_gpu() -> bool {
    env::var_os(NO_GPU_VARIABLE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Warns about every variable that has our prefix and means nothing, since it is likely a misspelling.
pub(crate) fn warn_about_unknown() {
    let unknown = |name: &String| name.starts_with(PREFIX) && !KNOWN.contains(&name.as_str());
    for name in env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(unknown) {
        log::warn!("environment variable {name} is not known; known are {}", KNOWN.join(", "));
    }
}

fn path(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn number<T: std::str::FromStr>(variable: &'static str) -> Result<Option<T>> {
    let Some(value) = env::var_os(variable).filter(|value| !value.is_empty()) else { return Ok(None) };
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed.map(Some).ok_or_else(|| Error::Argument {
        name: variable,
        detail: format!("environment variable holds {value:?}, which is not a whole number"),
    })
}
