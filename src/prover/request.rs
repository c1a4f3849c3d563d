//! What goes into a prover and what comes out.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use blstrs::Scalar;
use ff::PrimeField;

use super::Placement;
use crate::error::{Error, Result};
use crate::pipeline::{Control, Event};
use crate::porep::RegisteredProof;

/// How a [`Prover`](crate::Prover) is set up. What is `None` comes from the environment, else from defaults.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Where to keep recorded circuit shapes and digests. Default: `CUPOREP_CACHE_DIR`, else
    /// `cuporep-cache` beside the parameters, else the user's cache directory.
    pub cache_dir: Option<PathBuf>,
    /// Where the parameters are. Default: `FIL_PROOFS_PARAMETER_CACHE`, else
    /// `/var/tmp/filecoin-proof-parameters`.
    pub parameter_dir: Option<PathBuf>,
    /// What may make the proofs, unless a request says otherwise.
    pub placement: Placement,
    /// Threads of the CPU backend. Default: `CUPOREP_THREADS`, else one per core.
    pub threads: Option<usize>,
    /// Bytes of host memory that all proofs together may take, with what stays loaded between them. Default:
    /// `CUPOREP_MEMORY`, else what the system has available.
    pub memory: Option<u64>,
    /// Bytes of memory that may be used on each GPU. Default: what is free there.
    pub device_memory: Option<u64>,
    /// Proofs that are in work on each device at once, from 1 to 64. One computes there; the others' witnesses are made
    /// and their bytes verified meanwhile. Default: `CUPOREP_GPU_WORKERS`, else 2.
    pub gpu_workers: Option<usize>,
}

/// One proof to make.
#[derive(Debug, Clone)]
pub struct ProveRequest<'a> {
    /// The C1 output, in any form that [`C1Output::decode`](crate::porep::C1Output::decode) accepts.
    pub c1: &'a [u8],
    /// Sector number.
    pub sector: u64,
    /// The miner's actor id. `None`: not known; the replica id is then taken as the C1 output has it.
    pub miner: Option<u64>,
    /// Where the parameters are. Default: those of the prover.
    pub parameter_dir: Option<PathBuf>,
    /// What may make the proof. What it leaves open is as the prover has it.
    pub placement: Placement,
    /// Randomness for tests; refused with official parameters. `None` draws it from the operating system.
    pub fixed_randomness: Option<FixedRandomness>,
    /// Cancel, deadline and progress.
    pub control: Control,
}

/// Between the names of several devices.
pub(crate) const SEPARATOR: &str = ", ";

/// A finished proof. Every partition's bytes were verified before this was returned.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SealProof {
    /// 192 bytes a partition, in partition order.
    pub bytes: Vec<u8>,
    /// What was proved.
    pub registered_proof: RegisteredProof,
    /// What made it, e.g. `cpu`; several are separated by commas.
    pub device: String,
    /// What failed before that, in order.
    pub fallbacks: Vec<Fallback>,
    /// The parameters are test parameters: the proof is worth nothing.
    pub insecure_parameters: bool,
    /// Bytes of memory that were set aside for it.
    pub memory: u64,
    /// Bytes of the device's memory that were in use for it.
    pub device_memory: u64,
    /// The stages with their times.
    pub stages: Vec<Event>,
}

/// An attempt at a proof that a device failed at, after which it was made by another attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fallback {
    /// What failed.
    pub device: String,
    /// The error's number.
    pub code: i32,
    /// The error's text.
    pub reason: String,
}

impl Fallback {
    pub(crate) fn new(device: &str, error: &Error) -> Self {
        Fallback { device: device.into(), code: error.code(), reason: error.to_string() }
    }
}

/// What [`Prover::check_parameters`](crate::Prover::check_parameters) found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParameterReport {
    /// The `.params` file.
    pub path: PathBuf,
    /// Its verifying key is a published one.
    pub official: bool,
    /// It was made from the known secrets of a seed.
    pub insecure: bool,
    /// The digest of the `.params` file, if it was asked for.
    pub digest: Option<String>,
}

/// Known randomness for tests: partition k uses r + k and s + k. A proof made with it hides nothing.
#[derive(Clone)]
pub struct FixedRandomness {
    pub(crate) r: Scalar,
    pub(crate) s: Scalar,
}

impl FixedRandomness {
    /// From the two numbers.
    pub fn new(r: Scalar, s: Scalar) -> Self {
        FixedRandomness { r, s }
    }
}

impl fmt::Debug for FixedRandomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FixedRandomness(..)")
    }
}

/// Two hexadecimal numbers below the scalar field's modulus, separated by a comma.
impl FromStr for FixedRandomness {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = text.split_once(',').and_then(|(r, s)| Some((scalar(r)?, scalar(s)?)));
        let (r, s) = parsed.ok_or_else(|| Error::Argument {
            name: "randomness",
            detail:
                "expected two hexadecimal numbers below the field's modulus, as in 123456789abcdef0,0fedcba987654321"
                    .into(),
        })?;
        Ok(FixedRandomness { r, s })
    }
}

fn scalar(digits: &str) -> Option<Scalar> {
    // Digits only: hex::decode_to_slice wants all 64 of them.
    if digits.is_empty() || digits.len() > 64 {
        return None;
    }
    let mut repr = [0; 32];
    hex::decode_to_slice(format!("{digits:0>64}"), &mut repr).ok()?;
    repr.reverse();
    Scalar::from_repr(repr).into()
}

#[cfg(test)]
mod tests {
    use ff::Field;

    use super::*;

    #[test]
    fn fixed_randomness_is_two_hexadecimal_numbers() {
        let parsed: FixedRandomness = "123456789abcdef0,0fedcba987654321".parse().unwrap();
        assert_eq!(parsed.r, Scalar::from(0x1234_5678_9abc_def0));
        assert_eq!(parsed.s, Scalar::from(0x0fed_cba9_8765_4321));
        let below = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000000";
        let largest: FixedRandomness = format!("{below},0").parse().unwrap();
        assert_eq!((largest.r, largest.s), (-Scalar::ONE, Scalar::ZERO));
        let modulus = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
        let long = "0".repeat(65);
        for wrong in
            ["", "1", "1,", ",1", "1,2,3", "x,1", "1 ,2", "-1,2", &format!("{modulus},1"), &format!("1,{long}")]
        {
            assert_eq!(wrong.parse::<FixedRandomness>().unwrap_err().code(), 100, "{wrong:?}");
        }
    }

    #[test]
    fn fixed_randomness_is_not_printed() {
        assert_eq!(format!("{:?}", FixedRandomness::new(Scalar::from(77), Scalar::from(78))), "FixedRandomness(..)");
    }
}
