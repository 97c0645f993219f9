//! Chores. `cargo xtask test` is everything that must pass.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore tells what it does")]

mod advisories;
mod bodies;
mod corpus;
mod dist;
mod environment;
mod evaluate;
mod fuseki;
mod lints;
mod maven;
mod page;
mod programs;
mod pulsar;
mod referees;
mod served;
mod servers;

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("test") => test(),
        Some("acceptance") => {
            bodies::forget()?;
            acceptance()
        }
        Some("bench") => bench(std::env::args().nth(2).as_deref()),
        Some("evaluate") => evaluate::evaluate(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("corpus") => corpus::corpus(),
        Some("dist") => dist::make(),
        Some("referees") => referees::judge(),
        Some("servers") => servers::install(),
        Some("ui") => {
            run("cargo", &["build", "--package", "trellis"])?;
            page::check()
        }
        Some("simulate") => simulate(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("soak") => soak(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("torture") => torture(&std::env::args().skip(2).collect::<Vec<_>>()),
        _ => bail!(
            "choose a chore: `cargo xtask test` checks everything, `cargo xtask acceptance` only what stock clients see, \
             `cargo xtask ui` the web page, \
             `cargo xtask bench` measures everything, or one thing that is named (`page`: in a browser), \
             `cargo xtask torture --minutes 30` does harm and looks what comes of it, \
             `cargo xtask soak --seconds 60` kills processes of clusters and restarts their servers, \
             `cargo xtask simulate --seeds 1000` plays as many worlds in which everything goes wrong, \
             `cargo xtask evaluate` asks real models, `cargo xtask corpus` fetches calls that others have written, \
             `cargo xtask dist` makes an archive and a Debian package, \
             `cargo xtask servers` fetches the brokers and databases that tests start, \
             `cargo xtask referees` has all calls judged by benchmarks of others, of which the tests take a sample"
        ),
    }
}

fn test() -> Result<()> {
    lints::format()?;
    // Small, and some of what is built needs it.
    pulsar::fetch_protoc()?;
    // The rest of what comes over the network is not waited for: nothing that is built needs it.
    let fetching = std::thread::spawn(fetch);
    let linted = lints::environment();
    let programs = programs::build(&linted)?;
    fetching.join().map_err(|_| anyhow::anyhow!("fetching ended with a panic, told above"))??;
    bodies::forget()?;
    let beside = std::thread::spawn(move || beside(&linted));
    let (name, folder) = bodies::kept()?;
    let tested = programs::run(&programs, &[("RUST_TEST_THREADS", &threads()), (name, &folder)]);
    let beside = beside.join().map_err(|_| anyhow::anyhow!("a check ended with a panic, told above"))?;
    tested?;
    beside?;
    bodies::check()?;
    // The program was built for the tests before. Nothing runs beside the browser, whose times are looked at.
    page::check()?;
    advisories::check()?;
    println!("all checks passed");
    Ok(())
}

/// What only computes, while tests wait for something else.
fn beside(linted: &lints::Environment) -> Result<()> {
    lints::build_as_users(linted)?;
    let environment: Vec<_> = linted.iter().map(|(name, value)| (*name, value.as_str())).collect();
    run_with("nice", &["-n", "19", "cargo", "test", "--workspace", "--all-features", "--doc"], &environment)
}

/// The release binary in figures: all of them, or one measurement by its name. That of the page is taken in a browser.
fn bench(only: Option<&str>) -> Result<()> {
    const PAGE: &str = "page";
    run("cargo", &["build", "--release", "--package", "trellis", "--package", "bench"])?;
    if only != Some(PAGE) {
        servers::install()?;
        environment::install_in_part("trustgraph", "acceptance/trustgraph.txt")?;
        run("cargo", &[&["run", "--release", "--quiet", "--package", "bench", "--"], only.as_slice()].concat())?;
    }
    if only.is_none_or(|name| name == PAGE) { page::measure() } else { Ok(()) }
}

/// How many tests of a program run at once.
fn threads() -> String {
    let usual = || std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2)).to_string();
    std::env::var("RUST_TEST_THREADS").unwrap_or_else(|_| usual())
}

/// Everything of others that tests need, once.
fn fetch() -> Result<()> {
    servers::install()?;
    fetch_clients()?;
    page::fetch()
}

fn fetch_clients() -> Result<()> {
    let python = environment::install("clients", "acceptance/requirements.txt")?;
    environment::install_in_part("trustgraph", "acceptance/trustgraph.txt")?;
    environment::install_node()?;
    evaluate::fetch("smollm2")?;
    referees::fetch(&python)
}

/// The program as it is used, asked by clients that nobody here wrote.
fn acceptance() -> Result<()> {
    pulsar::fetch_protoc()?;
    fetch_clients()?;
    // As for the other tests, which need the program too: any other way would build everything once more.
    run("cargo", &["test", "--workspace", "--all-features", "--no-run", "--quiet"])?;
    let (name, folder) = bodies::kept()?;
    run_with(
        "cargo",
        &["test", "--workspace", "--all-features", "--test", "acceptance", "--", "--include-ignored"],
        &[(name, &folder)],
    )?;
    bodies::check()
}

/// The real orchestrator in a simulated world, one for each seed.
fn simulate(options: &[String]) -> Result<()> {
    run("cargo", &["build", "--release", "--package", "trellis-simulation"])?;
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    run("target/release/simulate", &options)
}

/// Clusters of the release binary are harmed. The report is a section of the documentation.
fn soak(options: &[String]) -> Result<()> {
    servers::install()?;
    run("cargo", &["build", "--release", "--package", "trellis", "--package", "torture"])?;
    let report = ["--report".to_owned(), root()?.join("docs/reliability.md").display().to_string()];
    let own = if options.contains(&report[0]) { &[][..] } else { &report[..] };
    let options: Vec<_> = ["soak"].into_iter().chain(options.iter().chain(own).map(String::as_str)).collect();
    run("target/release/torture", &options)
}

/// The release binary is killed, starved, flooded, and its files are damaged. The report is part of the documentation.
fn torture(options: &[String]) -> Result<()> {
    run("cargo", &["build", "--release", "--package", "trellis", "--package", "torture"])?;
    let report = ["--report".to_owned(), root()?.join("docs/reliability.md").display().to_string()];
    let own = if options.contains(&report[0]) { &[][..] } else { &report[..] };
    let options: Vec<_> = options.iter().chain(own).map(String::as_str).collect();
    run("target/release/torture", &options)
}

fn root() -> Result<PathBuf> {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    Ok(manifest.parent().context("xtask lies in the workspace")?.to_owned())
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    run_with(program, arguments, &[])
}

fn run_with(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    println!("$ {program} {}", arguments.join(" "));
    let command = &mut Command::new(program);
    let status = command.args(arguments).envs(environment.iter().copied()).current_dir(root()?).status();
    let status = status.with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("`{program} {}` failed: {status}", arguments.join(" "));
    }
    Ok(())
}
