//! All agent items of a workspace at one version: what a session is pinned to.

use super::{
    AGENT_TYPES, ConfigItem, McpItem, PatternItem, Problem, PromptItem, PromptReply, TaskTypeItem, ToolItem,
    ToolServiceItem, validate,
};
use crate::limits::SomeLimits;
use crate::table::TableSchema;
use crate::{Hash, PatternName, TaskTypeName, ToolName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One item as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StoredItem {
    #[serde(rename = "type")]
    pub kind: String,
    pub key: String,
    pub value: String,
}

/// The agent's settings, read from the valid items; the others are listed as problems.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The workspace's configuration version.
    pub version: u64,
    /// The content hash of the snapshot.
    pub snapshot: Option<Hash>,
    /// By the name that the model uses, not by key.
    /// Shared with the calls that offer them: thousands may wait for a model at once.
    pub tools: BTreeMap<ToolName, Arc<ToolItem>>,
    pub tool_services: BTreeMap<String, ToolServiceItem>,
    pub mcp: BTreeMap<String, McpItem>,
    pub system_prompt: String,
    pub prompts: BTreeMap<String, Prompt>,
    pub additional_context: String,
    /// The models that prompts go to where nothing more specific names others; empty if none are named.
    pub models: Vec<String>,
    /// What holds for the workspace's runs where nothing more specific names other limits.
    pub limits: SomeLimits,
    pub patterns: BTreeMap<PatternName, PatternItem>,
    pub task_types: BTreeMap<TaskTypeName, TaskTypeItem>,
    /// What tables there can be, by name.
    pub schemas: BTreeMap<String, Arc<TableSchema>>,
    pub problems: Vec<Problem>,
}

/// A prompt template.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    pub text: String,
    pub reply: PromptReply,
    pub hash: Hash,
    /// The models that it goes to, in their order; empty if it names none.
    pub models: Vec<String>,
    /// What was said after it comes as turns of its own; if not, it comes in the variable `history`.
    pub conversation: bool,
    /// What is said below each result in the conversation, to a model that is not offered functions; a template.
    pub next: Option<String>,
}

/// A snapshot as it is stored: the agent's items in order, under their content hash.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredSnapshot {
    version: u64,
    pub(super) items: Vec<StoredItem>,
}

impl Settings {
    /// Reads items and gives the snapshot's bytes, whose hash names it.
    pub fn take(version: u64, items: impl IntoIterator<Item = StoredItem>) -> (Self, Vec<u8>) {
        let mut items: Vec<_> = items.into_iter().filter(|item| AGENT_TYPES.contains(&item.kind.as_str())).collect();
        items.sort();
        let snapshot = StoredSnapshot { version, items };
        let bytes = serde_json::to_vec(&snapshot).expect("texts and numbers are always JSON");
        let mut settings = Self::read(version, &snapshot.items);
        settings.snapshot = Some(Hash::of(&bytes));
        (settings, bytes)
    }

    /// Reads a stored snapshot.
    pub fn from_snapshot(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let snapshot: StoredSnapshot = serde_json::from_slice(bytes)?;
        let mut settings = Self::read(snapshot.version, &snapshot.items);
        settings.snapshot = Some(Hash::of(bytes));
        Ok(settings)
    }

    fn read(version: u64, items: &[StoredItem]) -> Self {
        let mut settings = Self { version, ..Self::default() };
        for item in items {
            match validate(&item.kind, &item.key, &item.value) {
                Ok(valid) => settings.put(&item.key, valid),
                Err(problem) => settings.note(item, problem),
            }
        }
        settings.drop_tools_without_service();
        settings
    }

    /// The models that prompts and task types name for themselves.
    pub fn special_models(&self) -> impl Iterator<Item = &String> {
        let by_prompt = self.prompts.values().flat_map(|prompt| &prompt.models);
        by_prompt.chain(self.task_types.values().flat_map(|task_type| &task_type.models))
    }

    /// What does not fit together, though each item is valid by itself.
    pub fn inconsistencies(&self) -> Vec<Problem> {
        let problem = |kind: &str, key: &str, field: &str, what: String, mend: &str| Problem {
            kind: kind.to_owned(),
            key: key.to_owned(),
            field: field.to_owned(),
            what,
            mend: mend.to_owned(),
        };
        let mut problems = Vec::new();
        for (name, tool) in &self.tools {
            let template = match tool.kind {
                super::ToolKind::Prompt => tool.setting("template").unwrap_or_default(),
                super::ToolKind::TextCompletion => "question",
                // Its other prompts can be done without.
                super::ToolKind::KnowledgeQuery => "kg-synthesis",
                super::ToolKind::McpTool
                | super::ToolKind::StructuredQuery
                | super::ToolKind::RowEmbeddingsQuery
                | super::ToolKind::ToolService
                | super::ToolKind::Http
                | super::ToolKind::DocumentRag
                | super::ToolKind::SparqlQuery => continue,
                super::ToolKind::Agent => {
                    problems.extend(self.agent_problems(name, tool));
                    continue;
                }
            };
            if !self.prompts.contains_key(template) {
                let what = format!("there is no prompt `{template}`");
                problems.push(problem("tool", name, "template", what, "add it as prompt/template.<id>"));
            }
        }
        for (key, task_type) in &self.task_types {
            let unknown = |name: &&PatternName| !self.patterns.contains_key(*name);
            for name in task_type.valid_patterns.iter().flatten().filter(unknown) {
                let what = format!("there is no pattern `{name}`");
                problems.push(problem(
                    "agent-task-type",
                    key,
                    "valid_patterns",
                    what,
                    "add it as agent-pattern, or leave it out",
                ));
            }
        }
        problems
    }

