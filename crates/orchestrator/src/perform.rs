//! Effects: asking a model and calling a tool. Whatever happens becomes an outcome that is recorded.

use crate::handling::Handling;
use crate::hub::{TextKind, TextWriter, explained_bytes};
use crate::messages::{answer_id, thought_id};
use crate::orchestrator::Orchestrator;
use crate::permits::{CallCapacity, Permit};
use crate::ports::{
    CallInput, CallLabels, ModelWish, PromptCall, PromptError, PromptNeed, PromptReply, ReplySink, ToolCall, ToolError,
    ToolOutput, ToolQuestion, World,
};
use crate::repetition::{Noticed, Repetition};
use serde_json::{Map, Value};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::{ToolEffect, ToolItem};
use trellis_domain::decision::{DecidedBy, Decision, Enforcement};
use trellis_domain::document::Document;
use trellis_domain::parts::{CallPiece, Piece, Reply, ReplyPart};
use trellis_domain::record::{
    Body, Explained, FailedAttempt, Incomplete, InputRequired, Name, Observed, PromptUse, Reading, Replied, ReplyFormat,
};
use trellis_domain::usage::Usage;
use trellis_domain::{Hash, SessionId, Timestamp, ToolName};
use trellis_patterns::guard;
use trellis_patterns::react::decoder::ReplyDecoder;
use trellis_patterns::react::parser::{Channel, Fragment};
use trellis_patterns::{CallPlace, Effect, PromptOrder, Reader, ReplyForm, Session, form, pattern, read_in};
use trellis_provenance::iri;

impl Orchestrator {
    /// Where the call of an effect has to wait for its turn, if it may have to.
    pub(crate) fn capacity(&self, session: &Session, effect: &Effect) -> Option<Arc<CallCapacity>> {
        let (settings, wish) = (session.settings(), wish(session));
        match effect {
            Effect::AskModel(order) => self.ports.prompter.capacity(PromptNeed { settings, id: order.id, wish }),
            Effect::CallTool { tool, .. } => self.ports.tools.capacity(settings.tools.get(tool)?, settings, wish),
            Effect::Report { .. } | Effect::Take { .. } | Effect::Bring { .. } | Effect::Decline { .. } => None,
        }
    }

    /// Asks the model and streams its reply while it is written. Gives the attempt that counted, too.
    pub(crate) async fn ask_model(
        &self,
        handling: &Handling,
        name: &Name,
        order: Box<PromptOrder>,
        permit: Permit,
    ) -> (Body, u32) {
        let world = &*self.ports.world;
        let started = world.now();
        tracing::debug!(session = %handling.key.session, step = %name, attempt = handling.attempt, "asking the model");
        let (id, reader, offered, call) = prepared(handling, name, order, permit);
        let mut sink = LiveReply::new(self, handling, name, &reader, handling.session.limits().max_reply_bytes);
        // The call's own limit is the prompter's business, which knows when the call had to wait for its turn.
        let timeout = remaining(handling, started, u64::MAX);
        let result = within(world, timeout, self.ports.prompter.ask(*call, &mut sink)).await;
        let result = result.unwrap_or_else(|| Err(PromptError::took_too_long(timeout, sink.failures.clone())));
        let ms = world.now().ms_since(started);
        let attempt = sink.attempt;
        let body = match result {
            Ok(reply) => Body::from(sink.into_replied(reply, offered, ms)),
            Err(error) => {
                let template = handling.session.settings().prompts.get(id).map(|prompt| prompt.hash);
                let prompt = PromptUse { id: id.to_owned(), template, ..PromptUse::default() };
                failed_call(name, form(&reader), prompt, error, ms, offered)
            }
        };
        (with_heard(body, handling.session.told_count()), attempt)
    }

