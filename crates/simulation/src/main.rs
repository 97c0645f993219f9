//! `simulate --seeds 10000`: plays that many seeds, and cuts down what fails.
#![allow(clippy::print_stdout, reason = "a program tells what it does")]

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use trellis_simulation::report::{HEADING, Report};
use trellis_simulation::{Breach, Breakage, FinishedWorld, Scenario, broken, play, shrink};

const USAGE: &str = "choose what to simulate: `--seeds 10000` plays so many, `--from 500` begins there, `--seed 7` plays one, \
                     `--scenario FILE` plays what was kept, `--breakage NAME` makes a mistake on purpose and stops at the \
                     first seed that notices, `--save FOLDER` cuts down and keeps what fails, `--report FILE` writes what came of it";

#[derive(Debug, Default)]
struct Wanted {
    seeds: u64,
    from: u64,
    scenario: Option<PathBuf>,
    breakage: Option<Breakage>,
    save: Option<PathBuf>,
    report: Option<PathBuf>,
}

fn wanted() -> Result<Wanted> {
    let mut wanted = Wanted { seeds: 1_000, ..Wanted::default() };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().context(USAGE)?;
        let number = || value.parse::<u64>().with_context(|| format!("`{name}` needs a number, not `{value}`"));
        match name.as_str() {
            "--seeds" => wanted.seeds = number()?,
            "--from" => wanted.from = number()?,
            "--seed" => (wanted.from, wanted.seeds) = (number()?, 1),
            "--scenario" => wanted.scenario = Some(PathBuf::from(value)),
            "--save" => wanted.save = Some(PathBuf::from(value)),
            "--report" => wanted.report = Some(PathBuf::from(value)),
            "--breakage" => {
                let unknown = || format!("there is no mistake `{value}`; there are {:?}", Breakage::ALL);
                wanted.breakage = Some(value.parse().with_context(unknown)?);
            }
            _ => bail!(USAGE),
        }
    }
    Ok(wanted)
}

/// A finished world, and what it breaks; told, if it is anything.
fn examined(scenario: &Scenario, breakage: Option<Breakage>) -> (FinishedWorld, Vec<Breach>) {
    let world = play(scenario, breakage);
    let breaches = broken(&world);
    for Breach { promise, what } in &breaches {
        println!("  {promise}: {what}");
    }
    (world, breaches)
}

fn keep(scenario: &Scenario, name: &str, folder: &Path) -> Result<()> {
    let file = folder.join(format!("{name}.json"));
    std::fs::create_dir_all(folder)?;
    std::fs::write(&file, serde_json::to_string_pretty(scenario)? + "\n")?;
    println!("  kept: cargo xtask simulate --scenario {}", file.display());
    Ok(())
}

/// The first seed that notices a mistake.
fn noticed(breakage: Breakage) -> Option<(u64, &'static str)> {
    (0..1_000).find_map(|seed| {
        let breaches = broken(&play(&Scenario::from_seed(seed), Some(breakage)));
        breaches.first().map(|breach| (seed, breach.promise))
    })
}

/// The section takes the place of the one that was there.
fn write(report: &mut Report, file: &Path) -> Result<()> {
    for &breakage in Breakage::ALL {
        let (seed, promise) = noticed(breakage).with_context(|| format!("nobody notices {breakage}"))?;
        report.caught(breakage, seed, promise);
    }
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let before = text.split(HEADING).next().unwrap_or_default().trim_end();
    std::fs::write(file, format!("{before}\n\n{report}"))?;
    Ok(())
}

fn main() -> Result<()> {
    let wanted = wanted()?;
    if let Some(file) = &wanted.scenario {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let scenario = serde_json::from_str(&text).with_context(|| format!("{} is no scenario", file.display()))?;
        if !examined(&scenario, wanted.breakage).1.is_empty() {
            bail!("{} breaks a promise", file.display());
        }
        println!("every promise is kept");
        return Ok(());
    }
    let (mut report, mut failed) = (Report::default(), 0);
    for seed in wanted.from..wanted.from + wanted.seeds {
        let scenario = Scenario::from_seed(seed);
        let (world, breaches) = examined(&scenario, wanted.breakage);
        report.add(&world, !breaches.is_empty());
        let Some(first) = breaches.first() else { continue };
        failed += 1;
        println!("seed {seed} fails; again with: cargo xtask simulate --seed {seed}");
        if let Some(folder) = &wanted.save {
            let usual = format!("{}-{seed}", first.promise.replace(' ', "-"));
            let name = wanted.breakage.map_or(usual, |breakage| breakage.to_string());
            // As it is, first: cutting it down takes a while.
            keep(&scenario, &name, folder)?;
            keep(&shrink(&scenario, wanted.breakage, first.promise), &name, folder)?;
        }
        if wanted.breakage.is_some() {
            return Ok(());
        }
    }
    println!("{} seeds, {failed} failed", wanted.seeds);
    if let Some(file) = &wanted.report {
        write(&mut report, file)?;
    }
    if failed > 0 {
        bail!("{failed} of {} seeds break a promise", wanted.seeds);
    }
    Ok(())
}
