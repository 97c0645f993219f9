//! Runs as tasks of the protocol, for clients that can hold one: the id of a task is that of its run, so a task outlives
//! connections and restarts, and is kept as long as its records are.

use super::ask::summary;
use super::elicit::{self, Way};
use super::reply;
use super::server::McpServer;
use crate::api::ApiError;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, InputRequests, InputResponses, JsonObject, Task,
    TaskPayload, TaskStatus,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use std::collections::BTreeSet;
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::{RunId, Surface};
use trellis_orchestrator::Cancelling;

/// How often a client should look.
const LOOK_AGAIN_MS: u64 = 2_000;

/// The task of a run that has begun.
pub(super) async fn begun(server: &McpServer, run: &RunId) -> Result<CreateTaskResult, ApiError> {
    let summary = summary(server, run).await?;
    Ok(CreateTaskResult::new(task(server, &summary)))
}

/// Where a task stands, with its result if it has one.
pub(super) async fn get(
    server: &McpServer,
    id: &str,
    context: &RequestContext<RoleServer>,
) -> Result<GetTaskResult, ErrorData> {
    let found = find(server, id).await?;
    let mut task = task(server, &found);
    let payload = match found.state {
        RunState::Queued | RunState::Running => TaskPayload::Working,
        RunState::Waiting => {
            task.status_message = Some(reply::outcome(server, &found).await.map_err(internal)?.text);
            // Without anything that the client could answer, the task is as it was: somebody else has to.
            match questions(server, &found, context).await.map_err(internal)? {
                input_requests if input_requests.is_empty() => TaskPayload::Working,
                input_requests => TaskPayload::InputRequired { input_requests },
            }
        }
        RunState::Cancelled => TaskPayload::Cancelled,
        RunState::Answered | RunState::AnsweredPartial | RunState::Limit | RunState::Failed => {
            let result = CallToolResult::from(reply::outcome(server, &found).await.map_err(internal)?);
            TaskPayload::Completed { result: object(&result)? }
        }
    };
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

async fn questions(
    server: &McpServer,
    run: &RunSummary,
    context: &RequestContext<RoleServer>,
) -> Result<InputRequests, ApiError> {
    if elicit::way(server, context) == Way::InWords {
        return Ok(InputRequests::new());
    }
    Ok(elicit::requests(run, &elicit::open(server, run, &BTreeSet::new()).await?))
}

/// Decides what a client has answered. What it leaves open is asked again with the next look.
pub(super) async fn update(server: &McpServer, id: &str, responses: &InputResponses) -> Result<(), ErrorData> {
    let found = find(server, id).await?;
    let refused = |error: ApiError| ErrorData::invalid_params(error.into_parts().2, None);
    elicit::take(server, &found, responses).await.map(drop).map_err(refused)
}

/// Ends the run of a task. This, unlike a request that is given up, is a wish that nobody can mistake.
pub(super) async fn cancel(server: &McpServer, id: &str) -> Result<(), ErrorData> {
    let run = find(server, id).await?.run;
    let cancelled = server.inside.cancel(&run, Surface::Mcp).await;
    match cancelled.map_err(ApiError::from).and_then(|done| done.map_err(ApiError::from)).map_err(internal)? {
        Cancelling::Cancelled | Cancelling::AlreadyEnded(_) => Ok(()),
        Cancelling::Unknown => Err(missing(id)),
    }
}

async fn find(server: &McpServer, id: &str) -> Result<RunSummary, ErrorData> {
    let run = RunId::new(id).map_err(|_| missing(id))?;
    let found = server.inside.runs().find(server.inside.workspace(), &run).await;
    found.map_err(|error| internal(error.into()))?.ok_or_else(|| missing(id))
}

fn task(server: &McpServer, run: &RunSummary) -> Task {
    let updated = run.started.plus_ms(run.ms(server.inside.world().now()));
    let mut task = Task::new(run.run.as_str(), TaskStatus::Working, run.started.to_string(), updated.to_string());
    task.status_message = Some(format!("run {}: {}", run.run, run.state));
    task.with_poll_interval_ms(LOOK_AGAIN_MS)
}

fn object(result: &CallToolResult) -> Result<JsonObject, ErrorData> {
    match serde_json::to_value(result) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(internal(ApiError::internal("a result is no object"))),
        Err(error) => Err(internal(ApiError::internal(error))),
    }
}

fn missing(id: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no task `{id}` in this workspace"), None)
}

fn internal(error: ApiError) -> ErrorData {
    ErrorData::internal_error(error.into_parts().2, None)
}