    /// Calls a tool. Its error is told to the model, and only a success changes the state.
    pub(crate) async fn call_tool(
        &self,
        handling: &Handling,
        name: &Name,
        tool: &ToolName,
        arguments: Map<String, Value>,
        permit: Permit,
    ) -> Body {
        let world = &*self.ports.world;
        let started = world.now();
        let settings = handling.session.settings();
        let Some(item) = settings.tools.get(tool) else {
            return outcome_of_report(&format!("there is no tool `{tool}`"));
        };
        tracing::debug!(session = %handling.key.session, step = %name, tool = tool.as_str(), "calling a tool");
        let limits = handling.session.limits();
        let timeout = remaining(handling, started, limits.tool_timeout_ms);
        let key = idempotency_key(&handling.key.session, name, &arguments);
        let place = place_of_call(&handling.session, &handling.key.session, name);
        let call = ToolCall {
            scope: handling.key.scope.clone(),
            collection: handling.session.accepted().map(|accepted| accepted.collection.clone()).unwrap_or_default(),
            settings: Arc::clone(settings),
            tool: Arc::clone(item),
            arguments,
            idempotency_key: key.clone(),
            step: Some(place.node),
            document: Some(place.document),
            timeout,
            max_reply_bytes: limits.max_reply_bytes,
            labels: Some(labels(handling, name)),
            permit,
            input: input_of(&handling.session, name, item),
        };
        // As for any prompt, the prompter knows when it had to wait, and can tell of the attempts that it made.
        let timeout = if item.kind.asks_a_model() { remaining(handling, started, u64::MAX) } else { timeout };
        let result = within(world, timeout, self.ports.tools.call(call)).await;
        let late = || {
            let unknown = if item.effect == ToolEffect::Read { "" } else { "; whether it took effect is not known" };
            Err(ToolError::new(format!("the tool `{tool}` did not answer within {}{unknown}", seconds(timeout))))
        };
        let (result, ms) = (result.unwrap_or_else(late), world.now().ms_since(started));
        let result = match result {
            Ok(ToolOutput { asks: Some(asks), .. }) => {
                match asked(handling, name, (tool, &**item), key.clone(), *asks, ms) {
                    Ok(asked) => return asked,
                    Err(why) => Err(ToolError::new(why)),
                }
            }
            result => result,
        };
        let (text, error, calls, trace, state) = match result {
            Ok(output) => {
                let trace = bounded(output.trace, tool);
                (output.text.trim().to_owned(), None, output.calls, trace, item.state.clone())
            }
            Err(ToolError { reason, calls }) => (format!("Error: {reason}"), Some(reason), calls, Vec::new(), None),
        };
        let mut usage = Usage::default();
        for call in &calls {
            usage.add(&call.usage());
        }
        let result = Document::stored(text);
        Body::Observed(Observed { result, error, ms, state, idempotency_key: Some(key), usage, calls, trace })
    }
}

/// What a tool is told of the person behind its call.
fn input_of(session: &Session, name: &Name, item: &ToolItem) -> CallInput {
    if !guard::may_ask(session, item) {
        return CallInput::Nobody;
    }
    guard::given_input(session, name).map_or(CallInput::Possible, |given| CallInput::Given(Box::new(given)))
}

/// The record that a tool asks for input, or why nobody is asked.
fn asked(
    handling: &Handling,
    name: &Name,
    (tool, item): (&ToolName, &ToolItem),
    idempotency_key: String,
    asks: ToolQuestion,
    ms: u64,
) -> Result<Body, String> {
    let session = &handling.session;
    if !guard::may_ask(session, item) {
        return Err("the tool asks for input, and there is nobody to ask".to_owned());
    }
    if session.inputs(name) >= InputRequired::MOST_TIMES {
        return Err(format!("the tool has asked for input {} times and asks again", InputRequired::MOST_TIMES));
    }
    let (tool, intent) = (tool.clone(), session.intents(name));
    let ToolQuestion { forms, state } = asks;
    let asked = InputRequired { tool, idempotency_key, intent, forms, state: state.map(Into::into), ms };
    Ok(Body::InputRequired(Box::new(asked)))
}

/// The reply with what the model had been told by people when it was asked.
fn with_heard(mut body: Body, heard: u32) -> Body {
    if let Body::Replied(replied) = &mut body {
        replied.heard = heard;
    }
    body
}

/// What a tool tells of its steps is recorded with what it brought. Ours tell far less than this.
const MOST_TOLD: usize = 4 << 20;

fn bounded(trace: Vec<Explained>, tool: &ToolName) -> Vec<Explained> {
    let bytes = explained_bytes(&trace);
    if bytes <= MOST_TOLD {
        return trace;
    }
    tracing::warn!(tool = tool.as_str(), bytes, "a tool tells too much of its steps: they are not recorded");
    Vec::new()
}

/// The name of a call and what it is called with: the same call has the same key, whoever makes it.
pub(crate) fn idempotency_key(session: &SessionId, name: &Name, arguments: &Map<String, Value>) -> String {
    let written = serde_json::to_vec(arguments).unwrap_or_default();
    format!("{session}/{name}:{}", &Hash::of(written).to_string()[..16])
}

/// What the model is told of a reply that is not whole.
pub(crate) fn incomplete_reason(incomplete: Incomplete, limit: u64) -> String {
    match incomplete {
        Incomplete::Bytes => format!("the reply was longer than {limit} bytes; be brief"),
        Incomplete::Tokens => "the reply was cut off at the model's limit of tokens; be brief".to_owned(),
        Incomplete::Context => "the prompt was too long for the model".to_owned(),
        Incomplete::Budget => "the budget is used up".to_owned(),
        Incomplete::Repeats => "the reply did nothing but repeat itself and was stopped; write it anew".to_owned(),
    }
}

