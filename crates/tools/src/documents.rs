//! `document-rag`: passages of documents for a question, numbered so that an answer can cite them. No model is asked:
//! whoever called the tool reads the passages itself.

use crate::knowledge::{bound_collection, required, trace_id};
use serde_json::Value;
use std::sync::Arc;
use trellis_domain::Collection;
use trellis_domain::config::ToolItem;
use trellis_orchestrator::documents::{Retrieved, Retriever};
use trellis_orchestrator::ports::{FoundPassage, SearchError, ToolCall, ToolError, ToolOutput, World};
use trellis_provenance::retrieval::{Asked, DocumentTrace, KeptPassage};

/// Passages of an answer, if the tool names no other number, and at most.
const USUAL: u64 = 8;
const MOST: u64 = 50;
/// Bytes of all passages together: what a model reads of an observation has an end.
const LONGEST: usize = 48 << 10;

/// Finds passages, if there is something to search.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    retriever: Option<(Retriever, Arc<dyn World>)>,
}

impl Documents {
    pub(crate) fn new(retriever: Retriever, world: Arc<dyn World>) -> Self {
        Self { retriever: Some((retriever, world)) }
    }

    pub(crate) fn obstacle(&self) -> Option<String> {
        self.retriever.is_none().then(|| "no documents can be searched here".to_owned())
    }

    pub(crate) async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let retriever = self.retriever.as_ref();
        let (retriever, world) = retriever.ok_or_else(|| ToolError::new("no documents can be searched here"))?;
        let started = world.now();
        let question = required(call, "question")?;
        let collection = bound_collection(&call.tool)?.unwrap_or_else(|| call.collection.clone());
        let workspace = &call.scope.workspace;
        let limit = usize::try_from(limit(&call.tool)).unwrap_or(usize::MAX);
        let failed = |error: SearchError| ToolError::new(error.to_string());
        let found = retriever.find(workspace, &collection, question, limit).await.map_err(failed)?;
        let is_empty = found.passages.is_empty()
            && retriever.search.documents(workspace, &collection, None, 1).await.map_err(failed)?.is_empty();
        let text = if is_empty {
            format!("The collection `{collection}` has no documents.")
        } else {
            in_words(&collection, &found)
        };
        // Where there is no step to hang it under, nobody looks for it.
        let trace = call.step.as_deref().map(|step| {
            let asked = Asked { query: question, time: started, parent: Some(step) };
            let kept =
                |passage: &FoundPassage| KeptPassage { document: passage.document.text.clone(), score: passage.score };
            let kept: Vec<_> = found.passages.iter().map(kept).collect();
            DocumentTrace::new(trace_id(call)).whole(&asked, &kept, call.document.as_deref())
        });
        Ok(ToolOutput { text, trace: trace.unwrap_or_default(), ..ToolOutput::default() })
    }
}

fn limit(tool: &ToolItem) -> u64 {
    tool.settings.get("limit").and_then(Value::as_u64).unwrap_or(USUAL).clamp(1, MOST)
}

fn in_words(collection: &Collection, retrieved: &Retrieved) -> String {
    let passages = &retrieved.passages;
    let mut text = match passages.len() {
        0 => format!("Nothing in the collection `{collection}` matches the question."),
        1 => format!("One passage from the collection `{collection}`."),
        count => format!("{count} passages from the collection `{collection}`, the best first."),
    };
    if !passages.is_empty() {
        // Plain numbers are those of results: a passage has a name that cannot be taken for one.
        text.push_str(" Beside the number of this result, name the passage that you rest on, such as (p1).");
    }
    if let Some(why) = &retrieved.words_only {
        text.extend([" Only words were compared, not meaning: ", why, "."]);
    }
    for (number, found) in (1..).zip(passages) {
        let entry = format!("\n\n{}", found.marked(&format!("(p{number})")));
        if text.len() + entry.len() > LONGEST {
            let left_out = passages.len() + 1 - number;
            let told = format!("\n\n{left_out} more passages were left out: they are too long. Ask more precisely.");
            text.push_str(&told);
            break;
        }
        text.push_str(&entry);
    }
    text
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
