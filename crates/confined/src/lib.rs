//! Processes that read what nobody can trust: a file that makes its reader panic, unpack gigabytes or go on for ever harms
//! nothing but its own reading.
//!
//! Owns how such a process is named, and how it limits itself. What it reads, and who waits for it, is elsewhere.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How a process is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    pub variables: Vec<(OsString, OsString)>,
}

/// What a process may take.
#[derive(Debug, Clone, Copy)]
pub struct Confines {
    /// Bytes of memory, besides what it has taken so far.
    pub memory: u64,
    /// Of the processor.
    pub time: Duration,
}

/// Limits this process for the rest of its life. Where a limit cannot be set, whoever waits for it is the only one.
#[cfg(unix)]
pub fn confine(confines: Confines) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = |resource, most: u64| {
        let maximum = getrlimit(resource).maximum;
        let current = Some(maximum.map_or(most, |maximum| maximum.min(most)));
        if let Err(error) = setrlimit(resource, Rlimit { current, maximum }) {
            tracing::warn!(?resource, %error, "a process that reads a file could not be limited");
        }
    };
    limit(Resource::As, program_bytes() + confines.memory);
    limit(Resource::Cpu, confines.time.as_secs() + 2);
    // It may well end by an abort: nobody needs its memory on disk.
    limit(Resource::Core, 0);
}

#[cfg(not(unix))]
pub fn confine(_: Confines) {}

/// What the process has taken so far.
#[cfg(unix)]
fn program_bytes() -> u64 {
    /// Where nobody tells.
    const USUAL: u64 = 256 << 20;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB"));
    kilobytes.and_then(|number| number.trim().parse::<u64>().ok()).map_or(USUAL, |number| number << 10)
}
