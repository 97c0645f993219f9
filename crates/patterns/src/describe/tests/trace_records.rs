//! What the records had, the trace has: for every kind of record of random runs.

use super::asked::Question;
use crate::projector::project;
use crate::projector::tests::fixture::{cancelled_plan, plan_run, react_run, supervisor_run};
use crate::projector::tests::random_run::any_run;
use proptest::prelude::*;
use serde_json::Value;
use trellis_domain::decision::option::NO_TOOL;
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, Joined};
use trellis_domain::limits::Limits;
use trellis_domain::record::{Body, Ended, Header, Name, Observed, Reading, Record, Replied};
use trellis_provenance::iri;
use trellis_provenance::trace::{
    Analysis, Conclusion, Cost, DecisionTrace, DocumentLink, Finding, GoalTrace, LateReply, Mark, Observation,
    SessionTrace, Step, StepResult, Synthesis, Thought, Trace, Word, trace,
};

fn link(id: String, document: Option<&Document>) -> Option<DocumentLink> {
    let document = document.filter(|document| document.stored)?;
    Some(DocumentLink { id, sha256: Some(document.sha256.to_string()) })
}

fn cost_of(replied: &Replied) -> Cost {
    Cost {
        model: replied.model.clone(),
        model_ms: Some(replied.ms),
        in_token: replied.in_token,
        out_token: replied.out_token,
        failures: Vec::new(),
    }
}

fn mark_of(header: &Header) -> Mark {
    let (seq, at) = (Some(header.seq), Some(header.time.to_string()));
    Mark { attempt: header.attempt.into(), late: header.late, brought: false, seq, at }
}

fn find<'t>(session: &'t SessionTrace, id: &str) -> Option<&'t Step> {
    session.steps.iter().find(|step| step.id() == id)
}

/// A reply's step says what the reply said.
fn check_iteration(session: &SessionTrace, header: &Header, n: u32, replied: &Replied) {
    let id = iri::iteration(&header.session, n);
    let thought = link(iri::thought(&header.session, n), replied.thought.as_ref());
    let (tool, arguments) = match &replied.reading {
        Reading::Acted { tool, arguments, .. } => (tool.as_str(), Value::Object(arguments.clone())),
        Reading::Unusable { .. } => ("__parse_error__", serde_json::json!({})),
        Reading::Answered { .. } | Reading::Failed { .. } | Reading::Decided { .. } => {
            let Some(Step::LateReply(step)) = session.steps.iter().find(|step| step.id() == id) else {
                assert!(!header.late);
                return;
            };
            assert_eq!((&step.cost, &step.mark), (&cost_of(replied), &mark_of(header)));
            assert_eq!(step.thought.as_ref().and_then(|thought| thought.document.clone()), thought);
            return;
        }
    };
    let Some(Step::Analysis(step)) = find(session, &id) else { panic!("{id} is an analysis") };
    assert_eq!((step.n, step.tool.as_str(), &step.arguments), (n, tool, &arguments));
    assert_eq!((&step.cost, &step.mark), (&cost_of(replied), &mark_of(header)));
    assert_eq!(step.thought.as_ref().and_then(|thought| thought.document.clone()), thought);
    let decision = &replied.decision[0];
    assert_eq!((&step.candidates, &step.decisions[0].options), (&decision.options, &decision.options));
    assert_eq!(step.decisions[0].chosen, decision.chosen);
    assert_eq!(step.decisions[0].rejected.is_some(), decision.rejected.is_some());
}

fn check_observation(session: &SessionTrace, header: &Header, n: u32, observed: &Observed) {
    let id = iri::observation(&header.session, n);
    let Some(Step::Observation(step)) = find(session, &id) else { panic!("{id} is an observation") };
    let expected = Observation {
        id: id.clone(),
        n,
        document: link(id, observed.result.as_ref()),
        error: observed.error.clone(),
        tool_ms: Some(observed.ms),
        cost: Cost { in_token: observed.usage.in_token, ..Cost::default() },
        state: observed.state.clone(),
        idempotency_key: observed.idempotency_key.clone(),
        mark: mark_of(header),
    };
    assert_eq!(step, &expected);
}

