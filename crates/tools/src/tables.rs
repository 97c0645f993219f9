//! `structured-query`: a question about tables, which a model puts into GraphQL; the rows are the result.
//! `row-embeddings-query`: values of a table's rows that are near to a text in meaning.

use serde_json::Value;
use std::sync::Arc;
use trellis_domain::Collection;
use trellis_domain::config::{Settings, ToolItem};
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{Embedder, ModelWish, PromptNeed, TablePlace, ToolCall, ToolError, ToolOutput};
use trellis_orchestrator::tables::{AskError, Asker, GRAPHQL, QuestionCall, RowFinder, TableAnswer};

/// Rows of each table in an answer, if the tool names no other number, and at most.
const ROWS: u64 = 100;
const MOST_ROWS: u64 = 1_000;
/// Values that are found by meaning.
const VALUES: u64 = 10;
const MOST_VALUES: u64 = 100;
/// Bytes of an answer: what a model reads of an observation has an end.
const LONGEST: usize = 48 << 10;
const NO_TABLES: &str = "no tables are kept here";

/// Asks tables, if there are any.
#[derive(Debug, Default)]
pub(crate) struct TableTools {
    asker: Option<Asker>,
    finder: Option<RowFinder>,
}

impl TableTools {
    pub(crate) fn new(asker: Asker, embedder: Option<Arc<dyn Embedder>>) -> Self {
        let finder = embedder.map(|embedder| RowFinder { tables: Arc::clone(&asker.tables), embedder });
        Self { asker: Some(asker), finder }
    }

    /// Why no question can be put to tables.
    pub(crate) fn asking_obstacle(&self) -> Option<String> {
        self.asker.is_none().then(|| NO_TABLES.to_owned())
    }

    /// Why no row can be found by meaning.
    pub(crate) fn finding_obstacle(&self, tool: &ToolItem, settings: &Settings) -> Option<String> {
        if self.asker.is_none() {
            return Some(NO_TABLES.to_owned());
        }
        if self.finder.is_none() {
            return Some("no embedding model is configured; the operator can set TRELLIS_EMBEDDING_MODEL".to_owned());
        }
        let schema = tool.setting("schema-name").unwrap_or_default();
        let is_known = settings.schemas.contains_key(schema);
        (!is_known).then(|| format!("there is no schema `{schema}`; add it as configuration item schema/{schema}"))
    }

    pub(crate) fn capacity(&self, settings: &Settings, wish: ModelWish<'_>) -> Option<Arc<CallCapacity>> {
        self.asker.as_ref()?.prompter.capacity(PromptNeed { settings, id: GRAPHQL, wish })
    }

    pub(crate) async fn ask(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let asker = self.asker.as_ref().ok_or_else(|| ToolError::new(NO_TABLES))?;
        let question = text(&call, "question")?;
        let collection = collection(&call)?;
        let rows = limit(&call.tool, ROWS, MOST_ROWS);
        let ToolCall { scope, settings, labels, timeout, max_reply_bytes, permit, .. } = call;
        let timeout = Some(timeout);
        let question = QuestionCall { scope, settings, question, rows, timeout, max_reply_bytes, labels, permit };
        let failed = |AskError { reason, calls }: AskError| ToolError { reason, calls };
        let found = asker.answer(question, &collection).await.map_err(failed)?;
        in_words(found)
    }

    pub(crate) async fn find(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let without = "no rows can be found by meaning here";
        let finder = self.finder.as_ref().ok_or_else(|| ToolError::new(without))?;
        let query = text(call, "query")?;
        let table = call.tool.setting("schema-name").unwrap_or_default().to_owned();
        let place = TablePlace { workspace: call.scope.workspace.clone(), collection: collection(call)?, table };
        let field = call.tool.setting("index-name").filter(|name| !name.is_empty());
        let limit = usize::try_from(limit(&call.tool, VALUES, MOST_VALUES)).unwrap_or(usize::MAX);
        let found = finder.find(&place, field, &query, limit).await;
        let found = found.map_err(|error| ToolError::new(error.to_string()))?;
        if found.is_empty() {
            return Ok(ToolOutput { text: "No matching records found".to_owned(), ..ToolOutput::default() });
        }
        let mut text = "Matching records:".to_owned();
        for value in found {
            let line = format!("\n- {}: {} (score: {:.3})", value.field, value.text, value.score);
            if text.len() + line.len() > LONGEST {
                text.push_str("\nMore were left out: they are too long.");
                break;
            }
            text.push_str(&line);
        }
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

/// The collection that the tool is bound to. Without one it is that of the question.
fn collection(call: &ToolCall) -> Result<Collection, ToolError> {
    let named = call.tool.setting("collection").filter(|name| !name.is_empty()).map(Collection::new).transpose();
    let wrong = |error| ToolError::new(format!("the tool `{}` cannot be used: {error}", call.tool.name));
    Ok(named.map_err(wrong)?.unwrap_or_else(|| call.collection.clone()))
}

fn text(call: &ToolCall, name: &str) -> Result<String, ToolError> {
    let given = call.arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    given.map(str::to_owned).ok_or_else(|| {
        let tool = &call.tool.name;
        ToolError::new(format!("the argument `{name}` is missing; `{tool}` expects `{name}` (string)"))
    })
}

fn limit(tool: &ToolItem, usual: u64, most: u64) -> u64 {
    tool.settings.get("limit").and_then(Value::as_u64).unwrap_or(usual).clamp(1, most)
}

fn in_words(found: TableAnswer) -> Result<ToolOutput, ToolError> {
    let TableAnswer { generated, answer, calls } = found;
    if !answer.errors.is_empty() {
        let errors: Vec<_> = answer.errors.iter().map(|error| error.message.as_str()).collect();
        let reason = format!("{}. The query was: {}", errors.join("; "), generated.request.query);
        return Err(ToolError { reason, calls });
    }
    let data = answer.data.unwrap_or_default();
    if data.values().all(|rows| rows.as_array().is_some_and(Vec::is_empty)) {
        let text = format!("No rows fit. The query was: {}", generated.request.query);
        return Ok(ToolOutput { text, calls, ..ToolOutput::default() });
    }
    let mut text = serde_json::to_string_pretty(&data).expect("rows are always JSON");
    if text.len() > LONGEST {
        let end = text.floor_char_boundary(LONGEST);
        text.truncate(end);
        text.push_str("\n[cut off: ask for fewer rows or fields]");
    }
    for table in answer.cut {
        text.extend(["\nThere are more rows of ", &table, ": ask more precisely."]);
    }
    Ok(ToolOutput { text, calls, ..ToolOutput::default() })
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
