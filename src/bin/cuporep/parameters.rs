//! params generate, params check.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cuporep::pipeline::Control;
use cuporep::porep::SectorSize;
use cuporep::{Prover, Result};
use serde_json::json;

use crate::output::Output;

#[derive(Debug, Subcommand)]
pub enum ParamsCommand {
    /// Make INSECURE test parameters from the secrets of a seed
    Generate(GenerateArgs),
    /// Check the parameters of a sector size
    Check(CheckArgs),
}

#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Sector size: 2KiB, 8MiB, 512MiB, 32GiB, 64GiB
    #[arg(long)]
    size: SectorSize,
    /// Seed of the secrets; whoever knows it can forge proofs
    #[arg(long, value_name = "SEED")]
    insecure_seed: u64,
    /// Directory to write into; never the default parameter directory
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The GPU to make them on, by number or UUID [default: the CPU]
    #[cfg(feature = "cuda")]
    #[arg(long, value_name = "DEVICE")]
    device: Option<cuporep::DeviceName>,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Sector size: 2KiB, 8MiB, 512MiB, 32GiB, 64GiB
    #[arg(long)]
    size: SectorSize,
    /// Parameter directory [default: FIL_PROOFS_PARAMETER_CACHE, else /var/tmp/filecoin-proof-parameters]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Compute the digests of the whole files and compare them with the official ones
    #[arg(long)]
    digest: bool,
}

pub fn run(command: &ParamsCommand, prover: &Prover, control: &Control, output: &Output) -> Result<()> {
    match command {
        ParamsCommand::Generate(args) => {
            let made = generate(args, prover, control)?;
            output.result(
                &format!("INSECURE test parameters of seed {}: {}", args.insecure_seed, made.display()),
                &json!({"insecure": true, "seed": args.insecure_seed, "params": made}),
            )
        }
        ParamsCommand::Check(args) => {
            let directory = args.dir.clone().unwrap_or_else(|| prover.parameter_dir());
            let report = prover.check_parameters(args.size, &directory, args.digest, control)?;
            let kind = match (report.official, report.insecure) {
                (_, true) => "INSECURE test parameters",
                (true, false) => "the official parameters",
                (false, false) => "parameters of unknown origin",
            };
            let digest = report.digest.as_deref().map(|digest| format!(", digest {digest}")).unwrap_or_default();
            output.result(
                &format!("ok: {} are {kind}{digest}", report.path.display()),
                &json!({
                    "ok": true,
                    "params": report.path,
                    "official": report.official,
                    "insecure": report.insecure,
                    "digest": report.digest,
                }),
            )
        }
    }
}

fn generate(args: &GenerateArgs, prover: &Prover, control: &Control) -> Result<PathBuf> {
    let GenerateArgs { size, insecure_seed, dir, .. } = args;
    #[cfg(feature = "cuda")]
    if let Some(device) = &args.device {
        return prover.generate_insecure_parameters_on(device, *size, *insecure_seed, dir, control);
    }
    prover.generate_insecure_parameters(*size, *insecure_seed, dir, control)
}
