//! `POST /api/v1/tools/discover`: what MCP servers have, and how it becomes configuration.

use super::super::runs::create::refuse_unknown;
use super::super::{ApiError, Entered, JsonObject, Place, Usual};
use super::shapes::{DiscoveredTool, DiscoveredTools, NewDiscovery, SilentServer};
use crate::inside::Gateway;
use crate::members::Members;
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use trellis_domain::Surface;
use trellis_orchestrator::ports::{ConfigError, Discovered};
use trellis_orchestrator::toolbox::{self, new_tools};

/// Ask MCP servers for their tools
///
/// The servers are the operator's. With `add` their tools become tools of the workspace, under names that are free; until
/// then no model is offered them.
#[utoipa::path(
    post, path = "/api/v1/tools/discover", tag = "tools", operation_id = "discoverTools",
    params(Place),
    request_body(content = NewDiscovery, content_type = "application/json"),
    responses(
        (status = 200, description = "What they have", body = DiscoveredTools),
        (status = 413, description = "The body is too large", body = ApiError),
        (status = 422, description = "A tool of theirs can be none here; nothing was written", body = ApiError),
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
    if add && !found.tools.is_empty() {
        let (_, items) = inside.config().all(inside.workspace()).await?;
        let new = new_tools(&found.tools, &items).map_err(|problem| ConfigError::Invalid(vec![problem]))?;
        added = new.items.iter().map(|item| item.key.clone()).collect();
        version = Some(inside.config().put(inside.workspace(), new.items, inside.caller(Surface::Api)).await?);
    }
    let failed = found.failed.into_iter().map(|(server, reason)| SilentServer { server, reason }).collect();
    Ok(Json(DiscoveredTools { tools: found.tools.into_iter().map(Into::into).collect(), failed, added, version }))
}

impl From<Discovered> for DiscoveredTool {
    fn from(tool: Discovered) -> Self {
        let Discovered { server, name, description, effect, arguments } = tool;
        Self { server, name, description, effect: effect.as_str().to_owned(), arguments }
    }
}
