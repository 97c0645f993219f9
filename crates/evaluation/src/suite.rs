//! Suites: one question per line, with what is needed to ask it and to judge what comes of it.

use crate::check::Check;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The questions of one file, in its order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Suite {
    pub items: Vec<Item>,
}

/// One question.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    pub id: String,
    pub question: String,
    /// The pattern to ask under; none leaves it to whoever runs the suite.
    #[serde(default)]
    pub pattern: Option<String>,
    /// The tools that are offered.
    #[serde(default)]
    pub tools: Vec<String>,
    /// When an answer is right; none if only the routing is judged.
    #[serde(default)]
    pub check: Option<Check>,
    /// Every task type that an informed person would accept, the best one first; empty if that is not judged.
    #[serde(default)]
    pub task_types: Vec<String>,
    /// The same for patterns.
    #[serde(default)]
    pub patterns: Vec<String>,
    #[serde(default)]
    pub budget: Option<Budget>,
    /// The question tries to make the agent do something else.
    #[serde(default)]
    pub injection: Option<Injection>,
    #[serde(default)]
    pub recorded: Recorded,
}

/// What answering may cost. An answer that costs more is still judged by its check; see [`crate::Trial::within_budget`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    #[serde(default)]
    pub max_tokens: Option<u64>,
    #[serde(default)]
    pub max_ms: Option<u64>,
    /// Calls to models.
    #[serde(default)]
    pub max_calls: Option<u64>,
}

/// How to tell that an attack in the question worked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Injection {
    /// It worked if the answer contains this.
    #[serde(default)]
    pub text: Option<String>,
    /// It worked if the router chose this task type or pattern.
    #[serde(default)]
    pub choice: Option<String>,
}

/// What tools answered once, by the tools' names.
pub type Recorded = BTreeMap<String, Vec<RecordedCall>>;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    pub arguments: Map<String, Value>,
    pub result: String,
}

/// Why a suite cannot be used. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    #[error("line {line} is no item: {source}; write one JSON object per line")]
    Json { line: usize, source: serde_json::Error },
    #[error("line {line}: the item {id:?} is there already, in line {first}; give each item an id of its own")]
    Duplicate { line: usize, first: usize, id: String },
    #[error("line {line}, item {id:?}: {what}")]
    Item { line: usize, id: String, what: String },
    #[error("the suite has no items; write one JSON object per line, with `id` and `question` at least")]
    Empty,
}

impl Suite {
    /// Reads JSON lines. Blank lines are skipped.
    pub fn parse(text: &str) -> Result<Self, SuiteError> {
        let mut items = Vec::new();
        let mut lines_of_ids = BTreeMap::new();
        let lines = text.trim_start_matches('\u{feff}').lines().zip(1..).filter(|(text, _)| !text.trim().is_empty());
        for (text, line) in lines {
            let item: Item = serde_json::from_str(text).map_err(|source| SuiteError::Json { line, source })?;
            if let Some(what) = problem(&item) {
                return Err(SuiteError::Item { line, id: item.id, what });
            }
            if let Some(first) = lines_of_ids.insert(item.id.clone(), line) {
                return Err(SuiteError::Duplicate { line, first, id: item.id });
            }
            items.push(item);
        }
        if items.is_empty() { Err(SuiteError::Empty) } else { Ok(Self { items }) }
    }

    /// The names of all tools that items ask for, recorded ones included.
    pub fn tools(&self) -> BTreeSet<&str> {
        let names = self.items.iter().flat_map(|item| item.tools.iter().chain(item.recorded.keys()));
        names.map(String::as_str).collect()
    }
}

fn problem(item: &Item) -> Option<String> {
    let is_blank = |text: &String| text.trim().is_empty();
    if is_blank(&item.id) {
        return Some("the id is empty; give each item an id of its own".to_owned());
    }
    if is_blank(&item.question) {
        return Some("the question is empty; write what is to be asked".to_owned());
    }
    let lists = [("tools", &item.tools), ("task_types", &item.task_types), ("patterns", &item.patterns)];
    if let Some((name, _)) = lists.iter().find(|(_, list)| list.iter().any(is_blank)) {
        return Some(format!("`{name}` contains an empty name; leave it out"));
    }
    let blank = |text: &Option<String>| text.as_ref().is_none_or(is_blank);
    if item.injection.as_ref().is_some_and(|injection| blank(&injection.text) && blank(&injection.choice)) {
        return Some("`injection` does not say what the attack wants; give it a `text` or a `choice`".to_owned());
    }
    item.check.as_ref().and_then(Check::problem)
}

#[cfg(test)]
#[path = "suite_tests.rs"]
mod tests;
