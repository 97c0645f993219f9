//! The items other than tools, and the validation of any item.

use super::read::{Members, kind_of};
use super::{AGENT_TYPES, Problem, ToolItem};
use crate::PatternName;
use crate::limits::SomeLimits;
use crate::table::TableSchema;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A valid configuration item.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigItem {
    Tool(Arc<ToolItem>),
    ToolService(ToolServiceItem),
    Mcp(McpItem),
    Prompt(PromptItem),
    /// Text added to the context of every agent prompt.
    AdditionalContext(String),
    /// The models that the workspace's prompts go to, in their order.
    Models(Vec<String>),
    /// The limits of the workspace's runs, where task type, pattern and request name no others.
    Limits(SomeLimits),
    Pattern(PatternItem),
    TaskType(TaskTypeItem),
    /// What the rows of a table are like.
    Schema(Arc<TableSchema>),
    /// Stored for others; the agent does not read it.
    Other,
}

/// A service whose tools have its calls in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServiceItem {
    /// Where it takes requests over HTTP; none if it only listens to queues.
    pub url: Option<String>,
    /// The queues that it listens to and answers on.
    pub request_queue: Option<String>,
    pub response_queue: Option<String>,
    /// What is sent along, with places for secrets.
    pub headers: Map<String, Value>,
    /// Name of each parameter, and whether a tool must set it.
    pub config_params: Vec<(String, bool)>,
}

/// A tool on an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpItem {
    pub url: String,
    pub remote_name: String,
    pub auth_token: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PromptItem {
    /// Rendered in front of every prompt.
    System(String),
    Template {
        id: String,
        prompt: String,
        reply: PromptReply,
        /// The models that it goes to, in their order; empty if it names none.
        models: Vec<String>,
        /// What was said after it comes as turns of its own; if not, it comes in the variable `history`.
        conversation: bool,
        /// What is said below each result in the conversation, to a model that is not offered functions; a template.
        next: Option<String>,
    },
    /// The list of ids that older prompt services need.
    Index,
}

/// What kind of reply a prompt asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptReply {
    Text,
    Json {
        schema: Option<Value>,
    },
    /// One JSON value per line.
    JsonLines {
        schema: Option<Value>,
    },
}

/// An execution pattern that the router may choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternItem {
    pub name: String,
    pub description: String,
    pub when_to_use: String,
    pub limits: SomeLimits,
}

/// A kind of problem: its framing and the patterns that suit it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskTypeItem {
    pub name: String,
    pub description: String,
    pub framing: String,
    /// None means all patterns.
    pub valid_patterns: Option<Vec<PatternName>>,
    pub when_to_use: String,
    pub termination: String,
    pub limits: SomeLimits,
    /// The models that prompts of this kind of problem go to, in their order; empty if it names none.
    pub models: Vec<String>,
    /// Questions of this kind that show the router what is meant.
    pub examples: Vec<Example>,
}

/// A question of some task type, and the pattern that suits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    pub question: String,
    pub pattern: Option<PatternName>,
}

