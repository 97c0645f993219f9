//! One file per command.

mod ask;
mod config;
mod doctor;
mod resume;
mod run;
mod runs;
mod sparql;
mod verify;

use crate::app::App;
use crate::cli::{Cli, Command, GraphCommand, Output, RunCommand};
use crate::failure::{Exit, Failure};
use std::io::Read;

pub(crate) async fn run(cli: Cli) -> Result<Exit, Failure> {
    let global = &cli.global;
    check_output(&cli)?;
    match &cli.command {
        Command::Ask(ask) => ask::run(global, ask).await,
        Command::Resume => resume::run(global).await,
        Command::Runs(runs) => runs::run(&App::open(global, "runs").await?, global, runs).await,
        Command::Run(RunCommand::Show { run, full }) => {
            run::show(&App::open(global, "run show").await?, global, run, *full).await
        }
        Command::Run(RunCommand::Export { run, format }) => {
            run::export(&App::open(global, "run export").await?, run, *format).await
        }
        Command::Verify { run } => verify::run(&App::open(global, "verify").await?, global, run).await,
        Command::Sparql { query, limit } => {
            let query = if query == "-" { read_input("the query")? } else { query.clone() };
            sparql::run(&App::open(global, "sparql").await?, global, &query, *limit)
        }
        Command::Graph(GraphCommand::Rebuild) => {
            let app = App::open(global, "graph rebuild").await?;
            let runs = app.store.graph.rebuild()?;
            println!("rebuilt the graph from {runs} finished runs");
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
    std::io::stdin().lock().take(MOST_INPUT).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::usage(format!("{what} on standard input is not UTF-8 (byte {place}); convert it first"))
    })
}
