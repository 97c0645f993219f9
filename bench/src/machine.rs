//! What this process has used so far, as Linux tells it.

use std::time::Duration;

/// CPU time of all threads, user and system.
pub(crate) fn cpu() -> Duration {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The command's name may contain spaces; the numbers begin behind its bracket.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Duration::from_secs_f64((ticks(11) + ticks(12)) / TICKS_PER_SECOND)
}

/// Memory now and at most, in MB.
pub(crate) fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    (value("VmRSS:").unwrap_or(0) / 1024, value("VmHWM:").unwrap_or(0) / 1024)
}
