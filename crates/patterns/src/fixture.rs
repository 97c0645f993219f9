//! Sessions for tests, put together record by record as the shell would.

use crate::contract::{Effect, Ending, Order, PromptOrder, Turn};
use crate::router::{OperatorLimits, Wishes, without_model};
use crate::session::Session;
use std::sync::Arc;
use trellis_domain::config::{Settings, StoredItem};
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, Member};
use trellis_domain::limits::SomeLimits;
use trellis_domain::parts::ReplyPart;
use trellis_domain::record::{
    Accepted, Body, FORMAT, Header, Incomplete, Name, Observed, PromptUse, Reading, Record, Replied, ReplyFormat,
    Routed,
};
use trellis_domain::run::Termination;
use trellis_domain::usage::Usage;
use trellis_domain::{Collection, Flow, Hash, SessionId, Timestamp, Workspace};

/// Configuration items as (type, key, value), read at version 5.
pub(crate) fn settings(items: &[(&str, &str, &str)]) -> Settings {
    let item = |(kind, key, value): &(&str, &str, &str)| StoredItem {
        kind: (*kind).into(),
        key: (*key).into(),
        value: (*value).into(),
    };
    Settings::take(5, items.iter().map(item)).0
}

/// A question with nothing special about it.
pub(crate) fn question(text: &str) -> Accepted {
    Accepted {
        question: text.into(),
        request: Hash::ZERO,
        group: None,
        state: String::new(),
        collection: Collection::default(),
        streaming: true,
        conversation: None,
        pattern: None,
        task_type: None,
        framing: "".into(),
        limits: SomeLimits::default(),
        history: Vec::new(),
        request_id: None,
        earlier: Vec::new(),
        parent: None,
        by: None,
        configured: None,
        operator: None,
        revision: trellis_domain::record::REVISION,
        mark: None,
        routed_apart: false,
        room: None,
        not_here: Vec::new(),
        selection: trellis_domain::Selection::default(),
    }
}

pub(crate) fn turn(name: Name) -> Turn {
    Turn { name, now: Timestamp::from_micros(0) }
}