/// What a step says of the model that was asked for it.
fn told(step: &Step) -> (Vec<Thought>, &[DecisionTrace], &Cost) {
    match step {
        Step::Analysis(Analysis { thought, decisions, cost, .. })
        | Step::LateReply(LateReply { thought, decisions, cost, .. })
        | Step::Conclusion(Conclusion { thought, decisions, cost, .. }) => {
            (thought.iter().cloned().collect(), decisions, cost)
        }
        Step::Plan(step) => (step.thoughts.clone(), &step.decisions, &step.cost),
        Step::PlanReview(step) => (step.thoughts.clone(), &step.decisions, &step.cost),
        Step::StepResult(step) => (step.thoughts.clone(), &step.decisions, &step.cost),
        Step::Decomposition(step) => (step.thoughts.clone(), &step.decisions, &step.cost),
        Step::Review(step) => (step.thoughts.clone(), &step.decisions, &step.cost),
        Step::UnusedReply(step) => (step.thoughts.clone(), &step.decisions, &step.cost),
        Step::Synthesis(step) => (step.thoughts.clone(), &step.decisions, &step.cost),
        Step::PatternAct(step) => (step.thoughts.clone(), &step.decisions, &step.cost),
        Step::Routing(_) | Step::Observation(_) | Step::Finding(_) | Step::LateResult(_) => {
            panic!("no model was asked for {}", step.id())
        }
    }
}

/// The step that tells of a reply, once there is one.
fn step_of<'t>(session: &'t SessionTrace, header: &Header, question: Question) -> Option<&'t Step> {
    let name = if header.late { header.name.clone() } else { header.name.first_asking() };
    match question {
        Question::Synthesis if !header.late => session.steps.last().filter(|_| session.ended.is_some()),
        Question::TaskType | Question::Pattern if !header.late && session.pattern.is_some() => None,
        Question::TaskType
        | Question::Pattern
        | Question::Plan(_)
        | Question::Step(_)
        | Question::Decompose
        | Question::Review(_)
        | Question::Synthesis => find(session, &iri::named(&header.session, &name)),
    }
}

/// The node of a question tells of this reply: its thought, its choice, and at least its cost.
fn check_asked(session: &SessionTrace, header: &Header, question: Question, replied: &Replied) {
    let Some(step) = step_of(session, header, question) else {
        assert!(session.ended.is_none() || session.pattern.is_some(), "{} is lost", header.name);
        return;
    };
    let (thoughts, decisions, cost) = told(step);
    assert!(cost.model_ms >= Some(replied.ms), "{}", header.name);
    if let Some(thought) = replied.thought.as_ref().filter(|thought| thought.stored) {
        let told = thoughts.iter().filter_map(|thought| thought.document.as_ref()?.sha256.clone());
        assert!(told.into_iter().any(|hash| hash == thought.sha256.to_string()), "{}", header.name);
    }
    for decision in replied.decision.iter().filter(|decision| !decision.chosen.is_empty()) {
        let is_same = |told: &&DecisionTrace| told.kind == Some(Word::Known(decision.kind));
        let of_review = matches!(question, Question::Review(_));
        assert!(of_review || decisions.iter().filter(is_same).any(|told| sorted(&decision.chosen) == told.chosen));
    }
}

fn sorted(texts: &[String]) -> Vec<String> {
    let mut texts = texts.to_vec();
    texts.sort();
    texts.dedup();
    texts
}

fn check_step_result(session: &SessionTrace, header: &Header, i: u32, observed: &Observed) {
    let document = link(iri::step_document(&header.session, i), observed.result.as_ref());
    if header.late {
        let id = iri::late_step_result(&header.session, i);
        let Some(Step::LateResult(step)) = find(session, &id) else { panic!("{id} is a late result") };
        assert_eq!((&step.document, &step.error, step.mark.late), (&document, &observed.error, true));
        assert_eq!(step.of, Some(iri::step(&header.session, i)));
        return;
    }
    let step = step_result(session, &header.session, i);
    assert_eq!((&step.document, &step.error), (&document, &observed.error));
    assert_eq!((step.number, step.tool_ms, &step.state), (i, Some(observed.ms), &observed.state));
    assert!(!step.unfinished);
}

