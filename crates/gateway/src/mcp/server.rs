//! What the SDK asks a server for.

use super::{ask, explain, reply, search, tasks, tools};
use crate::api::ApiError;
use crate::inside::{Gateway, Inside};
use crate::request_memory::BodyPlace;
use futures_util::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, GetTaskParams, GetTaskResult,
    Implementation, InputResponses, ListToolsResult, PaginatedRequestParams, RequestMetaObject, ServerCapabilities,
    ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

const INSTRUCTIONS: &str = "Agents whose every decision is recorded. `ask` begins a run and waits for its answer; a run that \
    takes longer goes on, and `wait_for_run` brings what came of it. A run may wait for a person's answer: put the question \
    to them, and pass on what they say with `decide`. `explain_run` and `list_decisions` tell why it was \
    answered so, and what else could have been chosen.";

/// A caller in its workspace.
#[derive(Debug, Clone)]
pub(super) struct McpServer {
    pub(super) gateway: Arc<Gateway>,
    pub(super) inside: Inside,
    /// The client hears what it is asked by itself, and can answer.
    pub(super) has_stream: bool,
    place: Option<BodyPlace>,
}

/// What a client brings to a call that it makes again, because it was asked something.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) responses: InputResponses,
    state: Option<String>,
}

impl Round {
    /// The run that the earlier call has begun, if there was one.
    pub(super) fn run(&self) -> Option<Result<String, ApiError>> {
        match &self.state {
            Some(run) => Some(Ok(run.clone())),
            None if self.responses.is_empty() => None,
            None => Some(Err(ApiError::request("answers must come with the `requestState` of what was asked"))),
        }
    }
}

impl McpServer {
    pub(super) fn over_http(gateway: Arc<Gateway>, inside: Inside, place: Option<BodyPlace>) -> Self {
        Self { gateway, inside, has_stream: false, place }
    }

    pub(super) fn over_streams(gateway: Arc<Gateway>, inside: Inside) -> Self {
        Self { gateway, inside, has_stream: true, place: None }
    }

    /// The message is not needed any more, and its answer may take a while.
    pub(super) fn give_back_memory(&self) {
        if let Some(place) = &self.place {
            place.give_back();
        }
    }

    async fn call(
        &self,
        name: &str,
        given: Map<String, Value>,
        round: Round,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ApiError> {
        let brought = match name {
            tools::ASK => return ask::ask(self, given, round, context).await,
            tools::WAIT_FOR_RUN => return ask::wait_for_run(self, given, round, context).await,
            tools::DECIDE => ask::decide(self, &given).await,
            tools::CANCEL_RUN => ask::cancel_run(self, &given).await,
            tools::EXPLAIN_RUN => explain::explain_run(self, &given).await,
            tools::LIST_DECISIONS => explain::list_decisions(self, &given).await,
            tools::LIST_RUNS => explain::list_runs(self, &given).await,
            tools::SEARCH_KNOWLEDGE => search::search_knowledge(self, &given).await,
            other => Err(ApiError::request(format!("there is no tool `{other}`"))),
        };
        brought.map(|reply| CallToolResult::from(reply).into())
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build());
        info.server_info = Implementation::new("trellis", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        keep_little(&mut context.meta);
        if self.get_tool(&request.name).is_none() {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        }
        let Some(_one_more) = self.gateway.capacity().outstanding() else {
            let busy = ApiError::request("as many calls are unanswered as may be at once; call again in a moment");
            return Ok(reply::refusal(busy).into());
        };
        let arguments = request.arguments.unwrap_or_default();
        let round = Round { responses: request.input_responses.unwrap_or_default(), state: request.request_state };
        let called = guarded(self.call(&request.name, arguments, round, &context)).await?;
        Ok(called.unwrap_or_else(|error| reply::refusal(error).into()))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        guarded(tasks::get(self, &request.task_id, &context)).await?
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        guarded(tasks::update(self, &request.task_id, &request.input_responses)).await?
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        guarded(tasks::cancel(self, &request.task_id)).await?
    }
}

/// A call must have an answer whatever happens: clients wait for it.
async fn guarded<T>(work: impl Future<Output = T>) -> Result<T, ErrorData> {
    let fault = |_| ErrorData::internal_error("this call met a fault of the server; its log tells more", None);
    AssertUnwindSafe(work).catch_unwind().await.map_err(fault)
}

/// A call may wait for long, and what came with it is kept as long: no more of it than anybody needs.
fn keep_little(meta: &mut RequestMetaObject) {
    const ENTRIES: usize = 32;
    const LONGEST: usize = 4 << 10;
    let mut kept = 0;
    meta.0.0.retain(|key, value| {
        kept += 1;
        kept <= ENTRIES && key.len() + value.to_string().len() <= LONGEST
    });
}
