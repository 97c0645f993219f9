//! One file per command.

mod ask;
mod attend;
mod config;
mod decide;
mod decisions;
mod diff;
mod doctor;
mod documents;
mod enforcement;
mod erase;
mod eval;
mod examine;
mod knowledge;
mod load;
mod log;
mod mcp;
mod orchestrator;
mod prompt;
mod resume;
mod route;
mod run;
mod runs;
mod serve;
mod shells;
mod slow;
mod sparql;
mod status;
mod step;
mod tables;
mod tools;
mod verify;
mod watch;
mod why;
mod worker;

use crate::cli::{Cli, Command, Global, GraphCommand, Output, RunCommand};
use crate::desk::{Desk, folder_alone};
use crate::failure::{Exit, Failure};
use crate::query_settings;
use crate::state::Purpose;
use serde_json::json;
use std::io::Read;
use std::time::Duration;

pub(crate) async fn run(cli: Cli) -> Result<Exit, Failure> {
    let global = &cli.global;
    let Some(command) = &cli.command else { return Box::pin(prompt::run(global)).await };
    check_output(global, command)?;
    match command {
        Command::Ask(ask) => ask::run(global, ask).await,
        Command::Eval(eval) => eval::run(global, eval).await,
        Command::Serve(serve) => {
            if global.url.is_some() {
                return Err(Failure::usage(
                    "`trellis serve` is a server itself; --listen says where, --url is for others",
                ));
            }
            serve::run(global, serve).await
        }
        Command::Worker(worker) => {
            let work = if worker.no_aggregation { worker::ONLY_TURNS } else { worker::WORKER };
            Box::pin(worker::run(global, &worker.background, work)).await
        }
        Command::Aggregator(background) => Box::pin(worker::run(global, background, worker::AGGREGATOR)).await,
        Command::Orchestrator(flags) => orchestrator::run(global, flags).await,
        Command::Mcp { limit } => mcp::run(global, limit).await,
        Command::Resume { run, limit } => resume::run(global, run.as_deref(), limit).await,
        Command::Runs(runs) => runs::run(&Desk::look(global, "runs")?, global, runs).await,
        Command::Run(command) => one_run(global, command).await,
        Command::Status { watch, .. } => status::run(global, *watch).await,
        Command::Verify { run, anchor } => {
            verify::run(&Desk::look(global, "verify")?, global, run, anchor.as_deref()).await
        }
        Command::Log(command) => log::run(&Desk::look(global, "log")?, global, command).await,
        Command::Erase(erase) => erase::run(global, erase).await,
        Command::Load(load) => load::run(global, load).await,
        Command::Knowledge(command) => knowledge::run(global, command).await,
        Command::Documents(command) => documents::run(global, command).await,
        Command::Tables(command) => tables::run(global, command).await,
        Command::Sparql { query, limit, timeout, query_limit } => {
            let query = if query == "-" { read_input("the query")? } else { query.clone() };
            let settings = query_settings::of_operator(global, query_limit)?;
            let desk = Desk::look(global, "sparql")?;
            if let Desk::Local(app) = &desk {
                app.evaluate_queries(settings);
            }
            sparql::run(&desk, global, &query, *limit, timeout.map(Duration::from_secs)).await
        }
        Command::Graph(GraphCommand::Rebuild) => {
            let app = folder_alone(
                global,
                "graph rebuild",
                Purpose::Write,
                "stop the server and rebuild the graph of its folder",
            )?;
            let runs = match &app.store.remote {
                Some(remote) => remote.rebuild().await?,
                None => app.store.only_folder()?.graph.rebuild()?,
            };
            let text = match global.output {
                Output::Json => json!({"finished_runs": runs}).to_string(),
                Output::Text | Output::Ndjson | Output::Csv => {
                    format!("rebuilt the graph; finished runs in it: {runs}")
                }
            };
            crate::show::print_line(&text)?;
            Ok(Exit::Ok)
        }
        Command::Route { question } => route::run(global, question).await,
        Command::Config(command) => config::run(global, command).await,
        Command::Tools(command) => tools::run(global, command).await,
        Command::Completions { shell } => shells::completions(*shell),
        Command::Man { folder } => shells::manual(folder),
        Command::Doctor { models } => doctor::run(global, *models).await,
    }
}

async fn one_run(global: &Global, command: &RunCommand) -> Result<Exit, Failure> {
    match command {
        RunCommand::Show { run, step: Some(step), .. } => {
            step::run(&Desk::look(global, "run show")?, global, run, step).await
        }
        RunCommand::Show { run, full, step: None } => {
            run::show(&Desk::look(global, "run show")?, global, run, *full).await
        }
        RunCommand::Watch { run, strict } => watch::run(&Desk::look(global, "run watch")?, global, run, *strict).await,
        RunCommand::Answer { run, strict } => {
            run::answer(&Desk::look(global, "run answer")?, global, run, *strict).await
        }
        RunCommand::Why { run, about } => {
            why::run(&Desk::look(global, "run why")?, global, run, about.as_deref()).await
        }
        RunCommand::Decisions { run } => decisions::run(&Desk::look(global, "run decisions")?, global, run).await,
        RunCommand::Diff { run, other } => diff::run(&Desk::look(global, "run diff")?, global, run, other).await,
        RunCommand::Slow { run, top } => slow::run(&Desk::look(global, "run slow")?, global, run, *top).await,
        RunCommand::Export { run, format } => run::export(&Desk::look(global, "run export")?, run, *format).await,
        RunCommand::Decide { run, choice, reason, arguments, result, content, question } => {
            let desk = Desk::change(global, "run decide")?;
            let (reason, arguments, result) = (reason.as_deref(), arguments.as_deref(), result.as_deref());
            let content = content.as_deref();
            let wish = decide::TypedDecision { run, choice, reason, arguments, result, content };
            decide::run(&desk, global, wish, question.as_deref()).await
        }
        RunCommand::Tell { run, message } => run::tell(&Desk::change(global, "run tell")?, global, run, message).await,
        RunCommand::Cancel { run } => run::cancel(&Desk::change(global, "run cancel")?, global, run).await,
    }
}

/// Only `ask` and `run watch` have a stream of events, only `sparql` has a table of values.
fn check_output(global: &Global, command: &Command) -> Result<(), Failure> {
    match (global.output, command) {
        (Output::Ndjson, Command::Ask(_) | Command::Run(RunCommand::Watch { .. }))
        | (Output::Csv, Command::Sparql { .. }) => Ok(()),
        (Output::Ndjson, _) => Err(Failure::usage("--output ndjson is for `ask` and `run watch`; use json")),
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
