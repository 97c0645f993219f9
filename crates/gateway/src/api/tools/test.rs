//! `POST /api/v1/tools/{name}/test`: one call, outside of any run.

use super::super::runs::create::refuse_unknown;
use super::super::{ApiError, Entered, JsonObject, Place, Usual};
use super::Named;
use super::shapes::{NewTrial, TriedTool};
use crate::inside::Gateway;
use crate::members::Members;
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use trellis_domain::Scope;
use trellis_orchestrator::toolbox::{Trial, TrialOutcome, try_tool};

/// Call a tool once
///
/// As a model would, outside of any run: nothing of it is recorded. A tool that is `unsafe` is only called if that is said.
#[utoipa::path(
    post, path = "/api/v1/tools/{name}/test", tag = "tools", operation_id = "testTool",
    params(("name" = String, Path, description = "What models call it"), Place),
    request_body(content = NewTrial, content_type = "application/json"),
    responses(
        (status = 200, description = "What a model would be shown", body = TriedTool),
        (status = 409, description = "It cannot be called here, or it is unsafe and that was not said", body = ApiError),
        (status = 413, description = "The body is too large", body = ApiError),
        Usual,
    ),
)]
pub(super) async fn test(
    State(gateway): State<Arc<Gateway>>,
    Named(name): Named,
    Entered { inside, .. }: Entered,
    JsonObject(body): JsonObject,
) -> Result<Json<TriedTool>, ApiError> {
    refuse_unknown(&body, &["arguments", "unsafe"], "a call")?;
    let members = Members::new(&body);
    if !gateway.takes_questions() {
        return Err(ApiError::stopping());
    }
    let _in_flight = gateway.calls().begin();
    let trial = Trial {
        scope: Scope { workspace: inside.workspace().clone(), ..Scope::default() },
        settings: inside.config().pin(inside.workspace()).await?,
        name: &name,
        arguments: members.object("arguments")?.cloned().unwrap_or_default(),
        may_be_unsafe: members.flag("unsafe")?,
        limits: inside.limits(),
    };
    let TrialOutcome { observation, failed, ms } = try_tool(inside.tools(), inside.world(), trial).await?;
    Ok(Json(TriedTool { observation, failed, ms }))
}
