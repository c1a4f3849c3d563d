//! How much memory there is for the host's part of the work.

use std::fs;

/// Bytes that this process can still use: the least of what the kernel calls available, what the control
/// group leaves, and what the limit on the address space leaves. `None` where none of them can be read.
pub fn available_memory() -> Option<u64> {
    let system = fs::read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text));
    [system, control_group_room(), address_space_room()].into_iter().flatten().min()
}

/// Gives freed memory back to the system. A proof frees hundreds of megabytes in pieces that the allocator would
/// keep for each thread; a node has better uses for them until the next proof.
pub(crate) fn return_freed_memory() {
    // SAFETY: the function may be called at any time, from any thread.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Room under this process's limit on its address space; `None` without a limit.
fn address_space_room() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let used = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)?;
    Some(limit.saturating_sub(used))
}

/// `MemAvailable` of /proc/meminfo, in bytes.
fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Room under the limit of this process's version 2 control group; `None` without a limit.
fn control_group_room() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let read = |file: &str| -> Option<u64> {
        fs::read_to_string(format!("/sys/fs/cgroup{path}/{file}")).ok()?.trim().parse().ok()
    };
    Some(read("memory.max")?.saturating_sub(read("memory.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_bytes() {
        assert_eq!(mem_available("MemTotal: 10 kB\nMemAvailable:    2048 kB\n"), Some(2048 * 1024));
        assert_eq!(mem_available("MemTotal: 10 kB\n"), None);
        assert_eq!(mem_available("MemAvailable: many kB\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_has_some_memory() {
        assert!(available_memory().unwrap() > 1 << 20);
    }
}