/// What stands in the marks of sessions that have none of their own.
const NO_MARK: &str = "text";

/// The call of an order, and what is needed to read its reply. Takes the order apart before anybody waits.
fn prepared(
    handling: &Handling,
    name: &Name,
    order: Box<PromptOrder>,
    permit: Permit,
) -> (&'static str, Reader, Vec<Decision>, Box<PromptCall>) {
    let PromptOrder { id, mut variables, schema, reader, offered, turns } = *order;
    let session = &handling.session;
    let (mark, today) = (session.mark().unwrap_or(NO_MARK).to_owned(), session.today());
    variables.extend([("mark".to_owned(), mark.into()), ("today".to_owned(), today.into())]);
    let call = PromptCall {
        scope: handling.key.scope.clone(),
        settings: Arc::clone(handling.session.settings()),
        id: id.to_owned(),
        variables,
        schema,
        turns,
        tools: reader.tools().cloned(),
        timeout: Some(Duration::from_millis(handling.session.limits().model_timeout_ms)),
        labels: Some(labels(handling, name)),
        permit,
    };
    // Boxed, because whoever awaits the call keeps a place for it until the end.
    (id, reader, offered, Box::new(call))
}

/// Where a tool that tells of its own steps hangs them, and where its text will be.
fn place_of_call(session: &Session, id: &SessionId, name: &Name) -> CallPlace {
    let own = session.routed().and_then(|routed| pattern(&routed.pattern).ok());
    own.map_or_else(|| CallPlace::of_node(iri::named(id, name)), |pattern| pattern.place_of_call(id, name))
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
        calls: Vec::new(),
        trace: Vec::new(),
    })
}

/// What somebody says that a call has brought.
pub(crate) fn outcome_as_told(result: String, state: Option<String>) -> Body {
    Body::Observed(Observed {
        result: Document::stored(result),
        error: None,
        ms: 0,
        state,
        idempotency_key: None,
        usage: Usage::default(),
        calls: Vec::new(),
        trace: Vec::new(),
    })
}

/// What an agent brought that was called like a tool. The session that the call began is what it was called with.
pub(crate) fn outcome_of_agent(session: &SessionId, result: Result<String, String>, state: Option<String>) -> Body {
    let (text, error) = match result {
        Ok(text) => (text, None),
        Err(error) => (format!("Error: {error}"), Some(error)),
    };
    Body::Observed(Observed {
        result: Document::stored(text),
        state: state.filter(|_| error.is_none()),
        error,
        ms: 0,
        idempotency_key: Some(session.to_string()),
        usage: Usage::default(),
        calls: Vec::new(),
        trace: Vec::new(),
    })
}

fn labels(handling: &Handling, name: &Name) -> CallLabels {
    let wish = wish(&handling.session);
    CallLabels {
        run: handling.key.run.clone(),
        session: handling.key.session.clone(),
        step: name.clone(),
        attempt: handling.attempt,
        task_type: wish.task_type.cloned(),
        model: wish.model.map(str::to_owned),
    }
}

fn wish(session: &Session) -> ModelWish<'_> {
    let model = session.accepted().and_then(|accepted| accepted.selection.model.as_deref());
    ModelWish { task_type: session.routed().map(|routed| &routed.task_type), model }
}

/// A call of a subagent may outlast the subagent's deadline by this much, so that what was paid for is recorded.
const GRACE_MS: u64 = 5_000;

/// The call's own limit, or what is left of the run's, or how long anybody waits for this subagent.
pub(crate) fn remaining(handling: &Handling, now: Timestamp, limit_ms: u64) -> Duration {
    let run = handling.session.limits().run_timeout_ms;
    let spent = handling.session.spent_ms(now);
    let deadline = handling.session.waited_for_until(now);
    let waited_for = deadline.map_or(u64::MAX, |deadline| deadline.ms_since(now) + GRACE_MS);
    Duration::from_millis(limit_ms.min(run.saturating_sub(spent)).min(waited_for))
}

pub(crate) async fn within<T>(world: &dyn World, timeout: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        // Work that keeps to its own limit tells more than that it took too long.
        biased;
        result = work => Some(result),
        () = world.sleep(timeout) => None,
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f32())
}