fn step_result<'t>(session: &'t SessionTrace, id: &trellis_domain::SessionId, i: u32) -> &'t StepResult {
    match find(session, &iri::step(id, i)) {
        Some(Step::StepResult(step)) => step,
        other => panic!("step {i} has no result but {other:?}"),
    }
}

/// A step without a tool says what the model answered.
fn check_step(session: &SessionTrace, header: &Header, i: u32, reading: &Reading) {
    if reading.call().is_none() && reading.text().is_none() {
        return;
    }
    let surprising = serde_json::to_value(reading).unwrap()["value"]["surprising"] == true;
    let tool = reading.call().map(|(tool, _)| tool.as_str());
    if header.late || find(session, &iri::step(&header.session, i)).is_none() {
        return;
    }
    let step = step_result(session, &header.session, i);
    assert_eq!((step.tool.as_deref(), step.surprising), (tool, surprising));
    assert_eq!(step.arguments, reading.call().map(|(_, arguments)| Value::Object(arguments.clone())));
    assert_eq!(step.decisions[0].chosen, [tool.unwrap_or(NO_TOOL)]);
    if let Some(answer) = reading.text() {
        let document = trellis_provenance::node::as_document(answer);
        assert_eq!(step.document, link(iri::step_document(&header.session, i), document.as_ref()));
    }
}

fn check_fan_out(session: &SessionTrace, header: &Header, fan_out: &FannedOut) {
    let id = iri::decomposition(&header.session, fan_out.round);
    let Some(Step::Decomposition(step)) = find(session, &id) else { panic!("{id} is a decomposition") };
    let goal = |goal: &trellis_domain::fan_out::Goal| GoalTrace {
        index: Some(goal.index),
        goal: goal.goal.clone(),
        session: Some(goal.session.to_string()),
    };
    let goals: Vec<_> = fan_out.goals.iter().map(goal).collect();
    assert_eq!((step.round, &step.goals), (fan_out.round, &goals), "in the order of their numbers");
    assert_eq!(step.correlation.as_ref(), Some(&fan_out.correlation));
    assert_eq!(step.decisions.len(), fan_out.decisions.len());
    let told = step.fan_out.as_ref().unwrap();
    assert_eq!(told.correlation.as_ref(), Some(&fan_out.correlation));
    assert_eq!((told.expected, told.goals.len()), (Some(goals.len() as u64), goals.len()));
    assert_eq!(told.deadline, Some(fan_out.deadline.to_string()));
}

fn check_join(session: &SessionTrace, header: &Header, joined: &Joined) {
    for member in &joined.members {
        let id = iri::finding(&header.session, member.index);
        let Some(Step::Finding(step)) = find(session, &id) else { panic!("{id} is a finding") };
        let error = member.is_missing().then(|| member.error.clone().unwrap_or(member.reason.to_string()));
        let expected = Finding {
            id: id.clone(),
            index: member.index,
            round: joined.round,
            goal: member.goal.clone(),
            correlation: Some(joined.correlation.clone()),
            subagent_end: Some(iri::terminal(&member.session, member.reason)),
            status: Some(Word::Known(member.reason)),
            document: link(iri::finding_document(&header.session, member.index), member.answer.as_ref()),
            error,
            confidence: step.confidence.clone(),
            mark: mark_of(header),
        };
        assert_eq!(step, &expected);
    }
}

fn check_end(session: &SessionTrace, header: &Header, ended: &Ended) {
    let (reason, document, error) = match session.steps.last() {
        Some(Step::Conclusion(Conclusion { reason, document, error, .. })) if !ended.reason.is_synthesis() => {
            assert_eq!(document, &link(iri::answer(&header.session), ended.answer.as_ref()));
            (reason, document, error)
        }
        Some(Step::Synthesis(Synthesis { reason, document, error, missing, .. })) if ended.reason.is_synthesis() => {
            assert_eq!(document, &link(iri::synthesis_document(&header.session), ended.answer.as_ref()));
            assert_eq!(missing.len(), ended.missing.len());
            (reason, document, error)
        }
        other => panic!("{} is no end", other.map_or("nothing", Step::id)),
    };
    assert_eq!((reason, error), (&Some(Word::Known(ended.reason)), &ended.error));
    assert_eq!(session.ended, Some(header.time.to_string()));
    assert_eq!(session.totals.in_token, ended.usage.in_token);
    assert_eq!(session.totals.tool_calls, Some(ended.usage.tool_calls.into()));
    assert_eq!(session.totals_with_subagents.is_some(), ended.total.is_some());
    if let Some(completion) = &session.completion {
        assert_eq!(completion.result, document.as_ref().map(|document| document.id.clone()));
        assert_eq!(completion.status.is_some(), !ended.reason.is_answer());
        assert_eq!(completion.goal.as_ref(), Some(&session.question));
    }
    assert_eq!(session.completion.is_some(), session.parent.is_some());
}