/// Reads one item, or says what is wrong with it.
pub fn validate(kind: &str, key: &str, value: &str) -> Result<ConfigItem, Problem> {
    if !AGENT_TYPES.contains(&kind) {
        return Ok(ConfigItem::Other);
    }
    if kind == "agent" {
        return match key {
            "additional-context" => Ok(ConfigItem::AdditionalContext(plain_text(value))),
            "model" => {
                // A name without quotes is meant as one.
                let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value.trim()));
                let map = [("value".to_owned(), value)].into_iter().collect();
                Members { kind, key, map: &map }.models("value").map(ConfigItem::Models)
            }
            "limits" => {
                // What cannot be read is told as what it is: not the names of limits with their values.
                let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
                let map = [("limits".to_owned(), value)].into_iter().collect();
                Members { kind, key, map: &map }.limits().map(ConfigItem::Limits)
            }
            _ => Ok(ConfigItem::Other),
        };
    }
    let problem = |what: String, mend: &str| Problem {
        kind: kind.to_owned(),
        key: key.to_owned(),
        field: "value".to_owned(),
        what,
        mend: mend.to_owned(),
    };
    let value: Value = serde_json::from_str(value)
        .map_err(|error| problem(format!("not valid JSON: {error}"), "write a JSON value"))?;
    if kind == "prompt" && key == "system" {
        return match value {
            Value::String(text) => Ok(ConfigItem::Prompt(PromptItem::System(text))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(problem(format!("expected a JSON text, found {}", kind_of(&value)), "write it in quotes"))
            }
        };
    }
    if kind == "prompt" && key == "template-index" {
        return Ok(ConfigItem::Prompt(PromptItem::Index));
    }
    let Value::Object(map) = &value else {
        return Err(problem(format!("expected an object, found {}", kind_of(&value)), "write {…}"));
    };
    let members = Members { kind, key, map };
    match kind {
        "tool" => ToolItem::read(&members).map(|tool| ConfigItem::Tool(Arc::new(tool))),
        "tool-service" => read_tool_service(&members),
        "mcp" => read_mcp(&members),
        "prompt" => read_prompt(&members),
        "agent-pattern" => read_pattern(&members),
        "schema" => read_schema(&members),
        _ => read_task_type(&members),
    }
}

/// The additional context is text; quoted as JSON or not, both are in use.
fn plain_text(value: &str) -> String {
    serde_json::from_str(value).unwrap_or_else(|_| value.to_owned())
}

/// Said of services that only listen to queues.
pub const ONLY_QUEUES: &str = "the service is reached over queues of a message broker, and there is none here";