/// Nobody was asked, but what could have been chosen is known.
pub(crate) fn outcome_of_decline(session: &Session, id: &str, offered: Vec<Decision>, reason: String) -> Replied {
    let template = session.settings().prompts.get(id).map(|prompt| prompt.hash);
    let prompt = PromptUse { id: id.to_owned(), template, ..PromptUse::default() };
    let reading = Reading::Failed { reason };
    Replied { incomplete: Some(Incomplete::Budget), ..unanswered(prompt, reading, offered) }
}

/// What is recorded in the place of a reply.
fn unanswered(prompt: PromptUse, reading: Reading, offered: Vec<Decision>) -> Replied {
    Replied {
        prompt,
        raw: "".into(),
        parts: Vec::new(),
        stop: None,
        thought: None,
        reading,
        decision: offered,
        model: None,
        in_token: None,
        out_token: None,
        ms: 0,
        citations: Vec::new(),
        failures: Vec::new(),
        incomplete: None,
        enforced: false,
        repairs: Vec::new(),
        heard: 0,
    }
}

/// Nobody chose, but what could have been chosen is known.
fn failed_call(
    name: &Name,
    form: ReplyForm,
    prompt: PromptUse,
    error: PromptError,
    ms: u64,
    offered: Vec<Decision>,
) -> Body {
    let mut reading = Reading::Failed { reason: error.to_string() };
    let failures = match error {
        PromptError::Provider { failures, .. } => failures,
        PromptError::UnknownPrompt { .. } | PromptError::Template { .. } => Vec::new(),
    };
    // Less can be shown: in the next step, or when the same is asked once more.
    let can_be_shortened = form == ReplyForm::Steps || *name == name.first_asking();
    let too_long = can_be_shortened && failures.iter().any(|attempt| attempt.too_long);
    let incomplete = too_long.then_some(Incomplete::Context);
    if let Some(incomplete) = incomplete {
        reading = Reading::Unusable { reason: incomplete_reason(incomplete, 0) };
    }
    Body::from(Replied { ms, failures, incomplete, ..unanswered(prompt, reading, offered) })
}

/// The provider could not write outside the sets. A choice that lies outside all the same proves it wrong.
pub(crate) fn held_while_decoding(decisions: &mut [Decision]) {
    let held = |decision: &&mut Decision| {
        decision.enforcement == Enforcement::Validated
            && decision.decided_by == DecidedBy::Model
            && decision.rejected.is_none()
    };
    for decision in decisions.iter_mut().filter(held) {
        decision.enforcement = Enforcement::Decoding;
    }
}

/// How much of a reply is shown while it is written.
enum Shown {
    /// A step: read as it arrives, thoughts apart from the answer. There is no decoder before there is a reply: thousands
    /// may wait for one.
    Step(Option<ReplyDecoder>),
    /// All of it is the answer.
    Answer,
    /// It is read as a whole.
    Nothing,
}

impl Shown {
    fn of(reader: &Reader) -> Self {
        match form(reader) {
            ReplyForm::Steps => Self::Step(None),
            ReplyForm::Answer => Self::Answer,
            ReplyForm::Whole => Self::Nothing,
        }
    }
}

/// A reply on its way, shown to whoever listens.
struct LiveReply<'a> {
    /// None if the caller does not want to see text while it is written.
    writer: Option<TextWriter>,
    of: &'a Session,
    session: &'a SessionId,
    name: &'a Name,
    reader: &'a Reader,
    /// Begins at the turn's attempt; a call made again gets the next one.
    attempt: u32,
    /// The ids of the thought and the answer, once there is anything of them.
    ids: Option<(Arc<str>, Arc<str>)>,
    shown: Shown,
    format: Option<ReplyFormat>,
    left: u64,
    limit: u64,
    cut: Option<Incomplete>,
    repetition: Repetition,
    /// For a call that is stopped before it can tell of them.
    failures: Vec<FailedAttempt>,
}

impl<'a> LiveReply<'a> {
    fn new(
        orchestrator: &'a Orchestrator,
        handling: &'a Handling,
        name: &'a Name,
        reader: &'a Reader,
        limit: u64,
    ) -> Self {
        let streaming = handling.session.accepted().is_some_and(|accepted| accepted.streaming);
        let (key, attempt) = (&handling.key, handling.attempt);
        // What is not committed yet has no number.
        let numbers = || handling.session.in_order().rev().map(|record| record.header.seq);
        let newest = || numbers().find(|number| *number > 0).unwrap_or(0);
        let hub = &orchestrator.ports.hub;
        let writer = || hub.writer(&key.scope.workspace, &key.run, &key.session).after(newest());
        Self {
            writer: streaming.then(writer),
            of: &handling.session,
            session: &key.session,
            name,
            reader,
            attempt,
            ids: None,
            shown: Shown::of(reader),
            format: None,
            left: limit,
            limit,
            cut: None,
            repetition: Repetition::default(),
            failures: Vec::new(),
        }
    }

