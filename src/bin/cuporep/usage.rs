//! What the process has used so far, as Linux counts it.

use std::fs::read_to_string;

/// The peak resident memory of this process, in MiB.
pub fn peak_memory() -> Option<u64> {
    let status = read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? / 1024)
}

/// Seconds that processors have worked for this process, on all cores together.
pub fn processor_seconds() -> Option<f64> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    // Behind the name in parentheses: user and system time are fields 14 and 15, in ticks of 10 ms.
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}
