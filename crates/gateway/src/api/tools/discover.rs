//! `POST /api/v1/tools/discover`: what MCP servers have, and how it becomes configuration.

use super::super::runs::create::refuse_unknown;
use super::super::{ApiError, Entered, JsonObject, Place, Usual};
use super::shapes::{DiscoveredTool, DiscoveredTools, NewDiscovery, RefusedTool, SilentServer};
use crate::inside::Gateway;
use crate::members::Members;
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use trellis_domain::Surface;
use trellis_domain::config::Problem;
use trellis_orchestrator::ports::{ConfigError, Discovered, LeftOutTool};
use trellis_orchestrator::toolbox::{self, new_tools};

/// Ask MCP servers for their tools
///
/// The servers are the operator's. With `add` their tools become tools of the workspace, under names that are free; until
/// then no model is offered them. Those that can be none are in `not_added`.
#[utoipa::path(
    post, path = "/api/v1/tools/discover", tag = "tools", operation_id = "discoverTools",
    params(Place),
    request_body(content = NewDiscovery, content_type = "application/json"),
    responses(
        (status = 200, description = "What they have", body = DiscoveredTools),
        (status = 413, description = "The body is too large", body = ApiError),
        (status = 422, description = "None of their tools can be one here; nothing was written", body = ApiError),
        Usual,
    ),
)]
pub(super) async fn discover(
    State(gateway): State<Arc<Gateway>>,
    Entered { inside, .. }: Entered,
    JsonObject(body): JsonObject,
) -> Result<Json<DiscoveredTools>, ApiError> {
    refuse_unknown(&body, &["server", "only", "add"], "a discovery")?;
    let members = Members::new(&body);
    let (server, only) = (members.text("server")?, members.texts("only")?.unwrap_or_default());
    let add = members.flag("add")?;
    if !gateway.takes_questions() {
        return Err(ApiError::stopping());
    }
    let _in_flight = gateway.calls().begin();
    let found = toolbox::discover(inside.tools().servers(), inside.workspace(), server, &only).await?;
    let (mut added, mut version) = (Vec::new(), None);
    let mut not_added: Vec<_> = found.left_out.into_iter().map(RefusedTool::from).collect();
    let mut changed = Vec::new();
    if !add && only.is_empty() {
        let (_, items) = inside.config().all(inside.workspace()).await?;
        changed = toolbox::changes(&found.asked, &found.tools, &items);
    }
    if add && !found.tools.is_empty() {
        let (_, items) = inside.config().all(inside.workspace()).await?;
        let new = new_tools(&found.tools, &items);
        if new.items.is_empty() && !new.refused.is_empty() {
            return Err(ConfigError::Invalid(new.refused.into_iter().map(|(_, _, problem)| problem).collect()).into());
        }
        let refused = |(server, name, problem): (String, String, Problem)| RefusedTool {
            server,
            name,
            reason: problem.to_string(),
        };
        not_added.extend(new.refused.into_iter().map(refused));
        added = new.items.iter().map(|item| item.key.clone()).collect();
        version = Some(inside.configure(new.items, inside.caller(Surface::Api)).await?);
    }
    let failed = found.failed.into_iter().map(|(server, reason)| SilentServer { server, reason }).collect();
    let tools = found.tools.into_iter().map(Into::into).collect();
    Ok(Json(DiscoveredTools { tools, changed, failed, added, not_added, version }))
}

impl From<Discovered> for DiscoveredTool {
    fn from(tool: Discovered) -> Self {
        let Discovered { server, name, description, effect, arguments } = tool;
        Self { server, name, description, effect: effect.as_str().to_owned(), arguments }
    }
}

impl From<LeftOutTool> for RefusedTool {
    fn from(tool: LeftOutTool) -> Self {
        let LeftOutTool { server, name, reason } = tool;
        Self { server, name, reason }
    }
}