fn read_tool_service(members: &Members<'_>) -> Result<ConfigItem, Problem> {
    let queue = |name| members.required_text(name, "write a `url`, or both request-queue and response-queue");
    let parameter = |value: &Value| match value {
        Value::String(name) => Ok((name.clone(), false)),
        Value::Object(map) => {
            let name = map.get("name").and_then(Value::as_str);
            let required = map.get("required").and_then(Value::as_bool).unwrap_or(false);
            name.map(|name| (name.to_owned(), required)).ok_or("an entry has no name")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err("an entry is neither name nor object"),
    };
    let config_params = match members.map.get("config-params") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list.iter().map(parameter).collect::<Result<_, _>>().map_err(|what| {
            members.problem("config-params", what, r#"write names or {"name": …, "required": true}"#)
        })?,
        Some(other) => {
            let what = format!("expected a list, found {}", kind_of(other));
            return Err(members.problem("config-params", what, "write a list of names"));
        }
    };
    let url = members.text(&["url"])?.filter(|url| !url.trim().is_empty());
    if url.is_none() {
        // As the original wants it. Whether anybody listens there is another question.
        queue("request-queue")?;
        queue("response-queue")?;
    }
    let headers = match members.map.get("headers") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(headers)) => headers.clone(),
        Some(other) => {
            let what = format!("expected an object, found {}", kind_of(other));
            return Err(members.problem("headers", what, r#"write {"authorization": "Bearer {secret:NAME}"}"#));
        }
    };
    let (request_queue, response_queue) = (members.text(&["request-queue"])?, members.text(&["response-queue"])?);
    Ok(ConfigItem::ToolService(ToolServiceItem { url, request_queue, response_queue, headers, config_params }))
}

/// Why an item that is valid is not taken: nothing here can do what it says. What was stored before is kept and read.
pub fn not_served(kind: &str, key: &str, value: &str) -> Option<Problem> {
    let Ok(ConfigItem::ToolService(ToolServiceItem { url: None, .. })) = validate(kind, key, value) else {
        return None;
    };
    Some(Problem {
        kind: kind.to_owned(),
        key: key.to_owned(),
        field: "request-queue".to_owned(),
        what: ONLY_QUEUES.to_owned(),
        mend: "add the `url` at which it takes the same requests over HTTP".to_owned(),
    })
}

fn read_mcp(members: &Members<'_>) -> Result<ConfigItem, Problem> {
    Ok(ConfigItem::Mcp(McpItem {
        url: members.required_text("url", "give the address of the MCP endpoint")?,
        remote_name: members.text(&["remote-name"])?.unwrap_or_else(|| members.key.to_owned()),
        auth_token: members.text(&["auth-token"])?,
    }))
}

fn read_prompt(members: &Members<'_>) -> Result<ConfigItem, Problem> {
    let Some(id) = members.key.strip_prefix("template.").filter(|id| !id.is_empty()) else {
        return Err(members.problem("key", "is neither `system` nor `template.<id>`", "store it as template.<id>"));
    };
    let schema = members.map.get("schema").filter(|schema| !schema.is_null()).cloned();
    if let Some(other) = schema.as_ref().filter(|schema| !schema.is_object()) {
        let what = format!("expected a JSON schema object, found {}", kind_of(other));
        return Err(members.problem("schema", what, "write {\"type\": …}"));
    }
    let reply = match members.text(&["response-type"])?.as_deref() {
        None | Some("" | "text") => PromptReply::Text,
        Some("json") => PromptReply::Json { schema },
        Some("jsonl") => PromptReply::JsonLines { schema },
        Some(other) => {
            let what = format!("unknown response type `{other}`");
            return Err(members.problem("response-type", what, "use text, json or jsonl"));
        }
    };
    let prompt = members.required_text("prompt", "give the template's text")?;
    let (models, conversation) = (members.models("model")?, members.flag("conversation")?);
    let next = members.text(&["next"])?;
    Ok(ConfigItem::Prompt(PromptItem::Template { id: id.to_owned(), prompt, reply, models, conversation, next }))
}

fn read_schema(members: &Members<'_>) -> Result<ConfigItem, Problem> {
    let schema = TableSchema::from_json(members.key, members.map);
    let schema = schema.map_err(|error| members.problem("fields", error.what, error.mend))?;
    Ok(ConfigItem::Schema(Arc::new(schema)))
}

fn read_pattern(members: &Members<'_>) -> Result<ConfigItem, Problem> {
    Ok(ConfigItem::Pattern(PatternItem {
        name: members.text(&["name"])?.unwrap_or_else(|| members.key.to_owned()),
        description: members.text(&["description"])?.unwrap_or_default(),
        when_to_use: members.text(&["when_to_use", "when-to-use"])?.unwrap_or_default(),
        limits: members.limits()?,
    }))
}

fn read_task_type(members: &Members<'_>) -> Result<ConfigItem, Problem> {
    Ok(ConfigItem::TaskType(TaskTypeItem {
        name: members.text(&["name"])?.unwrap_or_else(|| members.key.to_owned()),
        description: members.text(&["description"])?.unwrap_or_default(),
        framing: members.text(&["framing_prompt", "framing-prompt", "framing"])?.unwrap_or_default(),
        valid_patterns: members.texts(&["valid_patterns", "valid-patterns"])?,
        when_to_use: members.text(&["when_to_use", "when-to-use"])?.unwrap_or_default(),
        termination: members.text(&["termination"])?.unwrap_or_default(),
        limits: members.limits()?,
        models: members.models("model")?,
        examples: read_examples(members)?,
    }))
}

fn read_examples(members: &Members<'_>) -> Result<Vec<Example>, Problem> {
    const MEND: &str = r#"write a list of questions, or of {"question": …, "pattern": …}"#;
    let wrong = |value: &Value| members.problem("examples", format!("{} is no example", kind_of(value)), MEND);
    let example = |value: &Value| {
        let (question, pattern) = match value {
            Value::String(question) => (Some(question.as_str()), None),
            Value::Object(example) => {
                let text = |name| example.get(name).and_then(Value::as_str);
                (text("question"), text("pattern"))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => (None, None),
        };
        let question = question.ok_or_else(|| wrong(value))?.to_owned();
        Ok(Example { question, pattern: pattern.map(PatternName::from) })
    };
    match members.map.get("examples") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(examples)) => examples.iter().map(example).collect(),
        Some(other) => Err(members.problem("examples", format!("expected a list, found {}", kind_of(other)), MEND)),
    }
}
