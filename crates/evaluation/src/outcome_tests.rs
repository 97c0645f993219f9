use super::*;
use serde_json::json;
use trellis_domain::document::Document;
use trellis_domain::limits::Limits;
use trellis_domain::record::{Ended, FORMAT, FailedAttempt, Header, ModelCall, Name, PromptUse};
use trellis_domain::usage::TokenDetails;
use trellis_domain::{Flow, Hash, Timestamp, Workspace};

const ROOT: &str = "root";

fn record(session: &str, name: &str, ms: i64, body: impl Into<Body>) -> Record {
    let header = Header {
        format: FORMAT,
        workspace: Workspace::default(),
        flow: Flow::default(),
        run: RunId::new(ROOT).unwrap(),
        session: SessionId::new(session).unwrap(),
        name: Name::new(name),
        seq: 1,
        version: 1,
        causes: Vec::new(),
        parents: Vec::new(),
        content: Hash::ZERO,
        config: Hash::ZERO,
        attempt: 1,
        late: false,
        trace: None,
        time: Timestamp::from_micros(ms * 1000),
    };
    Record { header, body: body.into() }
}

fn replied(reading: Reading) -> Replied {
    Replied {
        prompt: PromptUse::default(),
        raw: "".into(),
        parts: Vec::new(),
        stop: None,
        thought: None,
        reading,
        decision: Vec::new(),
        model: None,
        in_token: Some(10),
        out_token: Some(2),
        ms: 5,
        citations: Vec::new(),
        failures: Vec::new(),
        incomplete: None,
        enforced: false,
        repairs: Vec::new(),
        heard: 0,
    }
}

fn decision(kind: DecisionKind, decided_by: DecidedBy, enforcement: Enforcement) -> Decision {
    let offered = Decision::offered(kind, vec!["a".into(), "b".into()], "urn:x".into(), 1);
    Decision { decided_by, enforcement, ..offered }
}

fn ended(answer: &str, outage_ms: u64) -> Ended {
    Ended {
        reason: Termination::FinalAnswer,
        answer: Document::stored(answer),
        error: None,
        usage: Usage::default(),
        total: None,
        criteria: String::new(),
        missing: Vec::new(),
        outage_ms,
        left_out: Vec::new(),
        by: None,
    }
}

fn routed() -> Body {
    Body::Routed(Routed {
        task_type: "general".into(),
        pattern: "react".into(),
        framing: "".into(),
        told: std::sync::Arc::default(),
        termination: String::new(),
        limits: Limits::default(),
        decisions: vec![
            decision(DecisionKind::TaskType, DecidedBy::Model, Enforcement::Decoding),
            decision(DecisionKind::Pattern, DecidedBy::Fallback, Enforcement::Validated),
        ],
    })
}

