//! Asking models while a question is answered: each call on record, all of them within the time of the question.

use crate::permits::Permit;
use crate::ports::{CallLabels, ModelWish, PromptCall, PromptReply, Prompter, ReplySink};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Scope;
use trellis_domain::config::Settings;
use trellis_domain::record::ModelCall;
use trellis_domain::usage::Usage;

/// Bytes of a reply that is read as a whole. What is longer is stopped, and read as far as it goes.
pub(super) const LONGEST_STEP: u64 = 256 << 10;

/// On whose behalf models are asked.
#[derive(Debug, Default)]
pub struct Asker {
    pub scope: Scope,
    pub settings: Arc<Settings>,
    /// None outside of any run.
    pub labels: Option<CallLabels>,
    /// How long the models may take altogether, without the time that a call waits for its turn.
    pub timeout: Duration,
    /// Room for the first call, if somebody has waited for it.
    pub permit: Permit,
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// A step that the question can be answered without: it leaves time for the answer.
    Step,
    Answer,
}

/// The calls of one question.
#[derive(Debug)]
pub(super) struct Models<'p> {
    prompter: &'p dyn Prompter,
    asker: Asker,
    left: Duration,
    /// Stands in the marks around what is shown; nothing that a graph can know.
    mark: String,
    pub(super) calls: Vec<ModelCall>,
}

impl<'p> Models<'p> {
    pub(super) fn new(prompter: &'p dyn Prompter, asker: Asker, fresh_id: &str) -> Self {
        let mark = fresh_id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        Self { prompter, left: asker.timeout, asker, mark, calls: Vec::new() }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.asker.settings
    }

    pub(super) fn wish(&self) -> ModelWish<'_> {
        self.asker.labels.as_ref().map(CallLabels::wish).unwrap_or_default()
    }

    pub(super) fn prompter(&self) -> &'p dyn Prompter {
        self.prompter
    }

    /// Asks. An error says why there is no reply.
    pub(super) async fn ask(
        &mut self,
        (id, what_for): (&str, Use),
        variables: impl IntoIterator<Item = (&'static str, Value)>,
        schema: Option<Value>,
        sink: &mut dyn ReplySink,
    ) -> Result<PromptReply, String> {
        if self.left.is_zero() {
            return Err("there is no time left to ask a model".to_owned());
        }
        let mut variables: Map<String, Value> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        variables.insert("mark".to_owned(), json!(self.mark));
        let timeout = if what_for == Use::Step { self.left / 2 } else { self.left };
        let call = PromptCall {
            scope: self.asker.scope.clone(),
            settings: Arc::clone(&self.asker.settings),
            id: id.to_owned(),
            variables,
            schema,
            timeout: Some(timeout),
            labels: self.asker.labels.clone(),
            permit: std::mem::take(&mut self.asker.permit),
            ..PromptCall::default()
        };
        let result = self.prompter.ask(call, sink).await;
        let (reply, call) = match result {
            Ok(reply) => {
                let call = reply.on_record();
                (Ok(reply), Some(call))
            }
            Err(error) => (Err(error.to_string()), error.on_record(id)),
        };
        if let Some(call) = call {
            let spent = call.ms + call.failures.iter().map(|attempt| attempt.ms).sum::<u64>();
            self.left = self.left.saturating_sub(Duration::from_millis(spent));
            self.calls.push(call);
        }
        reply
    }

    /// What the calls behind the first so many took.
    pub(super) fn usage_since(&self, calls: usize) -> Usage {
        let mut usage = Usage::default();
        for call in self.calls.iter().skip(calls) {
            usage.add(&call.usage());
        }
        usage
    }
}
