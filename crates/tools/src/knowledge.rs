//! `knowledge-query`: an answer from a knowledge graph, with the edges that it rests on as a trace of its own.

use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::Arc;
use trellis_domain::config::{Settings, ToolItem};
use trellis_domain::record::Explained;
use trellis_domain::{Collection, Hash};
use trellis_orchestrator::graph_rag::{Asker, CONCEPTS, GraphBounds, GraphQuestion, GraphRag, Listener, Written};
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{KnowledgePlace, ModelWish, PromptNeed, ReplySink, ToolCall, ToolError, ToolOutput};

const NOTHING: &str = "no knowledge is loaded here";
/// Bytes of a question that is asked of a graph.
const LONGEST_QUESTION: usize = 16 << 10;

/// Passages that are named below an answer.
const SHOWN_PASSAGES: usize = 10;

/// Answers questions, if there is knowledge to answer from.
#[derive(Debug, Default)]
pub(crate) struct KnowledgeQuery {
    rag: Option<GraphRag>,
}

impl KnowledgeQuery {
    pub(crate) fn new(rag: GraphRag) -> Self {
        Self { rag: Some(rag) }
    }

    pub(crate) fn obstacle(&self, tool: &ToolItem) -> Option<String> {
        let wrong = || bound_collection(tool).err().map(|error| error.reason);
        self.rag.is_none().then(|| NOTHING.to_owned()).or_else(wrong)
    }

    /// That of the model that is asked first.
    pub(crate) fn capacity(&self, settings: &Settings, wish: ModelWish<'_>) -> Option<Arc<CallCapacity>> {
        self.rag.as_ref()?.prompter.capacity(PromptNeed { settings, id: CONCEPTS, wish })
    }

    pub(crate) async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let rag = self.rag.as_ref().ok_or_else(|| ToolError::new(NOTHING))?;
        let query = required(&call, "question")?;
        if query.len() > LONGEST_QUESTION {
            return Err(ToolError::new(format!("the question is longer than {LONGEST_QUESTION} bytes; ask briefly")));
        }
        let collection = bound_collection(&call.tool)?.unwrap_or_else(|| call.collection.clone());
        let place = KnowledgePlace { workspace: call.scope.workspace.clone(), collection };
        let bounds = GraphBounds::wished(|name| call.tool.settings.get(name).and_then(Value::as_u64));
        let question = GraphQuestion {
            bounds,
            parent: call.step.clone(),
            document: call.document.clone(),
            ..GraphQuestion::new(place, query, trace_id(&call))
        };
        let ToolCall { scope, settings, labels, timeout, permit, max_reply_bytes, .. } = call;
        let asker = Asker { scope, settings, labels, timeout, permit };
        let mut unheard = Unheard { bytes: 0, limit: max_reply_bytes };
        match rag.answer(&question, asker, &mut unheard).await {
            Ok(answer) => {
                let cut = unheard.bytes > unheard.limit || answer.written == Written::CutShort;
                let mut text =
                    if cut { format!("{}\n{}", answer.text.trim_end(), super::prompt::CUT) } else { answer.text };
                if !answer.passages.is_empty() {
                    text.push_str("\n\nThis rests on facts from these passages; name those that your answer rests on:");
                }
                let passages = (1..).zip(answer.passages.iter().take(SHOWN_PASSAGES));
                text.extend(passages.map(|(number, passage)| format!("\n(p{number}) {passage}")));
                Ok(ToolOutput { text, calls: answer.calls, trace: answer.trace, asks: None })
            }
            Err(error) => Err(ToolError { reason: error.reason, calls: error.calls }),
        }
    }
}

/// An argument that is a text with something in it.
pub(crate) fn required<'c>(call: &'c ToolCall, name: &str) -> Result<&'c str, ToolError> {
    let text = call.arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let missing = || format!("the argument `{name}` is missing; `{}` expects `{name}` (string)", call.tool.name);
    text.ok_or_else(|| ToolError::new(missing()))
}

/// The collection that the tool is bound to. Without one it is that of the question.
pub(crate) fn bound_collection(tool: &ToolItem) -> Result<Option<Collection>, ToolError> {
    let named = tool.setting("collection").filter(|name| !name.is_empty()).map(Collection::new).transpose();
    named.map_err(|error| ToolError::new(format!("the tool `{}` cannot be used: {error}", tool.name)))
}

/// In the form of a UUID, and the same for the same call: what is told twice is one trace.
pub(crate) fn trace_id(call: &ToolCall) -> String {
    let hash = Hash::of(format!("{}/{}", call.scope.workspace, call.idempotency_key)).to_string();
    let parts = [&hash[..8], &hash[8..12], &hash[12..16], &hash[16..20], &hash[20..32]];
    parts.join("-")
}

/// What a tool's model writes is shown when it is complete, as the observation; more than the limit is cut off. The
/// steps are told with it.
struct Unheard {
    bytes: u64,
    limit: u64,
}

impl Listener for Unheard {
    fn explained(&mut self, _told: &Explained) {}

    fn answer(&mut self) -> &mut dyn ReplySink {
        self
    }
}

impl ReplySink for Unheard {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.bytes += text.len() as u64;
        if self.bytes > self.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn restart(&mut self) {
        self.bytes = 0;
    }
}

#[cfg(test)]
#[path = "knowledge_tests.rs"]
pub(crate) mod tests;
