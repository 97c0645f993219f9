//! Going on with runs that were interrupted: with one, which is shown as `ask` shows it, or with all.

use super::attend::{Attention, attend};
use crate::app::{self, App};
use crate::cli::{Global, Output};
use crate::desk::{Desk, folder_alone};
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::named::Limit;
use crate::serving::{Interrupt, Serving};
use crate::show::{Marks, footer, note, print_coloured, short};
use crate::state::Purpose;
use crate::tool_settings;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use tokio::task::JoinSet;
use trellis_domain::record::{Body, Ended};
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::orchestrator::NewerRun;
use trellis_orchestrator::ports::JournalError;
use trellis_orchestrator::{Item, RunService};

/// A run that has gone as far as it can, or why that cannot be read.
struct Finished {
    run: RunId,
    end: Result<RunProgress, JournalError>,
}

/// How far a run has come.
enum RunProgress {
    Ended(Box<RunSummary>, Box<Ended>),
    /// Only a person can say how it goes on.
    Waiting,
    /// Only a newer version of this program can.
    Newer(NewerRun),
}

pub(crate) async fn run(global: &Global, wish: Option<&str>, limits: &[Limit]) -> Result<Exit, Failure> {
    let operator = limits::of_operator(global, limits)?;
    let models = app::models(global)?;
    let mut interrupt = Interrupt::new()?;
    let app = folder_alone(global, "resume", Purpose::Write, "a server continues its runs by itself")?;
    let orchestrator = app.orchestrator(operator, models, tool_settings::outside(global)?);
    if let Some(wish) = wish {
        let desk = Desk::Local(Box::new(app));
        let run = desk.find_run(wish).await?;
        let Desk::Local(app) = desk else { return Err(Failure::unexpected("a folder was opened")) };
        let attention = Attention { streaming: true, strict: false, patience: None };
        return attend(&app, global, &orchestrator, &run, attention, &mut interrupt).await;
    }
    let runs = RunService::new(&orchestrator);
    // Of every workspace: whoever resumes a folder finishes all that is in it.
    let mut ends = ends(&runs, runs.unfinished().await?);
    let mut serving = Serving::start(&orchestrator);
    let mut finished = Vec::new();
    let mut unreadable = Vec::new();
    loop {
        tokio::select! {
            ended = ends.join_next() => match ended {
                None => break,
                Some(ended) => match ended.map_err(Failure::unexpected)? {
                    Finished { end: Ok(RunProgress::Ended(summary, ended)), .. } => {
                        finished.push(show_finished(&app, global, &summary, &ended));
                    }
                    Finished { run, end: Ok(RunProgress::Waiting) } => note(&format!(
                        "run {run} waits for an answer: `trellis run show {0}` tells the question, `trellis run decide {0}` \
                         answers it",
                        short(&run)
                    )),
                    Finished { end: Ok(RunProgress::Newer(newer)), .. } => note(&newer.to_string()),
                    // One run that cannot be read does not keep the others from their end.
                    Finished { run, end: Err(error) } => unreadable.push(format!("run {run}: {error}")),
                },
            },
            () = interrupt.received() => {
                serving.abandon().await?;
                note("`trellis resume` continues what is not finished; stopped");
                return Ok(Exit::Interrupted);
            }
            failure = serving.store_failure() => return Err(failure),
        }
    }
    serving.drain(&mut interrupt).await?;
    if !unreadable.is_empty() {
        return Err(Failure::new(Exit::DataFolder, unreadable.join("\n")));
    }
    match global.output {
        Output::Json => crate::show::print_json(&json!({"finished": finished}).to_string())?,
        Output::Text | Output::Ndjson | Output::Csv => {
            crate::show::print_line(&format!("open runs finished: {}", finished.len()))?;
        }
    }
    Ok(Exit::Ok)
}

/// Waits for each run's end at once: whichever ends first is told first.
fn ends(runs: &RunService, open: BTreeSet<(Workspace, RunId)>) -> JoinSet<Finished> {
    let mut ends = JoinSet::new();
    for (workspace, run) in open {
        let runs = runs.clone();
        ends.spawn(async move {
            let end = end_of(&runs, &workspace, &run).await;
            Finished { run, end }
        });
    }
    ends
}

async fn end_of(runs: &RunService, workspace: &Workspace, run: &RunId) -> Result<RunProgress, JournalError> {
    let mut subscription = runs.follow(workspace, run, 0);
    loop {
        let Item::Record(record) = subscription.next().await? else { continue };
        if let Err(newer) = NewerRun::check(&record) {
            return Ok(RunProgress::Newer(newer));
        }
        let vanished = || JournalError::Damaged(format!("the run {run} has records and no summary"));
        if let (Body::Ended(ended), true) = (&record.body, record.header.session == *run) {
            let summary = runs.find(workspace, run).await?.ok_or_else(vanished)?;
            return Ok(RunProgress::Ended(Box::new(summary), ended.clone()));
        }
        if record.body.as_parked().is_some()
            && runs.find(workspace, run).await?.ok_or_else(vanished)?.state == RunState::Waiting
        {
            return Ok(RunProgress::Waiting);
        }
    }
}

/// A run that was finished, for programs.
#[derive(Debug, Serialize)]
struct FinishedRun {
    run_id: RunId,
    state: RunState,
    error: Option<String>,
    ms: u64,
    in_token: Option<u64>,
    out_token: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<u32>,
}

/// Tells of a finished run, and gives what a program is told at the end.
fn show_finished(app: &App, global: &Global, summary: &RunSummary, ended: &Ended) -> FinishedRun {
    let now = app.world.now();
    if global.output == Output::Text {
        let id = short(&summary.run);
        // The commands as they can be typed: a run is looked for in one workspace.
        let elsewhere = if summary.workspace == *app.workspace() {
            String::new()
        } else {
            format!(" --workspace {}", summary.workspace)
        };
        let mut lines = footer(summary, ended, now, Marks::of(global.ascii));
        let look = format!("see how: trellis run show {id}{elsewhere}");
        lines.push(format!("{look}     read it: trellis run answer {id}{elsewhere}"));
        // Whoever reads the list may have gone away; the runs go on all the same.
        drop(lines.iter().try_for_each(|line| print_coloured(line)));
    }
    FinishedRun {
        run_id: summary.run.clone(),
        state: summary.state,
        error: ended.error.clone(),
        ms: summary.ms(now),
        in_token: summary.usage.in_token,
        out_token: summary.usage.out_token,
        left_out: ended.left_out.clone(),
        missing: ended.missing.clone(),
    }
}
