//! Effects: asking a model and calling a tool. Whatever happens becomes an outcome that is recorded.

use crate::driver::{Handling, Orchestrator};
use crate::hub::{Hub, TextKind};
use crate::ports::{CallLabels, PromptCall, PromptError, PromptReply, ReplySink, ToolCall, ToolError, World};
use serde_json::{Map, Value};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::document::Document;
use trellis_domain::record::{Body, Name, Observed, PromptUse, Reading, Record, Replied};
use trellis_domain::usage::Usage;
use trellis_domain::{Hash, RunId, SessionId, Timestamp, Workspace};
use trellis_patterns::PromptOrder;
use trellis_patterns::react::interpret;
use trellis_patterns::react::parser::{Channel, Fragment, ReplyParser};
use trellis_provenance::iri;

impl Orchestrator {
    /// Asks the model and streams its reply while it is written. Gives the attempt that counted, too.
    pub(crate) async fn ask_model(&self, handling: &Handling, name: &Name, order: Box<PromptOrder>) -> (Body, u32) {
        let world = &*self.ports.world;
        let started = world.now();
        tracing::debug!(session = %handling.key.session, step = %name, attempt = handling.attempt, "asking the model");
        let limits = handling.session.limits();
        let mut sink = LiveReply::new(self, handling, name, limits.max_reply_bytes);
        let call = PromptCall {
            scope: handling.key.scope.clone(),
            settings: Arc::clone(handling.session.settings()),
            id: order.id.to_owned(),
            variables: order.variables,
            schema: None,
            labels: labels(handling, name),
        };
        let patience = remaining(handling, started, limits.model_timeout_ms);
        let result = within(world, patience, self.ports.prompter.ask(call, &mut sink)).await;
        let result = result.unwrap_or_else(|| Err(timed_out("the model", patience)));
        let ms = world.now().ms_since(started);
        let attempt = sink.attempt;
        let body = match result {
            Ok(reply) => sink.into_replied(reply, order.offered, ms),
            Err(error) => failed_call(order.id, error, ms),
        };
        (body, attempt)
    }

    /// Calls a tool. Its error is told to the model, and only a success changes the state.
    pub(crate) async fn call_tool(
        &self,
        handling: &Handling,
        name: &Name,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Body {
        let world = &*self.ports.world;
        let started = world.now();
        let settings = handling.session.settings();
        let Some(item) = settings.tools.get(tool) else {
            return outcome_of_report(&format!("there is no tool `{tool}`"));
        };
        tracing::debug!(session = %handling.key.session, step = %name, tool, "calling a tool");
        let written = serde_json::to_vec(&arguments).unwrap_or_default();
        let key = format!("{}/{name}:{}", handling.key.session, &Hash::of(written).to_string()[..16]);
        let call = ToolCall {
            scope: handling.key.scope.clone(),
            collection: handling.session.accepted().map(|accepted| accepted.collection.clone()).unwrap_or_default(),
            settings: Arc::clone(settings),
            tool: item.clone(),
            arguments,
            idempotency_key: key.clone(),
            labels: labels(handling, name),
        };
        let patience = remaining(handling, started, handling.session.limits().tool_timeout_ms);
        let result = within(world, patience, self.ports.tools.call(call)).await;
        let late = || Err(ToolError(format!("the tool `{tool}` did not answer within {}", seconds(patience))));
        let (result, ms) = (result.unwrap_or_else(late), world.now().ms_since(started));
        let (text, error, usage, state) = match result {
            Ok(output) => (output.text.trim().to_owned(), None, output.usage, item.state.clone()),
            Err(ToolError(error)) => (format!("Error: {error}"), Some(error), Usage::default(), None),
        };
        let result = Document::stored(text);
        Body::Observed(Observed { result, error, ms, state, idempotency_key: Some(key), usage })
    }
}

/// Tells the model why no tool was called.
pub(crate) fn outcome_of_report(error: &str) -> Body {
    Body::Observed(Observed {
        result: Document::stored(format!("Error: {error}")),
        error: Some(error.to_owned()),
        ms: 0,
        state: None,
        idempotency_key: None,
        usage: Usage::default(),
    })
}

/// The live messages that a record brings whole.
pub(crate) fn messages_of(record: &Record) -> Vec<Arc<str>> {
    let (session, attempt) = (&record.header.session, record.header.attempt);
    match &record.body {
        Body::Replied(_) => {
            let n = record.header.name.as_iteration().unwrap_or(0);
            vec![thought_id(session, n, attempt).into(), answer_id(session, attempt).into()]
        }
        Body::Accepted(_) | Body::Routed(_) | Body::Observed(_) | Body::Ended(_) => Vec::new(),
    }
}

pub(crate) fn thought_id(session: &SessionId, n: u32, attempt: u32) -> String {
    iri::message_id(session, &format!("i{n}/thought"), attempt)
}

pub(crate) fn answer_id(session: &SessionId, attempt: u32) -> String {
    iri::message_id(session, "final", attempt)
}

fn labels(handling: &Handling, name: &Name) -> CallLabels {
    CallLabels {
        run: handling.key.run.clone(),
        session: handling.key.session.clone(),
        step: name.clone(),
        attempt: handling.attempt,
    }
}

/// The call's own limit, or what is left of the run's.
fn remaining(handling: &Handling, now: Timestamp, limit_ms: u64) -> Duration {
    let run = handling.session.limits().run_timeout_ms;
    let spent = handling.session.started().map_or(0, |started| now.ms_since(started));
    Duration::from_millis(limit_ms.min(run.saturating_sub(spent)))
}

async fn within<T>(world: &dyn World, patience: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        result = work => Some(result),
        () = world.sleep(patience) => None,
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f32())
}

