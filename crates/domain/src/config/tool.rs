//! Tool items.

use super::Problem;
use super::read::{Members, kind_of};
use crate::decision::words;
use crate::{GroupName, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

words!(
    /// What a tool does when it is called.
    ToolKind {
        KnowledgeQuery,
        TextCompletion,
        McpTool,
        Prompt,
        StructuredQuery,
        RowEmbeddingsQuery,
        ToolService,
        Http,
        DocumentRag,
        SparqlQuery,
        Agent,
    }
);

impl ToolKind {
    /// Whether a call asks a model: it waits for its turn there, and keeps to its time by itself.
    pub fn asks_a_model(self) -> bool {
        match self {
            Self::TextCompletion | Self::Prompt | Self::KnowledgeQuery | Self::StructuredQuery | Self::Agent => true,
            Self::McpTool
            | Self::RowEmbeddingsQuery
            | Self::ToolService
            | Self::Http
            | Self::DocumentRag
            | Self::SparqlQuery => false,
        }
    }
}

words!(
    /// What a call changes, and so what may be done if nobody knows whether it was made.
    ToolEffect {
        /// Nothing.
        Read,
        /// Something, and the same however often it is made.
        Idempotent,
        /// Something, and more of it with every call: it is not repeated without being asked for.
        Unsafe,
    }
);

words!(
    /// What is done about an unsafe call of which nobody knows whether it was made.
    OnUncertain {
        Ask,
        Retry,
        Continue,
    }
);

impl ToolEffect {
    /// What holds for tools that do not say it. Methods of HTTP mean what they mean everywhere; a server that says nothing
    /// about its tool may do anything.
    fn usual(kind: ToolKind, settings: &Map<String, Value>) -> Self {
        let method = settings.get("method").and_then(Value::as_str);
        let has_body = settings.get("body").is_some_and(|body| !body.is_null());
        let method = method.unwrap_or(if has_body { "POST" } else { "GET" });
        match kind {
            ToolKind::KnowledgeQuery
            | ToolKind::DocumentRag
            | ToolKind::SparqlQuery
            | ToolKind::TextCompletion
            | ToolKind::Prompt
            | ToolKind::StructuredQuery
            | ToolKind::RowEmbeddingsQuery
            // What its agent does is guarded there.
            | ToolKind::Agent => Self::Read,
            ToolKind::McpTool | ToolKind::ToolService => Self::Unsafe,
            ToolKind::Http => match method.to_ascii_uppercase().as_str() {
                "GET" | "HEAD" | "OPTIONS" => Self::Read,
                "PUT" | "DELETE" => Self::Idempotent,
                _ => Self::Unsafe,
            },
        }
    }
}

/// A tool that the model may call by name.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolItem {
    pub kind: ToolKind,
    pub name: ToolName,
    pub description: String,
    /// What the model may pass.
    pub arguments: Vec<ArgumentItem>,
    pub groups: Vec<GroupName>,
    /// The state that a successful call leads to.
    pub state: Option<String>,
    /// None means every state.
    pub applicable_states: Option<Vec<String>>,
    /// What a call changes.
    pub effect: ToolEffect,
    pub on_uncertain: OnUncertain,
    /// Somebody has to agree before each call.
    pub requires_approval: bool,
    /// Who may be asked about it, and for how long they are waited for.
    pub asking: AskingItem,
    /// The whole object, for the members that only this kind of tool has.
    pub settings: Map<String, Value>,
}

/// Who is asked about a call, and how long they are waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskingItem {
    /// By name; none means everybody who may ask.
    pub approvers: Option<Vec<String>>,
    pub timeout_ms: u64,
}

impl AskingItem {
    /// An hour.
    const TIMEOUT_MS: u64 = 3_600_000;
    /// A week: a run that waits is an open run.
    const MOST_MS: u64 = 7 * 24 * 3_600_000;

    fn read(members: &Members<'_>) -> Result<Self, Problem> {
        const TIMEOUT: &str = "approval-timeout-ms";
        let approvers = members.texts(&["approvers"])?.filter(|names| !names.is_empty());
        let timeout_ms = members.number(TIMEOUT)?.unwrap_or(Self::TIMEOUT_MS);
        if timeout_ms > Self::MOST_MS {
            let what = format!("{timeout_ms} ms is longer than anybody is waited for");
            return Err(members.problem(TIMEOUT, what, format!("write at most {}, which is a week", Self::MOST_MS)));
        }
        Ok(Self { approvers, timeout_ms })
    }
}

