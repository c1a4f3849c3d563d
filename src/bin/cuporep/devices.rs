//! devices.

use cuporep::{devices, why_no_devices, Device, Result};
use serde_json::{json, Value};

use crate::output::Output;

/// Lists the GPUs that can make proofs.
pub fn list(output: &Output) -> Result<()> {
    let devices: Vec<(Device, Option<u64>)> =
        devices().into_iter().map(|device| (device.clone(), device.free_memory())).collect();
    let reason = if devices.is_empty() { why_no_devices() } else { None };
    let mut lines: Vec<String> = devices.iter().map(line).collect();
    if let Some(reason) = &reason {
        lines.push(format!("no GPU: {reason}"));
    }
    lines.push("cpu".into());
    let objects: Vec<Value> = devices.iter().map(object).collect();
    output.result(&lines.join("\n"), &json!({"devices": objects, "reason": reason}))
}

fn line((device, free): &(Device, Option<u64>)) -> String {
    let (major, minor) = device.compute;
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let free = free.map_or("unknown".into(), |free| format!("{:.1} GiB", gib(free)));
    format!("{device}, compute capability {major}.{minor}, memory {:.1} GiB, free {free}", gib(device.memory))
}

fn object((device, free): &(Device, Option<u64>)) -> Value {
    json!({
        "ordinal": device.ordinal,
        "name": device.name,
        "uuid": device.uuid,
        "compute_capability": format!("{}.{}", device.compute.0, device.compute.1),
        "memory": device.memory,
        "free_memory": free,
    })
}
