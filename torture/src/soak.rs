//! `cargo xtask soak --seconds N`: clusters of one, two and four workers over each bus, harmed for that long each.

use anyhow::{Context, Result, bail, ensure};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use torture::Programs;
use torture::cluster::{Bus, Plan, Tally, trial};

struct Options {
    seconds: u64,
    seed: u64,
    workers: Vec<usize>,
    report: Option<PathBuf>,
}

fn read(arguments: &[String]) -> Result<Options> {
    let mut options = Options { seconds: 60, seed: 1, workers: vec![1, 2, 4], report: None };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { bail!("{} needs a value", pair[0]) };
        match name.as_str() {
            "--seconds" => options.seconds = value.parse().context("--seconds is a number")?,
            "--seed" => options.seed = value.parse().context("--seed is a number")?,
            "--workers" => {
                let numbers = value.split(',').map(str::parse);
                options.workers = numbers.collect::<Result<_, _>>().context("--workers are numbers: 1,2,4")?;
            }
            "--report" => options.report = Some(value.into()),
            _ => bail!("there is no {name}; choose from --seconds, --seed, --workers, --report"),
        }
    }
    Ok(options)
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = read(arguments)?;
    let here = std::env::current_exe()?;
    let programs = Programs::beside(here.parent().context("a program lies in a folder")?)?;
    let (mut rows, mut wrong) = (String::new(), Vec::new());
    for bus in Bus::ALL {
        for &workers in &options.workers {
            let plan = Plan { bus, workers, time: Duration::from_secs(options.seconds), seed: options.seed };
            println!("{bus}, {workers} workers");
            match trial(&programs, plan) {
                Ok(Tally { kills, restarts, accepted, calls, seconds }) => {
                    let row =
                        format!("| {bus} | {workers} | {accepted} | {calls} | {kills} | {restarts} | {seconds} |");
                    println!("{row}");
                    writeln!(rows, "{row}")?;
                }
                Err(error) => {
                    println!("WRONG {error:#}");
                    wrong.push(format!("- {bus}, {workers} workers: {error:#}\n").replace('\n', " "));
                }
            }
        }
    }
    if let Some(path) = &options.report {
        write(path, &section(&options, &rows, &wrong))?;
    }
    ensure!(wrong.is_empty(), "{} clusters went wrong", wrong.len());
    Ok(())
}

fn section(options: &Options, rows: &str, wrong: &[String]) -> String {
    let wrong = if wrong.is_empty() { "Nothing went wrong.".to_owned() } else { wrong.join("\n") };
    format!(
        "\n## Clusters\n\nWritten by `cargo xtask soak`: a gateway, workers and two aggregators over PostgreSQL and a bus, asked for {} s each \
         (supervisors, plans and single agents). About every second one of the processes is killed with SIGKILL and another one started; \
         PostgreSQL and the broker are killed and started once each. Every run that was accepted is answered, has one end and verifies, and \
         no call was made again after its outcome was on record.\n\n\
         | bus | workers | runs | calls of models and tools | processes killed | servers restarted | seconds |\n\
         |---|---|---|---|---|---|---|\n{rows}\n{wrong}\n",
        options.seconds
    )
}

/// Takes the place of the section that is there.
fn write(path: &PathBuf, section: &str) -> Result<()> {
    let known = std::fs::read_to_string(path).unwrap_or_default();
    let simulation = known.find("\n## Simulation").unwrap_or(known.len());
    let before = known.find("\n## Clusters").unwrap_or(simulation);
    std::fs::write(path, format!("{}{section}{}", &known[..before], &known[simulation..]))?;
    Ok(())
}