    fn show(&mut self, fragments: Vec<Fragment>) {
        let Some(writer) = &self.writer else { return };
        let (session, name, attempt) = (self.session, self.name, self.attempt);
        let ids = || (thought_id(session, name, attempt).into(), answer_id(session, name, attempt).into());
        let (thought, answer) = self.ids.get_or_insert_with(ids);
        for Fragment { channel, text } in fragments {
            match channel {
                Channel::Thought => writer.text(thought, TextKind::Thought, &text),
                Channel::Answer => writer.text(answer, TextKind::Answer, &text),
            }
        }
    }

    fn take(&mut self, piece: Piece<'_>) -> ControlFlow<()> {
        let size = piece.len() as u64;
        if size > self.left {
            self.cut = Some(Incomplete::Bytes);
            return ControlFlow::Break(());
        }
        self.left -= size;
        let text = match piece {
            Piece::Text(text) => text,
            Piece::Call(call) => &call.arguments,
        };
        let noticed = self.repetition.push(text);
        if noticed == Some(Noticed::Nothing) {
            self.cut = Some(Incomplete::Repeats);
            return ControlFlow::Break(());
        }
        match (&mut self.shown, piece) {
            (Shown::Step(decoder), piece) => {
                let tools = self.reader.tools().map_or(&[][..], |tools| tools);
                let decoder = decoder.get_or_insert_with(|| ReplyDecoder::new(self.format, tools, self.of.revision()));
                let fragments = decoder.push(piece);
                self.show(fragments);
            }
            (Shown::Answer, Piece::Text(text)) if !text.is_empty() => {
                self.show(vec![Fragment { channel: Channel::Answer, text: text.to_owned() }]);
            }
            (Shown::Answer | Shown::Nothing, Piece::Text(_) | Piece::Call(_)) => {}
        }
        // Nothing but blanks follow.
        if noticed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// A reply that was cut may read well and still mean something else.
    fn incomplete(&self, reply: &PromptReply) -> Option<Incomplete> {
        self.cut.or_else(|| reply.cut_short.then_some(Incomplete::Tokens))
    }

    fn into_replied(mut self, reply: PromptReply, offered: Vec<Decision>, ms: u64) -> Replied {
        if let Shown::Step(Some(decoder)) = std::mem::replace(&mut self.shown, Shown::Nothing) {
            let (rest, ..) = decoder.finish();
            self.show(rest);
        }
        // Words that are part of something larger are recorded once, with it.
        let text = || vec![ReplyPart::Text { text: reply.raw.as_str().into() }];
        let parts = if reply.parts.is_empty() { text() } else { reply.parts.clone() };
        let said = Reply { parts, format: reply.prompt.format, ..Reply::default() };
        let mut read = read_in(self.of, self.reader, said, offered);
        let incomplete = self.incomplete(&reply);
        if let Some(incomplete) = incomplete {
            read.reading = Reading::Unusable { reason: incomplete_reason(incomplete, self.limit) };
            read.decisions.iter_mut().for_each(|decision| decision.chosen.clear());
        } else if reply.enforced {
            held_while_decoding(&mut read.decisions);
        }
        Replied {
            prompt: reply.prompt,
            raw: if reply.parts.is_empty() { reply.raw.into() } else { "".into() },
            parts: reply.parts,
            stop: reply.stop,
            thought: read.thought,
            reading: read.reading,
            decision: read.decisions,
            model: reply.model,
            in_token: reply.in_token,
            out_token: reply.out_token,
            ms,
            citations: read.citations,
            failures: reply.failures,
            incomplete,
            enforced: reply.enforced,
            repairs: [reply.repairs, read.repairs].concat(),
            heard: 0,
        }
    }
}

impl ReplySink for LiveReply<'_> {
    fn begin(&mut self, format: ReplyFormat) {
        self.format = Some(format);
    }

    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.take(Piece::Text(text))
    }

    fn call(&mut self, piece: &CallPiece) -> ControlFlow<()> {
        self.take(Piece::Call(piece))
    }

    fn restart(&mut self) {
        if let Some((writer, (thought, answer))) = self.writer.as_ref().zip(self.ids.take()) {
            writer.abandon(&[&thought, &answer]);
        }
        self.attempt += 1;
        self.shown = Shown::of(self.reader);
        (self.left, self.cut, self.repetition) = (self.limit, None, Repetition::default());
    }

    fn failed(&mut self, attempt: &FailedAttempt) {
        self.failures.push(attempt.clone());
    }
}
