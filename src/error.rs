//! Every way in which a call can fail, with its class and its fixed number.
//!
//! The message of an error says what is wrong, where, and what to do. The number ([`Error::code`]) is
//! part of the C ABI and never changes its meaning; the class ([`Error::class`]) tells a caller whether
//! trying again can help.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller should do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The input is wrong; the same call fails again (1xx).
    Input,
    /// Proving parameters are missing, damaged or not the right ones (2xx).
    Parameters,
    /// Memory, disk or device; the same call may succeed later or elsewhere (3xx).
    Resource,
    /// The caller cancelled or the deadline passed (4xx).
    Cancelled,
    /// A fault of this library (5xx).
    Internal,
}

impl Class {
    /// The lower-case name used in machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Input => "input",
            Class::Parameters => "parameters",
            Class::Resource => "resource",
            Class::Cancelled => "cancelled",
            Class::Internal => "internal",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A place inside a C1 output: partition, challenge and part, each as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Partition index, from 0.
    pub partition: Option<usize>,
    /// Challenge index within the partition, from 0.
    pub challenge: Option<usize>,
    /// The field or group of fields, as named in the C1 JSON, e.g. `comm_r_last_proof.path[3]`.
    pub part: String,
}

impl Place {
    /// A place in the whole document, such as `comm_r`.
    pub fn top(part: impl Into<String>) -> Self {
        Place { partition: None, challenge: None, part: part.into() }
    }

