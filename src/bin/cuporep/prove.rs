//! prove, check, verify.

use std::path::PathBuf;

use clap::Args;
use cuporep::pipeline::Control;
use cuporep::{Error, FixedRandomness, ProveRequest, Prover, Result, SealProof};
use serde_json::{json, Value};

use crate::input::read_c1;
use crate::output::{write_standard_output, Output, WholeFile};
use crate::SectorArgs;

/// Where a proof is made.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Device {
    /// The processor
    Cpu,
}

#[derive(Debug, Args)]
pub struct ProveArgs {
    #[command(flatten)]
    sector: SectorArgs,
    /// Parameter directory
    #[arg(long, value_name = "DIR", env = cuporep::environment::PARAMETER_DIR_VARIABLE, default_value = cuporep::environment::DEFAULT_PARAMETER_DIR)]
    params: PathBuf,
    /// Make INSECURE test parameters from this seed in the parameter directory if it has none
    #[arg(long, value_name = "SEED")]
    insecure_seed: Option<u64>,
    /// Where to prove
    #[arg(long, value_enum, default_value = "cpu")]
    device: Device,
    /// Write the raw proof bytes to FILE, whole or not at all, or to standard output for -
    #[arg(long, value_name = "FILE|-")]
    out: Option<PathBuf>,
    /// Fixed randomness for tests, two hexadecimal numbers; partition k uses R+k and S+k
    #[arg(long, value_name = "R,S")]
    insecure_randomness: Option<FixedRandomness>,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    sector: SectorArgs,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    sector: SectorArgs,
    /// Raw proof bytes, or their hexadecimal digits
    #[arg(long, value_name = "FILE")]
    proof: PathBuf,
    /// Parameter directory
    #[arg(long, value_name = "DIR", env = cuporep::environment::PARAMETER_DIR_VARIABLE, default_value = cuporep::environment::DEFAULT_PARAMETER_DIR)]
    params: PathBuf,
}

pub fn prove(args: &ProveArgs, prover: &Prover, control: Control, output: &Output) -> Result<()> {
    let Device::Cpu = args.device;
    let to_file = args.out.as_deref().filter(|path| path.as_os_str() != "-");
    let file = to_file.map(WholeFile::create).transpose()?;
    let c1 = read_c1(&args.sector.c1)?;
    if let Some(seed) = args.insecure_seed {
        let checked = prover.check(&c1, args.sector.sector, args.sector.miner, &control)?;
        let size = checked.registered_proof().size;
        if !prover.has_parameters(size, &args.params) {
            output.notice(&format!(
                "making INSECURE test parameters for {size} in {}: proofs made with them can be forged",
                args.params.display()
            ));
            prover.generate_insecure_parameters(size, seed, &args.params, &control)?;
        }
    }
    let proof = prover.prove(&ProveRequest {
        c1: &c1,
        sector: args.sector.sector,
        miner: Some(args.sector.miner),
        parameter_dir: Some(args.params.clone()),
        placement: Default::default(),
        fixed_randomness: args.insecure_randomness.clone(),
        control,
    })?;
    let machine = describe(&proof);
    match file {
        Some(file) => {
            file.finish(&proof.bytes)?;
            output.result("", &machine)
        }
        None if args.out.is_some() => write_standard_output(&proof.bytes),
        None => output.result(&hex::encode(&proof.bytes), &machine),
    }
}

fn describe(proof: &SealProof) -> Value {
    let stages: Vec<Value> = proof
        .stages
        .iter()
        .map(|event| {
            let ms = event.elapsed.map(|elapsed| elapsed.as_secs_f64() * 1e3);
            json!({"stage": event.stage.name(), "partition": event.partition, "ms": ms})
        })
        .collect();
    json!({
        "proof": hex::encode(&proof.bytes),
        "registered_proof": proof.registered_proof.name(),
        "partitions": proof.bytes.len() / cuporep::groth16::PROOF_BYTES,
        "device": proof.device,
        "insecure_parameters": proof.insecure_parameters,
        "stages": stages,
    })
}

pub fn check(args: &CheckArgs, prover: &Prover, control: &Control, output: &Output) -> Result<()> {
    let c1 = read_c1(&args.sector.c1)?;
    let checked = prover.check(&c1, args.sector.sector, args.sector.miner, control)?;
    let proof = checked.registered_proof();
    output.result(
        &format!(
            "ok: {}, {} partitions of {} challenges",
            proof.name(),
            proof.partitions(),
            proof.challenges_per_partition()
        ),
        &json!({
            "ok": true,
            "registered_proof": proof.name(),
            "partitions": proof.partitions(),
            "challenges": proof.challenges_per_partition(),
        }),
    )
}

pub fn verify(args: &VerifyArgs, prover: &Prover, control: &Control, output: &Output) -> Result<()> {
    let c1 = read_c1(&args.sector.c1)?;
    let proof = read_proof(&args.proof)?;
    let checked = prover.check(&c1, args.sector.sector, args.sector.miner, control)?;
    prover.verify(&checked, &proof, &args.params, control)?;
    output.result("ok: the proof verifies", &json!({"ok": true}))
}

/// Reads a proof as raw bytes or as hexadecimal digits; compressed points begin with a byte of 0x80 or
/// more, so the two cannot be confused.
fn read_proof(path: &PathBuf) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path).map_err(|source| Error::Io { action: "read", path: path.clone(), source })?;
    let text = std::str::from_utf8(&bytes).ok().map(str::trim);
    match text.filter(|text| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_hexdigit())) {
        Some(text) => hex::decode(text).map_err(|error| Error::ProofForm { detail: error.to_string() }),
        None => Ok(bytes),
    }
}
