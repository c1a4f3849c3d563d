//! The fixed numbers of the C ABI. Knows how they follow from errors and stages, and nothing else.

use crate::pipeline::Stage;

/// What a function returns.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cuporep_status {
    /// Done.
    Ok = 0,
    /// An argument is out of range or malformed, or a pointer is NULL.
    Argument = 100,
    /// The bytes are not a C1 output in any accepted form.
    C1Form = 101,
    /// The JSON breaks off, is malformed, or has fields of the wrong kind.
    C1Syntax = 102,
    /// The input is larger than any C1 output can be.
    C1TooLarge = 103,
    /// This version cannot prove the registered proof.
    ProofType = 104,
    /// A count, a length or a tree shape is not that of the registered proof.
    C1Shape = 105,
    /// An element is not a canonical field element, or is zero where that is forbidden.
    C1Element = 106,
    /// The C1 output does not belong to this sector number and miner.
    C1Identity = 107,
    /// A challenge or a parent is not the one that the sector's ids give.
    C1Challenge = 108,
    /// The vanilla proof does not verify.
    C1Vanilla = 109,
    /// A proof that was given for verification has the wrong form.
    ProofForm = 110,
    /// A proof that was given for verification is well formed and not valid.
    ProofInvalid = 111,
    /// The witness does not satisfy the circuit.
    Unsatisfied = 112,
    /// The proof buffer is too small; the needed length was reported.
    ProofBuffer = 113,
    /// The buffer for a text is too small; the needed length was reported.
    TextBuffer = 114,
    /// A parameter file does not exist.
    ParamsMissing = 200,
    /// A parameter file cannot be read.
    ParamsRead = 201,
    /// A parameter file has the wrong size.
    ParamsSize = 202,
    /// A parameter file's content is not what it must be.
    ParamsContent = 203,
    /// A parameter file's digest is not the expected one.
    ParamsDigest = 204,
    /// A parameter file changed while it was in use.
    ParamsChanged = 205,
    /// An operation on parameters is refused because it would be unsafe.
    ParamsRefused = 206,
    /// The work cannot fit into memory.
    Memory = 300,
    /// A file other than a parameter file cannot be read or written.
    Io = 301,
    /// The requested device does not exist or cannot be used.
    Device = 302,
    /// A call of a device's driver failed; the device can still be used.
    DeviceCall = 303,
    /// A device's context is spoiled by an error; it is opened anew for the next call.
    DeviceLost = 304,
    /// The prover was shut down.
    ShutDown = 305,
    /// The caller cancelled.
    Cancelled = 400,
    /// The deadline passed.
    Deadline = 401,
    /// An invariant of this library does not hold.
    Internal = 500,
    /// A panic was caught; the message has its text and place.
    Panic = 501,
    /// A proof that this library made did not verify, and was withheld.
    SelfCheck = 502,
    /// A transform computed wrongly: faulty memory or device, or a fault of this library.
    Transform = 503,
}

/// A status divided by 100: what to do about it.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cuporep_class {
    /// Done.
    Ok = 0,
    /// The input is wrong; the same call fails again.
    Input = 1,
    /// Proving parameters are missing, damaged or not the right ones.
    Parameters = 2,
    /// Memory, disk or device; the same call may succeed later or elsewhere.
    Resource = 3,
    /// The caller cancelled or the deadline passed.
    Cancelled = 4,
    /// A fault of this library.
    Internal = 5,
}

/// A stage of a proof.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cuporep_stage {
    /// Waiting for other proofs of the same prover.
    Queue = 0,
    /// Decoding the C1 bytes.
    Decode = 1,
    /// Checking the C1 output.
    Check = 2,
    /// Loading or recording the circuit's shape.
    Shape = 3,
    /// Opening, checking and loading parameters.
    Parameters = 4,
    /// Making the witness.
    Witness = 5,
    /// a = A w and b = B w.
    Evaluate = 6,
    /// Transforms of the quotient.
    Transform = 7,
    /// The sum over h.
    SumH = 8,
    /// The sum over l.
    SumL = 9,
    /// The sum over a.
    SumA = 10,
    /// The sum over b in G1.
    SumB1 = 11,
    /// The sum over b in G2.
    SumB2 = 12,
    /// Assembling and verifying the proof.
    Verify = 13,
}

impl From<Stage> for cuporep_stage {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Queue => cuporep_stage::Queue,
            Stage::Decode => cuporep_stage::Decode,
            Stage::Check => cuporep_stage::Check,
            Stage::Shape => cuporep_stage::Shape,
            Stage::Parameters => cuporep_stage::Parameters,
            Stage::Witness => cuporep_stage::Witness,
            Stage::Evaluate => cuporep_stage::Evaluate,
            Stage::Transform => cuporep_stage::Transform,
            Stage::SumH => cuporep_stage::SumH,
            Stage::SumL => cuporep_stage::SumL,
            Stage::SumA => cuporep_stage::SumA,
            Stage::SumB1 => cuporep_stage::SumB1,
            Stage::SumB2 => cuporep_stage::SumB2,
            Stage::Verify => cuporep_stage::Verify,
        }
    }
}

/// Which kinds of devices may make a proof.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cuporep_policy {
    /// In a request: as the prover has it. In a configuration: the CPU if BELLMAN_NO_GPU asks for it, else
    /// CUPOREP_POLICY_PREFER_GPU.
    Default = 0,
    /// GPUs; where there is none that works, an error.
    GpuOnly = 1,
    /// GPUs where there are any that work, else the CPU.
    PreferGpu = 2,
    /// The CPU.
    Cpu = 3,
}

