//! prove, check, verify.

use std::path::{Path, PathBuf};

use clap::Args;
use cuporep::pipeline::{Control, Trace};
use cuporep::{Error, FixedRandomness, Placement, ProveRequest, Prover, Result, SealProof};
use serde_json::{json, Value};

use crate::input::{read_c1, read_proof};
use crate::output::{stage_times, write_standard_output, Output, OutputFile};
use crate::SectorArgs;

#[derive(Debug, Args)]
pub struct ProveArgs {
    #[command(flatten)]
    sector: SectorArgs,
    /// Parameter directory [default: FIL_PROOFS_PARAMETER_CACHE, else /var/tmp/filecoin-proof-parameters]
    #[arg(long, value_name = "DIR")]
    params: Option<PathBuf>,
    /// Make INSECURE test parameters from this seed in the parameter directory if it has none
    #[arg(long, value_name = "SEED")]
    insecure_seed: Option<u64>,
    #[command(flatten)]
    on: OnArgs,
    /// Write the raw proof bytes to FILE, whole or not at all, or to standard output for -
    #[arg(long, value_name = "FILE|-")]
    out: Option<PathBuf>,
    /// Fixed randomness for tests, two hexadecimal numbers; partition k uses R+k and S+k
    #[arg(long, value_name = "R,S")]
    insecure_randomness: Option<FixedRandomness>,
}

/// Where proofs are made, and whether that is watched.
#[derive(Debug, Args)]
pub struct OnArgs {
    /// Where to prove: auto (GPUs where there are any that work, else the CPU; the CPU if BELLMAN_NO_GPU is set), cpu,
    /// gpu (any, and not the CPU), or GPUs by number or UUID, separated by commas: cuda:0
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: Placement,
    /// Bytes of memory that may be used on each GPU, e.g. 15GiB [default: what is free there]
    #[arg(long, value_name = "BYTES", value_parser = crate::bytes::parse)]
    pub vram: Option<u64>,
    /// Write what ran when, every kernel and copy on a GPU included, to FILE for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

impl ProveArgs {
    pub fn vram(&self) -> Option<u64> {
        self.on.vram
    }
}

/// A trace and the file that it goes to.
pub struct Tracing(Option<(Trace, OutputFile)>);

impl OnArgs {
    /// Begins a trace if one is wanted.
    pub fn trace(&self) -> Result<Tracing> {
        Tracing::begin(self.trace.as_deref())
    }
}

impl Tracing {
    /// Begins a trace if there is a file for it.
    pub fn begin(path: Option<&Path>) -> Result<Self> {
        path.map(|path| Ok((Trace::new(), OutputFile::create(path)?))).transpose().map(Tracing)
    }

    pub fn watch(&self, control: Control) -> Control {
        match &self.0 {
            Some((trace, _)) => control.with_trace(trace.clone()),
            None => control,
        }
    }

    /// Writes the file.
    pub fn finish(self) -> Result<()> {
        let Some((trace, file)) = self.0 else { return Ok(()) };
        file.finish(trace.to_json().to_string().as_bytes())
    }
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    sector: SectorArgs,
    /// Also make the witness and check that it satisfies every constraint of the circuit
    #[arg(long)]
    full: bool,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    sector: SectorArgs,
    /// Raw proof bytes, or their hexadecimal digits
    #[arg(long, value_name = "FILE")]
    proof: PathBuf,
    /// Parameter directory [default: FIL_PROOFS_PARAMETER_CACHE, else /var/tmp/filecoin-proof-parameters]
    #[arg(long, value_name = "DIR")]
    params: Option<PathBuf>,
}

pub fn prove(args: &ProveArgs, prover: &Prover, control: Control, output: &Output) -> Result<()> {
    let to_stdout = args.out.as_deref().map_or(Ok(false), |path| output.is_for_raw_bytes(path))?;
    let c1 = read_c1(&args.sector.c1)?;
    let to_file = args.out.as_deref().filter(|_| !to_stdout);
    let file = to_file.map(OutputFile::create).transpose()?;
    let trace = args.on.trace()?;
    let control = trace.watch(control);
    let params = args.params.clone().unwrap_or_else(|| prover.parameter_dir());
    if let Some(seed) = args.insecure_seed {
        let checked = prover.check(&c1, args.sector.sector, args.sector.miner, &control)?;
        let size = checked.registered_proof().size;
        if !prover.has_parameters(size, &params) {
            output.notice(&format!(
                "making INSECURE test parameters for {size} in {}: proofs made with them can be forged",
                params.display()
            ));
            match prover.generate_insecure_parameters(size, seed, &params, &control) {
                // Another process was faster.
                Err(Error::ParamsRefused { .. }) if prover.has_parameters(size, &params) => {}
                made => drop(made?),
            }
        }
    }
    let proof = prover.prove(&ProveRequest {
        c1: &c1,
        sector: args.sector.sector,
        miner: Some(args.sector.miner),
        parameter_dir: Some(params),
        placement: args.on.device.clone(),
        fixed_randomness: args.insecure_randomness.clone(),
        control,
    })?;
    if let Some(file) = file {
        file.finish(&proof.bytes)?;
    }
    // A proof that is made is not lost with its trace.
    let warning = trace.finish().err().map(|error| format!("the proof is good, its trace is lost: {error}"));
    if let Some(warning) = &warning {
        output.notice(warning);
    }
    let mut machine = describe(&proof);
    machine["warnings"] = warning.into_iter().collect();
    match args.out {
        Some(_) if !to_stdout => output.result("", &machine),
        Some(_) => write_standard_output(&proof.bytes),
        None => output.result(&hex::encode(&proof.bytes), &machine),
    }
}

fn describe(proof: &SealProof) -> Value {
    let fallbacks: Vec<Value> = proof
        .fallbacks
        .iter()
        .map(|fallback| json!({"device": fallback.device, "code": fallback.code, "message": fallback.reason}))
        .collect();
    json!({
        "proof": hex::encode(&proof.bytes),
        "registered_proof": proof.registered_proof.name(),
        "partitions": proof.bytes.len() / cuporep::groth16::PROOF_BYTES,
        "device": proof.device,
        "fallbacks": fallbacks,
        "insecure_parameters": proof.insecure_parameters,
        "stages": stage_times(&proof.stages),
    })
}

pub fn check(args: &CheckArgs, prover: &Prover, control: &Control, output: &Output) -> Result<()> {
    let c1 = read_c1(&args.sector.c1)?;
    let check = if args.full { Prover::check_full } else { Prover::check };
    let checked = check(prover, &c1, args.sector.sector, args.sector.miner, control)?;
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
    let params = args.params.clone().unwrap_or_else(|| prover.parameter_dir());
    prover.verify(&checked, &proof, &params, control)?;
    output.result("ok: the proof verifies", &json!({"ok": true}))
}