fn read_approval(members: &Members<'_>) -> Result<bool, Problem> {
    const NAME: &str = "requires-approval";
    match members.map.get(NAME) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(wanted)) => Ok(*wanted),
        Some(_) => Err(members.problem(NAME, format!("`{NAME}` is no truth value"), "write true or false".to_owned())),
    }
}

/// A member that is one of a few words.
fn word<T: std::str::FromStr>(members: &Members<'_>, name: &str, words: &[&str]) -> Result<Option<T>, Problem> {
    let Some(text) = members.text(&[name])? else { return Ok(None) };
    let wrong =
        |_| members.problem(name, format!("`{text}` is none of the words"), format!("use one of {}", words.join(", ")));
    text.parse().map(Some).map_err(wrong)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentItem {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub description: String,
    /// Whether a call has to have it. None: models are told that it does, and nobody checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// What a value has to be like, as a JSON schema; none if its type says it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// The longest schema of an argument, as JSON.
const LONGEST_SCHEMA: usize = 16 * 1024;

impl ArgumentItem {
    pub fn new(name: &str, kind: &str, description: &str) -> Self {
        let (name, kind, description) = (name.to_owned(), kind.to_owned(), description.to_owned());
        Self { name, kind, description, required: None, schema: None }
    }
}

impl ToolItem {
    pub(super) fn read(members: &Members<'_>) -> Result<Self, Problem> {
        let kind = read_kind(members)?;
        check_settings(members, kind)?;
        let name = members.text(&["name"])?.filter(|name| !name.trim().is_empty());
        let wildcard = |states: &Vec<String>| states.iter().any(|state| state == "*");
        Ok(Self {
            kind,
            name: name.map_or_else(|| members.key.into(), Into::into),
            description: members.text(&["description"])?.unwrap_or_default(),
            arguments: read_arguments(members, kind)?,
            groups: members.texts(&["group"])?.unwrap_or_else(|| vec!["default".into()]),
            state: members.text(&["state"])?.filter(|state| !state.is_empty()),
            applicable_states: members
                .texts(&["applicable-states", "available_in_states"])?
                .filter(|states| !wildcard(states)),
            effect: word(members, "effect", ToolEffect::WORDS)?.unwrap_or_else(|| ToolEffect::usual(kind, members.map)),
            on_uncertain: word(members, "on-uncertain", OnUncertain::WORDS)?.unwrap_or(OnUncertain::Ask),
            requires_approval: read_approval(members)?,
            asking: AskingItem::read(members)?,
            settings: members.map.clone(),
        })
    }

    /// A tool that is nothing but a function in front of a model, to see what it makes of it.
    pub fn function(name: &str, description: &str, arguments: Vec<ArgumentItem>) -> Self {
        Self {
            kind: ToolKind::TextCompletion,
            name: name.into(),
            description: description.to_owned(),
            arguments,
            groups: Vec::new(),
            state: None,
            applicable_states: None,
            effect: ToolEffect::Read,
            on_uncertain: OnUncertain::Ask,
            requires_approval: false,
            asking: AskingItem { approvers: None, timeout_ms: AskingItem::TIMEOUT_MS },
            settings: Map::new(),
        }
    }

    /// A text member that only this kind of tool has, such as `template`.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name)?.as_str()
    }
}

fn read_kind(members: &Members<'_>) -> Result<ToolKind, Problem> {
    let known = ToolKind::WORDS.join(", ");
    let word = members.required_text("type", &format!("use one of {known}"))?;
    word.parse()
        .map_err(|_| members.problem("type", format!("unknown tool type `{word}`"), format!("use one of {known}")))
}

fn check_settings(members: &Members<'_>, kind: ToolKind) -> Result<(), Problem> {
    let need = |name: &str, mend: &str| members.required_text(name, mend).map(|_| ());
    match kind {
        ToolKind::StructuredQuery => {
            members.number("limit")?;
            members.text(&["collection"]).map(|_| ())
        }
        ToolKind::KnowledgeQuery => {
            for limit in GRAPH_LIMITS {
                members.number(limit)?;
            }
            members.text(&["collection"]).map(|_| ())
        }
        ToolKind::TextCompletion => Ok(()),
        ToolKind::McpTool => {
            members.text(&["server"])?;
            need("mcp-tool", "name the key of an `mcp` item, or with `server` a tool of that server")
        }
        ToolKind::Prompt => need("template", "name a prompt, stored as `prompt` item `template.<id>`"),
        ToolKind::ToolService => need("service", "name the key of a `tool-service` item"),
        ToolKind::DocumentRag | ToolKind::SparqlQuery => {
            members.number("limit")?;
            members.text(&["collection"]).map(|_| ())
        }
        ToolKind::Agent => {
            let named = members.text(&["pattern"])?.or(members.text(&["task-type"])?);
            let mend = "name a pattern, a task type, or both";
            named.map(|_| ()).ok_or_else(|| members.problem("pattern", "no agent is named".to_owned(), mend.to_owned()))
        }
        ToolKind::Http => need("url", "write an address such as https://api.example.com/cities/{city}"),
        ToolKind::RowEmbeddingsQuery => {
            members.number("limit")?;
            members.text(&["collection"])?;
            members.text(&["index-name"])?;
            need("schema-name", "name the schema to search")
        }
    }
}

/// How far a question to a knowledge graph may go, by the names that requests have for it.
pub const GRAPH_LIMITS: [&str; 7] = [
    "entity-limit",
    "triple-limit",
    "max-subgraph-size",
    "max-path-length",
    "edge-score-limit",
    "edge-limit",
    "max-reranker-input",
];

/// Some kinds have arguments of their own, the others take them from the item.
fn read_arguments(members: &Members<'_>, kind: ToolKind) -> Result<Vec<ArgumentItem>, Problem> {
    let fixed = |name: &str, description: &str| Ok(vec![ArgumentItem::new(name, "string", description)]);
    match kind {
        ToolKind::KnowledgeQuery | ToolKind::TextCompletion | ToolKind::StructuredQuery => {
            fixed("question", "The question to ask")
        }
        ToolKind::Agent => fixed("question", "What the agent is to find out, with everything that it needs to know"),
        ToolKind::RowEmbeddingsQuery => fixed("query", "The text to search for"),
        ToolKind::DocumentRag => fixed("question", "What to look for in the documents"),
        ToolKind::SparqlQuery => fixed("query", "A SPARQL 1.1 query: SELECT, ASK, CONSTRUCT or DESCRIBE"),
        ToolKind::McpTool | ToolKind::Prompt | ToolKind::ToolService | ToolKind::Http => configured_arguments(members),
    }
}

fn configured_arguments(members: &Members<'_>) -> Result<Vec<ArgumentItem>, Problem> {
    let wrong = |what: String| {
        members.problem("arguments", what, r#"write a list of {"name": …, "type": "string", "description": …}"#)
    };
    let arguments = match members.map.get("arguments") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(arguments)) => arguments,
        Some(other) => return Err(wrong(format!("expected a list, found {}", kind_of(other)))),
    };
    let read = |(index, argument): (usize, &Value)| {
        let text = |name: &str| argument.get(name).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| wrong(format!("entry {} has no name", index + 1)))?;
        let required = match argument.get("required") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(required)) => Some(*required),
            Some(other) => {
                return Err(wrong(format!("`required` of `{name}` is {}, not true or false", kind_of(other))));
            }
        };
        let schema = argument.get("schema").filter(|schema| !schema.is_null());
        if let Some(schema) = schema
            && (!schema.is_object() || schema.to_string().len() > LONGEST_SCHEMA)
        {
            return Err(wrong(format!("`schema` of `{name}` is no object of at most {LONGEST_SCHEMA} bytes")));
        }
        Ok(ArgumentItem {
            name,
            kind: text("type").unwrap_or_else(|| "string".to_owned()),
            description: text("description").unwrap_or_default(),
            required,
            schema: schema.cloned(),
        })
    };
    arguments.iter().enumerate().map(read).collect()
}
