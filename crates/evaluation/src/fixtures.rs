//! The tools that suites offer: a search in documents, a calculator, and recorded answers.
//!
//! They are configured as tools on an MCP server that does not exist, and answered here; all others go on to whoever
//! answers tools otherwise. Answers depend on the call alone, so that two runs of a suite differ by their models only.

use crate::calculator::calculate;
use crate::documents::Documents;
use crate::suite::{Recorded, RecordedCall};
use crate::tree::same_members;
use parking_lot::RwLock;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use trellis_domain::config::{Settings, StoredItem, ToolItem, ToolKind};
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{BoxFuture, ModelWish, ToolCall, ToolError, ToolOutput, ToolRunner};

pub const SEARCH: &str = "search";
pub const CALCULATOR: &str = "calculator";

/// The `mcp-tool` that fixture tools name.
const FIXTURE: &str = "evaluation";

/// Answers the fixture tools itself and hands on the rest.
#[derive(Debug)]
pub struct FixtureTools {
    inner: Arc<dyn ToolRunner>,
    documents: Documents,
    recorded: RwLock<HashMap<RunId, Arc<Recorded>>>,
}

impl FixtureTools {
    pub fn new(inner: Arc<dyn ToolRunner>, documents: Documents) -> Self {
        Self { inner, documents, recorded: RwLock::default() }
    }

    /// From now on these are what the tools of this run answer. Runs are told apart because they go on at the same time,
    /// and the same call may be recorded differently for another question.
    pub fn for_session(&self, run: RunId, recorded: Recorded) {
        if !recorded.is_empty() {
            self.recorded.write().insert(run, Arc::new(recorded));
        }
    }

    /// The run has ended; its answers are not needed any more.
    pub fn forget(&self, run: &RunId) {
        self.recorded.write().remove(run);
    }

    /// None for a tool that is no fixture.
    fn answer(&self, call: &ToolCall) -> Option<Result<String, String>> {
        let name = call.tool.name.as_str();
        let run = call.labels.as_ref().map(|labels| &labels.run);
        let recorded = run.and_then(|run| self.recorded.read().get(run).cloned());
        if let Some(answers) = recorded.as_ref().and_then(|recorded| recorded.get(name)) {
            return Some(replay(answers, call));
        }
        if !is_fixture(&call.tool) {
            return None;
        }
        Some(match name {
            SEARCH => argument(call, "query").map(|query| self.documents.search(&query)),
            CALCULATOR => argument(call, "expression")
                .and_then(|expression| calculate(&expression).map_err(|error| error.to_string())),
            other => Err(format!("nothing is recorded for `{other}` in this run; use another tool")),
        })
    }
}

impl ToolRunner for FixtureTools {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        match self.answer(&call) {
            None => self.inner.call(call),
            Some(answer) => {
                let output = |text| ToolOutput { text, ..ToolOutput::default() };
                Box::pin(std::future::ready(answer.map(output).map_err(ToolError::new)))
            }
        }
    }

    fn obstacle(&self, workspace: &Workspace, tool: &ToolItem, settings: &Settings) -> Option<String> {
        if is_fixture(tool) { None } else { self.inner.obstacle(workspace, tool, settings) }
    }

    fn capacity(&self, tool: &ToolItem, settings: &Settings, wish: ModelWish<'_>) -> Option<Arc<CallCapacity>> {
        if is_fixture(tool) { None } else { self.inner.capacity(tool, settings, wish) }
    }
}

fn is_fixture(tool: &ToolItem) -> bool {
    tool.kind == ToolKind::McpTool && tool.setting("mcp-tool") == Some(FIXTURE)
}

/// The recorded arguments are not told to the model: they are what it has to find.
fn replay(answers: &[RecordedCall], call: &ToolCall) -> Result<String, String> {
    let found = answers.iter().find(|answer| same_members(&answer.arguments, &call.arguments));
    found.map(|answer| answer.result.clone()).ok_or_else(|| {
        let name = &call.tool.name;
        format!("`{name}` has no result for these arguments; check them against the question, or use another tool")
    })
}

fn argument(call: &ToolCall, name: &str) -> Result<String, String> {
    match call.arguments.get(name) {
        None | Some(Value::Null) => {
            Err(format!("the argument `{name}` is missing; `{}` expects `{name}` (string)", call.tool.name))
        }
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Ok(other.to_string()),
    }
}

/// The configuration items that offer `search` and `calculator`. Each is in the group `default` and in one of its own
/// name, so that a question can ask for some of them only.
pub fn tool_items() -> Vec<StoredItem> {
    let text = |name: &str, description: &str| json!({"name": name, "type": "string", "description": description});
    vec![
        tool_item(
            SEARCH,
            "Searches the documents, which hold the facts, and returns the passages that fit best.",
            &[text("query", "What to look for, in a few words")],
            &["default", SEARCH],
        ),
        tool_item(
            CALCULATOR,
            "Computes an arithmetic expression. All numbers in it have to be known already.",
            &[text(
                "expression",
                "Numbers without thousands separators, + - * / % ^, parentheses, sqrt, min, max, abs, round",
            )],
            &["default", CALCULATOR],
        ),
    ]
}

/// The items that offer recorded tools, with the arguments that were recorded anywhere. They are only in the groups of
/// their own names: a question that does not name them does not see them.
pub fn recorded_tool_items<'r>(recorded: impl IntoIterator<Item = &'r Recorded>) -> Vec<StoredItem> {
    let mut tools: BTreeMap<&str, BTreeMap<&str, &'static str>> = BTreeMap::new();
    for (name, calls) in recorded.into_iter().flatten() {
        let arguments = tools.entry(name).or_default();
        for (argument, value) in calls.iter().flat_map(|call| &call.arguments) {
            arguments.entry(argument).or_insert_with(|| type_of(value));
        }
    }
    let item = |(name, arguments): (&str, BTreeMap<&str, &str>)| {
        let arguments =
            arguments.into_iter().map(|(name, kind)| json!({"name": name, "type": kind, "description": ""}));
        tool_item(name, &format!("Calls {name}."), &arguments.collect::<Vec<_>>(), &[name])
    };
    tools.into_iter().map(item).collect()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn tool_item(name: &str, description: &str, arguments: &[Value], groups: &[&str]) -> StoredItem {
    let value = json!({
        "type": ToolKind::McpTool.as_str(),
        "name": name,
        "description": description,
        "mcp-tool": FIXTURE,
        "arguments": arguments,
        "group": groups,
    });
    StoredItem { kind: "tool".to_owned(), key: name.to_owned(), value: value.to_string() }
}

#[cfg(test)]
#[path = "fixtures_tests.rs"]
mod tests;
