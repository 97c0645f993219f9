//! `ask`, `wait_for_run` and `cancel_run`: a question, what comes of it, and its end.

use super::arguments::Arguments;
use super::reply::{self, ToolReply};
use super::server::McpServer;
use super::{tasks, words};
use crate::api::ApiError;
use crate::api::runs::create::limits;
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

/// Begins a run. Whoever can hold a task gets one at once; others wait for a while.
pub(super) async fn ask(
    server: &McpServer,
    given: &Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ApiError> {
    let arguments = Arguments::new("ask", given, &ASK)?;
    let wait = arguments.wait()?;
    let run = accept(server, arguments).await?;
    // It is on record. Many may wait, and nobody else's question is to wait for them.
    server.give_back_memory();
    if context.client_capabilities().is_some_and(|client| client.supports_tasks()) {
        return tasks::begun(server, &run).await.map(CallToolResponse::from);
    }
    settle(server, &run, wait, context).await?;
    brought(server, &run).await.map(|reply| CallToolResult::from(reply).into())
}

/// Waits for what comes of a run that was begun before.
pub(super) async fn wait_for_run(
    server: &McpServer,
    given: &Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Result<ToolReply, ApiError> {
    let arguments = Arguments::new("wait_for_run", given, &WAIT)?;
    let (wait, found) = (arguments.wait()?, arguments.run(&server.inside).await?);
    server.give_back_memory();
    if !found.state.is_end() {
        settle(server, &found.run, wait, context).await?;
    }
    brought(server, &found.run).await
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
/// gives up ends the waiting and nothing else.
async fn settle(
    server: &McpServer,
    run: &RunId,
    wait: Duration,
    context: &RequestContext<RoleServer>,
) -> Result<(), ApiError> {
    tokio::select! {
        followed = tokio::time::timeout(wait, follow(server, run, context)) => match followed {
            Ok(followed) => Ok(followed?),
            Err(_) => Ok(()),
        },
        () = context.ct.cancelled() => Ok(()),
    }
}

async fn follow(server: &McpServer, run: &RunId, context: &RequestContext<RoleServer>) -> Result<(), JournalError> {
    let (inside, unread) = (&server.inside, &server.gateway.capacity().unread);
    let mut subscription = inside.runs().follow(inside.workspace(), run, 0);
    let token = context.meta.get_progress_token();
    while let Some(item) = server.gateway.follow(&mut subscription, || unread.take(bounds::FRAME)).await {
        // What a model is still writing may come to nothing.
        let (item @ Item::Record(_), _room) = item? else { continue };
        if let Some(token) = &token {
            tell(&item, run, token.clone(), context).await;
        }
        let Item::Record(record) = item else { continue };
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

async fn brought(server: &McpServer, run: &RunId) -> Result<ToolReply, ApiError> {
    reply::outcome(server, &summary(server, run).await?).await
}

pub(super) async fn summary(server: &McpServer, run: &RunId) -> Result<RunSummary, ApiError> {
    super::arguments::find(&server.inside, run.as_str()).await
}
