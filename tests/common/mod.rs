//! C1 outputs with what is known about them.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod public;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use cuporep::pipeline::Control;
use cuporep::porep::SectorSize;
use cuporep::{Config, Placement, Prover};
use serde_json::Value;

/// All cases, smallest first; the last one has 39 MB. Those named `fab` come from made-up labels around the challenged
/// nodes, as no one seals such a sector for a test; the others were sealed.
pub const CASES: [&str; 10] = [
    "StackedDrg2KiBV1-000",
    "StackedDrg2KiBV1_1-000",
    "StackedDrg2KiBV1_1-001",
    "StackedDrg2KiBV1_1-002",
    "StackedDrg2KiBV1_1-003",
    "StackedDrg2KiBV1_1_Feat_SyntheticPoRep-000",
    "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep-000",
    "StackedDrg8MiBV1_1-000",
    "StackedDrg512MiBV1_1-fab-007",
    "StackedDrg32GiBV1_1-fab-001",
];

/// The case that most tests alter.
pub const SMALL: &str = "StackedDrg2KiBV1_1-000";

/// A C1 output, its identities, and the proof that secrets of seed 1 and fixed randomness give.
pub struct Fixture {
    /// The JSON.
    pub c1: Vec<u8>,
    pub registered_proof: String,
    pub sector: u64,
    /// Actor id.
    pub miner: u64,
    pub comm_r: [u8; 32],
    pub comm_d: [u8; 32],
    pub replica_id: [u8; 32],
    pub prover_id: [u8; 32],
    pub seed: [u8; 32],
    pub ticket: [u8; 32],
    /// 192 bytes a partition, for parameters of insecure seed 1, r = 0x123456789abcdef0 + k, s = 0x0fedcba987654321 + k.
    pub proof: Vec<u8>,
    /// The verifying key of those parameters.
    pub vk: Vec<u8>,
}

/// The directory of a case.
pub fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Loads a case.
pub fn fixture(name: &str) -> Fixture {
    let read = |file: &str| {
        let path = directory(name).join(file);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let mut c1 = Vec::new();
    lzma_rs::xz_decompress(&mut &read("c1.json.xz")[..], &mut c1).unwrap();
    let meta: serde_json::Value = serde_json::from_slice(&read("meta.json")).unwrap();
    assert_eq!(meta["c1_len"], c1.len());
    let bytes = |field: &str| -> [u8; 32] { hex::decode(meta[field].as_str().unwrap()).unwrap().try_into().unwrap() };
    Fixture {
        c1,
        registered_proof: meta["registered_proof"].as_str().unwrap().to_owned(),
        sector: meta["sector_id"].as_u64().unwrap(),
        miner: meta["miner"].as_u64().unwrap(),
        comm_r: bytes("comm_r"),
        comm_d: bytes("comm_d"),
        replica_id: bytes("replica_id"),
        prover_id: bytes("prover_id"),
        seed: bytes("seed"),
        ticket: bytes("ticket"),
        proof: read("proof.bin"),
        vk: read("vk.bin"),
    }
}

/// One prover for all tests of a binary: proofs take turns, parameters are loaded once.
pub fn prover() -> &'static Prover {
    static PROVER: LazyLock<Prover> = LazyLock::new(|| Prover::new(Config::default()).unwrap());
    &PROVER
}

/// Where proofs are made: on the GPU that `CUPOREP_TEST_GPU` names and nowhere else, or wherever they are by default.
pub fn placement() -> Placement {
    match std::env::var("CUPOREP_TEST_GPU") {
        Ok(number) if number != "emulated" => format!("cuda:{number}").parse().unwrap(),
        _ => Placement::default(),
    }
}

/// A directory with the insecure parameters of seed 1 for a sector size, made when first needed and kept below
/// the target directory.
pub fn test_parameters(size: SectorSize) -> &'static Path {
    static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("parameters-1"));
    static MAKING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if !prover().has_parameters(size, &DIRECTORY) {
        prover().generate_insecure_parameters(size, 1, &DIRECTORY, &Control::new()).unwrap();
    }
    &DIRECTORY
}

/// Changes one byte of one random array of 32 bytes, or one random number, somewhere in the document.
pub fn mutate(value: &mut Value, choose: &mut impl FnMut(usize) -> usize) -> String {
    match value {
        Value::Object(fields) => {
            let at = choose(fields.len());
            let (name, field) = fields.iter_mut().nth(at).unwrap();
            format!(".{name}{}", mutate(field, choose))
        }
        Value::Array(elements) => {
            let at = choose(elements.len());
            format!("[{at}]{}", mutate(&mut elements[at], choose))
        }
        Value::Number(number) => {
            let changed = (number.as_u64().unwrap() ^ (1 << choose(6))) & 0xffff_ffff;
            *value = changed.into();
            format!(" = {changed}")
        }
        other => format!(" = {other} (unchanged)"),
    }
}

/// Choices below a bound, the same for the same start.
pub fn choose_from(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    }
}

/// Resident memory in bytes, now or at its highest since [`forget_peak`].
pub fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

pub fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}
