//! Looking at one run: as a tree, as its answer, or as RDF.

use super::runs::is_interrupted;
use crate::cli::{ExportFormat, Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::follow::{put_lines, rendered};
use crate::show::run_text::{self, RunStyle};
use crate::show::tree::text_width;
use crate::show::{Marks, clean, columns_for, note, print_json, print_line, print_plain_or_coloured, short};
use serde::Serialize;
use serde_json::json;
use trellis_domain::document::Document;
use trellis_domain::run::RunState;
use trellis_domain::{RunId, counted};
use trellis_orchestrator::Cancelling;
use trellis_orchestrator::ledger::summary_of;
use trellis_orchestrator::ports::{RealWorld, World};
use trellis_orchestrator::summary::{RunTrace, end_of};
use trellis_patterns::project;
use trellis_provenance::{Format, export as write};

pub(crate) async fn show(desk: &Desk, global: &Global, wish: &str, full: bool) -> Result<Exit, Failure> {
    let run = desk.find_run(wish).await?;
    let (records, now) = (desk.records(&run).await?, RealWorld.now());
    let summary = summary_of(&records).ok_or_else(|| Failure::unexpected("the run has vanished"))?;
    if global.output == Output::Json {
        print_json(&json!(RunTrace::new(&summary, &records, now)).to_string())?;
        return Ok(Exit::Ok);
    }
    let columns = columns_for(global);
    let style = RunStyle { full, marks: Marks::of(global.ascii), width: text_width(columns), columns };
    run_text::lines(&summary, &records, now, style).iter().try_for_each(|line| print_plain_or_coloured(line))?;
    if is_interrupted(summary.state, matches!(desk, Desk::Local(_))) {
        note(&format!("interrupted: nobody is at work on it; `trellis resume {}` goes on with it", short(&run)));
    }
    Ok(Exit::Ok)
}

/// The answer of a run, for programs.
#[derive(Serialize)]
struct AnsweredRun<'a> {
    run_id: &'a RunId,
    state: RunState,
    answer: Option<&'a str>,
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    left_out: &'a [String],
    #[serde(skip_serializing_if = "<[u32]>::is_empty")]
    missing: &'a [u32],
}

/// The answer alone on stdout, so that it can be piped; why there is none goes to stderr.
pub(crate) async fn answer(desk: &Desk, global: &Global, wish: &str, strict: bool) -> Result<Exit, Failure> {
    let run = desk.find_run(wish).await?;
    let records = desk.records(&run).await?;
    let Some(ended) = end_of(&records, &run) else {
        let message = match desk {
            Desk::Local(_) => format!("run {run} is not finished; `trellis resume` continues it"),
            Desk::Remote(server) => {
                format!("run {run} is not finished; `trellis run watch {}{}` follows it", short(&run), server.flags())
            }
        };
        return Err(Failure::new(Exit::Interrupted, message));
    };
    let (state, text) = (ended.reason.run_state(), ended.answer.as_ref().map(Document::text));
    if global.output == Output::Json {
        let (answer, error) = (text, ended.error.as_deref());
        let object =
            AnsweredRun { run_id: &run, state, answer, error, left_out: &ended.left_out, missing: &ended.missing };
        print_json(&json!(object).to_string())?;
        return Ok(Exit::of(state, strict));
    }
    match (text, rendered(global)) {
        (Some(text), Some(mut markdown)) => put_lines(&(markdown.push(text) + &markdown.finish()))?,
        (Some(text), None) => print_line(clean(text).trim_end_matches('\n'))?,
        (None, _) => {}
    }
    if let Some(error) = &ended.error {
        note(&format!("run {run}: {}", clean(error)));
    }
    Ok(Exit::of(state, strict))
}

/// Ends a run that has not ended; nothing of what it has recorded is lost.
pub(crate) async fn cancel(desk: &Desk, global: &Global, wish: &str) -> Result<Exit, Failure> {
    let run = desk.find_run(wish).await?;
    match desk.cancel(&run).await? {
        Cancelling::Cancelled => {}
        Cancelling::AlreadyEnded(RunState::Cancelled) => note("it was cancelled before"),
        Cancelling::AlreadyEnded(state) => {
            return Err(Failure::usage(format!("run {run} has ended already ({state}); there is nothing to cancel")));
        }
        Cancelling::Unknown => return Err(Failure::new(Exit::NotFound, format!("there is no run `{wish}`"))),
    }
    match global.output {
        Output::Json => print_json(&json!({"run_id": run.as_str(), "state": RunState::Cancelled}).to_string())?,
        Output::Text | Output::Ndjson | Output::Csv => print_line(&format!("cancelled: run {run}"))?,
    }
    Ok(Exit::Ok)
}

pub(crate) async fn tell(desk: &Desk, global: &Global, wish: &str, message: &str) -> Result<Exit, Failure> {
    let run = desk.find_run(wish).await?;
    let agents = desk.tell(&run, message).await?;
    match global.output {
        Output::Json => print_json(&json!({"run_id": run.as_str(), "agents": agents}).to_string())?,
        Output::Text | Output::Ndjson | Output::Csv => {
            let goes_on = if matches!(desk, Desk::Local(_)) { "; `trellis resume` goes on with it" } else { "" };
            print_line(&format!("told: {} of run {run}{goes_on}", counted(agents, "agent")))?;
        }
    }
    Ok(Exit::Ok)
}

pub(crate) async fn export(desk: &Desk, wish: &str, format: ExportFormat) -> Result<Exit, Failure> {
    let run = desk.find_run(wish).await?;
    let quads = project(&desk.records(&run).await?);
    let format = match format {
        ExportFormat::Turtle => Format::Turtle,
        ExportFormat::Nquads => Format::NQuads,
        ExportFormat::Jsonld => Format::JsonLd,
    };
    let text = write(&quads, format).map_err(Failure::unexpected)?;
    print_line(text.trim_end())?;
    Ok(Exit::Ok)
}
