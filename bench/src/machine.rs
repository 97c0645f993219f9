//! What processes have used so far, as Linux tells it.

use std::collections::BTreeMap;
use std::time::Duration;

/// Where the numbers of a process have its parent's id, its own CPU time, and that of its children that have ended.
const PARENT: usize = 1;
const OWN_TIME: [usize; 2] = [11, 12];
const CHILDREN_TIME: [usize; 2] = [13, 14];

/// CPU time of all threads of this process, user and system.
pub(crate) fn cpu() -> Duration {
    time(&numbers("self"), OWN_TIME)
}

/// The same of a process, and of all that it and its children have started.
pub(crate) fn cpu_of_family(root: u32) -> Duration {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let all: BTreeMap<u64, Vec<u64>> = ids.map(|id| (id, numbers(&id.to_string()))).collect();
    let family = all.iter().filter(|(id, _)| is_below(&all, **id, u64::from(root)));
    family.map(|(_, numbers)| time(numbers, OWN_TIME) + time(numbers, CHILDREN_TIME)).sum()
}

fn is_below(all: &BTreeMap<u64, Vec<u64>>, mut id: u64, root: u64) -> bool {
    while id != root {
        match all.get(&id).and_then(|numbers| numbers.get(PARENT)) {
            Some(parent) if *parent > 0 => id = *parent,
            _ => return false,
        }
    }
    true
}

/// What stands behind a process's name; letters count as zero. Nothing if it has ended.
fn numbers(process: &str) -> Vec<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The command's name may contain spaces; the numbers begin behind its bracket.
    let numbers = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    numbers.map(|field| field.parse().unwrap_or(0)).collect()
}

fn time(numbers: &[u64], places: [usize; 2]) -> Duration {
    const MS_PER_TICK: u64 = 10;
    let ticks: u64 = places.iter().filter_map(|place| numbers.get(*place)).sum();
    Duration::from_millis(ticks * MS_PER_TICK)
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
