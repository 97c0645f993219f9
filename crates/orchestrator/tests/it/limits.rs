//! Every limit ends in a recorded answer or a clear end.

use crate::memory;
use crate::promises::put;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::document::Document;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::{AgentRequest, AgentStep};
use trellis_domain::record::{Body, Name, Observed, REVISION, Reading, Record};
use trellis_domain::request::earlier_fingerprint;
use trellis_domain::run::RunState;
use trellis_domain::{Caller, Hash, RequestId, Scope, SessionId, Timestamp, Workspace};
use trellis_orchestrator::accept::{AcceptError, Question, UnknownNames};
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::memory::scripted::{SILENT, ScriptedPrompter, ScriptedTools};
use trellis_orchestrator::ports::{Commit, Disposition, NewRecord, NewTurn, OpenTurn, Outcome, TurnKey};
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};
use trellis_orchestrator::{Cancelling, Item, RunService};
use trellis_patterns::react::IterationNames;

async fn run(prompter: ScriptedPrompter, tools: ScriptedTools, limits: SomeLimits) -> (RunState, Vec<Arc<Record>>) {
    let bench = Bench::with_tools(memory(), prompter, tools).await;
    let run = bench.ask(1, limits).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    (bench.summary(&run).await.state, bench.records(&run).await)
}

fn plain_tools() -> ScriptedTools {
    ScriptedTools::new(|_| Ok("a fact".to_owned()))
}

