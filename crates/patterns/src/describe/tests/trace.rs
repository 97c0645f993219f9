use crate::projector::tests::fixture::{Script, cancelled_plan, ending, plan_run, react_run, routing, supervisor_run};
use crate::projector::tests::random_run::any_run;
use crate::projector::{events, project};
use expect_test::{expect, expect_file};
use proptest::prelude::*;
use trellis_domain::broker;
use trellis_domain::decision::DecisionKind;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::record::{Body, FailedAttempt, Record, ReplyFormat};
use trellis_provenance::iri;
use trellis_provenance::trace::*;
use trellis_provenance::vocabulary::{tg, trellis};

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
          "criteria": null,
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
            "late": false,
            "seq": 10,
            "at": "2026-04-13T15:16:44.500000Z"
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
          "rejected": null,
          "goal": null,
          "cost": {
            "model": null,
            "model_ms": null,
            "in_token": null,
            "out_token": null
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&routing.decisions[0]).unwrap());
}

#[test]
fn steps_are_ordered_by_number_not_by_name() {
    let mut script = Script::new("s");
    script.accepted("why?", None);
    for n in 1..=11 {
        script.replied(n, crate::projector::tests::fixture::unreadable(""));
    }
    let numbers: Vec<_> = only_session(&project(&script.records)).steps.iter().map(number).collect();
    assert_eq!(numbers, (1..=11).collect::<Vec<_>>());
}

fn number(step: &Step) -> u32 {
    match step {
        Step::Analysis(analysis) => analysis.n,
        Step::Observation(observation) => observation.n,
        Step::LateReply(reply) => reply.n,
        Step::Routing(_)
        | Step::Conclusion(_)
        | Step::Plan(_)
        | Step::PlanReview(_)
        | Step::StepResult(_)
        | Step::Decomposition(_)
        | Step::Finding(_)
        | Step::Review(_)
        | Step::UnusedReply(_)
        | Step::LateResult(_)
        | Step::PatternAct(_)
        | Step::Synthesis(_) => 0,
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
fn a_session_that_began_on_the_second_comes_before_one_that_began_after_it() {
    let begun = |id: &str, ms: u64| {
        let mut script = Script::new(id);
        script.accepted(id, None).header(|header| header.time = header.time.plus_ms(ms));
        project(&script.records)
    };
    let sessions = trace(&[begun("b", 750), begun("a", 1000)].concat()).sessions;
    assert!(sessions.iter().any(|session| session.started.as_deref().is_some_and(|time| !time.contains('.'))));
    assert_eq!(sessions.iter().map(|session| session.session.as_str()).collect::<Vec<_>>(), ["b", "a"]);
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
    let wide = quads.iter().map(|quad| serde_json::to_string(&broker::triple(quad)).unwrap());
    let broker = wide.map(|text| serde_json::from_str(&text).unwrap()).collect();
    let gateway = serde_json::from_str(&serde_json::to_string(quads).unwrap()).unwrap();
    [broker, gateway]
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
    script.replied(1, crate::projector::tests::fixture::unreadable("Hm.")).ended(ending(
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

/// Every kind of step, one JSON object per line, session by session.
fn lines(trace: &Trace) -> String {
    let mut lines = Vec::new();
    for session in &trace.sessions {
        lines.push(serde_json::to_string(&SessionTrace { steps: Vec::new(), ..session.clone() }).unwrap());
        lines.extend(session.steps.iter().map(|step| format!("  {}", serde_json::to_string(step).unwrap())));
    }
    lines.join("\n") + "\n"
}

#[test]
fn a_plan_as_a_program_reads_it() {
    expect_file!["../../../snapshots/plan-trace.jsonl"].assert_eq(&lines(&trace(&project(&plan_run()))));
}

#[test]
fn a_cancelled_plan_as_a_program_reads_it() {
    expect_file!["../../../snapshots/cancelled-plan-trace.jsonl"]
        .assert_eq(&lines(&trace(&project(&cancelled_plan()))));
}

#[test]
fn a_supervisor_as_a_program_reads_it() {
    expect_file!["../../../snapshots/supervisor-trace.jsonl"].assert_eq(&lines(&trace(&project(&supervisor_run()))));
}

#[test]
fn steps_are_read_plan_by_plan_and_round_by_round() {
    let order = |records: &[Record], session: &str| {
        let trace = trace(&project(records));
        let found = trace.sessions.into_iter().find(|found| found.session == session).unwrap();
        found.steps.iter().map(|step| iri::path_of(step.id()).unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    expect!["pattern-decision plan step/0 step/1 plan/1 step/3 step/4 step/5 plan/2 synthesis"]
        .assert_eq(&order(&plan_run(), "planner"));
    expect!["pattern-decision plan step/0 step/0/result step/1 step/1/retry step/2 final"]
        .assert_eq(&order(&cancelled_plan(), "planner"));
    expect![
        "pattern-decision decompose finding/0 finding/1 finding/2 review/1 decompose/2 finding/3 finding/4 synthesis"
    ]
    .assert_eq(&order(&supervisor_run(), "boss"));
}

#[test]
fn every_kind_of_node_survives_both_wires() {
    for records in [react_run(), plan_run(), cancelled_plan(), supervisor_run()] {
        let inline: Vec<Quad> = events(&records).into_iter().flat_map(|event| event.clone().into_inline()).collect();
        for received in sent(&inline) {
            assert_eq!(trace(&received), trace(&project(&records)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn inline_quads_over_both_wires_give_the_same_trace(records in any_run()) {
        let inline: Vec<Quad> = events(&records).into_iter().flat_map(|event| event.clone().into_inline()).collect();
        let expected = trace(&project(&records));
        for received in sent(&inline) {
            prop_assert_eq!(&trace(&received), &expected);
        }
    }
}

/// How a model said what it wants, what was put right in it, and which calls brought nothing before it, stands with the step and with the end.
#[test]
fn the_format_of_a_reply_and_what_was_put_right_are_told() {
    let mut records = react_run();
    for record in &mut records {
        if let Body::Replied(replied) = &mut record.body {
            replied.prompt.format = Some(ReplyFormat::NativeTools);
            replied.repairs = vec!["2 calls were made at once; only the first counts".to_owned()];
            let reason = "no schemas".to_owned();
            replied.failures = vec![FailedAttempt { reason, model: Some("a/b".to_owned()), ..Default::default() }];
        }
    }
    let session = only_session(&project(&records));
    let told: Vec<_> = session
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Analysis(step) => Some((&step.format, &step.repairs, &step.cost)),
            Step::Conclusion(end) => Some((&end.format, &end.repairs, &end.cost)),
            Step::Routing(_)
            | Step::Observation(_)
            | Step::Plan(_)
            | Step::PlanReview(_)
            | Step::StepResult(_)
            | Step::Decomposition(_)
            | Step::Finding(_)
            | Step::Review(_)
            | Step::UnusedReply(_)
            | Step::LateReply(_)
            | Step::LateResult(_)
            | Step::PatternAct(_)
            | Step::Synthesis(_) => None,
        })
        .collect();
    assert_eq!(told.len(), 4, "three steps and the end");
    for (format, repairs, cost) in told {
        assert_eq!(format, &Some(Word::Known(ReplyFormat::NativeTools)));
        assert_eq!(repairs.len(), 1);
        assert_eq!(cost.failures, ["a/b: no schemas"]);
    }
}
