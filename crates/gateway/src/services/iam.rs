//! Who is who, as far as this server knows: its users are the ones its operator named, and all may do everything.

use crate::Gateway;
use crate::call::Call;
use crate::error::Refusal;
use serde_json::{Value, json};
use trellis_domain::Workspace;

pub(crate) async fn answer(gateway: &Gateway, call: Call) -> Result<Value, Refusal> {
    let members = call.members();
    let config = &gateway.orchestrator.ports.config;
    match members.operation()? {
        "whoami" => Ok(with_bootstrap(json!({"user": user(&call)}))),
        "bootstrap-status" => Ok(with_bootstrap(json!({}))),
        "list-workspaces" | "list-my-workspaces" => {
            let all = config.workspaces().await?;
            Ok(with_bootstrap(json!({"workspaces": all.iter().map(described).collect::<Vec<_>>()})))
        }
        "get-workspace" => {
            let workspace = named(&call)?;
            if !gateway.has_workspace(&workspace).await? {
                return Err(Refusal::request(format!("there is no workspace `{workspace}`")));
            }
            Ok(with_bootstrap(json!({"workspace": described(&workspace)})))
        }
        "create-workspace" => {
            let workspace = named(&call)?;
            if gateway.has_workspace(&workspace).await? {
                return Err(Refusal::request(format!("the workspace `{workspace}` exists already")));
            }
            gateway.founder.found(&workspace).await?;
            Ok(with_bootstrap(json!({"workspace": described(&workspace)})))
        }
        _ => Err(Refusal::request(
            "this server has no user management: its users are the ones that its operator named when it was started",
        )),
    }
}

/// The workspace that an operation is about: `workspace_record.id`, else `workspace_id`.
fn named(call: &Call) -> Result<Workspace, Refusal> {
    let record = call.members().object("workspace-record")?;
    let id = record.and_then(|record| record.get("id")).and_then(Value::as_str);
    let id = match id {
        Some(id) => id,
        None => call.members().required("workspace-id")?,
    };
    Workspace::new(id).map_err(|error| Refusal::request(error.to_string()))
}

/// The original spells the workspace in two ways, and clients read one or the other.
fn user(call: &Call) -> Value {
    let (user, workspace) = (call.identity.user.as_str(), call.identity.workspace.as_str());
    json!({
        "id": user, "username": user, "name": user, "email": "", "roles": ["admin"], "enabled": true,
        "workspace": workspace, "default_workspace": workspace, "must_change_password": false, "created": "",
    })
}

fn described(workspace: &Workspace) -> Value {
    json!({"id": workspace.as_str(), "name": workspace.as_str(), "enabled": true, "created": ""})
}

fn with_bootstrap(mut reply: Value) -> Value {
    reply["bootstrap_available"] = json!(false);
    reply
}
