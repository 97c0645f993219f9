//! Answers prompts with what models replied in recorded runs, so that a change of readers, patterns or tools can be judged
//! without a model.
//!
//! A reply is found by what was asked ([`crate::said`]), not by its run. Replies to the same question are used in the order
//! in which they were recorded, each of them once: a reply that counted twice would make figures look more certain than
//! they are.

mod run;

pub use run::RecordedRun;

use crate::asking::Asking;
use crate::reply::ReplyReader;
use crate::template::Templates;
use parking_lot::Mutex;
use run::{NoReply, RecordedReply};
use std::collections::HashMap;
use trellis_domain::parts::{CallPiece, ReplyPart};
use trellis_domain::record::{Name, ReplyFormat};
use trellis_domain::{Hash, RunId};
use trellis_orchestrator::ports::{BoxFuture, PromptCall, PromptError, PromptNeed, PromptReply, Prompter, ReplySink};

/// Where in the record of a call it says that no model was asked.
const REPLAYED: &str = "replayed";

/// What models replied, for runs that ask the same again.
#[derive(Debug)]
pub struct RecordedReplies {
    models: Vec<String>,
    /// Task type and pattern were asked for one after the other.
    routed_apart: bool,
    /// How much of long texts was shown.
    room: Option<u64>,
    templates: Templates,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they were recorded.
    replies: HashMap<Hash, Vec<Unused>>,
    /// The recorded run that each run takes its replies from, as long as that has any: runs that asked the same are not
    /// mixed.
    sources: HashMap<RunId, RunId>,
    missed: HashMap<RunId, Vec<NotRecorded>>,
}

#[derive(Debug)]
struct Unused {
    run: RunId,
    reply: Box<RecordedReply>,
}

/// A question that nobody answered when the replies were recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRecorded {
    pub prompt: String,
    pub step: Name,
}

impl RecordedReplies {
    /// The replies of these runs, the oldest first.
    pub fn new(runs: impl IntoIterator<Item = RecordedRun>) -> Self {
        let (mut models, mut state, mut routed_apart, mut least) = (Vec::new(), State::default(), false, None);
        for RecordedRun { run, model, replies, routed_apart: apart, room } in runs {
            routed_apart |= apart;
            least = least.into_iter().chain(room).min();
            if !models.contains(&model) {
                models.push(model);
            }
            for (said, reply) in replies {
                state.replies.entry(said).or_default().push(Unused { run: run.clone(), reply: Box::new(reply) });
            }
        }
        Self { models, routed_apart, room: least, templates: Templates::new(), state: Mutex::new(state) }
    }

    /// What a run asked in vain so far. It is not needed any more afterwards.
    pub fn take_missed(&self, run: &RunId) -> Vec<NotRecorded> {
        let mut state = self.state.lock();
        state.sources.remove(run);
        state.missed.remove(run).unwrap_or_default()
    }

    fn reply(&self, call: PromptCall, sink: &mut dyn ReplySink) -> Result<PromptReply, PromptError> {
        let labels = call.labels.clone();
        let run = labels.as_ref().map(|labels| &labels.run);
        let mut asking = Asking::of_prompt(&self.templates, call)?;
        let reader = ReplyReader::new(&asking.request.prompt, &asking.request.expected)?;
        // Whether functions were offered depended on the model.
        let mut found = None;
        for native in if asking.offers_tools() { &[true, false][..] } else { &[false] } {
            asking.offer_tools(&self.templates, *native)?;
            found = self.state.lock().take(asking.said(), run);
            if found.is_some() {
                break;
            }
        }
        let prompt = asking.request.prompt.clone();
        let Some(Unused { run: source, reply }) = found else {
            if let Some(labels) = labels {
                let missed = NotRecorded { prompt: prompt.clone(), step: labels.step };
                self.state.lock().missed.entry(labels.run).or_default().push(missed);
            }
            let reason = format!("no reply is recorded to what the prompt `{prompt}` says now");
            return Err(PromptError::Provider { reason, failures: Vec::new() });
        };
        let format = asking.format();
        let reply = *reply;
        for failure in reply.failures() {
            sink.failed(failure);
        }
        let mut reply = match reply {
            RecordedReply::None(NoReply { reason, failures }) => {
                return Err(PromptError::Provider { reason, failures });
            }
            RecordedReply::Said(reply) => *reply,
        };
        tell(&reply, format, sink);
        reply.content = reader.read(&reply.raw);
        asking.model = reply.prompt.model.take();
        let details = reply.prompt.details;
        // What follows from a recorded reply is no reply to record again.
        reply.prompt = asking.record();
        reply.prompt.said = None;
        reply.prompt.details = details;
        reply.prompt.parameters.insert(REPLAYED.to_owned(), source.as_str().into());
        Ok(reply)
    }
}

impl State {
    /// The next reply to this question: one of the run that was followed so far, if it has one.
    fn take(&mut self, said: Hash, run: Option<&RunId>) -> Option<Unused> {
        let source = run.and_then(|run| self.sources.get(run));
        let unused = self.replies.get_mut(&said).filter(|unused| !unused.is_empty())?;
        let of_source = unused.iter().position(|unused| Some(&unused.run) == source);
        let taken = unused.remove(of_source.unwrap_or(0));
        if let Some(run) = run {
            self.sources.entry(run.clone()).or_insert_with(|| taken.run.clone());
        }
        Some(taken)
    }
}

/// Lets whoever listens hear the reply as if it were written now.
fn tell(reply: &PromptReply, format: Option<ReplyFormat>, sink: &mut dyn ReplySink) {
    if let Some(format) = format {
        sink.begin(format);
    }
    let words = [ReplyPart::Text { text: reply.raw.as_str().into() }];
    let parts = if reply.parts.is_empty() { &words[..] } else { &reply.parts };
    for (part, place) in parts.iter().zip(0..) {
        let heard = match part {
            ReplyPart::Text { text } | ReplyPart::Refusal { text } => sink.text(text.text()),
            ReplyPart::Call { id, function, arguments } => {
                let (function, arguments) = (Some(function.clone()), arguments.text().to_owned());
                sink.call(&CallPiece { place, id: id.clone(), function, arguments })
            }
            ReplyPart::Thought { .. } => continue,
        };
        if heard.is_break() {
            return;
        }
    }
}

impl Prompter for RecordedReplies {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(std::future::ready(self.reply(call, sink)))
    }

    fn routes_in_one_call(&self, _need: PromptNeed<'_>) -> bool {
        !self.routed_apart
    }

    fn room<'a>(&'a self, _need: PromptNeed<'a>) -> BoxFuture<'a, Option<u64>> {
        Box::pin(std::future::ready(self.room))
    }

    fn models(&self) -> Vec<String> {
        self.models.clone()
    }
}

#[cfg(test)]
#[path = "../recorded_tests.rs"]
mod tests;
