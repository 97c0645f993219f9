//! Runs to test with.

use serde_json::{Map, Value, json};
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement, Excluded};
use trellis_domain::document::Document;
use trellis_domain::limits::{Limits, SomeLimits};
use trellis_domain::record::{
    Accepted, Body, Ended, FORMAT, Header, Name, Observed, PromptUse, Reading, Record, Replied, Routed,
};
use trellis_domain::run::Termination;
use trellis_domain::usage::Usage;
use trellis_domain::{Collection, Flow, Hash, SessionId, Timestamp, Workspace};

pub(crate) const TOOLS: [&str; 2] = ["knowledge-query", "weather"];

/// Writes the records of one session, one after the other.
#[derive(Debug)]
pub(crate) struct Script {
    session: SessionId,
    pub(crate) records: Vec<Record>,
}

impl Script {
    pub(crate) fn new(session: &str) -> Self {
        Self { session: SessionId::new(session).unwrap(), records: Vec::new() }
    }

    pub(crate) fn push(&mut self, name: Name, body: Body) -> &mut Self {
        let seq = self.records.len() as u64 + 1;
        let header = Header {
            format: FORMAT,
            workspace: Workspace::default(),
            flow: Flow::default(),
            run: self.session.clone(),
            session: self.session.clone(),
            name,
            seq,
            version: seq,
            causes: Vec::new(),
            parents: Vec::new(),
            content: Hash::ZERO,
            config: Hash::ZERO,
            attempt: 1,
            late: false,
            trace: None,
            time: Timestamp::from_micros(1_776_093_402_000_000).plus_ms(seq * 250),
        };
        self.records.push(Record { header, body });
        self
    }

    /// Changes the header of the newest record.
    pub(crate) fn header(&mut self, change: impl FnOnce(&mut Header)) -> &mut Self {
        change(&mut self.records.last_mut().unwrap().header);
        self
    }

    pub(crate) fn accepted(&mut self, question: &str, conversation: Option<&str>) -> &mut Self {
        let accepted = Accepted {
            question: question.into(),
            request: Hash::of(question),
            group: None,
            state: String::new(),
            collection: Collection::default(),
            streaming: true,
            conversation: conversation.map(|id| id.to_owned().try_into().unwrap()),
            pattern: String::new(),
            task_type: String::new(),
            framing: String::new(),
            limits: SomeLimits::default(),
            history: Vec::new(),
        };
        self.push(Name::session(), Body::Accepted(accepted))
    }

    pub(crate) fn routed(&mut self, decisions: Vec<Decision>) -> &mut Self {
        let routed = Routed {
            task_type: "general".to_owned(),
            pattern: "react".to_owned(),
            framing: String::new(),
            limits: Limits::default(),
            decisions,
        };
        self.push(Name::pattern_decision(), Body::Routed(routed))
    }

    pub(crate) fn replied(&mut self, n: u32, replied: Replied) -> &mut Self {
        self.push(Name::iteration(n), Body::Replied(replied))
    }

    pub(crate) fn observed(&mut self, n: u32, observed: Observed) -> &mut Self {
        self.push(Name::observation(n), Body::Observed(observed))
    }

    pub(crate) fn ended(&mut self, ended: Ended) -> &mut Self {
        self.push(Name::end(), Body::Ended(ended))
    }
}

pub(crate) fn only_option(kind: DecisionKind, option: &str) -> Decision {
    Decision {
        kind,
        options: vec![option.to_owned()],
        excluded: Vec::new(),
        chosen: vec![option.to_owned()],
        source: format!("urn:trellis:config:default:agent-{kind}"),
        config_version: 14,
        decided_by: DecidedBy::OnlyOption,
        enforcement: Enforcement::None,
        signals: Vec::new(),
        rationale: None,
        rejected: None,
    }
}

