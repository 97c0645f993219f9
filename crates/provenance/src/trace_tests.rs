use super::*;
use crate::fixture::{Script, ending, react_run, routing};
use crate::random_run::any_run;
use crate::vocabulary::{tg, trellis};
use crate::{events, iri, project};
use expect_test::expect;
use proptest::prelude::*;
use trellis_domain::broker;
use trellis_domain::decision::DecisionKind;
use trellis_domain::document::Document;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::record::{Body, Header, Observed, Reading, Record, Replied};

fn only_session(quads: &[Quad]) -> SessionTrace {
    let mut trace = trace(quads);
    assert_eq!(trace.sessions.len(), 1);
    trace.sessions.remove(0)
}

#[test]
fn a_trace_as_a_program_reads_it() {
    let session = only_session(&project(&react_run()));
    let steps: Vec<_> = session.steps.iter().map(Step::id).collect();
    expect![[r#"
        urn:trustgraph:agent:8f2c1a/pattern-decision
        urn:trustgraph:agent:8f2c1a/i1
        urn:trustgraph:agent:8f2c1a/i1/observation
        urn:trustgraph:agent:8f2c1a/i2
        urn:trustgraph:agent:8f2c1a/i2/observation
        urn:trustgraph:agent:8f2c1a/i3
        urn:trustgraph:agent:8f2c1a/i3/observation
        urn:trustgraph:agent:8f2c1a/final"#]]
    .assert_eq(&steps.join("\n"));
    let conclusion = serde_json::to_string_pretty(session.steps.last().unwrap()).unwrap();
    expect![[r#"
        {
          "step": "conclusion",
          "id": "urn:trustgraph:agent:8f2c1a/final",
          "reason": "final-answer",
          "document": {
            "id": "urn:trustgraph:agent:8f2c1a/answer",
            "sha256": "b7313fdf83177b690cfe307dfccc90963508c04aebd0fbee12352ce083d84893"
          },
          "error": null,
          "decisions": [],
          "thought": {
            "id": "urn:trustgraph:agent:8f2c1a/final/thought",
            "document": {
              "id": "urn:trustgraph:agent:8f2c1a/final/thought",
              "sha256": "40e154238a140c3b314a2e955a4b6f8ba0eda2c0cf7eb49ae82a4d36e0062c1e"
            },
            "message_id": "urn:trustgraph:agent:8f2c1a/i4/thought#3"
          },
          "cost": {
            "model": "qwen2.5:7b",
            "model_ms": 1200,
            "in_token": 210,
            "out_token": 17
          },
          "mark": {
            "attempt": 1,
            "late": false
          }
        }"#]]
    .assert_eq(&conclusion);
    let Step::Routing(routing) = &session.steps[0] else { panic!("the routing comes first") };
    expect![[r#"
        {
          "id": "urn:trustgraph:agent:8f2c1a/pattern-decision/decision/pattern",
          "kind": "pattern",
          "options": [
            "react"
          ],
          "excluded": [
            {
              "name": "supervisor",
              "reason": "defined but not implemented"
            }
          ],
          "chosen": [
            "react"
          ],
          "source": "urn:trellis:config:default:agent-pattern",
          "config_version": 14,
          "decided_by": "only-option",
          "enforcement": "none",
          "signals": [],
          "rationale": null,
          "rejected": null
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&routing.decisions[0]).unwrap());
}

#[test]
fn steps_are_ordered_by_number_not_by_name() {
    let mut script = Script::new("s");
    script.accepted("why?", None);
    for n in 1..=11 {
        script.replied(n, crate::fixture::unreadable(""));
    }
    let numbers: Vec<_> = only_session(&project(&script.records)).steps.iter().map(number).collect();
    assert_eq!(numbers, (1..=11).collect::<Vec<_>>());
}

fn number(step: &Step) -> u32 {
    match step {
        Step::Analysis(analysis) => analysis.n,
        Step::Observation(observation) => observation.n,
        Step::LateReply(reply) => reply.n,
        Step::Routing(_) | Step::Conclusion(_) => 0,
    }
}

#[test]
fn an_unknown_word_is_kept() {
    let mut script = Script::new("s");
    script.accepted("why?", None).routed(routing());
    let mut quads = project(&script.records);
    for quad in quads.iter_mut().filter(|quad| quad.p.text() == trellis::DECIDED_BY) {
        quad.o = Term::literal("oracle");
    }
    let Step::Routing(routing) = &only_session(&quads).steps[0] else { panic!("the routing comes first") };
    assert_eq!(routing.decisions[0].decided_by, Some(Word::Unknown("oracle".to_owned())));
    assert_eq!(routing.decisions[0].kind, Some(Word::Known(DecisionKind::Pattern)));
}

#[test]
fn sessions_come_in_the_order_in_which_they_began() {
    let mut quads = project(Script::new("b").accepted("first", None).records.as_slice());
    let mut later = Script::new("a");
    later.accepted("second", None).header(|header| header.time = header.time.plus_ms(1));
    quads.extend(project(&later.records));
    let questions: Vec<_> = trace(&quads).sessions.into_iter().map(|session| session.question).collect();
    assert_eq!(questions, ["first", "second"]);
}

#[test]
fn sessions_whose_ids_begin_alike_do_not_mix() {
    let mut short = Script::new("s");
    short.accepted("first", None);
    let mut long = Script::new("s-1");
    long.accepted("second", None).routed(routing());
    let trace = trace(&[project(&short.records), project(&long.records)].concat());
    let steps: Vec<_> = trace.sessions.iter().map(|session| (session.session.as_str(), session.steps.len())).collect();
    assert_eq!(steps, [("s", 0), ("s-1", 1)]);
}

/// Over the wire and back, in both dialects.
fn sent(quads: &[Quad]) -> [Vec<Quad>; 2] {
    let broker = quads.iter().map(broker::triple).map(|value| serde_json::from_value(value).unwrap()).collect();
    let gateway = serde_json::from_str(&serde_json::to_string(quads).unwrap()).unwrap();
    [broker, gateway]
}

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
    }
}

fn mark_of(header: &Header) -> Mark {
    Mark { attempt: header.attempt.into(), late: header.late }
}

fn find<'t>(session: &'t SessionTrace, id: &str) -> &'t Step {
    session.steps.iter().find(|step| step.id() == id).unwrap_or_else(|| panic!("{id} is a step"))
}

/// A reply's step says what the reply said.
fn check_reply(session: &SessionTrace, header: &Header, n: u32, replied: &Replied) {
    let id = iri::iteration(&header.session, n);
    let thought = link(iri::thought(&header.session, n), replied.thought.as_ref());
    let (tool, arguments) = match &replied.reading {
        Reading::Action { tool, arguments } => (tool.as_str(), Value::Object(arguments.clone())),
        Reading::Unreadable { .. } => ("__parse_error__", serde_json::json!({})),
        Reading::Answer { .. } | Reading::Failed { .. } => {
            let Some(Step::LateReply(step)) = session.steps.iter().find(|step| step.id() == id) else {
                assert!(!header.late);
                return;
            };
            assert_eq!((&step.cost, step.mark), (&cost_of(replied), mark_of(header)));
            assert_eq!(step.thought.as_ref().and_then(|thought| thought.document.clone()), thought);
            return;
        }
    };
    let Step::Analysis(step) = find(session, &id) else { panic!("{id} is an analysis") };
    assert_eq!((step.n, step.tool.as_str(), &step.arguments), (n, tool, &arguments));
    assert_eq!((&step.cost, step.mark), (&cost_of(replied), mark_of(header)));
    assert_eq!(step.thought.as_ref().and_then(|thought| thought.document.clone()), thought);
    let decision = &replied.decision[0];
    assert_eq!((&step.candidates, &step.decisions[0].options), (&decision.options, &decision.options));
    assert_eq!(step.decisions[0].chosen, decision.chosen);
    assert_eq!(step.decisions[0].rejected.is_some(), decision.rejected.is_some());
}

fn check_observation(session: &SessionTrace, header: &Header, n: u32, observed: &Observed) {
    let id = iri::observation(&header.session, n);
    let Step::Observation(step) = find(session, &id) else { panic!("{id} is an observation") };
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

fn check_record(session: &SessionTrace, Record { header, body }: &Record) {
    match (body, crate::session::iteration(header)) {
        (Body::Accepted(accepted), _) => {
            assert_eq!(session.question, accepted.question.text());
            assert_eq!(session.started, Some(header.time.to_string()));
            assert_eq!(session.conversation, accepted.conversation.as_ref().map(ToString::to_string));
        }
        (Body::Routed(routed), _) => {
            assert_eq!(session.pattern.as_ref(), Some(&routed.pattern));
            assert_eq!(session.task_type.as_ref(), Some(&routed.task_type));
            let Step::Routing(step) = &session.steps[0] else { panic!("the routing comes first") };
            assert_eq!(step.decisions.len(), routed.decisions.len());
            assert_eq!(step.decisions[0].excluded, routed.decisions[1].excluded, "decisions are sorted by IRI");
        }
        (Body::Replied(replied), Some(n)) => check_reply(session, header, n, replied),
        (Body::Observed(observed), Some(n)) => check_observation(session, header, n, observed),
        (Body::Ended(ended), _) => {
            let Some(Step::Conclusion(step)) = session.steps.last() else { panic!("the conclusion comes last") };
            assert_eq!(step.reason, Some(Word::Known(ended.reason)));
            assert_eq!(step.document, link(iri::answer(&header.session), ended.answer.as_ref()));
            assert_eq!(step.error, ended.error);
            assert_eq!(session.ended, Some(header.time.to_string()));
            assert_eq!(session.totals.in_token, ended.usage.in_token);
            assert_eq!(session.totals.tool_calls, Some(ended.usage.tool_calls.into()));
        }
        (Body::Replied(_) | Body::Observed(_), None) => panic!("a reply or observation has its iteration's name"),
    }
}

#[test]
fn the_conclusion_tells_of_the_reply_that_gave_the_answer() {
    let Some(Step::Conclusion(step)) = only_session(&project(&react_run())).steps.pop() else {
        panic!("the conclusion comes last")
    };
    assert_eq!((step.cost.in_token, step.cost.model.as_deref()), (Some(210), Some("qwen2.5:7b")));
    let message_id = step.thought.unwrap().message_id;
    assert_eq!(message_id.as_deref(), Some("urn:trustgraph:agent:8f2c1a/i4/thought#3"));
}

#[test]
fn an_upstream_graph_without_our_names_is_read_too() {
    let mut script = Script::new("s");
    script.accepted("why?", None).routed(routing());
    script.replied(1, crate::fixture::unreadable("Hm.")).ended(ending(
        trellis_domain::run::Termination::Error,
        "",
        None,
    ));
    let ours = |quad: &Quad| [&quad.s, &quad.p, &quad.o].iter().any(|term| term.text().contains("trellis"));
    let quads: Vec<_> = project(&script.records).into_iter().filter(|quad| !ours(quad)).collect();
    let without_number: Vec<_> = quads.into_iter().filter(|quad| quad.p.text() != tg::STEP_NUMBER).collect();
    let session = only_session(&without_number);
    assert_eq!(session.steps.iter().map(number).collect::<Vec<_>>(), [0, 1, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_trace_has_what_the_records_had(records in any_run()) {
        let session = only_session(&project(&records));
        for record in &records {
            check_record(&session, record);
        }
    }

    #[test]
    fn inline_quads_over_both_wires_give_the_same_trace(records in any_run()) {
        let inline: Vec<Quad> = events(&records).into_iter().flat_map(|event| event.inline).collect();
        let expected = trace(&project(&records));
        for received in sent(&inline) {
            prop_assert_eq!(&trace(&received), &expected);
        }
    }
}