    fn put(&mut self, key: &str, item: ConfigItem) {
        match item {
            ConfigItem::Tool(tool) => {
                self.tools.insert(tool.name.clone(), tool);
            }
            ConfigItem::ToolService(service) => {
                self.tool_services.insert(key.to_owned(), service);
            }
            ConfigItem::Mcp(mcp) => {
                self.mcp.insert(key.to_owned(), mcp);
            }
            ConfigItem::Prompt(PromptItem::System(text)) => self.system_prompt = text,
            ConfigItem::Prompt(PromptItem::Template { id, prompt, reply, models, conversation, next }) => {
                let hash = Hash::of(prompt.as_bytes());
                self.prompts.insert(id, Prompt { text: prompt, reply, hash, models, conversation, next });
            }
            ConfigItem::AdditionalContext(text) => self.additional_context = text,
            ConfigItem::Models(models) => self.models = models,
            ConfigItem::Limits(limits) => self.limits = limits,
            ConfigItem::Pattern(pattern) => {
                self.patterns.insert(key.into(), pattern);
            }
            ConfigItem::TaskType(task_type) => {
                self.task_types.insert(key.into(), task_type);
            }
            ConfigItem::Schema(schema) => {
                self.schemas.insert(key.to_owned(), schema);
            }
            ConfigItem::Prompt(PromptItem::Index) | ConfigItem::Other => {}
        }
    }

    /// A pattern or task type that is not JSON still exists under its key, as in the original.
    fn note(&mut self, item: &StoredItem, problem: Problem) {
        if problem.field == "value" {
            let (name, empty) = (item.key.clone(), String::new);
            match item.kind.as_str() {
                "agent-pattern" => {
                    let (description, when_to_use) = (empty(), empty());
                    let pattern = PatternItem { name, description, when_to_use, limits: SomeLimits::default() };
                    self.patterns.insert(item.key.as_str().into(), pattern);
                }
                "agent-task-type" => {
                    let task_type = TaskTypeItem {
                        name,
                        description: empty(),
                        framing: empty(),
                        valid_patterns: None,
                        when_to_use: empty(),
                        termination: empty(),
                        limits: SomeLimits::default(),
                        models: Vec::new(),
                        examples: Vec::new(),
                    };
                    self.task_types.insert(item.key.as_str().into(), task_type);
                }
                _ => {}
            }
        }
        self.problems.push(problem);
    }

    /// What is wrong with the agent that a tool stands for.
    fn agent_problems(&self, name: &ToolName, tool: &super::ToolItem) -> Vec<Problem> {
        let problem = |field: &str, named: &str| Problem {
            kind: "tool".to_owned(),
            key: name.to_string(),
            field: field.to_owned(),
            what: format!("there is no {} `{named}`", field.replace('-', " ")),
            mend: format!("name one that is configured, or add agent-{field}/{named}"),
        };
        let is_pattern = |name: &str| self.patterns.is_empty() || self.patterns.contains_key(name);
        let pattern = tool.setting("pattern").filter(|name| !is_pattern(name));
        let task_type = tool.setting("task-type").filter(|name| !self.task_types.contains_key(*name));
        let pattern = pattern.map(|name| problem("pattern", name));
        pattern.into_iter().chain(task_type.map(|name| problem("task-type", name))).collect()
    }

    /// A tool of a service that is missing, or that does not set what the service requires, is left out alone.
    fn drop_tools_without_service(&mut self) {
        let Self { tools, tool_services, problems, .. } = self;
        tools.retain(|name, tool| {
            if tool.kind != super::ToolKind::ToolService {
                return true;
            }
            let key = tool.setting("service").unwrap_or_default();
            let (field, what, mend) = match tool_services.get(key) {
                None => ("service", format!("there is no tool-service `{key}`"), format!("add tool-service/{key}")),
                Some(service) => {
                    let unset = |(name, required): &&(String, bool)| *required && !tool.settings.contains_key(name);
                    let Some((parameter, _)) = service.config_params.iter().find(unset) else { return true };
                    (parameter.as_str(), format!("tool-service `{key}` requires it"), format!("set `{parameter}`"))
                }
            };
            let (kind, key, field) = ("tool".to_owned(), name.to_string(), field.to_owned());
            problems.push(Problem { kind, key, field, what, mend });
            false
        });
    }
}