fn check_record(session: &SessionTrace, Record { header, body }: &Record) {
    let iteration = super::asked::iteration(header);
    match body {
        // These runs ask nobody.
        Body::Intended(_) | Body::InputRequired(_) | Body::Parked(_) | Body::Settled(_) | Body::Told(_) => {
            panic!("{} is unexpected", header.name)
        }
        Body::Accepted(accepted) => {
            assert_eq!(session.question, accepted.question.text());
            assert_eq!(session.started, Some(header.time.to_string()));
            assert_eq!(session.mark, mark_of(header));
            assert_eq!(session.conversation, accepted.conversation.as_ref().map(ToString::to_string));
            let told = session.parent.as_ref();
            let parent = accepted.parent.as_ref();
            assert_eq!(told.and_then(|told| told.session.clone()), parent.map(|parent| iri::session(&parent.session)));
            assert_eq!(told.and_then(|told| told.index), parent.map(|parent| parent.index.into()));
        }
        Body::Routed(routed) => {
            assert_eq!(session.pattern.as_deref(), Some(routed.pattern.as_str()));
            assert_eq!(session.task_type.as_deref(), Some(routed.task_type.as_str()));
            let Step::Routing(step) = &session.steps[0] else { panic!("the routing comes first") };
            assert_eq!(step.decisions.len(), routed.decisions.len());
            assert_eq!(serde_json::from_value::<Limits>(step.limits.clone().unwrap()).unwrap(), routed.limits);
            let pattern = routed.decisions.last().unwrap();
            assert_eq!(step.decisions[0].excluded, pattern.excluded, "decisions are sorted by IRI");
        }
        Body::Replied(replied) => match (iteration, Question::of(&header.name)) {
            (Some(n), _) => check_iteration(session, header, n, replied),
            (None, Some(question)) => {
                check_asked(session, header, question, replied);
                if let Question::Step(i) = question {
                    check_step(session, header, i, &replied.reading);
                }
            }
            (None, None) => panic!("{} answers no question", header.name),
        },
        Body::Observed(observed) => match (iteration, super::asked::step_result(header)) {
            (Some(n), _) => check_observation(session, header, n, observed),
            (None, Some(i)) => check_step_result(session, header, i, observed),
            (None, None) => panic!("{} is no observation", header.name),
        },
        Body::FannedOut(fan_out) => check_fan_out(session, header, fan_out),
        Body::Joined(joined) => check_join(session, header, joined),
        Body::Ended(ended) => check_end(session, header, ended),
    }
}

fn check_run(records: &[Record]) {
    let Trace { sessions } = trace(&project(records));
    for record in records {
        let id = record.header.session.as_str();
        let session = sessions.iter().find(|session| session.session == id).unwrap();
        check_record(session, record);
    }
}

#[test]
fn the_traces_of_whole_runs_have_what_the_records_had() {
    for records in [react_run(), plan_run(), cancelled_plan(), supervisor_run()] {
        check_run(&records);
    }
}

#[test]
fn what_asking_a_router_took_is_told_by_the_choice() {
    let Trace { sessions } = trace(&project(&plan_run()));
    let Step::Routing(routing) = &sessions[0].steps[0] else { panic!("the routing comes first") };
    let costs: Vec<_> = routing.decisions.iter().map(|choice| (choice.cost.model_ms, choice.cost.in_token)).collect();
    assert_eq!(costs, [(Some(1200), Some(210)), (Some(2400), Some(420))], "pattern once, task type twice");
    assert_eq!(Name::route_task_type().retry().as_str(), "route/task-type/retry");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_trace_has_what_the_records_had(records in any_run()) {
        check_run(&records);
    }
}