pub(crate) fn routing() -> Vec<Decision> {
    let reason = "defined but not implemented".to_owned();
    let excluded = vec![Excluded { name: "supervisor".to_owned(), reason }];
    vec![
        only_option(DecisionKind::TaskType, "general"),
        Decision { excluded, ..only_option(DecisionKind::Pattern, "react") },
    ]
}

/// The choice among the tools; a tool that is not offered is not chosen.
pub(crate) fn tool_choice(named: Option<&str>) -> Decision {
    let (chosen, outside): (Vec<&str>, Vec<&str>) = named.into_iter().partition(|name| TOOLS.contains(name));
    Decision {
        options: TOOLS.map(str::to_owned).to_vec(),
        chosen: chosen.into_iter().map(str::to_owned).collect(),
        source: "urn:trellis:config:default:tool".to_owned(),
        decided_by: DecidedBy::Model,
        enforcement: Enforcement::Validated,
        rejected: outside.first().and_then(|name| Document::stored(*name)),
        ..only_option(DecisionKind::Tool, "")
    }
}

pub(crate) fn reply(thought: &str, reading: Reading) -> Replied {
    Replied {
        prompt: PromptUse::default(),
        raw: "".into(),
        thought: Document::stored(thought),
        reading,
        decision: Vec::new(),
        model: None,
        in_token: None,
        out_token: None,
        ms: 1200,
        failures: Vec::new(),
    }
}

pub(crate) fn call(thought: &str, tool: &str, arguments: Value) -> Replied {
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
    let reading = Reading::Action { tool: tool.to_owned(), arguments };
    Replied { decision: vec![tool_choice(Some(tool))], ..reply(thought, reading) }
}

pub(crate) fn unreadable(thought: &str) -> Replied {
    let reading = Reading::Unreadable { reason: "neither action nor answer".to_owned() };
    Replied { decision: vec![tool_choice(None)], ..reply(thought, reading) }
}

pub(crate) fn answer(thought: &str, answer: &str) -> Replied {
    reply(thought, Reading::Answer { answer: answer.into() })
}

pub(crate) fn result(text: &str) -> Observed {
    let idempotency_key = Some("key-1".to_owned());
    let usage = Usage::default();
    Observed { result: Document::stored(text), error: None, ms: 30, state: None, idempotency_key, usage }
}

pub(crate) fn failure(error: &str) -> Observed {
    Observed { error: Some(error.to_owned()), ms: 0, idempotency_key: None, ..result(&format!("Error: {error}")) }
}

pub(crate) fn ending(reason: Termination, answer: &str, error: Option<&str>) -> Ended {
    let usage = Usage { in_token: Some(900), model_calls: 4, tool_calls: 2, ..Usage::default() };
    Ended { reason, answer: Document::stored(answer), error: error.map(str::to_owned), usage }
}

/// A run with everything that a session can hold: a tool call, a parse error, a tool error, an answer.
pub(crate) fn react_run() -> Vec<Record> {
    let priced = |replied: Replied| Replied {
        model: Some("qwen2.5:7b".to_owned()),
        in_token: Some(210),
        out_token: Some(17),
        ..replied
    };
    let mut script = Script::new("8f2c1a");
    script
        .accepted("What does Company X make, and is it raining where it makes it?", Some("talk-1"))
        .routed(routing())
        .replied(1, priced(call("I need facts.", "knowledge-query", json!({"question": "What does \"X\" make?"}))))
        .observed(1, Observed { state: Some("informed".to_owned()), ..result("X makes trellises in Überlingen.") })
        .replied(2, unreadable("Hm."))
        .header(|header| header.attempt = 2)
        .observed(2, failure("neither action nor answer"))
        .replied(3, priced(call("", "weather", json!({}))))
        .observed(3, Observed { idempotency_key: Some("key-3".to_owned()), ms: 41, ..failure("no such station") })
        .replied(4, priced(answer("That must do.", "Trellises. Unknown.")))
        .header(|header| header.attempt = 3)
        .ended(ending(Termination::FinalAnswer, "Trellises. Unknown.", None));
    script.records
}
