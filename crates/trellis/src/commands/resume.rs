//! Finishing all open runs.

use crate::app::{self, App};
use crate::cli::{Global, Output};
use crate::failure::{Exit, Failure};
use crate::limits::{self, Limit};
use crate::serving::{Interrupt, Serving};
use crate::show::note;
use serde_json::json;
use std::collections::BTreeSet;
use trellis_domain::record::{Body, Ended};
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::Orchestrator;
use trellis_orchestrator::hub::Item;
use trellis_orchestrator::ports::{Journal, JournalError};

pub(crate) async fn run(global: &Global, limits: &[Limit]) -> Result<Exit, Failure> {
    let operator = limits::of_operator(global, limits)?;
    let models = app::models(global)?;
    let mut interrupt = Interrupt::new()?;
    let app = App::open_existing(global, "resume")?;
    let orchestrator = app.orchestrator(operator, models);
    let open = open_runs(&app).await?;
    let mut serving = Serving::start(&orchestrator);
    let mut finished = Vec::new();
    let mut unreadable = Vec::new();
    for (workspace, run) in open {
        tokio::select! {
            ended = end_of(&app, &orchestrator, &workspace, &run) => match ended {
                Ok(ended) => finished.push(finished_line(global, &run, &ended)),
                // One run that cannot be read does not keep the others from their end.
                Err(error) => unreadable.push(format!("run {run}: {error}")),
            },
            () = interrupt.received() => {
                serving.abandon().await?;
                note("stopped; what is not finished stays open: `trellis resume` continues it");
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

/// Runs of every workspace: whoever resumes a folder finishes all that is in it. A run that has ended may have left a
/// turn behind, which whoever takes it closes; there is nothing to finish in it.
async fn open_runs(app: &App) -> Result<BTreeSet<(Workspace, RunId)>, Failure> {
    let turns = app.store.journal.due_turns(app.world.now().plus_ms(u64::MAX / 2000)).await?;
    let mut open: BTreeSet<_> = turns.into_iter().map(|turn| (turn.key.scope.workspace, turn.key.run)).collect();
    for (workspace, run) in open.clone() {
        // What cannot be read is told with its name later on.
        let summary = app.store.journal.run(&workspace, &run).await.ok().flatten();
        if summary.is_some_and(|summary| summary.state.is_end()) {
            open.remove(&(workspace, run));
        }
    }
    Ok(open)
}

fn finished_line(global: &Global, run: &RunId, ended: &Ended) -> serde_json::Value {
    if global.output == Output::Text {
        // Whoever reads the list may have gone away; the runs go on all the same.
        drop(crate::show::print_line(&format!("{run}  {}", crate::show::clean(&describe(ended)))));
    }
    json!({"run_id": run.as_str(), "state": ended.reason.run_state(), "error": ended.error})
}

fn describe(ended: &Ended) -> String {
    let state = ended.reason.run_state();
    ended.error.as_ref().map_or_else(|| state.to_string(), |error| format!("{state}: {error}"))
}

async fn end_of(
    app: &App,
    orchestrator: &Orchestrator,
    workspace: &Workspace,
    run: &RunId,
) -> Result<Ended, JournalError> {
    let mut subscription = orchestrator.ports.hub.subscribe(workspace, run, 0);
    loop {
        if let Item::Record(record) = subscription.next(&*app.store.journal).await?
            && let (Body::Ended(ended), true) = (&record.body, record.header.session == *run)
        {
            return Ok(ended.clone());
        }
    }
}