    /// A place inside one challenge's vanilla proof.
    pub fn at(partition: usize, challenge: usize, part: impl Into<String>) -> Self {
        Place { partition: Some(partition), challenge: Some(challenge), part: part.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(p) = self.partition {
            write!(f, "partition {p}, ")?;
        }
        if let Some(c) = self.challenge {
            write!(f, "challenge {c}, ")?;
        }
        f.write_str(&self.part)
    }
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument of the call itself is out of range or malformed.
    #[error("argument {name}: {detail}")]
    Argument { name: &'static str, detail: String },

    /// The bytes are not a C1 output in any accepted form.
    #[error("not a C1 output: {form}; accepted are the JSON of SealCommitPhase1Output and the envelope {{\"SectorNum\",\"Phase1Out\",\"SectorSize\"}} ({length} bytes, sha256 {sha256})")]
    C1Form { form: String, length: usize, sha256: String },

    /// The JSON breaks off, is malformed, or has fields of the wrong kind.
    #[error("C1 output does not parse: {detail} ({length} bytes, sha256 {sha256}); was it cut or altered on the way?")]
    C1Syntax { detail: String, length: usize, sha256: String },

    /// The input is larger than any C1 output can be.
    #[error("C1 output of {length} bytes is larger than the accepted maximum of {maximum} bytes")]
    C1TooLarge { length: usize, maximum: usize },

    /// The registered proof is not one that this version can prove.
    #[error("{what} is not supported; cuporep {version} supports {supported}")]
    ProofType { what: String, supported: String, version: &'static str },

    /// A count, a length or a tree shape is not that of the registered proof.
    #[error("C1 output, {place}: {detail}")]
    C1Shape { place: Place, detail: String },

    /// An element is not a canonical field element, or is zero where that is forbidden.
    #[error("C1 output, {place}: {detail}")]
    C1Element { place: Place, detail: String },

    /// Sector number, miner (where it is known), ticket and comm_d do not give the replica id of the C1 output.
    #[error("the C1 output does not belong to sector {sector}{}: {detail}", of_miner(*miner))]
    C1Identity { sector: u64, miner: Option<u64>, detail: String },

    /// A challenge or a parent is not the one that the sector's ids give.
    #[error("C1 output, {place}: {detail}")]
    C1Challenge { place: Place, detail: String },

    /// The vanilla proof does not verify.
    #[error(
        "C1 output, {place}: {detail}; the sector's sealed data or cache is damaged, or the C1 output was altered"
    )]
    C1Vanilla { place: Place, detail: String },

    /// A proof that was given for verification has the wrong form.
    #[error("proof: {detail}")]
    ProofForm { detail: String },

    /// A proof that was given for verification is well formed and not valid.
    #[error("the proof does not verify: {detail}")]
    ProofInvalid { detail: String },

    /// The assignment does not satisfy the circuit.
    #[error("the witness does not satisfy the circuit: {detail}")]
    Unsatisfied { detail: String },

    /// The caller's buffer cannot hold the proof.
    #[error("the proof buffer holds {given} bytes, the proof has {needed}; call again with a larger one")]
    ProofBuffer { needed: usize, given: usize },

    /// The caller's buffer cannot hold a text.
    #[error("the buffer holds {given} bytes, the text has {needed}; call again with a larger one")]
    TextBuffer { needed: usize, given: usize },

    /// A parameter file or directory does not exist.
    #[error("parameter file {} does not exist; set {variable} or pass the directory that holds it", path.display())]
    ParamsMissing { path: PathBuf, variable: &'static str },

    /// A parameter file cannot be read.
    #[error("parameter file {} cannot be read: {source}", path.display())]
    ParamsRead { path: PathBuf, source: io::Error },

    /// A parameter file has the wrong size.
    #[error("parameter file {} has {actual} bytes, expected {expected}{hint}; fetch it again", path.display())]
    ParamsSize { path: PathBuf, expected: u64, actual: u64, hint: String },

    /// A parameter file's content is not what it must be.
    #[error("parameter file {}: {detail}; fetch it again", path.display())]
    ParamsContent { path: PathBuf, detail: String },

    /// A parameter file's digest is not the expected one.
    #[error("parameter file {} has digest {actual}, expected {expected}; fetch it again", path.display())]
    ParamsDigest { path: PathBuf, expected: String, actual: String },

    /// A parameter file was replaced or changed while it was in use.
    #[error("parameter file {} changed while it was in use ({detail}); leave it alone and try again", path.display())]
    ParamsChanged { path: PathBuf, detail: String },

    /// An operation on parameters is refused because it would be unsafe.
    #[error("refused: {detail}")]
    ParamsRefused { detail: String },

    /// The work cannot fit into memory.
    #[error("{what} needs {needed} bytes of memory, {available} are available; {advice}")]
    Memory { what: String, needed: u64, available: u64, advice: String },

    /// A file other than a parameter file cannot be read or written.
    #[error("{action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },

    /// The requested device does not exist or cannot be used.
    #[error("device {device}: {detail}")]
    Device { device: String, detail: String },

    /// A call of a device's driver failed; the device can still be used.
    #[error("device {device}: {call} failed with {detail}")]
    DeviceCall { device: String, call: &'static str, code: i32, detail: String },

    /// A device's context is spoiled by an error; it is opened anew for the next call.
    #[error("device {device} was lost: {detail}")]
    DeviceLost { device: String, detail: String },

    /// The prover was shut down.
    #[error("the prover is shut down; make another one, or send the sector elsewhere")]
    ShutDown,

    /// The caller cancelled.
    #[error("cancelled {during}")]
    Cancelled { during: String },

    /// The deadline passed.
    #[error("deadline passed {during}")]
    Deadline { during: String },

    /// A proof that this library made did not verify, and was withheld.
    #[error("partition {partition}: the proof made on {device} does not verify and is withheld: {diagnosis}")]
    SelfCheck { partition: usize, device: String, diagnosis: String },

    /// A transform computed wrongly: faulty memory or device, or a fault of this library.
    #[error("a number-theoretic transform gave a wrong result: {detail}; prove again, on another device if it recurs")]
    Transform { detail: String },

    /// A panic was caught.
    #[error("internal panic at {place}: {message}")]
    Panic { place: String, message: String },

    /// An invariant of this library does not hold.
    #[error("internal error: {detail}")]
    Internal { detail: String },
}

fn of_miner(miner: Option<u64>) -> String {
    miner.map(|miner| format!(" of miner {miner}")).unwrap_or_default()
}

impl Error {
    /// The fixed number: 1xx input, 2xx parameters, 3xx resources, 4xx cancelled, 5xx internal.
    pub const fn code(&self) -> i32 {
        match self {
            Error::Argument { .. } => 100,
            Error::C1Form { .. } => 101,
            Error::C1Syntax { .. } => 102,
            Error::C1TooLarge { .. } => 103,
            Error::ProofType { .. } => 104,
            Error::C1Shape { .. } => 105,
            Error::C1Element { .. } => 106,
            Error::C1Identity { .. } => 107,
            Error::C1Challenge { .. } => 108,
            Error::C1Vanilla { .. } => 109,
            Error::ProofForm { .. } => 110,
            Error::ProofInvalid { .. } => 111,
            Error::Unsatisfied { .. } => 112,
            Error::ProofBuffer { .. } => 113,
            Error::TextBuffer { .. } => 114,
            Error::ParamsMissing { .. } => 200,
            Error::ParamsRead { .. } => 201,
            Error::ParamsSize { .. } => 202,
            Error::ParamsContent { .. } => 203,
            Error::ParamsDigest { .. } => 204,
            Error::ParamsChanged { .. } => 205,
            Error::ParamsRefused { .. } => 206,
            Error::Memory { .. } => 300,
            Error::Io { .. } => 301,
            Error::Device { .. } => 302,
            Error::DeviceCall { .. } => 303,
            Error::DeviceLost { .. } => 304,
            Error::ShutDown => 305,
            Error::Cancelled { .. } => 400,
            Error::Deadline { .. } => 401,
            Error::Internal { .. } => 500,
            Error::Panic { .. } => 501,
            Error::SelfCheck { .. } => 502,
            Error::Transform { .. } => 503,
        }
    }

    /// What a caller should do about it.
    pub const fn class(&self) -> Class {
        match self.code() / 100 {
            1 => Class::Input,
            2 => Class::Parameters,
            3 => Class::Resource,
            4 => Class::Cancelled,
            _ => Class::Internal,
        }
    }

    /// Whether another device may succeed where this one did not.
    pub(crate) const fn is_of_device(&self) -> bool {
        matches!(
            self,
            Error::Memory { .. }
                | Error::Device { .. }
                | Error::DeviceCall { .. }
                | Error::DeviceLost { .. }
                | Error::SelfCheck { .. }
                | Error::Transform { .. }
        )
    }

    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Error::Io { action, path: path.as_ref().to_path_buf(), source }
    }

    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        Error::Internal { detail: detail.into() }
    }
}
