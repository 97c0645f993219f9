//! One file per command.

mod ask;
mod config;
mod doctor;
mod resume;
mod run;
mod runs;
mod serve;
mod sparql;
mod verify;

use crate::app::App;
use crate::cli::{Cli, Command, GraphCommand, Output, RunCommand};
use crate::failure::{Exit, Failure};
use serde_json::json;
use std::io::Read;
use std::time::Duration;

pub(crate) async fn run(cli: Cli) -> Result<Exit, Failure> {
    let global = &cli.global;
    check_output(&cli)?;
    match &cli.command {
        Command::Ask(ask) => ask::run(global, ask).await,
        Command::Serve(serve) => serve::run(global, serve).await,
        Command::Resume { limit } => resume::run(global, limit).await,
        Command::Runs(runs) => runs::run(&App::open_existing(global, "runs")?, global, runs).await,
        Command::Run(RunCommand::Show { run, full }) => {
            run::show(&App::open_existing(global, "run show")?, global, run, *full).await
        }
        Command::Run(RunCommand::Answer { run, strict }) => {
            run::answer(&App::open_existing(global, "run answer")?, global, run, *strict).await
        }
        Command::Run(RunCommand::Export { run, format }) => {
            run::export(&App::open_existing(global, "run export")?, run, *format).await
        }
        Command::Run(RunCommand::Cancel { run }) => {
            run::cancel(&App::open_existing(global, "run cancel")?, global, run).await
        }
        Command::Verify { run } => verify::run(&App::open_existing(global, "verify")?, global, run).await,
        Command::Sparql { query, limit, timeout } => {
            let query = if query == "-" { read_input("the query")? } else { query.clone() };
            let app = App::open_existing(global, "sparql")?;
            sparql::run(&app, global, query, *limit, Duration::from_secs(*timeout)).await
        }
        Command::Graph(GraphCommand::Rebuild) => {
            let app = App::open_existing(global, "graph rebuild")?;
            let runs = app.store.graph.rebuild()?;
            let text = match global.output {
                Output::Json => json!({"finished_runs": runs}).to_string(),
                Output::Text | Output::Ndjson | Output::Csv => {
                    format!("rebuilt the graph; finished runs in it: {runs}")
                }
            };
            crate::show::print_line(&text)?;
            Ok(Exit::Ok)
        }
        Command::Config(command) => config::run(global, command).await,
        Command::Doctor => doctor::run(global).await,
    }
}

/// Only `ask` has a stream of events, only `sparql` has a table of values.
fn check_output(cli: &Cli) -> Result<(), Failure> {
    match (cli.global.output, &cli.command) {
        (Output::Ndjson, Command::Ask(_)) | (Output::Csv, Command::Sparql { .. }) => Ok(()),
        (Output::Ndjson, _) => Err(Failure::usage("--output ndjson is for `ask`; use json")),
        (Output::Csv, _) => Err(Failure::usage("--output csv is for `sparql`; use json")),
        (Output::Text | Output::Json, _) => Ok(()),
    }
}

/// More than any limit allows, so that the limit's own message is shown.
const MOST_INPUT: u64 = 8 << 20;

/// Reads standard input, which must be UTF-8.
fn read_input(what: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MOST_INPUT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_INPUT {
        return Err(Failure::usage(format!(
            "{what} on standard input is longer than {} MiB; shorten it",
            MOST_INPUT >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::usage(format!("{what} on standard input is not UTF-8 (byte {place}); convert it first"))
    })
}