#[test]
fn a_run_is_summed_up_with_its_subagents() {
    let observed = Observed {
        result: None,
        error: None,
        ms: 3,
        state: None,
        idempotency_key: Some("k".into()),
        usage: Usage { in_token: Some(100), model_calls: 1, ..Usage::default() },
        trace: Vec::new(),
        calls: vec![ModelCall { failures: vec![FailedAttempt::default()], ..ModelCall::default() }],
    };
    let search = json!({"query": "moss"}).as_object().cloned().unwrap();
    let by_model = |enforcement| decision(DecisionKind::Tool, DecidedBy::Model, enforcement);
    let records = [
        record(
            ROOT,
            "route/task-type/retry",
            1_000,
            Replied {
                decision: vec![by_model(Enforcement::Decoding)],
                failures: vec![FailedAttempt::default(), FailedAttempt::default()],
                ..replied(Reading::decided("general"))
            },
        ),
        record(ROOT, "pattern-decision", 1_010, routed()),
        record(
            "child",
            "i1",
            1_020,
            Replied {
                decision: vec![by_model(Enforcement::Validated)],
                repairs: vec!["a brace was missing".into()],
                heard: 0,
                ..replied(Reading::acted("search", search.clone()))
            },
        ),
        record("child", "i1/observation", 1_030, Body::Observed(observed)),
        record("child", "end", 1_035, ended("the child's", 0)),
        record(ROOT, "i1", 1_040, replied(Reading::Unusable { reason: "no JSON".into() })),
        record(
            ROOT,
            "i2",
            1_050,
            Replied { in_token: None, out_token: None, ..replied(Reading::Failed { reason: "x".into() }) },
        ),
        record(ROOT, "i3", 1_060, replied(Reading::answered("moss"))),
        record(ROOT, "end", 1_500, ended("moss", 100)),
    ];
    let choice = |name: &str, decided_by, enforcement| Some(Choice { name: name.into(), decided_by, enforcement });
    let expected = Outcome {
        run: Some(RunId::new(ROOT).unwrap()),
        answer: Some("moss".into()),
        ended: Some(Termination::FinalAnswer),
        error: None,
        task_type: choice("general", DecidedBy::Model, Enforcement::Decoding),
        pattern: choice("react", DecidedBy::Fallback, Enforcement::Validated),
        model_calls: 6,
        in_token: Some(140),
        out_token: Some(8),
        cost_micros: None,
        ms: Some(400),
        tool_calls: vec![CalledTool { name: "search".into(), arguments: search }],
        replies: 4,
        unreadable_replies: 1,
        repaired_replies: 1,
        failed_attempts: 3,
        decisions: 2,
        enforced_decisions: 1,
        iterations: 3,
    };
    let outcome = Outcome::of(&records);
    assert_eq!(outcome, expected);
    assert_eq!((outcome.tokens(), outcome.enforced_share()), (Some(148), Some(0.5)));
    let written = serde_json::to_string(&outcome).unwrap();
    assert_eq!(serde_json::from_str::<Outcome>(&written).unwrap(), expected);
}

#[test]
fn what_came_too_late_costs_but_does_not_count() {
    let mut late = record(ROOT, "i1", 30, replied(Reading::acted("search", Map::new())));
    late.header.late = true;
    let outcome = Outcome::of(&[record(ROOT, "end", 20, ended("", 0)), late]);
    assert_eq!((outcome.model_calls, outcome.tokens()), (1, Some(12)));
    assert_eq!((outcome.replies, outcome.tool_calls.len(), outcome.answer), (0, 0, None));
}

#[test]
fn what_a_run_cost_is_known_if_every_model_has_a_price() {
    let details = |cost_micros| TokenDetails { cost_micros, ..TokenDetails::default() };
    let reply = |cost_micros| {
        let prompt = PromptUse { details: details(cost_micros), ..PromptUse::default() };
        record(ROOT, "i1", 10, Replied { prompt, ..replied(Reading::answered("moss")) })
    };
    let of_tool = |cost_micros| {
        let prompt = PromptUse { details: details(cost_micros), ..PromptUse::default() };
        let call = ModelCall { prompt, reply: Some("moss".into()), ..ModelCall::default() };
        let usage = call.usage();
        let (idempotency_key, calls) = (Some("k".into()), vec![call]);
        let (result, error, state, trace) = (None, None, None, Vec::new());
        record(
            ROOT,
            "i1/observation",
            20,
            Body::Observed(Observed { result, error, ms: 3, state, idempotency_key, usage, trace, calls }),
        )
    };
    let unanswered = || {
        let failed = Reading::Failed { reason: "x".into() };
        record(ROOT, "i2", 30, Replied { in_token: None, out_token: None, ..replied(failed) })
    };
    let cost = |records: &[Record]| Outcome::of(records).cost_micros;
    assert_eq!(cost(&[reply(Some(40)), of_tool(Some(2)), unanswered()]), Some(42));
    assert_eq!(cost(&[reply(Some(40)), reply(None)]), None, "a part of it is not the whole");
    assert_eq!(cost(&[reply(Some(40)), of_tool(None)]), None);
    assert_eq!((cost(&[reply(None)]), cost(&[unanswered()]), cost(&[])), (None, None, None));
}

#[test]
fn without_records_or_tokens_nothing_is_made_up() {
    assert_eq!(Outcome::of(&[]), Outcome::default());
    let failed = Outcome::failed("refused");
    assert_eq!((failed.tokens(), failed.enforced_share(), failed.error.as_deref()), (None, None, Some("refused")));
}