/// How much a log line matters.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum cuporep_log_level {
    /// Nothing.
    Off = 0,
    /// Something failed.
    Error = 1,
    /// Something is not as it should be.
    Warn = 2,
    /// Each proof, with its result.
    Info = 3,
    /// For finding faults.
    Debug = 4,
    /// Everything.
    Trace = 5,
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::error::{Class, Error, Place};

    /// Exhaustive, so that a new error needs a number here.
    fn status_of(error: &Error) -> cuporep_status {
        match error {
            Error::Argument { .. } => cuporep_status::Argument,
            Error::C1Form { .. } => cuporep_status::C1Form,
            Error::C1Syntax { .. } => cuporep_status::C1Syntax,
            Error::C1TooLarge { .. } => cuporep_status::C1TooLarge,
            Error::ProofType { .. } => cuporep_status::ProofType,
            Error::C1Shape { .. } => cuporep_status::C1Shape,
            Error::C1Element { .. } => cuporep_status::C1Element,
            Error::C1Identity { .. } => cuporep_status::C1Identity,
            Error::C1Challenge { .. } => cuporep_status::C1Challenge,
            Error::C1Vanilla { .. } => cuporep_status::C1Vanilla,
            Error::ProofForm { .. } => cuporep_status::ProofForm,
            Error::ProofInvalid { .. } => cuporep_status::ProofInvalid,
            Error::Unsatisfied { .. } => cuporep_status::Unsatisfied,
            Error::ProofBuffer { .. } => cuporep_status::ProofBuffer,
            Error::TextBuffer { .. } => cuporep_status::TextBuffer,
            Error::ParamsMissing { .. } => cuporep_status::ParamsMissing,
            Error::ParamsRead { .. } => cuporep_status::ParamsRead,
            Error::ParamsSize { .. } => cuporep_status::ParamsSize,
            Error::ParamsContent { .. } => cuporep_status::ParamsContent,
            Error::ParamsDigest { .. } => cuporep_status::ParamsDigest,
            Error::ParamsChanged { .. } => cuporep_status::ParamsChanged,
            Error::ParamsRefused { .. } => cuporep_status::ParamsRefused,
            Error::Memory { .. } => cuporep_status::Memory,
            Error::Io { .. } => cuporep_status::Io,
            Error::Device { .. } => cuporep_status::Device,
            Error::DeviceCall { .. } => cuporep_status::DeviceCall,
            Error::DeviceLost { .. } => cuporep_status::DeviceLost,
            Error::ShutDown => cuporep_status::ShutDown,
            Error::Cancelled { .. } => cuporep_status::Cancelled,
            Error::Deadline { .. } => cuporep_status::Deadline,
            Error::Internal { .. } => cuporep_status::Internal,
            Error::Panic { .. } => cuporep_status::Panic,
            Error::SelfCheck { .. } => cuporep_status::SelfCheck,
            Error::Transform { .. } => cuporep_status::Transform,
        }
    }

    fn samples() -> Vec<Error> {
        let (text, path) = (String::new, PathBuf::new);
        let source = || std::io::Error::other("");
        let place = || Place::top("");
        vec![
            Error::Argument { name: "", detail: text() },
            Error::C1Form { form: text(), length: 0, sha256: text() },
            Error::C1Syntax { detail: text(), length: 0, sha256: text() },
            Error::C1TooLarge { length: 0, maximum: 0 },
            Error::ProofType { what: text(), supported: text(), version: "" },
            Error::C1Shape { place: place(), detail: text() },
            Error::C1Element { place: place(), detail: text() },
            Error::C1Identity { sector: 0, miner: None, detail: text() },
            Error::C1Challenge { place: place(), detail: text() },
            Error::C1Vanilla { place: place(), detail: text() },
            Error::ProofForm { detail: text() },
            Error::ProofInvalid { detail: text() },
            Error::Unsatisfied { detail: text() },
            Error::ProofBuffer { needed: 0, given: 0 },
            Error::TextBuffer { needed: 0, given: 0 },
            Error::ParamsMissing { path: path(), variable: "" },
            Error::ParamsRead { path: path(), source: source() },
            Error::ParamsSize { path: path(), expected: 0, actual: 0, hint: text() },
            Error::ParamsContent { path: path(), detail: text() },
            Error::ParamsDigest { path: path(), expected: text(), actual: text() },
            Error::ParamsChanged { path: path(), detail: text() },
            Error::ParamsRefused { detail: text() },
            Error::Memory { what: text(), needed: 0, available: 0, advice: text() },
            Error::Io { action: "", path: path(), source: source() },
            Error::Device { device: text(), detail: text() },
            Error::DeviceCall { device: text(), call: "", code: 0, detail: text() },
            Error::DeviceLost { device: text(), detail: text() },
            Error::ShutDown,
            Error::Cancelled { during: text() },
            Error::Deadline { during: text() },
            Error::Internal { detail: text() },
            Error::Panic { place: text(), message: text() },
            Error::SelfCheck { partition: 0, device: text(), diagnosis: text() },
            Error::Transform { detail: text() },
        ]
    }

    #[test]
    fn numbers_of_the_abi_are_those_of_the_errors() {
        for error in samples() {
            assert_eq!(status_of(&error) as i32, error.code(), "{error:?}");
            let class = match error.class() {
                Class::Input => cuporep_class::Input,
                Class::Parameters => cuporep_class::Parameters,
                Class::Resource => cuporep_class::Resource,
                Class::Cancelled => cuporep_class::Cancelled,
                Class::Internal => cuporep_class::Internal,
            };
            assert_eq!(error.code() / 100, class as i32);
        }
    }
}