/// The prompt that the orders ask for, and the record that its reply goes to.
#[track_caller]
pub(crate) fn asked(orders: &[Order]) -> (&Name, &PromptOrder) {
    match orders {
        [Order::Perform(name, Effect::AskModel(prompt))] => (name, prompt),
        other => panic!("no model is asked: {other:?}"),
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Fixture {
    pub(crate) session: Session,
    id: SessionId,
    seq: u64,
}

impl Fixture {
    /// A session of which only the question is known.
    pub(crate) fn begun(settings: Settings, accepted: Accepted) -> Self {
        Self::under(OperatorLimits::default(), settings, accepted)
    }

    pub(crate) fn under(operator: OperatorLimits, settings: Settings, accepted: Accepted) -> Self {
        let session = Session::new(Arc::new(settings), Arc::new(operator));
        let mut fixture = Self { session, id: SessionId::new("S").unwrap(), seq: 0 };
        fixture.record(Name::session(), Body::from(accepted));
        fixture
    }

    /// The session that a supervisor began for a goal.
    pub(crate) fn subagent(supervisor: &Session, fan_out: &FannedOut, goal: usize) -> Self {
        let goal = &fan_out.goals[goal];
        let (accepted, routed) = crate::fan_out::child(supervisor, fan_out, goal).expect("it can be begun");
        let session = Session::new(Arc::clone(supervisor.settings()), Arc::default());
        let mut fixture = Self { session, id: goal.session.clone(), seq: 0 };
        fixture.record(Name::session(), Body::from(accepted));
        fixture.become_routed(routed);
        fixture
    }

    /// What a join says of a subagent that ended at once with this answer or this error, and the subagent's records.
    pub(crate) fn heard(
        supervisor: &Session,
        fan_out: &FannedOut,
        goal: usize,
        said: Result<&str, &str>,
    ) -> (Member, Vec<Record>) {
        let mut child = Self::subagent(supervisor, fan_out, goal);
        let ending = match said {
            Ok(answer) => Ending::answered(Termination::FinalAnswer, answer),
            Err(error) => Ending::failed(Termination::Error, error),
        };
        let ended = ending.into_ended(&child.session, Timestamp::from_micros(0));
        let goal = &fan_out.goals[goal];
        let member = Member {
            index: goal.index,
            session: goal.session.clone(),
            goal: goal.goal.clone(),
            reason: ended.reason,
            answer: ended.answer.clone(),
            error: ended.error.clone(),
            usage: ended.usage.clone(),
        };
        child.record(Name::end(), Body::from(ended));
        (member, child.records())
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.session.in_order().map(|record| (**record).clone()).collect()
    }

    /// A session that was routed without a model.
    pub(crate) fn routed(settings: Settings, accepted: Accepted) -> Self {
        Self::routed_under(OperatorLimits::default(), settings, accepted)
    }

    pub(crate) fn routed_under(operator: OperatorLimits, settings: Settings, accepted: Accepted) -> Self {
        let routed = without_model(&settings, &Workspace::default(), Wishes::of(&accepted), &operator);
        let mut fixture = Self::under(operator, settings, accepted);
        fixture.become_routed(routed.expect("no model is needed"));
        fixture
    }

    pub(crate) fn become_routed(&mut self, routed: Routed) {
        self.record(Name::pattern_decision(), Body::Routed(routed));
    }

    pub(crate) fn record(&mut self, name: Name, body: Body) {
        self.seq += 1;
        let header = Header {
            format: FORMAT,
            workspace: Workspace::default(),
            flow: Flow::default(),
            run: SessionId::new("S").unwrap(),
            session: self.id.clone(),
            name,
            seq: self.seq,
            version: self.seq,
            causes: Vec::new(),
            parents: Vec::new(),
            content: Hash::ZERO,
            config: Hash::ZERO,
            attempt: 1,
            late: false,
            trace: None,
            time: Timestamp::from_micros(0),
        };
        self.session.apply(Arc::new(Record { header, body }));
    }

    /// Records the reply to the prompt that is ordered, read as the shell reads it.
    #[track_caller]
    pub(crate) fn reply(&mut self, orders: &[Order], text: &str) {
        self.reply_with(orders, Replied { raw: text.into(), ..replied("", Reading::decided(())) });
    }

    /// Records the reply of a model that was offered functions and called these.
    #[track_caller]
    pub(crate) fn call(&mut self, orders: &[Order], calls: &[(&str, &str)]) {
        let part = |(function, arguments): &(&str, &str)| ReplyPart::Call {
            id: None,
            function: (*function).to_owned(),
            arguments: (*arguments).into(),
        };
        let prompt = PromptUse { format: Some(ReplyFormat::NativeTools), ..PromptUse::default() };
        let parts = calls.iter().map(part).collect();
        self.reply_with(orders, Replied { prompt, parts, ..replied("", Reading::decided(())) });
    }

    #[track_caller]
    fn reply_with(&mut self, orders: &[Order], replied: Replied) {
        let (name, prompt) = asked(orders);
        let read = crate::registry::read_in(&self.session, &prompt.reader, replied.reply(), prompt.offered.clone());
        let replied = Replied {
            thought: read.thought,
            reading: read.reading,
            decision: read.decisions,
            citations: read.citations,
            repairs: read.repairs,
            heard: self.session.told_count(),
            ..replied
        };
        self.record(name.clone(), Body::from(replied));
    }

    /// Records that the model could not be reached.
    #[track_caller]
    pub(crate) fn fail(&mut self, orders: &[Order], reason: &str) {
        let (name, prompt) = asked(orders);
        let failed = replied("", Reading::Failed { reason: reason.to_owned() });
        self.record(name.clone(), Body::from(Replied { decision: prompt.offered.clone(), ..failed }));
    }

    /// Records that the model found the prompt too long.
    #[track_caller]
    pub(crate) fn overflow(&mut self, orders: &[Order]) {
        let (name, prompt) = asked(orders);
        let unusable = replied("", Reading::Unusable { reason: "the prompt was too long for the model".to_owned() });
        let (decision, incomplete) = (prompt.offered.clone(), Some(Incomplete::Context));
        let heard = self.session.told_count();
        self.record(name.clone(), Body::from(Replied { decision, incomplete, heard, ..unusable }));
    }

    /// Records what a tool brought.
    pub(crate) fn observe(&mut self, name: Name, result: Result<&str, &str>, state: Option<&str>) {
        let text = result.map_or_else(|error| format!("Error: {error}"), str::to_owned);
        let (error, state) = (result.err().map(str::to_owned), state.map(str::to_owned));
        let result = Document::stored(text);
        let (idempotency_key, usage) = (Some("k".to_owned()), Usage::default());
        self.record(
            name,
            Body::Observed(Observed {
                result,
                error,
                ms: 3,
                state,
                idempotency_key,
                usage,
                calls: Vec::new(),
                trace: Vec::new(),
            }),
        );
    }

    /// Records what the model is told instead of a tool's result.
    #[track_caller]
    pub(crate) fn report(&mut self, orders: &[Order]) {
        let [Order::Perform(name, Effect::Report { error })] = orders else {
            panic!("nothing is reported: {orders:?}")
        };
        let (result, error) = (Document::stored(format!("Error: {error}")), Some(error.clone()));
        let usage = Usage::default();
        let body = Body::Observed(Observed {
            result,
            error,
            ms: 0,
            state: None,
            idempotency_key: None,
            usage,
            calls: Vec::new(),
            trace: Vec::new(),
        });
        self.record(name.clone(), body);
    }
}

fn replied(text: &str, reading: Reading) -> Replied {
    Replied {
        prompt: PromptUse::default(),
        raw: text.into(),
        parts: Vec::new(),
        stop: None,
        thought: None,
        reading,
        decision: Vec::new(),
        model: Some("m".into()),
        in_token: Some(10),
        out_token: Some(5),
        ms: 7,
        citations: Vec::new(),
        incomplete: None,
        enforced: false,
        failures: Vec::new(),
        repairs: Vec::new(),
        heard: 0,
    }
}
