//! Flows: the addresses under which a workspace's services are reached.
//!
//! Every workspace has the flow `default`, which nobody has to start. Others are kept as configuration items, as
//! TrustGraph keeps them; they lead to the same services.

use crate::call::Call;
use crate::error::{Code, ServiceError};
use serde_json::{Value, json};
use trellis_domain::config::StoredItem;
use trellis_domain::{Caller, Flow, Workspace};
use trellis_orchestrator::ports::Config;

const FLOW: &str = "flow";
const BLUEPRINT: &str = "flow-blueprint";
/// The flow that is always there, and what it is made of.
const DEFAULT: &str = "default";
const BUILT_IN: &str = "trellis";

/// Refuses a flow that the workspace does not have.
pub(crate) async fn check(call: &Call, flow: &Flow) -> Result<(), ServiceError> {
    let workspace = call.workspace();
    let known = flow.as_str() == DEFAULT || call.inside.config().get(workspace, FLOW, flow.as_str()).await?.is_some();
    let unknown = || ServiceError::new(Code::Flow, format!("Invalid flow {workspace}/{flow}"));
    if known { Ok(()) } else { Err(unknown()) }
}

pub(crate) async fn answer(call: Call) -> Result<Value, ServiceError> {
    let flows = Flows { config: call.inside.config(), workspace: call.workspace(), caller: call.caller() };
    let members = call.members();
    // The asynchronous SDK still uses the older word.
    let either = |name, older| match members.text(name)?.map_or_else(|| members.text(older), |text| Ok(Some(text)))? {
        Some(text) => Ok(text),
        None => members.required(name),
    };
    let blueprint = || either("blueprint-name", "class-name");
    let definition = || either("blueprint-definition", "class-definition");
    match members.operation()? {
        "list-flows" => Ok(reply("flow-ids", json!(flows.names(FLOW, DEFAULT).await?))),
        "get-flow" => flows.get(members.required("flow-id")?).await,
        "start-flow" => {
            let description = members.text("description")?.unwrap_or_default();
            let parameters = parameters(members.value("parameters"))?;
            flows.start(members.required("flow-id")?, blueprint()?, description, parameters).await
        }
        "stop-flow" => flows.stop(members.required("flow-id")?).await,
        "list-blueprints" | "list-classes" => {
            let names = json!(flows.names(BLUEPRINT, BUILT_IN).await?);
            let mut reply = reply("blueprint-names", names.clone());
            reply["class-names"] = names;
            Ok(reply)
        }
        "get-blueprint" | "get-class" => {
            let definition = json!(flows.blueprint(blueprint()?).await?);
            let mut reply = reply("blueprint-definition", definition.clone());
            reply["class-definition"] = definition;
            Ok(reply)
        }
        "put-blueprint" | "put-class" => flows.put_blueprint(blueprint()?, definition()?).await,
        "delete-blueprint" | "delete-class" => flows.delete_blueprint(blueprint()?).await,
        _ => Err(ServiceError::unknown_operation()),
    }
}

/// All members are always there; one of them says something.
fn reply(name: &str, value: Value) -> Value {
    let mut reply = json!({
        "blueprint-names": [], "flow-ids": [], "blueprint-definition": "", "flow": "", "description": "", "parameters": {},
    });
    if !name.is_empty() {
        reply[name] = value;
    }
    reply
}

fn done() -> Value {
    reply("", Value::Null)
}

fn refused(message: impl Into<String>) -> ServiceError {
    ServiceError::new(Code::Flow, message)
}

/// An object, or the text of one.
fn parameters(given: Option<&Value>) -> Result<Value, ServiceError> {
    let wrong = || refused("the parameters must be an object of texts");
    match given {
        None => Ok(json!({})),
        Some(Value::Object(parameters)) => Ok(json!(parameters)),
        Some(Value::String(text)) => {
            let read: Value = serde_json::from_str(text).map_err(|_| wrong())?;
            if read.is_object() { Ok(read) } else { Err(wrong()) }
        }
        Some(_) => Err(wrong()),
    }
}

struct Flows<'a> {
    config: &'a dyn Config,
    workspace: &'a Workspace,
    caller: Caller,
}