fn timed_out(who: &str, patience: Duration) -> PromptError {
    PromptError::Provider { reason: format!("{who} took longer than {}", seconds(patience)), failures: Vec::new() }
}

fn failed_call(id: &str, error: PromptError, ms: u64) -> Body {
    let reason = error.to_string();
    let (raw, failures) = match error {
        PromptError::WrongReply { raw, .. } => (raw, Vec::new()),
        PromptError::Provider { failures, .. } => (String::new(), failures),
        PromptError::UnknownPrompt { .. } | PromptError::Template { .. } => (String::new(), Vec::new()),
    };
    Body::Replied(Replied {
        prompt: PromptUse { id: id.to_owned(), ..PromptUse::default() },
        raw: raw.into(),
        thought: None,
        reading: Reading::Failed { reason },
        decision: Vec::new(),
        model: None,
        in_token: None,
        out_token: None,
        ms,
        failures,
    })
}

/// A reply on its way: parsed as it arrives, shown to whoever listens.
struct LiveReply<'a> {
    hub: Option<&'a Hub>,
    workspace: &'a Workspace,
    run: &'a RunId,
    session: &'a SessionId,
    iteration: u32,
    /// Begins at the turn's attempt; a call made again gets the next one.
    attempt: u32,
    thought: Arc<str>,
    answer: Arc<str>,
    parser: ReplyParser,
    room: u64,
    limit: u64,
    cut: bool,
}

impl<'a> LiveReply<'a> {
    fn new(orchestrator: &'a Orchestrator, handling: &'a Handling, name: &Name, limit: u64) -> Self {
        let streaming = handling.session.accepted().is_some_and(|accepted| accepted.streaming);
        let (session, iteration) = (&handling.key.session, name.as_iteration().unwrap_or(0));
        Self {
            hub: streaming.then_some(&*orchestrator.ports.hub),
            workspace: &handling.key.scope.workspace,
            run: &handling.key.run,
            session,
            iteration,
            attempt: handling.attempt,
            thought: thought_id(session, iteration, handling.attempt).into(),
            answer: answer_id(session, handling.attempt).into(),
            parser: ReplyParser::new(),
            room: limit,
            limit,
            cut: false,
        }
    }

    fn show(&self, fragments: Vec<Fragment>) {
        let Some(hub) = self.hub else { return };
        for Fragment { channel, text } in fragments {
            let (id, kind) = match channel {
                Channel::Thought => (&self.thought, TextKind::Thought),
                Channel::Answer => (&self.answer, TextKind::Answer),
            };
            hub.text(self.workspace, self.run, self.session, id, kind, &text);
        }
    }

    fn into_replied(mut self, reply: PromptReply, offered: trellis_domain::decision::Decision, ms: u64) -> Body {
        let (fragments, read) = std::mem::take(&mut self.parser).finish();
        self.show(fragments);
        let (thought, mut reading, decision) = interpret(read, offered);
        if self.cut {
            let reason = format!("the reply was longer than {} bytes; be brief", self.limit);
            reading = Reading::Unreadable { reason };
        }
        Body::Replied(Replied {
            prompt: reply.prompt,
            raw: reply.raw.into(),
            thought,
            reading,
            decision,
            model: reply.model,
            in_token: reply.in_token,
            out_token: reply.out_token,
            ms,
            failures: reply.failures,
        })
    }
}

impl ReplySink for LiveReply<'_> {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        if text.len() as u64 > self.room {
            self.cut = true;
            return ControlFlow::Break(());
        }
        self.room -= text.len() as u64;
        let fragments = self.parser.push(text);
        self.show(fragments);
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {
        if let Some(hub) = self.hub {
            hub.close_messages(self.workspace, self.run, &[Arc::clone(&self.thought), Arc::clone(&self.answer)]);
        }
        self.attempt += 1;
        self.thought = thought_id(self.session, self.iteration, self.attempt).into();
        self.answer = answer_id(self.session, self.attempt).into();
        self.parser = ReplyParser::new();
        (self.room, self.cut) = (self.limit, false);
    }
}
