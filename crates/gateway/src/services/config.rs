//! Configuration items, as the stock clients read and write them.

use crate::call::Call;
use crate::error::ServiceError;
use crate::inside::Gateway;
use crate::members::Members;
use serde_json::{Map, Value, json};
use trellis_domain::Workspace;
use trellis_domain::config::{OWN_KIND, StoredItem};
use trellis_orchestrator::ports::Config;

pub(crate) async fn answer(gateway: &Gateway, call: Call) -> Result<Value, ServiceError> {
    let (config, workspace, members) = (call.inside.config(), call.workspace(), call.members());
    match members.operation()? {
        "get" => get(config, workspace, members).await,
        "put" => put(&call).await,
        "delete" => delete(&call).await,
        "list" => {
            let (version, items) = of_type(config, workspace, members.required("type")?).await?;
            let keys: Vec<_> = items.into_iter().map(|item| item.key).collect();
            Ok(reply(version, &json!([]), &json!(keys), &json!({})))
        }
        "getvalues" => {
            let (version, items) = of_type(config, workspace, members.required("type")?).await?;
            let values: Vec<_> = items.iter().map(value).collect();
            Ok(reply(version, &json!(values), &json!([]), &json!({})))
        }
        "getvalues-all-ws" => everywhere(gateway, &call, members.required("type")?).await,
        "config" => {
            let (version, items) = config.all(workspace).await?;
            let mut types: Map<String, Value> = Map::new();
            // What the program keeps for itself is nobody's to carry elsewhere: it could not be written there.
            for StoredItem { kind, key, value } in items.into_iter().filter(|item| item.kind != OWN_KIND) {
                types.entry(kind).or_insert_with(|| json!({}))[key] = json!(value);
            }
            Ok(reply(version, &json!([]), &json!([]), &Value::Object(types)))
        }
        _ => Err(ServiceError::unknown_operation()),
    }
}

/// All members are always there: clients read the one they want without looking.
fn reply(version: u64, values: &Value, directory: &Value, config: &Value) -> Value {
    json!({"version": version, "values": values, "directory": directory, "config": config})
}

fn done() -> Value {
    reply(0, &json!([]), &json!([]), &json!({}))
}

fn value(item: &StoredItem) -> Value {
    json!({"type": item.kind, "key": item.key, "value": item.value})
}

/// Values in the order in which they are asked for; one that is not there is null.
async fn get(config: &dyn Config, workspace: &Workspace, members: Members<'_>) -> Result<Value, ServiceError> {
    let version = config.version(workspace).await?;
    let mut values = Vec::new();
    for (kind, key) in keys(members)? {
        let found = config.get(workspace, kind, key).await?;
        values.push(json!({"type": kind, "key": key, "value": found}));
    }
    Ok(reply(version, &json!(values), &json!([]), &json!({})))
}

/// What says the same as what is there, in other spaces, is left as it is: clients that import a whole configuration
/// write everything anew, and what nobody changed must not look as if somebody had.
async fn put(call: &Call) -> Result<Value, ServiceError> {
    let mut items = call.members().items("values")?;
    if items.len() > 1 {
        let (_, present) = call.inside.config().all(call.workspace()).await?;
        // One that is named twice is refused below, whatever it says.
        let mut names: Vec<_> = items.iter().map(|item| (&item.kind, &item.key)).collect();
        names.sort_unstable();
        if names.windows(2).all(|two| two[0] != two[1]) {
            items.retain(|item| !present.iter().any(|present| says_the_same(present, item)));
        }
    }
    if !items.is_empty() {
        call.inside.configure(items, call.caller()).await?;
    }
    Ok(done())
}

fn says_the_same(present: &StoredItem, item: &StoredItem) -> bool {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    (&present.kind, &present.key) == (&item.kind, &item.key)
        && (present.value == item.value
            || value(&item.value).is_some_and(|wanted| value(&present.value) == Some(wanted)))
}

async fn delete(call: &Call) -> Result<Value, ServiceError> {
    for (kind, key) in keys(call.members())? {
        call.inside.config().delete(call.workspace(), kind, key, call.caller()).await?;
    }
    Ok(done())
}

fn keys<'a>(members: Members<'a>) -> Result<Vec<(&'a str, &'a str)>, ServiceError> {
    let key = |key: Members<'a>| Ok((key.required("type")?, key.required("key")?));
    members.objects("keys")?.into_iter().map(key).collect()
}

async fn of_type(
    config: &dyn Config,
    workspace: &Workspace,
    kind: &str,
) -> Result<(u64, Vec<StoredItem>), ServiceError> {
    let (version, mut items) = config.all(workspace).await?;
    items.retain(|item| item.kind == kind);
    Ok((version, items))
}

/// The items of a type in all workspaces of the caller's, each with its workspace.
async fn everywhere(gateway: &Gateway, call: &Call, kind: &str) -> Result<Value, ServiceError> {
    let mut values = Vec::new();
    for inside in gateway.everywhere(call.inside.identity()).await? {
        for item in of_type(inside.config(), inside.workspace(), kind).await?.1 {
            let mut value = value(&item);
            value["workspace"] = json!(inside.workspace().as_str());
            values.push(value);
        }
    }
    Ok(reply(0, &json!(values), &json!([]), &json!({})))
}
