//! Who is who, as far as this server knows: its users are the ones its operator named, each in the workspaces it was given.

use crate::access::{EnterError, Reach};
use crate::call::Call;
use crate::error::ServiceError;
use crate::inside::Gateway;
use serde_json::{Value, json};
use trellis_domain::Workspace;

pub(crate) async fn answer(gateway: &Gateway, call: Call) -> Result<Value, ServiceError> {
    let members = call.members();
    match members.operation()? {
        "whoami" => Ok(with_bootstrap(json!({"user": user(&call)}))),
        "bootstrap-status" => Ok(with_bootstrap(json!({}))),
        "list-workspaces" | "list-my-workspaces" => {
            let all = gateway.everywhere(call.inside.identity()).await?;
            let all: Vec<_> = all.iter().map(|inside| described(inside.workspace().as_str())).collect();
            Ok(with_bootstrap(json!({"workspaces": all})))
        }
        "get-workspace" => {
            let name = named(&call)?;
            match gateway.enter(call.inside.identity(), name).await {
                Err(EnterError::NoWorkspace) => Err(ServiceError::request(format!("there is no workspace `{name}`"))),
                Err(outside) => Err(outside.into()),
                Ok(_) => Ok(with_bootstrap(json!({"workspace": described(name)}))),
            }
        }
        "create-workspace" => {
            let name = named(&call)?;
            if gateway.create(call.inside.identity(), name).await?.is_none() {
                return Err(ServiceError::request(format!("the workspace `{name}` exists already")));
            }
            Ok(with_bootstrap(json!({"workspace": described(name)})))
        }
        _ => Err(ServiceError::request(
            "this server has no user management: its users are the ones that its operator named when it was started",
        )),
    }
}

/// The workspace that an operation is about: `workspace_record.id`, else `workspace_id`.
fn named(call: &Call) -> Result<&str, ServiceError> {
    let record = call.members().object("workspace-record")?;
    let id = record.and_then(|record| record.get("id")).and_then(Value::as_str);
    let id = match id {
        Some(id) => id,
        None => call.members().required("workspace-id")?,
    };
    match Workspace::new(id) {
        Ok(_) => Ok(id),
        Err(error) => Err(ServiceError::request(error.to_string())),
    }
}

/// The original spells the workspace in two ways, and clients read one or the other.
fn user(call: &Call) -> Value {
    let identity = call.inside.identity();
    let (user, home) = (identity.shown(), identity.reach.home());
    let workspace = home.as_str();
    // The original's words for those who see all workspaces, and for those who have their own.
    let role = match identity.reach {
        Reach::All => "admin",
        Reach::Only { .. } => "writer",
    };
    json!({
        "id": user, "username": user, "name": user, "email": "", "roles": [role], "enabled": true,
        "workspace": workspace, "default_workspace": workspace, "must_change_password": false, "created": "",
    })
}

fn described(workspace: &str) -> Value {
    json!({"id": workspace, "name": workspace, "enabled": true, "created": ""})
}

fn with_bootstrap(mut reply: Value) -> Value {
    reply["bootstrap_available"] = json!(false);
    reply
}
