//! `cargo xtask torture --minutes N`: all trials in turn until the time is over, then a report.
#![allow(clippy::print_stdout, reason = "progress and a report for people")]
#![allow(clippy::disallowed_methods, reason = "real processes live in real time")]

mod report;
mod soak;

use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;
use report::Report;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use torture::disk::FailingDisk;
use torture::folder::Specimen;
use torture::{Programs, attacks, damage, disk, kills, loading, read_back};

struct Options {
    minutes: u64,
    seed: u64,
    runs: usize,
    /// No more faults than this.
    faults: usize,
    /// Nothing but faults.
    only_faults: bool,
    report: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, folder] = &arguments[..]
        && verb == "read"
    {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        for line in runtime.block_on(read_back::lines(Path::new(folder)))? {
            println!("{line}");
        }
        return Ok(());
    }
    if let [verb, options @ ..] = &arguments[..]
        && verb == "soak"
    {
        return soak::run(options);
    }
    let options = read(&arguments)?;
    let here = std::env::current_exe()?;
    let programs = Programs::beside(here.parent().context("a program lies in a folder")?)?;
    let report = torment(&programs, &options)?;
    println!("\n{report}");
    if let Some(path) = &options.report {
        // Others have sections of their own behind this.
        let known = std::fs::read_to_string(path).unwrap_or_default();
        let others = ["\n## Clusters", "\n## Simulation"].iter().filter_map(|head| known.find(head)).min();
        let others = others.map_or("", |place| &known[place..]);
        std::fs::write(path, format!("{report}{others}"))?;
    }
    ensure!(report.wrong.is_empty(), "{} trials went wrong", report.wrong.len());
    Ok(())
}

fn read(arguments: &[String]) -> Result<Options> {
    let mut options =
        Options { minutes: 10, seed: 1, runs: 2_000, faults: usize::MAX, only_faults: false, report: None };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { bail!("{} needs a value", pair[0]) };
        match name.as_str() {
            "--minutes" => options.minutes = value.parse().context("--minutes is a number")?,
            "--seed" => options.seed = value.parse().context("--seed is a number")?,
            "--runs" => options.runs = value.parse().context("--runs is a number")?,
            "--faults" => options.faults = value.parse().context("--faults is a number")?,
            "--only" if value == "faults" => options.only_faults = true,
            "--report" => options.report = Some(value.into()),
            _ => bail!("there is no {name}; choose from --minutes, --seed, --runs, --faults, --only faults, --report"),
        }
    }
    Ok(options)
}

/// Goes round the trials until the time is over. What takes long is done once in each round.
fn torment(programs: &Programs, options: &Options) -> Result<Report> {
    let (begun, time) = (Instant::now(), Duration::from_secs(options.minutes * 60));
    let mut report = Report::new(options.seed, options.runs);
    println!("filling folders of {} runs", options.runs);
    let specimens = Specimen::pair(programs, options.runs)?;
    let disk = FailingDisk::compile()?;
    let mut seed = options.seed;
    while begun.elapsed() < time && report.faults() < options.faults {
        if !options.only_faults {
            println!("round {seed}: kills, disks, attacks");
            others(programs, &disk, seed, &mut report)?;
        }
        println!("round {seed}: faults");
        let until = Instant::now() + (time / 3).max(Duration::from_secs(20));
        faults(programs, &specimens, options, until, &mut report)?;
        println!("{} faults, {} s", report.faults(), begun.elapsed().as_secs());
        seed += 1;
    }
    report.seconds = begun.elapsed().as_secs();
    Ok(report)
}

/// Damages copies of the specimens until the time is over, as many at once as the machine has room for.
fn faults(
    programs: &Programs,
    specimens: &[Specimen; 2],
    options: &Options,
    until: Instant,
    report: &mut Report,
) -> Result<()> {
    // A trial waits for the disk, too.
    let at_once = thread::available_parallelism().map_or(1, NonZero::get) + 1;
    let next = AtomicUsize::new(report.faults());
    let report = Mutex::new(report);
    let work = || -> Result<()> {
        while Instant::now() < until {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= options.faults {
                break;
            }
            // Half of them come in pairs.
            let (specimen, count) = (&specimens[number % 2], 1 + number / 2 % 2);
            let trial = damage::trial(programs, specimen, count, options.seed << 32 | number as u64)?;
            let mut report = report.lock();
            report.fault(specimen.how, trial);
            if report.faults().is_multiple_of(50) {
                println!("{} faults", report.faults());
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a trial does not panic"))
    })
}

/// Everything but damaged files.
fn others(programs: &Programs, disk: &FailingDisk, seed: u64, report: &mut Report) -> Result<()> {
    report.kills(seed, kills::trial(programs, 10, seed));
    report.loads(seed, loading::trial(programs, 8, seed));
    report.full_disk(seed, disk::full(programs, disk, seed));
    for lost in [false, true] {
        report.failed_sync(seed, lost, disk::failed_sync(programs, disk, 160 + seed * 37 % 300, lost));
    }
    attack(programs, report)
}

fn attack(programs: &Programs, report: &mut Report) -> Result<()> {
    let data = TempDir::new()?;
    programs.ok(data.path(), &["ask", "Assess the risk profile of Company X as a potential partner"])?;
    let mut server = attacks::server(programs, data.path())?;
    for (what, attack) in attacks::ATTACKS {
        let outcome = attacks::survives(&mut server, what, attack);
        let alive = server.is_alive();
        report.attack(what, outcome.map(|()| attacks::peak_mb(server.id()).unwrap_or(0)));
        if !alive {
            server = attacks::server(programs, data.path())?;
        }
    }
    Ok(())
}
