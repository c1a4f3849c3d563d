//! plan.

use clap::Args;
use cuporep::porep::{ProofKind, RegisteredProof, SectorSize};
use cuporep::{plan_gpu, GpuPlan, PlanRequest, PlannedBases, Result};
use serde_json::json;

use crate::bytes::{parse, show};
use crate::output::Output;

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Sector size: 2KiB, 8MiB, 512MiB, 32GiB, 64GiB
    #[arg(long)]
    size: SectorSize,
    /// Bytes of the GPU's memory that may be used, e.g. 15GiB [default: what is free on the first GPU]
    #[arg(long, value_name = "BYTES", value_parser = parse)]
    vram: Option<u64>,
    /// Bytes of host memory that a proof may take, e.g. 64GiB [default: what is available here]
    #[arg(long, value_name = "BYTES", value_parser = parse)]
    ram: Option<u64>,
    /// Partitions that are proved together [default: those of an interactive proof]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    partitions: Option<u16>,
}

/// Says where everything of a proof on a GPU will be.
pub fn run(args: &PlanArgs, output: &Output) -> Result<()> {
    let usual = RegisteredProof::new(args.size, ProofKind::V1_1).partitions();
    let partitions = args.partitions.map_or(usual, usize::from);
    let plan = plan_gpu(&PlanRequest { size: args.size, partitions, device_memory: args.vram, memory: args.ram })?;
    let bases: Vec<_> = plan.bases.iter().map(object).collect();
    let machine = json!({
        "size": args.size.name(),
        "partitions": partitions,
        "device_bytes": plan.device_bytes,
        "table_bytes": plan.table_bytes,
        "resident_bytes": plan.resident_bytes,
        "proof_bytes": plan.proof_bytes,
        "bases": bases,
        "chunk": plan.chunk,
        "moved_bytes": plan.moved_bytes,
        "host_bytes": plan.host_bytes,
        "pinned_bytes": plan.pinned_bytes,
    });
    output.result(&describe(&plan, partitions), &machine)
}

fn describe(plan: &GpuPlan, partitions: usize) -> String {
    let mut lines = vec![
        format!("device memory   {}", show(plan.device_bytes)),
        format!("  tables        {}", show(plan.table_bytes)),
        format!("  bases         {}", show(plan.resident_bytes)),
        format!("  proofs        {}", show(plan.proof_bytes)),
    ];
    for bases in &plan.bases {
        let PlannedBases { name, count, resident, bytes, .. } = *bases;
        let whole = show((count * bytes) as u64);
        let place = match resident {
            0 => "streamed".into(),
            _ if resident == count => "resident".into(),
            _ => format!("{} resident, the rest streamed", show((resident * bytes) as u64)),
        };
        lines.push(format!("bases of {name:<6} {whole}: {place}"));
    }
    if let Some(chunk) = plan.chunk {
        lines.push(format!("chunks          of at most {chunk} bases"));
    }
    lines.push(format!("to the device   {} a proof of {partitions} partitions", show(plan.moved_bytes)));
    lines.push(format!("host memory     {}, of it {} pinned", show(plan.host_bytes), show(plan.pinned_bytes)));
    if plan.chunk.is_some() {
        let file: usize = plan.bases.iter().map(|bases| bases.count * bases.bytes).sum();
        lines.push(format!("page cache      {} more keep the parameter file in memory", show(file as u64)));
    }
    lines.join("\n")
}

fn object(bases: &PlannedBases) -> serde_json::Value {
    json!({"name": bases.name, "count": bases.count, "resident": bases.resident, "bytes_each": bases.bytes})
}