impl Flows<'_> {
    /// What is built in, then what was added.
    async fn names(&self, kind: &str, built_in: &str) -> Result<Vec<String>, ServiceError> {
        let (_, items) = self.config.all(self.workspace).await?;
        let added = items.into_iter().filter(|item| item.kind == kind && item.key != built_in);
        Ok(std::iter::once(built_in.to_owned()).chain(added.map(|item| item.key)).collect())
    }

    async fn get(&self, id: &str) -> Result<Value, ServiceError> {
        let stored = self.config.get(self.workspace, FLOW, id).await?;
        let text = match stored {
            Some(text) => text,
            None if id == DEFAULT => record(BUILT_IN, "Agents of this server", &json!({})).to_string(),
            None => return Err(refused(format!("there is no flow `{id}` in workspace {}", self.workspace))),
        };
        let flow: Value = serde_json::from_str(&text).unwrap_or_default();
        let mut reply = reply("flow", json!(text));
        for name in ["description", "parameters"] {
            if let Some(value) = flow.get(name).filter(|value| !value.is_null()) {
                reply[name] = value.clone();
            }
        }
        Ok(reply)
    }

    async fn start(&self, id: &str, blueprint: &str, text: &str, parameters: Value) -> Result<Value, ServiceError> {
        let flow = Flow::new(id).map_err(|error| refused(error.to_string()))?;
        self.blueprint(blueprint).await?;
        if id == DEFAULT || self.config.get(self.workspace, FLOW, flow.as_str()).await?.is_some() {
            return Err(refused(format!("the flow `{id}` is running already; choose another id or stop it")));
        }
        self.put(FLOW, id, record(blueprint, text, &parameters).to_string()).await
    }

    async fn stop(&self, id: &str) -> Result<Value, ServiceError> {
        if id == DEFAULT {
            return Err(refused("the flow `default` is built in and always runs"));
        }
        match self.config.delete(self.workspace, FLOW, id, self.caller.clone()).await? {
            Some(_) => Ok(done()),
            None => Err(refused(format!("there is no flow `{id}` in workspace {}", self.workspace))),
        }
    }

    async fn blueprint(&self, name: &str) -> Result<String, ServiceError> {
        let stored = self.config.get(self.workspace, BLUEPRINT, name).await?;
        let built_in = (name == BUILT_IN).then(built_in_blueprint);
        stored
            .or(built_in)
            .ok_or_else(|| refused(format!("there is no blueprint `{name}`; the built-in one is `{BUILT_IN}`")))
    }

    async fn put_blueprint(&self, name: &str, definition: &str) -> Result<Value, ServiceError> {
        let read: Result<Value, _> = serde_json::from_str(definition);
        if !read.is_ok_and(|value| value.is_object()) {
            return Err(refused("the blueprint's definition must be the JSON text of an object"));
        }
        if name == BUILT_IN {
            return Err(refused(format!("the blueprint `{BUILT_IN}` is built in; choose another name")));
        }
        self.put(BLUEPRINT, name, definition.to_owned()).await
    }

    async fn delete_blueprint(&self, name: &str) -> Result<Value, ServiceError> {
        if name == BUILT_IN {
            return Err(refused(format!("the blueprint `{BUILT_IN}` is built in")));
        }
        match self.config.delete(self.workspace, BLUEPRINT, name, self.caller.clone()).await? {
            Some(_) => Ok(done()),
            None => Err(refused(format!("there is no blueprint `{name}` in workspace {}", self.workspace))),
        }
    }

    async fn put(&self, kind: &str, key: &str, value: String) -> Result<Value, ServiceError> {
        let item = StoredItem { kind: kind.to_owned(), key: key.to_owned(), value };
        self.config.put(self.workspace, vec![item], self.caller.clone()).await?;
        Ok(done())
    }
}

/// A flow as it is kept. It has no queues: its services are reached here.
fn record(blueprint: &str, description: &str, parameters: &Value) -> Value {
    json!({"description": description, "blueprint-name": blueprint, "parameters": parameters, "interfaces": {}})
}

fn built_in_blueprint() -> String {
    json!({
        "description": "Agents with router, plans and supervisors, recorded decision by decision",
        "tags": ["agent"], "parameters": {}, "flow": {}, "blueprint": {}, "interfaces": {},
    })
    .to_string()
}
