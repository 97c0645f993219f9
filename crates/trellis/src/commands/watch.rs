//! A run from its beginning to its end, on screen or as events: for `ask`, and for whoever comes later.

use crate::cli::{Global, Output};
use crate::desk::{Desk, Stream};
use crate::failure::{Exit, Failure};
use crate::serving::Interrupt;
use crate::show::follow::Follow;
use crate::show::{Marks, footer, note, print_json, short};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::record::{Name, Record};
use trellis_domain::run::RunState;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::events::RunEvent;
use trellis_orchestrator::ledger::summary_of;
use trellis_orchestrator::ports::{RealWorld, World};
use trellis_orchestrator::summary::{RunOutcome, end_of};
use trellis_orchestrator::{Item, RunService, RunSubscription};

/// Where the items of a run come from.
pub(super) enum RunItems<'a> {
    /// Workers of this process, and where to ask how the run is now.
    Workers(RunSubscription, &'a RunService, &'a Workspace),
    Server(Box<Stream<'a>>),
    /// Workers of other processes that share the state.
    Others(RunSubscription),
    /// Nobody is at work on it: there is what there is.
    Records(std::vec::IntoIter<Arc<Record>>),
}

impl RunItems<'_> {
    /// Whether this is a question that nobody can answer, because this process has the folder. One that comes from the
    /// past, of a run that goes on under its old id, may have been answered long ago.
    async fn waits_in_vain(&self, run: &RunId, record: &Record) -> Result<bool, Failure> {
        let (Self::Workers(_, runs, workspace), Some(parked)) = (self, record.body.as_parked()) else {
            return Ok(false);
        };
        let question = (record.header.session.clone(), parked.number);
        Ok(runs.find(workspace, run).await?.is_some_and(|summary| summary.parked.contains(&question)))
    }

    /// The next item; None if no more will come.
    async fn next(&mut self) -> Result<Option<Item>, Failure> {
        match self {
            Self::Workers(subscription, ..) | Self::Others(subscription) => Ok(Some(subscription.next().await?)),
            Self::Server(stream) => stream.next().await.map(Some),
            Self::Records(records) => Ok(records.next().map(Item::Record)),
        }
    }
}

/// What Ctrl-C does, in a few words.
pub(super) const LEAVES: &str = "Ctrl-C stops watching";

pub(super) async fn run(desk: &Desk, global: &Global, wish: &str, strict: bool) -> Result<Exit, Failure> {
    let run = desk.find_run(wish).await?;
    let mut interrupt = Interrupt::new()?;
    let source = match desk {
        Desk::Remote(server) => RunItems::Server(Box::new(server.follow(&run, global.quiet))),
        Desk::Local(app) if app.store.is_shared() => {
            let orchestrator = app.idle_orchestrator();
            let runs = RunService::new(&orchestrator);
            tokio::spawn(async move { orchestrator.hear().await });
            RunItems::Others(runs.follow(app.workspace(), &run, 0))
        }
        Desk::Local(_) => RunItems::Records(desk.records(&run).await?.into_iter()),
    };
    let screen = Follow::new(global, run.clone(), /* streaming */ true, LEAVES);
    let records = tokio::select! {
        records = follow(source, global, screen, &run) => records?,
        () = interrupt.received() => {
            detached(global, &run, &goes_on(&run, &desk.flags()));
            return Ok(Exit::Interrupted);
        }
    };
    if end_of(&records, &run).is_none() {
        detached(global, &run, &format!("nobody is at work on run {run}; `trellis resume` continues it"));
        return Ok(Exit::Interrupted);
    }
    let state = finish(global, &run, &records, &desk.flags())?;
    Ok(Exit::of(state, strict))
}

/// Shows the run as it happens, until its end, or until it waits for somebody who could not answer because this process
/// has the folder. The records that were shown.
pub(super) async fn follow(
    mut source: RunItems<'_>,
    global: &Global,
    mut screen: Follow,
    run: &RunId,
) -> Result<Vec<Arc<Record>>, Failure> {
    let mut records = Vec::new();
    while let Some(item) = source.next().await? {
        if global.output == Output::Ndjson {
            print_json(&RunEvent::of(run, &item).to_json())?;
        } else {
            screen.show(&item)?;
        }
        if let Item::Record(record) = item {
            let over = record.header.session == *run && record.header.name == Name::end();
            let asks = source.waits_in_vain(run, &record).await?;
            records.push(record);
            if over || asks {
                break;
            }
        }
    }
    screen.finish()?;
    Ok(records)
}

/// The answer on stdout, everything else on stderr. How the run ended.
pub(super) fn finish(global: &Global, run: &RunId, records: &[Arc<Record>], flags: &str) -> Result<RunState, Failure> {
    let (Some(summary), Some(ended)) = (summary_of(records), end_of(records, run)) else {
        return Err(Failure::unexpected(format!("the records of run {run} have no beginning or no end")));
    };
    if !global.quiet {
        for line in super::enforcement::lost(records) {
            note(&format!("warning: {line}"));
        }
    }
    let now = RealWorld.now();
    match (global.output, global.quiet, &ended.error) {
        (Output::Json, _, _) => print_json(&json!(RunOutcome::new(&summary, Some(ended), now)).to_string())?,
        (Output::Text, false, _) => {
            note("");
            for line in footer(&summary, ended, now, Marks::of(global.ascii)) {
                note(&line);
            }
            let id = short(run);
            note(&format!("see how: trellis run show {id}{flags}     check it: trellis verify {id}{flags}"));
        }
        // Quiet means no progress, not no reason.
        (Output::Text, true, Some(error)) => note(&format!("run {run}: {}", crate::show::clean(error))),
        (Output::Text, true, None) | (Output::Ndjson | Output::Csv, _, _) => {}
    }
    Ok(summary.state)
}

/// A program gets a last event, a person learns how to go on. Whoever has gone away reads neither, which is no
/// failure.
pub(super) fn detached(global: &Global, run: &RunId, how_to_go_on: &str) {
    if global.output == Output::Ndjson {
        let event = json!({"type": "run.detached", "run_id": run.as_str()});
        drop(print_json(&event.to_string()));
    }
    note(&format!("\n{how_to_go_on}"));
}

/// Ends, and says so, once somebody has waited for as long as they wished; never if they named no time.
pub(super) async fn out_of_patience(wish: Option<Duration>) {
    let Some(wish) = wish else { return std::future::pending().await };
    tokio::time::sleep(wish).await;
    note(&format!("\nno answer within {} s", wish.as_secs()));
}

/// A run at a server goes on, whoever watches.
pub(super) fn goes_on(run: &RunId, flags: &str) -> String {
    let id = short(run);
    format!(
        "run {run} goes on at the server\nwatch it: trellis run watch {id}{flags}     end it: trellis run cancel {id}{flags}"
    )
}
