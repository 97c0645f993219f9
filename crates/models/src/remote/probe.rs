//! Whether a model obeys. A server may say yes to a schema and overlook it, and a good model keeps to it by chance: so it
//! is asked once for something that its schema forbids. Only a model that was seen to obey is on record as held.

use super::SchemaEnforcement;
use super::members::KEPT;
use crate::functions::were_kept;
use crate::provider::{LastSent, ModelReply, ModelRequest};
use crate::strict::strict;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use trellis_domain::config::{ArgumentItem, PromptReply, ToolItem};
use trellis_domain::parts::ReplyPart;
use trellis_domain::record::ProbeUse;
use trellis_patterns::react::functions::Functions;

/// What stands where the id of a prompt stands otherwise.
const PROMPT: &str = "probe";
const TOOL: &str = "pick";
/// So much of what the model wrote is on record.
const KEPT_REPLY: usize = 200;
/// A probe that brought nothing, because the server was busy or away, is made again after this.
const MADE_AGAIN: Duration = Duration::from_mins(5);

/// What was seen of one model.
#[derive(Debug, Default)]
pub(super) struct Probes {
    schemas: Known,
    functions: Known,
}

#[derive(Debug, Default)]
struct Known(Mutex<Arc<OnceCell<Verdict>>>);

#[derive(Debug, Clone)]
struct Verdict {
    at: Instant,
    /// None if nothing came of it.
    seen: Option<ProbeUse>,
}

impl Verdict {
    fn is_over(&self) -> bool {
        match &self.seen {
            Some(seen) => !seen.obeyed && self.at.elapsed() >= KEPT,
            None => self.at.elapsed() >= MADE_AGAIN,
        }
    }
}

impl Probes {
    /// What was seen, by a probe that is made now if there was none. Calls at the same time share it.
    pub(super) async fn seen(
        &self,
        enforcement: &SchemaEnforcement<'_>,
        probe: impl Future<Output = Option<ProbeUse>>,
    ) -> Option<ProbeUse> {
        let known = if is_about_functions(enforcement) { &self.functions } else { &self.schemas };
        let cell = {
            let mut cell = known.0.lock();
            if cell.get().is_some_and(Verdict::is_over) {
                *cell = Arc::default();
            }
            Arc::clone(&cell)
        };
        let verdict = cell.get_or_init(|| async { Verdict { seen: probe.await, at: Instant::now() } }).await;
        verdict.seen.clone()
    }
}

pub(super) fn is_about_functions(enforcement: &SchemaEnforcement<'_>) -> bool {
    matches!(enforcement, SchemaEnforcement::Functions { .. })
}

/// A request that asks for what its schema forbids.
pub(super) struct Probe {
    pub(super) request: ModelRequest,
    functions: Option<Functions>,
    schema: Value,
}

impl Probe {
    pub(super) fn new(with_functions: bool) -> Self {
        let schema = json!({
            "type": "object", "required": ["colour"], "additionalProperties": false,
            "properties": { "colour": { "type": "string", "enum": ["red", "green"] } },
        });
        let tools = with_functions.then(|| Arc::from(vec![Arc::new(tool())]));
        let user = if with_functions {
            "Call the function pick. Its argument number has to be the text \"blue\" and nothing else."
        } else {
            "Reply with exactly this JSON object, and change nothing in it: {\"colour\": \"blue\"}"
        };
        let expected =
            if with_functions { PromptReply::Text } else { PromptReply::Json { schema: Some(schema.clone()) } };
        let request = ModelRequest {
            system: String::new().into(),
            user: user.to_owned().into(),
            prompt: PROMPT.to_owned(),
            variables: Map::new(),
            expected,
            turns: Vec::new(),
            tools,
            labels: None,
            drawn: Vec::new(),
            sent: LastSent::default(),
        };
        let functions = request.tools.as_deref().map(Functions::of);
        Self { request, functions, schema: strict(&schema).unwrap_or(schema) }
    }

    pub(super) fn enforcement(&self) -> SchemaEnforcement<'_> {
        match &self.functions {
            Some(functions) => SchemaEnforcement::Functions { functions, strict: true },
            None => SchemaEnforcement::Strict(self.schema.clone()),
        }
    }

    /// What the reply shows. None if it is not known what was sent.
    pub(super) fn read(&self, reply: &ModelReply) -> Option<ProbeUse> {
        let call = reply.parts.iter().find_map(|part| match part {
            ReplyPart::Call { function, arguments, .. } => Some((function, arguments.text())),
            ReplyPart::Thought { .. } | ReplyPart::Text { .. } | ReplyPart::Refusal { .. } => None,
        });
        let (written, obeyed) = match (&self.functions, call) {
            (Some(functions), Some((name, arguments))) => {
                (arguments, name == TOOL && were_kept(functions, &reply.parts))
            }
            (Some(_), None) => (reply.text.as_str(), false),
            (None, _) => {
                let value: Value = serde_json::from_str(&reply.text).unwrap_or_default();
                let held = jsonschema::validator_for(&self.schema).is_ok_and(|schema| schema.is_valid(&value));
                (reply.text.as_str(), held)
            }
        };
        let reply = written[..written.floor_char_boundary(KEPT_REPLY)].to_owned();
        Some(ProbeUse { sent: self.request.sent.take()?.hash, reply, obeyed })
    }
}

fn tool() -> ToolItem {
    let number = ArgumentItem::new("number", "integer", "any number");
    ToolItem::function(TOOL, "Takes a number.", vec![number])
}
