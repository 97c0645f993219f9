//! `ask`, `wait_for_run`, `decide` and `cancel_run`: a question, what comes of it, what it waits for, and its end.

use super::arguments::{Arguments, find};
use super::elicit::{self, Way};
use super::reply::{self, ToolReply};
use super::server::{McpServer, Round};
use super::{tasks, words};
use crate::api::ApiError;
use crate::api::runs::create::limits;
use crate::api::runs::decide::answering;
use crate::bounds;
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, CallToolResult, ProgressNotificationParam};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use std::time::Duration;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::{Body, Name};
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::{RunId, Scope, Surface};
use trellis_orchestrator::accept::UnknownNames;
use trellis_orchestrator::events::RunEvent;
use trellis_orchestrator::ports::JournalError;
use trellis_orchestrator::{Cancelling, Item, Question};

/// What a question may come with.
pub(super) const ASK: [&str; 7] =
    ["question", "pattern", "task_type", "conversation_id", "collection", "limits", "wait"];
pub(super) const WAIT: [&str; 2] = ["run_id", "wait"];
pub(super) const DECIDE: [&str; 8] =
    ["run_id", "choice", "reason", "arguments", "result", "content", "session_id", "park"];

/// Begins a run. Whoever can hold a task gets one at once; others wait for a while. What came with the call is gone by
/// then: its place in memory is given back, and nobody else's question is to wait for those that do.
pub(super) async fn ask(
    server: &McpServer,
    given: Map<String, Value>,
    round: Round,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ApiError> {
    let arguments = Arguments::new("ask", &given, &ASK)?;
    let wait = arguments.wait()?;
    // The same question again, with what its client was asked: the run has begun long ago.
    let begun = if let Some(begun) = round.run() {
        drop(given);
        begun?
    } else {
        let run = accept(server, arguments).await?;
        drop(given);
        // It is on record.
        server.give_back_memory();
        if context.client_capabilities().is_some_and(|client| client.supports_tasks()) {
            return tasks::begun(server, &run).await.map(CallToolResponse::from);
        }
        run.as_str().to_owned()
    };
    let found = find(&server.inside, &begun).await?;
    bring(server, found, wait, round, context).await
}

/// Waits for what comes of a run that was begun before.
pub(super) async fn wait_for_run(
    server: &McpServer,
    given: Map<String, Value>,
    round: Round,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ApiError> {
    let arguments = Arguments::new("wait_for_run", &given, &WAIT)?;
    let (wait, found) = (arguments.wait()?, arguments.run(&server.inside).await?);
    drop(given);
    bring(server, found, wait, round, context).await
}

/// Waits for what comes of a run. A client that can be asked what the run waits for is asked.
async fn bring(
    server: &McpServer,
    mut found: RunSummary,
    wait: Duration,
    round: Round,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ApiError> {
    let mut left = elicit::take(server, &found, &round.responses).await?;
    drop(round);
    server.give_back_memory();
    let mut told = 0;
    loop {
        if !found.state.is_end() {
            settle(server, &found.run, wait, &mut told, context).await?;
            found = summary(server, &found.run).await?;
        }
        let way = elicit::way(server, context);
        let open = if way == Way::InWords { Vec::new() } else { elicit::open(server, &found, &left).await? };
        match (way, open.first()) {
            (Way::InResult, Some(_)) => return Ok(elicit::required(&found, &open).into()),
            (Way::Meanwhile, Some(first)) => {
                if !elicit::ask(server, &found, first, context).await? {
                    left.insert(elicit::key(first));
                }
            }
            (_, None) | (Way::InWords, Some(_)) => {
                return reply::outcome(server, &found).await.map(|reply| CallToolResult::from(reply).into());
            }
        }
    }
}

/// Ends a run, for whoever is on record then.
pub(super) async fn cancel_run(server: &McpServer, given: &Map<String, Value>) -> Result<ToolReply, ApiError> {
    let run = Arguments::new("cancel_run", given, &["run_id"])?.run(&server.inside).await?.run;
    let value = |state: RunState| json!({"run_id": run, "state": state});
    match server.inside.cancel(&run, Surface::Mcp).await?? {
        Cancelling::Cancelled | Cancelling::AlreadyEnded(RunState::Cancelled) => {
            let text = format!("Run {run} is cancelled. What it has recorded stays.");
            Ok(ToolReply { text, value: value(RunState::Cancelled), is_error: false })
        }
        Cancelling::AlreadyEnded(state) => Err(ApiError::ended(state)),
        Cancelling::Unknown => Err(ApiError::request(format!("there is no run `{run}`"))),
    }
}

/// Answers a question that a run waits for, for whoever is on record then: nobody may more than over the API.
pub(super) async fn decide(server: &McpServer, given: &Map<String, Value>) -> Result<ToolReply, ApiError> {
    let run = Arguments::new("decide", given, &DECIDE)?.run(&server.inside).await?.run;
    let members = given.iter().filter(|(name, _)| *name != "run_id");
    let body = members.map(|(name, value)| (name.clone(), value.clone())).collect();
    let answer = answering(&body, server.inside.caller(Surface::Mcp))?;
    let choice = answer.choice.clone();
    let decided = server.inside.decide(&run, answer).await??;
    let text = format!("Decided: {choice}. Run {run} goes on; wait_for_run brings what comes of it.");
    let park = Name::park(decided.number);
    let value = json!({"run_id": run, "session_id": decided.session, "park": park.as_str(), "choice": choice});
    Ok(ToolReply { text, value, is_error: false })
}

async fn accept(server: &McpServer, arguments: Arguments<'_>) -> Result<RunId, ApiError> {
    if !server.gateway.takes_questions() {
        return Err(ApiError::stopping());
    }
    let inside = &server.inside;
    let request = AgentRequest {
        question: arguments.required("question")?,
        pattern: arguments.text("pattern")?,
        task_type: arguments.text("task_type")?,
        conversation_id: arguments.text("conversation_id")?,
        collection: arguments.collection()?.as_str().to_owned(),
        // For whoever follows the run's own events.
        streaming: true,
        ..AgentRequest::default()
    };
    let question = Question {
        scope: Scope { workspace: inside.workspace().clone(), ..Scope::default() },
        request_id: inside.runs().new_request_id().map_err(ApiError::internal)?,
        request,
        limits: limits(arguments.0)?,
        names: UnknownNames::Refuse,
        selection: trellis_domain::Selection::default(),
        by: Some(inside.caller(Surface::Mcp)),
    };
    Ok(inside.accept(question).await??.run)
}

/// Waits until a run has ended or has a question to a person, for so long at most, and tells of each step. A caller that
/// gives up ends the waiting and nothing else. `told` is the last record that they know of.
async fn settle(
    server: &McpServer,
    run: &RunId,
    wait: Duration,
    told: &mut u64,
    context: &RequestContext<RoleServer>,
) -> Result<(), ApiError> {
    tokio::select! {
        followed = tokio::time::timeout(wait, follow(server, run, told, context)) => match followed {
            Ok(followed) => Ok(followed?),
            Err(_) => Ok(()),
        },
        () = context.ct.cancelled() => Ok(()),
    }
}

async fn follow(
    server: &McpServer,
    run: &RunId,
    told: &mut u64,
    context: &RequestContext<RoleServer>,
) -> Result<(), JournalError> {
    let (inside, unread) = (&server.inside, &server.gateway.capacity().unread);
    let mut subscription = inside.runs().follow(inside.workspace(), run, 0);
    let token = context.meta.get_progress_token();
    while let Some(item) = server.gateway.follow(&mut subscription, || unread.take(bounds::FRAME)).await {
        // What a model is still writing may come to nothing.
        let (item, _room) = item?;
        let Item::Record(record) = &item else { continue };
        // After an answer the run is followed from its beginning once more, and numbers must not go back.
        let is_new = record.header.seq > *told;
        *told = record.header.seq.max(*told);
        if let Some(token) = token.as_ref().filter(|_| is_new) {
            tell(&item, run, token.clone(), context).await;
        }
        let has_ended = record.header.session == *run && record.header.name == Name::end();
        if has_ended || (matches!(record.body, Body::Parked(_)) && is_waiting(server, run).await?) {
            return Ok(());
        }
    }
    Ok(())
}

/// Tells a client how far a run is. The number is that of the record, so it grows.
async fn tell(item: &Item, run: &RunId, token: rmcp::model::ProgressToken, context: &RequestContext<RoleServer>) {
    let Item::Record(record) = item else { return };
    // Far below what a float can tell apart, and told exactly up to there.
    let number = u32::try_from(record.header.seq).unwrap_or(u32::MAX);
    let mut progress = ProgressNotificationParam::new(token, f64::from(number));
    progress.message = Some(words::progress(&RunEvent::of(run, item)));
    // Whoever does not listen any more is not told.
    drop(context.peer.notify_progress(progress).await);
}

/// The question may have been answered since it was asked.
async fn is_waiting(server: &McpServer, run: &RunId) -> Result<bool, JournalError> {
    let found = server.inside.runs().find(server.inside.workspace(), run).await?;
    Ok(found.is_some_and(|found| found.state == RunState::Waiting))
}

pub(super) async fn summary(server: &McpServer, run: &RunId) -> Result<RunSummary, ApiError> {
    find(&server.inside, run.as_str()).await
}
