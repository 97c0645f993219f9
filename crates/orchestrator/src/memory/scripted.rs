//! Twins of model and tools that follow a script. They count what was asked of them.
#![expect(clippy::disallowed_methods, reason = "like any provider, they keep time by themselves")]

use crate::ports::{
    BoxFuture, CallLabels, Completion, PromptCall, PromptError, PromptReply, Prompter, ReplyContent, ReplySink,
    ToolCall, ToolError, ToolOutput, ToolRunner,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;
use trellis_domain::Hash;
use trellis_domain::parts::{CallPiece, ReplyPart};
use trellis_domain::record::{PromptUse, ReplyFormat};
use trellis_patterns::react::IterationNames;

type ReplyScript = dyn Fn(&PromptCall) -> Result<Scripted, String> + Send + Sync;
type ToolScript = dyn Fn(&ToolCall) -> Result<String, String> + Send + Sync;

const MODEL: &str = "scripted";

/// A script that gives this as its error never answers at all.
pub const SILENT: &str = "say nothing, for ever";

/// What a script says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scripted {
    Text(String),
    /// What a model says that was offered functions.
    Parts(Vec<ReplyPart>),
}

impl From<String> for Scripted {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Counts calls by the step they were made for; those outside of any run are not counted.
#[derive(Debug, Default)]
pub struct Calls(Mutex<BTreeMap<String, u32>>);

impl Calls {
    fn count(&self, labels: Option<&CallLabels>) {
        if let Some(labels) = labels {
            *self.0.lock().entry(labels.place()).or_default() += 1;
        }
    }

    /// How often each `session/step` was called.
    pub fn all(&self) -> BTreeMap<String, u32> {
        self.0.lock().clone()
    }
}

/// A prompter whose replies come from a function of the call.
pub struct ScriptedPrompter {
    script: Box<ReplyScript>,
    /// How many characters each piece of a reply has.
    pub piece: usize,
    pub delay: Duration,
    pub calls: Calls,
}

impl std::fmt::Debug for ScriptedPrompter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedPrompter").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl ScriptedPrompter {
    pub fn new(script: impl Fn(&PromptCall) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self::saying(move |call| script(call).map(Scripted::from))
    }

    /// A model that may call functions, too.
    pub fn saying(script: impl Fn(&PromptCall) -> Result<Scripted, String> + Send + Sync + 'static) -> Self {
        let script = Box::new(script);
        Self { script, piece: usize::MAX, delay: Duration::ZERO, calls: Calls::default() }
    }

    /// Replies by iteration: the first for `i1`, and so on; the last for all that follow.
    pub fn replies(replies: &[&str]) -> Self {
        let replies: Vec<String> = replies.iter().map(|reply| (*reply).to_owned()).collect();
        Self::new(move |call| {
            let n = call.labels.as_ref().and_then(|labels| labels.step.as_iteration()).unwrap_or(1) as usize;
            let reply = replies.get(n - 1).or(replies.last());
            reply.cloned().ok_or_else(|| "the script is empty".to_owned())
        })
    }

    async fn reply_in_time(&self, call: PromptCall, sink: &mut dyn ReplySink) -> Result<PromptReply, PromptError> {
        let Some(timeout) = call.timeout else { return self.reply(call, sink).await };
        let late = |_| Err(PromptError::took_too_long(timeout, Vec::new()));
        tokio::time::timeout(timeout, self.reply(call, sink)).await.unwrap_or_else(late)
    }

    async fn reply(&self, call: PromptCall, sink: &mut dyn ReplySink) -> Result<PromptReply, PromptError> {
        self.calls.count(call.labels.as_ref());
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        let provider = |reason| PromptError::Provider { reason, failures: Vec::new() };
        let (raw, parts) = match (self.script)(&call) {
            Err(reason) if reason == SILENT => std::future::pending().await,
            said => match said.map_err(provider)? {
                Scripted::Text(raw) => (raw, Vec::new()),
                Scripted::Parts(parts) => (String::new(), parts),
            },
        };
        let characters: Vec<char> = raw.chars().collect();
        for piece in characters.chunks(self.piece.min(characters.len().max(1))) {
            if sink.text(&piece.iter().collect::<String>()).is_break() {
                break;
            }
        }
        for (part, place) in parts.iter().zip(0..) {
            if let ReplyPart::Call { id, function, arguments } = part {
                sink.begin(ReplyFormat::NativeTools);
                let (function, arguments) = (Some(function.clone()), arguments.text().to_owned());
                if sink.call(&CallPiece { place, id: id.clone(), function, arguments }).is_break() {
                    break;
                }
            }
        }
        let tokens = |text: &str| Some(text.split_whitespace().count() as u64);
        Ok(PromptReply {
            in_token: Some(7),
            out_token: tokens(&raw),
            content: ReplyContent::Text,
            prompt: PromptUse {
                id: call.id,
                sent: Some(Hash::of(&raw)),
                format: (!parts.is_empty()).then_some(ReplyFormat::NativeTools),
                ..PromptUse::default()
            },
            parts,
            stop: None,
            model: Some(MODEL.to_owned()),
            enforced: false,
            cut_short: false,
            ms: 0,
            failures: Vec::new(),
            repairs: Vec::new(),
            raw,
        })
    }
}

impl Prompter for ScriptedPrompter {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(self.reply_in_time(call, sink))
    }

    /// The script is shown the texts as the variables `system` and `prompt`.
    fn complete<'a>(
        &'a self,
        call: Completion,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        let Completion { scope, settings, system, prompt, schema, json: _ } = call;
        let variables = [("system", system.unwrap_or_default()), ("prompt", prompt)]
            .map(|(name, text)| (name.to_owned(), text.into()));
        let (id, variables) = (Completion::ID.to_owned(), variables.into_iter().collect());
        let call = PromptCall { scope, settings, id, variables, schema, ..PromptCall::default() };
        Box::pin(self.reply(call, sink))
    }

    fn models(&self) -> Vec<String> {
        vec![MODEL.to_owned()]
    }
}

/// Tools whose results come from a function of the call.
pub struct ScriptedTools {
    script: Box<ToolScript>,
    pub calls: Calls,
}

impl std::fmt::Debug for ScriptedTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedTools").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl ScriptedTools {
    pub fn new(script: impl Fn(&ToolCall) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self { script: Box::new(script), calls: Calls::default() }
    }
}

impl ToolRunner for ScriptedTools {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.calls.count(call.labels.as_ref());
        match (self.script)(&call) {
            Err(reason) if reason == SILENT => Box::pin(std::future::pending()),
            result => {
                let output = |text| ToolOutput { text, ..ToolOutput::default() };
                Box::pin(std::future::ready(result.map(output).map_err(ToolError::new)))
            }
        }
    }
}
