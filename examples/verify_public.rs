//! Verifies proofs with filecoin-proofs' own verifier, which shares no code with this library's.
//!
//! ```text
//! cargo run --release --example verify_public -- CASE_DIR PARAMS_DIR PROOF_FILE...
//! ```
//!
//! CASE_DIR is one of `tests/fixtures`; PARAMS_DIR has the verifying key that the proofs belong to; the proof files
//! hold hexadecimal digits.

use std::path::Path;

use cuporep::porep::ids::prover_id;
use filecoin_proofs_api::{seal, RegisteredSealProof, SectorId};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [case, params, proofs @ ..] = &arguments[..] else {
        return Err("usage: verify_public CASE_DIR PARAMS_DIR PROOF_FILE...".into());
    };
    std::env::set_var(cuporep::environment::PARAMETER_DIR_VARIABLE, params);
    let meta: serde_json::Value = serde_json::from_slice(&std::fs::read(Path::new(case).join("meta.json"))?)?;
    let number = |key: &str| meta[key].as_u64().ok_or(format!("meta.json has no number {key}"));
    let bytes = |key: &str| -> Result<[u8; 32], Failure> {
        let digits = meta[key].as_str().ok_or(format!("meta.json has no text {key}"))?;
        Ok(hex::decode(digits)?.try_into().map_err(|_| format!("{key} is not 32 bytes"))?)
    };
    let kind: RegisteredSealProof = serde_json::from_value(meta["registered_proof"].clone())?;
    for path in proofs {
        let proof = hex::decode(std::fs::read_to_string(path)?.trim())?;
        let (comm_r, comm_d) = (bytes("comm_r")?, bytes("comm_d")?);
        let (sector, ticket, seed) = (SectorId::from(number("sector_id")?), bytes("ticket")?, bytes("seed")?);
        let valid = seal::verify_seal(kind, comm_r, comm_d, prover_id(number("miner")?), sector, ticket, seed, &proof)?;
        if !valid {
            return Err(format!("{path}: the public verifier refuses it").into());
        }
        println!("{path}: the public verifier accepts it");
    }
    Ok(())
}
