//! A share of the simulation that every change has to withstand; `cargo xtask simulate` plays more.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::{Path, PathBuf};
use trellis_simulation::{Breach, Breakage, Scenario, broken, play};

fn told(breaches: &[Breach]) -> String {
    breaches.iter().map(|breach| format!("{}: {}", breach.promise, breach.what)).collect::<Vec<_>>().join("\n")
}

fn keeps_the_promises(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let breaches = broken(&play(&Scenario::from_seed(seed), None));
        assert!(breaches.is_empty(), "cargo xtask simulate --seed {seed}\n{}", told(&breaches));
    }
}

#[test]
fn the_first_seeds_keep_every_promise() {
    keeps_the_promises(0..250);
}

#[test]
fn the_next_seeds_keep_every_promise() {
    keeps_the_promises(250..500);
}

/// So many scenarios are played twice. What is random happens seldom enough to be missed by a few.
const SAME: u64 = 60;

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let mut all = Vec::new();
    for seed in 0..SAME {
        let scenario = Scenario::from_seed(seed);
        let digest = play(&scenario, None).digest();
        assert_eq!(play(&scenario, None).digest(), digest, "seed {seed}");
        all.push(digest);
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len() as u64, SAME, "each seed has its own course");
}

fn kept(folder: &Path) -> Vec<(PathBuf, Scenario)> {
    let read = |file: PathBuf| {
        let scenario = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        (file, scenario)
    };
    std::fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap().path())).collect()
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// The checks can fail: for each deliberate mistake a scenario is kept that notices it.
#[test]
fn every_breakage_is_caught() {
    for &breakage in Breakage::ALL {
        let text = std::fs::read_to_string(scenarios().join(format!("{breakage}.json"))).unwrap();
        let scenario = serde_json::from_str(&text).unwrap();
        assert!(!broken(&play(&scenario, Some(breakage))).is_empty(), "nobody notices {breakage}");
    }
}

/// Without a mistake, the same scenarios and those that failed once are harmless.
#[test]
fn kept_scenarios_keep_every_promise() {
    let kept = kept(&scenarios());
    assert!(kept.len() >= Breakage::ALL.len());
    for (file, scenario) in kept {
        let breaches = broken(&play(&scenario, None));
        assert!(breaches.is_empty(), "{}\n{}", file.display(), told(&breaches));
    }
}
