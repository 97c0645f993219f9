//! A share of the torture that every change has to withstand; `cargo xtask torture` has no end but its time.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use torture::cluster::{Bus, Plan};
use torture::damage::Outcome;
use torture::disk::FailingDisk;
use torture::folder::Specimen;
use torture::loaded::{FOLDERS, HARMS, Loaded};
use torture::{Programs, attacks, cluster, damage, disk, kills, loading};

fn programs() -> Programs {
    Programs::beside(Path::new(env!("CARGO_BIN_EXE_torture")).parent().unwrap()).unwrap()
}

#[test]
fn damage_is_named_or_harmless() {
    let programs = programs();
    let specimens = Specimen::pair(&programs, 60).unwrap();
    let (mut seen, mut wrong) = ([0, 0], Vec::new());
    for number in 0..60 {
        let (faults, outcome) =
            damage::trial(&programs, &specimens[number % 2], 1 + number / 2 % 2, number as u64).unwrap();
        match outcome {
            Outcome::Named => seen[0] += 1,
            Outcome::Harmless => seen[1] += 1,
            Outcome::Wrong(what) => wrong.push(format!("number {number}, {faults:?}: {what}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen[0] > 30, "most damage matters: {seen:?}");
}

/// Each kind of harm to each of the folders, with files and places that chance picks.
#[test]
fn harm_to_what_was_loaded_is_named_and_no_matter_of_runs() {
    let programs = programs();
    let loaded = Loaded::new(&programs).unwrap();
    let mut wrong = Vec::new();
    for (number, folder) in FOLDERS.into_iter().enumerate() {
        for (round, harm) in HARMS.into_iter().chain(HARMS).enumerate() {
            let seed = (number * 100 + round) as u64;
            wrong.extend(
                loaded.trial(&programs, folder, harm, seed).err().map(|error| format!("seed {seed}: {error:#}")),
            );
        }
        wrong.extend(loaded.without(&programs, folder).err().map(|error| format!("without {folder}: {error:#}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How many faults are harmless depends on how the files came to lie, so what must be found harmless is no fault at all.
#[test]
fn a_folder_without_damage_is_not_accused() {
    let programs = programs();
    for specimen in &Specimen::pair(&programs, 20).unwrap() {
        let (_, outcome) = damage::trial(&programs, specimen, 0, 1).unwrap();
        assert!(matches!(outcome, Outcome::Harmless), "{}: {outcome:?}", specimen.how);
    }
}

#[test]
fn killed_servers_lose_nothing_and_repeat_nothing() {
    let tally = kills::trial(&programs(), 4, 1).unwrap();
    assert!(tally.accepted > 20, "{tally:?}");
}

#[test]
fn killed_loads_and_removals_leave_each_fact_once() {
    assert!(loading::trial(&programs(), 4, 1).unwrap() > 2);
}

#[test]
fn a_full_disk_loses_nothing() {
    let disk = FailingDisk::compile().unwrap();
    for seed in 0..3 {
        disk::full(&programs(), &disk, seed).unwrap();
    }
}

#[test]
fn after_a_failed_sync_the_server_stops_and_the_next_one_trusts_nothing_unwritten() {
    let disk = FailingDisk::compile().unwrap();
    for (number, lost) in [(165, false), (166, true), (191, false), (202, true)] {
        let accepted = disk::failed_sync(&programs(), &disk, number, lost).unwrap();
        assert!(accepted > 0, "sync {number} is one of those that runs need");
    }
}

#[test]
fn no_caller_ends_a_server_with_little_memory() {
    survives_half_of_the_attacks(0);
}

/// On a machine with several cores, both halves take the time of one.
#[test]
fn no_other_caller_ends_a_server_with_little_memory() {
    survives_half_of_the_attacks(1);
}

fn survives_half_of_the_attacks(half: usize) {
    let (programs, data) = (programs(), TempDir::new().unwrap());
    programs.ok(data.path(), &["ask", "Assess the risk profile of Company X as a potential partner"]).unwrap();
    let mut server = attacks::server(&programs, data.path()).unwrap();
    for (what, attack) in attacks::ATTACKS.into_iter().skip(half).step_by(2) {
        attacks::survives(&mut server, what, attack).unwrap();
    }
}

#[test]
fn a_cluster_outlives_its_processes_and_servers() {
    let plan = Plan { bus: Bus::RabbitMq, workers: 2, time: Duration::from_secs(12), seed: 3 };
    let tally = cluster::trial(&programs(), plan).unwrap();
    assert!(tally.kills > 2 && tally.restarts == 2, "{tally:?}");
}
