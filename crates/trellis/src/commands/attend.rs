//! Working on one run of one's own folder, and showing it: for `ask`, and for `resume` of a run that was named.

use super::watch::{RunItems, detached, finish, follow, out_of_patience};
use crate::app::App;
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::serving::{Interrupt, Serving};
use crate::show::follow::Follow;
use crate::show::{note, short};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::RunId;
use trellis_orchestrator::ports::Role;
use trellis_orchestrator::summary::end_of;
use trellis_orchestrator::workers::WorkerOptions;
use trellis_orchestrator::{Orchestrator, RunService};

/// What whoever watches wishes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attention {
    /// Text is shown while it is written.
    pub(super) streaming: bool,
    /// A partial answer has an exit code of its own.
    pub(super) strict: bool,
    /// For how long they wait; for as long as it takes if they name no time.
    pub(super) patience: Option<Duration>,
}

/// Until the run has ended, waits for somebody, or is interrupted. No other run is worked on.
pub(super) async fn attend(
    app: &App,
    global: &Global,
    orchestrator: &Arc<Orchestrator>,
    run: &RunId,
    attention: Attention,
    interrupt: &mut Interrupt,
) -> Result<Exit, Failure> {
    let runs = RunService::new(orchestrator);
    if let Some(folder) = app.store.folder() {
        folder.journal.works_on_only(app.workspace(), run);
    }
    let only = Some((app.workspace().clone(), run.clone()));
    let options = WorkerOptions { only, ..app.worker_options(&[Role::Agent, Role::Aggregator]) };
    let mut serving = Serving::start_as(orchestrator, options);
    let source = RunItems::Workers(runs.follow(app.workspace(), run, 0), &runs, app.workspace());
    let screen = Follow::new(global, run.clone(), attention.streaming, "Ctrl-C stops, resume continues");
    let watched = tokio::select! {
        records = follow(source, global, screen, run) => records.map(Some),
        failure = serving.store_failure() => Err(failure),
        () = interrupt.received() => Ok(None),
        () = out_of_patience(attention.patience) => Ok(None),
    };
    let records = match watched {
        Ok(Some(records)) => records,
        Err(failure) if failure.exit != Exit::Ok => {
            serving.abandon().await?;
            return Err(failure);
        }
        // Interrupted, out of patience, or whoever read our output has gone away.
        Ok(None) | Err(_) => {
            serving.abandon().await?;
            let id = short(run);
            let on = if app.store.is_shared() {
                shared_goes_on(run)
            } else {
                format!(
                    "run {run} is interrupted; what it has done so far is kept\n\
                     go on: trellis resume {id}     end it: trellis run cancel {id}"
                )
            };
            detached(global, run, &on);
            return Ok(Exit::Interrupted);
        }
    };
    if end_of(&records, run).is_none() {
        serving.drain(interrupt).await?;
        let id = short(run);
        let then = if app.store.is_shared() {
            format!("`trellis run decide {id}` answers it")
        } else {
            format!("`trellis resume {id}` goes on with it")
        };
        detached(global, run, &format!("run {run} waits for an answer; {then}"));
        return Ok(Exit::Interrupted);
    }
    let state = finish(global, run, &records, "")?;
    serving.drain(interrupt).await?;
    let others = runs.count_open().await?;
    if others > 0 && !global.quiet && !app.store.is_shared() {
        note(&format!("other open runs: {others}; `trellis runs` lists them, `trellis resume` goes on with them"));
    }
    Ok(Exit::of(state, attention.strict))
}

/// A run of a state that several processes share goes on, whoever watches.
pub(super) fn shared_goes_on(run: &RunId) -> String {
    let id = short(run);
    format!(
        "other processes go on with run {run}\nfollow it: trellis run watch {id}     end it: trellis run cancel {id}"
    )
}
