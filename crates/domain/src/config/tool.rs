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
    }
);

impl ToolKind {
    /// Whether a call is nothing but a prompt to a model.
    pub fn asks_a_model(self) -> bool {
        match self {
            Self::TextCompletion | Self::Prompt => true,
            Self::KnowledgeQuery
            | Self::McpTool
            | Self::StructuredQuery
            | Self::RowEmbeddingsQuery
            | Self::ToolService
            | Self::Http
            | Self::DocumentRag => false,
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
    /// Somebody has to agree before each call.
    pub approval: Option<ApprovalItem>,
    /// The whole object, for the members that only this kind of tool has.
    pub settings: Map<String, Value>,
}

/// Who has to agree to a call, and how long they are waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalItem {
    /// By name; none means everybody who may ask.
    pub approvers: Option<Vec<String>>,
    pub timeout_ms: u64,
}

impl ApprovalItem {
    /// An hour.
    const TIMEOUT_MS: u64 = 3_600_000;
    /// A week: a run that waits is an open run.
    const MOST_MS: u64 = 7 * 24 * 3_600_000;

    fn read(members: &Members<'_>) -> Result<Option<Self>, Problem> {
        const TIMEOUT: &str = "approval-timeout-ms";
        let wanted = members.map.get("requires-approval").and_then(Value::as_bool).unwrap_or(false);
        if members.map.get("requires-approval").is_some_and(|value| !value.is_boolean()) {
            let name = "requires-approval";
            return Err(members.problem(name, format!("`{name}` is no truth value"), "write true or false".to_owned()));
        }
        let approvers = members.texts(&["approvers"])?.filter(|names| !names.is_empty());
        let timeout_ms = members.number(TIMEOUT)?.unwrap_or(Self::TIMEOUT_MS);
        if timeout_ms > Self::MOST_MS {
            let what = format!("{timeout_ms} ms is longer than anybody is waited for");
            return Err(members.problem(TIMEOUT, what, format!("write at most {}, which is a week", Self::MOST_MS)));
        }
        Ok(wanted.then_some(Self { approvers, timeout_ms }))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentItem {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub description: String,
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
            approval: ApprovalItem::read(members)?,
            settings: members.map.clone(),
        })
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
        ToolKind::KnowledgeQuery | ToolKind::StructuredQuery => members.text(&["collection"]).map(|_| ()),
        ToolKind::TextCompletion => Ok(()),
        ToolKind::McpTool => {
            members.text(&["server"])?;
            need("mcp-tool", "name the key of an `mcp` item, or with `server` a tool of that server")
        }
        ToolKind::Prompt => need("template", "name a prompt, stored as `prompt` item `template.<id>`"),
        ToolKind::ToolService => need("service", "name the key of a `tool-service` item"),
        ToolKind::DocumentRag => {
            members.number("limit")?;
            members.text(&["collection"]).map(|_| ())
        }
        ToolKind::Http => need("url", "write an address such as https://api.example.com/cities/{city}"),
        ToolKind::RowEmbeddingsQuery => {
            members.number("limit")?;
            need("schema-name", "name the schema to search")
        }
    }
}

/// Some kinds have arguments of their own, the others take them from the item.
fn read_arguments(members: &Members<'_>, kind: ToolKind) -> Result<Vec<ArgumentItem>, Problem> {
    let fixed = |name: &str, description: &str| {
        Ok(vec![ArgumentItem { name: name.into(), kind: "string".into(), description: description.into() }])
    };
    match kind {
        ToolKind::KnowledgeQuery | ToolKind::TextCompletion | ToolKind::StructuredQuery => {
            fixed("question", "The question to ask")
        }
        ToolKind::RowEmbeddingsQuery => fixed("query", "The text to search for"),
        ToolKind::DocumentRag => fixed("question", "What to look for in the documents"),
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
        Ok(ArgumentItem {
            name: name.ok_or_else(|| wrong(format!("entry {} has no name", index + 1)))?,
            kind: text("type").unwrap_or_else(|| "string".to_owned()),
            description: text("description").unwrap_or_default(),
        })
    };
    arguments.iter().enumerate().map(read).collect()
}