fn error_of(records: &[Arc<Record>]) -> String {
    match &records.last().unwrap().body {
        Body::Ended(ended) => ended.error.clone().unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

fn observations(records: &[Arc<Record>]) -> Vec<&Observed> {
    let observed = |record: &'_ Arc<Record>| matches!(record.body, Body::Observed(_));
    records
        .iter()
        .filter(|record| observed(record))
        .filter_map(|record| match &record.body {
            Body::Observed(observed) => Some(observed),
            _ => None,
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_hangs_is_given_up_and_the_run_says_so() {
    let mut prompter = ScriptedPrompter::replies(&SCRIPT);
    prompter.delay = Duration::from_mins(1);
    let limits = SomeLimits { model_timeout_ms: Some(20), ..SomeLimits::default() };
    let (state, records) = run(prompter, plain_tools(), limits).await;
    assert_eq!(state, RunState::Failed);
    assert_eq!(error_of(&records), "the model did not answer: the model took longer than 0.02 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_hangs_is_given_up_and_the_model_goes_on() {
    let tools = ScriptedTools::new(|_| Err(SILENT.to_owned()));
    let bench = Bench::with_tools(memory(), ScriptedPrompter::replies(&SCRIPT), tools).await;
    let elsewhere = json!({ "type": "mcp-tool", "name": "search", "mcp-tool": "search", "description": "finds facts" });
    put(&bench, &[("tool", "search", elsewhere)]).await;
    let run = bench.ask(1, SomeLimits { tool_timeout_ms: Some(20), ..SomeLimits::default() }).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    assert_eq!(bench.summary(&run).await.state, RunState::AnsweredPartial);
    let records = bench.records(&run).await;
    assert_eq!(
        observations(&records)[0].error.as_deref(),
        Some("the tool `search` did not answer within 0.02 s; whether it took effect is not known")
    );
}

/// A tool that asks a model leaves it to the prompter to keep the time, which knows how long the call had to wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_asks_a_model_is_told_how_long_it_may_take() {
    let (told, heard) = std::sync::mpsc::channel();
    let tools = ScriptedTools::new(move |call| {
        told.send((call.timeout, call.max_reply_bytes)).unwrap();
        Err(SILENT.to_owned())
    });
    let limits = SomeLimits {
        tool_timeout_ms: Some(20),
        run_timeout_ms: Some(2_000),
        max_reply_bytes: Some(1234),
        ..SomeLimits::default()
    };
    let (_, records) = run(ScriptedPrompter::replies(&SCRIPT), tools, limits).await;
    assert_eq!(heard.recv().unwrap(), (Duration::from_millis(20), 1234));
    let waited = observations(&records)[0];
    assert!(waited.ms > 100 && waited.error.is_some(), "only the end of the run stops it: {waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_takes_too_long_ends_with_timeout() {
    let mut prompter = ScriptedPrompter::replies(&SCRIPT[..1]);
    prompter.delay = Duration::from_millis(5);
    let limits = SomeLimits { run_timeout_ms: Some(1), ..SomeLimits::default() };
    let (state, records) = run(prompter, plain_tools(), limits).await;
    assert!(state == RunState::Limit || state == RunState::Failed, "{state}");
    assert!(!error_of(&records).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_tool_is_told_to_the_model_which_goes_on() {
    let tools = ScriptedTools::new(|_| Err("no network".to_owned()));
    let (state, records) = run(ScriptedPrompter::replies(&SCRIPT), tools, SomeLimits::default()).await;
    assert_eq!(state, RunState::AnsweredPartial);
    let first = observations(&records)[0];
    assert_eq!(first.result.as_ref().map(Document::text), Some("Error: no network"));
    assert_eq!(first.error.as_deref(), Some("no network"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_replies_and_unknown_tools_are_observations() {
    let replies = ["I will just chat.", "Thought: t\nAction: telepathy\nArgs: {}", "Final Answer: ok"];
    let (state, records) = run(ScriptedPrompter::replies(&replies), plain_tools(), SomeLimits::default()).await;
    assert_eq!(state, RunState::Answered);
    let texts: Vec<_> = observations(&records).iter().filter_map(|o| o.error.as_deref()).collect();
    assert!(texts[0].contains("Final Answer:"), "{texts:?}");
    assert_eq!(texts[1], "there is no tool `telepathy`; available tools: search");
    assert!(observations(&records).iter().all(|observed| observed.idempotency_key.is_none()), "no tool was called");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_is_too_long_is_cut_and_told_to_the_model() {
    let long = format!("Final Answer: {}", "x".repeat(2000));
    let replies = [long.as_str(), "Final Answer: short"];
    let mut prompter = ScriptedPrompter::replies(&replies);
    prompter.piece = 100;
    let limits = SomeLimits { max_reply_bytes: Some(1000), ..SomeLimits::default() };
    let (state, records) = run(prompter, plain_tools(), limits).await;
    assert_eq!(state, RunState::Answered);
    let reading = records.iter().find_map(|record| match &record.body {
        Body::Replied(reply) => Some(reply.reading.clone()),
        _ => None,
    });
    assert_eq!(reading, Some(Reading::Unusable { reason: "the reply was longer than 1000 bytes; be brief".into() }));
}

#[tokio::test]
async fn more_open_runs_than_allowed_are_refused_clearly() {
    let bench = Bench::new(memory(), ScriptedPrompter::replies(&SCRIPT)).await;
    bench.ask(1, SomeLimits::default()).await;
    let mut full = (*bench.orchestrator).clone();
    full.options.max_open_runs = 1;
    let question = Question {
        scope: Scope::default(),
        request_id: RequestId::new("one-too-many").unwrap(),
        request: AgentRequest { question: "q".into(), ..AgentRequest::default() },
        limits: SomeLimits::default(),
        names: UnknownNames::Refuse,
        selection: trellis_domain::Selection::default(),
        by: None,
    };
    let refused = RunService::new(&Arc::new(full)).accept(question).await.unwrap_err().to_string();
    assert_eq!(refused, "1 run open, which is the limit; wait until some have ended");
}

#[tokio::test]
async fn bad_questions_are_refused_with_a_reason_and_leave_nothing() {
    let bench = Bench::new(memory(), ScriptedPrompter::replies(&SCRIPT)).await;
    let ask = async |request: AgentRequest| {
        let question = Question {
            scope: Scope::default(),
            request_id: RequestId::new("r").unwrap(),
            request,
            limits: SomeLimits::default(),
            names: UnknownNames::Refuse,
            selection: trellis_domain::Selection::default(),
            by: None,
        };
        bench.runs().accept(question).await.map(|accepted| accepted.run).unwrap_err().to_string()
    };
    let question = |text: &str| AgentRequest { question: text.into(), ..AgentRequest::default() };
    assert_eq!(ask(question(" \n")).await, AcceptError::EmptyQuestion.to_string());
    assert!(ask(question(&"x".repeat((1 << 20) + 1))).await.contains("at most 1048576 are allowed"));
    let bad_session = AgentRequest { session_id: "a/b".into(), ..question("q") };
    assert!(ask(bad_session).await.contains("contains '/'"));
    let bad_pattern = AgentRequest { pattern: "delphi".into(), ..question("q") };
    assert_eq!(
        ask(bad_pattern).await,
        "there is no pattern `delphi`; choose one of react, plan-then-execute, supervisor, reflexion, dispatch, debate"
    );
    assert_eq!(bench.orchestrator.ports.journal.open_runs().await.unwrap(), 0);
}

/// Each part of a request that a caller may make large is refused by its name, and nothing of it is kept.
#[tokio::test]
async fn every_part_of_a_request_is_bounded() {
    let bench = Bench::new(memory(), ScriptedPrompter::replies(&SCRIPT)).await;
    let plain = || AgentRequest { question: "q".into(), ..AgentRequest::default() };
    let long = |bytes: usize| "x".repeat(bytes);
    let step = |observation: String| AgentStep { observation, ..AgentStep::default() };
    let parts: [(&str, AgentRequest); 8] = [
        ("`framing` has 2000000 bytes", AgentRequest { framing: long(2_000_000), ..plain() }),
        ("`state` has 201 bytes", AgentRequest { state: long(201), ..plain() }),
        ("`pattern` has 201 bytes", AgentRequest { pattern: long(201), ..plain() }),
        ("`task_type` has 201 bytes", AgentRequest { task_type: long(201), ..plain() }),
        ("`group` has 101 names", AgentRequest { group: Some(vec![long(1); 101]), ..plain() }),
        ("`history` has 2000000 bytes", AgentRequest { history: vec![step(long(2_000_000))], ..plain() }),
        ("the collection is 201 characters long", AgentRequest { collection: long(201), ..plain() }),
        ("the conversation id is 201 characters long", AgentRequest { conversation_id: long(201), ..plain() }),
    ];
    for (expected, request) in parts {
        let refused = bench.try_request(1, request, SomeLimits::default()).await.unwrap_err().to_string();
        assert!(refused.starts_with(expected) && refused.contains("at most"), "{expected}: {refused:.200}");
    }
    assert_eq!(bench.orchestrator.ports.journal.open_runs().await.unwrap(), 0);
}

/// Who asks for more than there is a maximum for gets the maximum, also where no operator has named one.
#[tokio::test]
async fn there_is_a_maximum_although_nobody_has_named_one() {
    let bench = Bench::new(memory(), ScriptedPrompter::replies(&SCRIPT)).await;
    let wishes = SomeLimits { max_siblings: Some(600), steps_at_once: Some(200), ..SomeLimits::default() };
    let run = bench.ask(1, wishes).await;
    let records = bench.records(&run).await;
    let limits = &records.iter().find_map(|record| record.body.as_routed()).unwrap().limits;
    assert_eq!((limits.max_siblings, limits.steps_at_once), (32, 32));
}

/// A request that an earlier version accepted is recognised by its fingerprint of that time.
#[tokio::test]
async fn a_request_that_is_repeated_after_an_upgrade_is_the_same() {
    let bench = Bench::new(memory(), ScriptedPrompter::replies(&SCRIPT)).await;
    let asked = AgentRequest { question: "question 1".into(), ..AgentRequest::default() };
    let other = AgentRequest { question: "question 2".into(), session_id: "mine".into(), ..AgentRequest::default() };
    let mine = AgentRequest { question: "question 3".into(), session_id: "mine".into(), ..AgentRequest::default() };
    let id = |text: &str| RequestId::new(text).unwrap();
    let first = SessionId::for_request(&Scope::default(), &id("request-1"));
    let second = SessionId::new("mine").unwrap();
    let beside = second.beside(earlier_fingerprint(&mine));
    for (session, request) in [(&first, &asked), (&second, &other), (&beside, &mine)] {
        accepted_by_an_earlier_version(&bench, session, request).await;
    }
    let limits = SomeLimits::default;
    assert_eq!(bench.request(1, asked.clone(), limits()).await, first);
    assert_eq!(bench.request(2, other, limits()).await, second);
    assert_eq!(bench.request(3, mine, limits()).await, beside);
    assert_eq!(bench.orchestrator.ports.journal.open_runs().await.unwrap(), 3, "nothing was begun");
    let changed = AgentRequest { question: "another question".into(), ..asked };
    let refused = bench.try_request(1, changed, limits()).await.unwrap_err();
    assert!(matches!(refused, AcceptError::OtherRequest { run } if run == first));
}

async fn accepted_by_an_earlier_version(bench: &Bench, session: &SessionId, request: &AgentRequest) {
    accepted_by_version(bench, session, request, 0).await;
}

/// Rules that are not known here are not guessed: nothing is done, and nothing is recorded.
#[tokio::test]
async fn a_run_of_a_newer_version_is_left_to_it() {
    let bench = Bench::play(memory()).await;
    let run = SessionId::new("newer").unwrap();
    let request = AgentRequest { question: "why?".to_owned(), ..AgentRequest::default() };
    accepted_by_version(&bench, &run, &request, REVISION + 1).await;
    let journal = &bench.orchestrator.ports.journal;
    let before = journal.load(&Workspace::default(), &run).await.unwrap().unwrap().version;
    let key = TurnKey { scope: Scope::default(), run: run.clone(), session: run.clone(), name: Name::iteration(1) };
    let error = bench.orchestrator.handle(&OpenTurn::new(key, None, true)).await.unwrap_err();
    assert_eq!(error.disposition(), Disposition::Retry, "the process goes on with others");
    let told = error.to_string();
    assert!(told.contains("newer version of this program") && told.contains("`trellis run cancel newer`"), "{told}");
    assert_eq!(journal.load(&Workspace::default(), &run).await.unwrap().unwrap().version, before);
    assert!(bench.prompter.calls.all().is_empty());
    let cancelled = bench.runs().cancel(&Workspace::default(), &run, &Caller::program()).await.unwrap();
    assert_eq!(cancelled, Cancelling::Cancelled);
}

/// It keeps nobody else from being answered, and whoever asks for it is told at once.
#[tokio::test(flavor = "multi_thread")]
async fn others_are_answered_beside_a_run_of_a_newer_version() {
    let bench = Bench::play(memory()).await;
    let run = SessionId::new("newer").unwrap();
    let request =
        AgentRequest { question: "why?".to_owned(), session_id: "newer".to_owned(), ..AgentRequest::default() };
    accepted_by_version(&bench, &run, &request, REVISION + 1).await;
    let refused = bench.try_request(1, request, SomeLimits::default()).await.unwrap_err();
    assert!(matches!(refused, AcceptError::Newer(_)), "{refused}");
    let workers = Workers::new(Arc::clone(&bench.orchestrator), WorkerOptions::default());
    let failure = workers.failure();
    let (stop, stopped) = tokio::sync::watch::channel(None);
    let serving = tokio::spawn(async move { workers.run(stopped).await });
    let other = bench
        .request(2, AgentRequest { question: "how?".to_owned(), ..AgentRequest::default() }, SomeLimits::default())
        .await;
    let items = bench.follow(&other).await;
    assert!(items.iter().any(|item| matches!(item, Item::Record(record) if matches!(record.body, Body::Ended(_)))));
    assert_eq!(*failure.borrow(), None, "the process goes on");
    stop.send_replace(Some(Stop::Drain));
    serving.await.unwrap();
}

async fn accepted_by_version(bench: &Bench, session: &SessionId, request: &AgentRequest, revision: u32) {
    let mut body = serde_json::json!({
        "event": "accepted", "question": request.question, "request": earlier_fingerprint(request), "group": null,
        "state": "", "collection": "default", "streaming": false,
    });
    if revision > 0 {
        body["revision"] = revision.into();
    }
    let record = NewRecord {
        session: session.clone(),
        name: Name::session(),
        causes: Vec::new(),
        config: Hash::ZERO,
        attempt: 1,
        time: Timestamp::from_micros(0),
        body: serde_json::from_value(body).unwrap(),
    };
    let commit = Commit {
        scope: Scope::default(),
        run: session.clone(),
        session: session.clone(),
        seen: 0,
        seen_of_others: Vec::new(),
        records: vec![record],
        close: Vec::new(),
        open: vec![NewTurn { session: session.clone(), name: Name::iteration(1), due: None }],
    };
    let outcome = bench.orchestrator.ports.journal.commit(commit).await.unwrap();
    assert!(matches!(outcome, Outcome::Committed(_)));
}
