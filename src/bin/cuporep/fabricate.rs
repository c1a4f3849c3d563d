//! bench fabricate: C1 outputs without sealing.

use std::path::PathBuf;

use clap::Args;
use cuporep::pipeline::Control;
use cuporep::porep::ids::parse_miner;
use cuporep::porep::{Fabricated, Fabrication, ProofKind, RegisteredProof, SectorSize};
use cuporep::{Prover, Result};
use serde_json::json;

use crate::output::{write_standard_output, Output, OutputFile};

#[derive(Debug, Args)]
pub struct FabricateArgs {
    /// Sector size: 2KiB, 8MiB, 512MiB, 32GiB, 64GiB
    #[arg(long)]
    size: SectorSize,
    /// Kind of proof: V1, V1_1, or, up to 512MiB, synthetic, non-interactive
    #[arg(long, default_value_t = ProofKind::V1_1)]
    kind: ProofKind,
    /// Seed of everything that is made up
    #[arg(long, value_name = "N")]
    seed: u64,
    /// Sector number [default: from the seed]
    #[arg(long, value_name = "N")]
    sector: Option<u64>,
    /// Miner: actor id or address such as t01000 [default: from the seed]
    #[arg(long, value_name = "ID", value_parser = parse_miner)]
    miner: Option<u64>,
    /// Write the JSON to FILE, whole or not at all, or to standard output for -
    #[arg(long, value_name = "FILE|-")]
    out: PathBuf,
}

pub fn run(args: &FabricateArgs, prover: &Prover, control: &Control, output: &Output) -> Result<()> {
    let to_stdout = output.is_for_raw_bytes(&args.out)?;
    let file = (!to_stdout).then(|| OutputFile::create(&args.out)).transpose()?;
    let registered_proof = RegisteredProof::new(args.size, args.kind);
    let fabrication = Fabrication { registered_proof, seed: args.seed, sector: args.sector, miner: args.miner };
    let Fabricated { c1, sector, miner } = prover.fabricate(&fabrication, control)?;
    let bytes = c1.encode()?;
    // Nobody should look for a fault of a prover in its input.
    prover.check(&bytes, sector, miner, control)?;
    let text = format!(
        "fabricated {registered_proof}, no sector behind it: --sector {sector} --miner t0{miner}, replica id {}",
        c1.replica_id()
    );
    let Some(file) = file else {
        output.notice(&text);
        return write_standard_output(&bytes);
    };
    file.finish(&bytes)?;
    output.result(
        &text,
        &json!({
            "fabricated": true,
            "registered_proof": registered_proof.name(),
            "sector": sector,
            "miner": miner,
            "replica_id": c1.replica_id().to_string(),
            "comm_r": c1.comm_r().to_string(),
            "comm_d": c1.comm_d().to_string(),
            "out": args.out,
            "bytes": bytes.len(),
        }),
    )
}
