//! Every kind of entity on its whole way: records, quads, a message in either dialect, and back as a typed trace.
//! What arrives is held against the records, not against what was sent.

#![allow(clippy::wildcard_enum_match_arm, reason = "each reader looks for one kind of step")]

use super::asked::Question;
use crate::plan::PlanDecision;
use crate::plan::PlanTurn;
use crate::projector::tests::fixture::{cancelled_plan, cancelled_supervisor, plan_run, react_run, supervisor_run};
use crate::projector::{events, project};
use crate::react::IterationNames;
use crate::supervisor::{Goals, TeamNames};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use trellis_domain::decision::Decision;
use trellis_domain::document::Document;
use trellis_domain::message::{AgentResponse, message_type};
use trellis_domain::rdf::Quad;
use trellis_domain::record::{Accepted, Body, Ended, Header, Name, Reading, Record, Replied};
use trellis_domain::{broker, gateway};
use trellis_provenance::iri;
use trellis_provenance::trace::{self, Completion, DocumentLink, SessionTrace, Step, Synthesis, Thought, Trace};
use trellis_provenance::vocabulary::{GRAPH_RETRIEVAL, PARSE_ERROR};

fn runs() -> [Vec<Record>; 5] {
    [react_run(), plan_run(), cancelled_plan(), supervisor_run(), cancelled_supervisor()]
}

/// The explanations of a run as a caller gets them, written and read again in either dialect.
fn told(records: &[Record]) -> [Vec<Quad>; 2] {
    let message = |event: trellis_provenance::Event| AgentResponse {
        message_type: message_type::EXPLAIN.to_owned(),
        explain_id: Some(event.explain_id.clone()),
        explain_graph: Some(GRAPH_RETRIEVAL.to_owned()),
        explain_triples: event.clone().into_inline(),
        ..AgentResponse::default()
    };
    let messages: Vec<_> = events(records).into_iter().map(message).collect();
    let wide = |sent: &AgentResponse| serde_json::to_string(&broker::response(sent)).unwrap();
    let compact = |sent: &AgentResponse| gateway::response(sent).to_string();
    let write: [&dyn Fn(&AgentResponse) -> String; 2] = [&compact, &wide];
    write.map(|write| {
        let read = |sent: &AgentResponse| {
            let read: AgentResponse = serde_json::from_str(&write(sent)).unwrap();
            assert_eq!(read, *sent, "nothing is lost on the way");
            read.explain_triples
        };
        messages.iter().flat_map(read).collect()
    })
}

/// The whole graph of a run as a queue of triples carries it.
fn stored(records: &[Record]) -> [Vec<Quad>; 2] {
    let quads = project(records);
    let wide = quads.iter().map(|quad| serde_json::to_string(&broker::triple(quad)).unwrap());
    let wide = wide.map(|text| serde_json::from_str(&text).unwrap());
    [wide.collect(), serde_json::from_str(&serde_json::to_string(&quads).unwrap()).unwrap()]
}

/// What a reader says of an entity must be what the records say of it, whichever way it came.
#[track_caller]
fn check(said: fn(&[Record]) -> Vec<String>, read: fn(&SessionTrace) -> Vec<String>) {
    let mut found = 0;
    for records in runs() {
        let mut expected = said(&records);
        expected.sort();
        found += expected.len();
        for quads in told(&records).into_iter().chain(stored(&records)) {
            let Trace { sessions } = trace::trace(&quads);
            let mut arrived: Vec<_> = sessions.iter().flat_map(read).collect();
            arrived.sort();
            assert_eq!(arrived, expected);
        }
    }
    assert!(found > 0, "no run has one");
}

macro_rules! round_trips {
    ($($name:ident: $said:expr, $read:expr;)*) => {
        $(
            #[test]
            fn $name() {
                check($said, $read);
            }
        )*
    };
}

round_trips! {
    a_question_arrives: said_questions, |session| {
        vec![format!("{} {} {:?}", session.session, session.question, session.conversation)]
    };
    a_pattern_decision_arrives: said_routings, |session| {
        each(session, |step| match step {
            Step::Routing(step) => Some(format!("{} {:?} {:?}", session.session, step.pattern, step.task_type)),
            _ => None,
        })
    };
    a_decision_arrives_with_its_set: said_decisions, read_decisions;
    an_analysis_arrives: said_analyses, |session| {
        each(session, |step| match step {
            Step::Analysis(step) => Some(format!("{} {} {} {}", session.session, step.n, step.tool, step.arguments)),
            _ => None,
        })
    };
    a_thought_arrives: said_thoughts, read_thoughts;
    an_observation_arrives: said_observations, |session| {
        each(session, |step| match step {
            Step::Observation(step) => {
                Some(format!("{} {} {:?} {:?}", session.session, step.n, step.error, hash(step.document.as_ref())))
            }
            _ => None,
        })
    };
    a_conclusion_arrives: |records| said_ends(records, false), |session| {
        each(session, |step| match step {
            Step::Conclusion(step) => {
                let (document, reason) = (hash(step.document.as_ref()), word(&step.reason));
                Some(format!("{} {reason} {:?} {document:?} {:?} 0", session.session, step.error, step.criteria))
            }
            _ => None,
        })
    };
    a_synthesis_arrives: |records| said_ends(records, true), |session| {
        each(session, |step| match step {
            Step::Synthesis(step) => {
                let (document, reason) = (hash(step.document.as_ref()), word(&step.reason));
                let Synthesis { error, criteria, missing, .. } = step;
                let missing = missing.len();
                Some(format!("{} {reason} {error:?} {document:?} {criteria:?} {missing}", session.session))
            }
            _ => None,
        })
    };
    a_plan_arrives: said_plans, |session| {
        each(session, |step| match step {
            Step::Plan(step) => {
                let goals: Vec<_> = step.steps.iter().map(|step| &step.goal).collect();
                Some(format!("{} {} {goals:?}", session.session, step.number))
            }
            _ => None,
        })
    };
    a_plan_review_arrives: said_plan_reviews, |session| {
        each(session, |step| match step {
            Step::PlanReview(step) => {
                Some(format!("{} {} {:?}", session.session, step.number, step.decisions[0].chosen))
            }
            _ => None,
        })
    };
    a_step_result_arrives: said_step_results, |session| {
        each(session, |step| match step {
            Step::StepResult(step) if !step.unfinished => {
                let document = hash(step.document.as_ref());
                Some(format!("{} {} {:?} {document:?}", session.session, step.number, step.error))
            }
            _ => None,
        })
    };
    an_unfinished_step_arrives: said_unfinished, |session| {
        each(session, |step| match step {
            Step::StepResult(step) if step.unfinished => Some(format!("{} {}", session.session, step.number)),
            _ => None,
        })
    };
    a_decomposition_arrives: said_decompositions, |session| {
        each(session, |step| match step {
            Step::Decomposition(step) => {
                let goals: Vec<_> = step.goals.iter().map(|goal| &goal.goal).collect();
                Some(format!("{} {} {goals:?}", session.session, step.round))
            }
            _ => None,
        })
    };
    a_fan_out_arrives: said_fan_outs, |session| {
        each(session, |step| match step {
            Step::Decomposition(step) => {
                let fan_out = step.fan_out.as_ref()?;
                let documents: Vec<_> = fan_out.goals.iter().map(|goal| goal.sha256.clone()).collect();
                Some(format!("{:?} {:?} {:?} {documents:?}", fan_out.correlation, fan_out.expected, fan_out.deadline))
            }
            _ => None,
        })
    };
    a_completion_arrives: said_completions, |session| {
        let line = |end: &Completion| {
            let Completion { correlation, goal, status, error, .. } = end;
            format!("{} {correlation:?} {goal:?} {status:?} {error:?}", session.session)
        };
        session.completion.iter().map(line).collect()
    };
    a_finding_arrives: said_findings, |session| {
        each(session, |step| match step {
            Step::Finding(step) => {
                let document = hash(step.document.as_ref());
                Some(format!("{} {} {} {document:?} {:?}", session.session, step.index, step.goal, step.error))
            }
            _ => None,
        })
    };
    a_join_arrives: said_joins, |session| {
        each(session, |step| match step {
            Step::Decomposition(step) => {
                let fan_out = step.fan_out.as_ref()?;
                let join = fan_out.join.as_ref()?;
                Some(format!("{:?} {} {:?}", fan_out.correlation, word(&join.cause), join.findings))
            }
            _ => None,
        })
    };
    a_review_arrives: said_reviews, |session| {
        each(session, |step| match step {
            Step::Review(step) => {
                let counts = |decision: &&trace::DecisionTrace| decision.rationale.is_some();
                let chosen = step.decisions.iter().find(counts).map(|decision| &decision.chosen);
                Some(format!("{} {} {chosen:?}", session.session, step.round))
            }
            _ => None,
        })
    };
    a_late_reply_arrives: said_late_replies, |session| {
        each(session, |step| match step {
            Step::LateReply(step) => Some(format!("{} {} {}", session.session, step.name, step.mark.late)),
            _ => None,
        })
    };
    a_late_result_arrives: said_late_results, |session| {
        each(session, |step| match step {
            Step::LateResult(step) => {
                Some(format!("{:?} {:?} {}", step.of, hash(step.document.as_ref()), step.mark.late))
            }
            _ => None,
        })
    };
    an_unused_reply_arrives: said_unused, |session| {
        each(session, |step| match step {
            Step::UnusedReply(step) => Some(format!("{} {}", session.session, step.name)),
            _ => None,
        })
    };
}

#[test]
fn no_kind_of_step_is_left_out() {
    let kind = |step: &Step| {
        let Ok(Value::Object(members)) = serde_json::to_value(step) else { panic!("{step:?}") };
        members["step"].as_str().map(str::to_owned)
    };
    let traces = runs().map(|records| trace::trace(&project(&records)));
    let steps = traces.iter().flat_map(|trace| &trace.sessions).flat_map(|session| &session.steps);
    let kinds: BTreeSet<String> = steps.filter_map(kind).collect();
    let expected = [
        "analysis",
        "conclusion",
        "decomposition",
        "finding",
        "late-reply",
        "late-result",
        "observation",
        "plan",
        "plan-review",
        "review",
        "routing",
        "step-result",
        "synthesis",
        "unused-reply",
    ];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

fn each(session: &SessionTrace, line: impl Fn(&Step) -> Option<String>) -> Vec<String> {
    session.steps.iter().filter_map(line).collect()
}

/// A word as it is written.
fn word(word: &impl serde::Serialize) -> String {
    serde_json::to_value(word).unwrap().as_str().unwrap().to_owned()
}

fn hash(document: Option<&DocumentLink>) -> Option<String> {
    document.and_then(|document| document.sha256.clone())
}

fn hash_of(document: Option<&Document>) -> Option<String> {
    document.filter(|document| document.stored).map(|document| document.sha256.to_string())
}

fn sorted(words: impl IntoIterator<Item = String>) -> Vec<String> {
    words.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

fn all(records: &[Record], line: impl Fn(&Header, &Body) -> Option<String>) -> Vec<String> {
    records.iter().filter_map(|record| line(&record.header, &record.body)).collect()
}

/// Replies that came in time, under the name of what was asked.
fn replies(records: &[Record], line: impl Fn(&Header, &Name, &Replied) -> Option<String>) -> Vec<String> {
    all(records, |header, body| line(header, &header.name.first_asking(), body.as_replied().filter(|_| !header.late)?))
}

fn accepted_of<'r>(records: &'r [Record], header: &Header) -> &'r Accepted {
    let own = records.iter().filter(|record| record.header.session == header.session);
    own.into_iter().find_map(|record| record.body.as_accepted()).unwrap()
}

fn said_questions(records: &[Record]) -> Vec<String> {
    all(records, |header, body| {
        let accepted = body.as_accepted()?;
        let conversation = accepted.conversation.as_ref().map(ToString::to_string);
        Some(format!("{} {} {conversation:?}", header.session, accepted.question.text()))
    })
}

fn said_routings(records: &[Record]) -> Vec<String> {
    all(records, |header, body| {
        let routed = body.as_routed()?;
        Some(format!("{} {:?} {:?}", header.session, Some(&*routed.pattern), Some(&*routed.task_type)))
    })
}

/// A choice among task types and patterns, in words.
fn choice_line(session: &str, kind: &str, options: &[String], chosen: &[String], version: u64, by: &str) -> String {
    format!("{session} {kind} {options:?} {chosen:?} {version} {by}")
}

fn said_decisions(records: &[Record]) -> Vec<String> {
    let routed = records.iter().filter_map(|record| Some((&record.header, record.body.as_routed()?)));
    let line = |header: &Header, decision: &Decision| {
        let options = sorted(decision.options.iter().cloned());
        let (kind, by) = (decision.kind.to_string(), decision.decided_by.to_string());
        choice_line(header.session.as_str(), &kind, &options, &decision.chosen, decision.config_version, &by)
    };
    routed.flat_map(|(header, routed)| routed.decisions.iter().map(move |decision| line(header, decision))).collect()
}

fn read_decisions(session: &SessionTrace) -> Vec<String> {
    let routings = session.steps.iter().filter_map(|step| match step {
        Step::Routing(step) => Some(step),
        _ => None,
    });
    let decisions = routings.flat_map(|routing| &routing.decisions);
    let line = |decision: &trace::DecisionTrace| {
        let (kind, by, version) = (word(&decision.kind), word(&decision.decided_by), decision.config_version.unwrap());
        choice_line(&session.session, &kind, &decision.options, &decision.chosen, version, &by)
    };
    decisions.map(line).collect()
}

fn said_analyses(records: &[Record]) -> Vec<String> {
    replies(records, |header, name, replied| {
        let n = name.as_iteration()?;
        let (tool, arguments) = match &replied.reading {
            Reading::Acted { tool, arguments, .. } => (tool.as_str(), arguments.clone()),
            Reading::Unusable { .. } => (PARSE_ERROR, Map::new()),
            _ => return None,
        };
        Some(format!("{} {n} {tool} {}", header.session, Value::Object(arguments)))
    })
}

fn said_thoughts(records: &[Record]) -> Vec<String> {
    all(records, |header, body| Some(format!("{} {}", header.session, hash_of(body.as_replied()?.thought.as_ref())?)))
}

fn read_thoughts(session: &SessionTrace) -> Vec<String> {
    let of = |step: &Step| -> Vec<Thought> {
        match step {
            Step::Analysis(step) => step.thought.iter().cloned().collect(),
            Step::LateReply(step) => step.thought.iter().cloned().collect(),
            Step::Conclusion(step) => step.thought.iter().cloned().collect(),
            Step::Plan(step) => step.thoughts.clone(),
            Step::PlanReview(step) => step.thoughts.clone(),
            Step::StepResult(step) => step.thoughts.clone(),
            Step::Decomposition(step) => step.thoughts.clone(),
            Step::Review(step) => step.thoughts.clone(),
            Step::UnusedReply(step) => step.thoughts.clone(),
            Step::Synthesis(step) => step.thoughts.clone(),
            Step::PatternAct(step) => step.thoughts.clone(),
            Step::Routing(_) | Step::Observation(_) | Step::Finding(_) | Step::LateResult(_) => Vec::new(),
        }
    };
    let thoughts = session.steps.iter().flat_map(of);
    thoughts.filter_map(|thought| Some(format!("{} {}", session.session, hash(thought.document.as_ref())?))).collect()
}

fn said_observations(records: &[Record]) -> Vec<String> {
    all(records, |header, body| {
        let (observed, n) = (body.as_observed()?, super::asked::iteration(header)?);
        Some(format!("{} {n} {:?} {:?}", header.session, observed.error, hash_of(observed.result.as_ref())))
    })
}

fn said_ends(records: &[Record], synthesis: bool) -> Vec<String> {
    all(records, |header, body| {
        let Ended { reason, answer, error, criteria, missing, .. } = body.as_ended()?;
        let criteria = Some(criteria).filter(|words| !words.is_empty());
        let (document, missing) = (hash_of(answer.as_ref()), missing.len());
        let line = format!("{} {reason} {error:?} {document:?} {criteria:?} {missing}", header.session);
        (reason.is_synthesis() == synthesis).then_some(line)
    })
}

fn said_plans(records: &[Record]) -> Vec<String> {
    replies(records, |header, name, replied| {
        let Some(PlanTurn::Plan(number)) = PlanTurn::of(name) else { return None };
        let steps = replied.reading.decision::<PlanDecision>()?.steps?;
        let goals: Vec<_> = steps.iter().map(|step| &step.goal).collect();
        Some(format!("{} {number} {goals:?}", header.session))
    })
}

fn said_plan_reviews(records: &[Record]) -> Vec<String> {
    replies(records, |header, name, replied| {
        let Some(PlanTurn::Plan(number)) = PlanTurn::of(name) else { return None };
        let kept = replied.reading.decision::<PlanDecision>()?.steps.is_none();
        kept.then(|| format!("{} {number} {:?}", header.session, replied.decision[0].chosen))
    })
}

fn said_step_results(records: &[Record]) -> Vec<String> {
    let mut lines = all(records, |header, body| {
        let i = super::asked::step_result(header).filter(|_| !header.late)?;
        let observed = body.as_observed()?;
        Some(format!("{} {i} {:?} {:?}", header.session, observed.error, hash_of(observed.result.as_ref())))
    });
    lines.extend(replies(records, |header, name, replied| {
        let Some(PlanTurn::Step(i)) = PlanTurn::of(name) else { return None };
        let answer = replied.reading.text()?;
        let document = Document::stored(answer.text());
        Some(format!("{} {i} None {:?}", header.session, hash_of(document.as_ref())))
    }));
    lines
}

/// Steps that were begun, or that the answer misses, and that have no result when the session ends.
fn said_unfinished(records: &[Record]) -> Vec<String> {
    let number = |line: &String| line.split(' ').take(2).map(str::to_owned).collect::<Vec<_>>().join(" ");
    let done: BTreeSet<_> = said_step_results(records).iter().map(number).collect();
    let begun = replies(records, |header, name, _| match PlanTurn::of(name) {
        Some(PlanTurn::Step(i)) => Some(format!("{} {i}", header.session)),
        _ => None,
    });
    let plans = said_plans(records);
    let of_plan = |header: &Header| plans.iter().any(|line| line.starts_with(&format!("{} ", header.session)));
    let missing = records.iter().filter(|record| of_plan(&record.header)).filter_map(|record| {
        let ended = record.body.as_ended()?;
        Some(ended.missing.iter().map(|i| format!("{} {i}", record.header.session)))
    });
    sorted(begun.into_iter().chain(missing.flatten()).filter(|step| !done.contains(step)))
}

fn said_decompositions(records: &[Record]) -> Vec<String> {
    all(records, |header, body| {
        let fan_out = body.as_fanned_out()?;
        let goals: Vec<_> = fan_out.goals.iter().map(|goal| &goal.goal).collect();
        Some(format!("{} {} {goals:?}", header.session, fan_out.round))
    })
}

fn said_fan_outs(records: &[Record]) -> Vec<String> {
    all(records, |_, body| {
        let fan_out = body.as_fanned_out()?;
        let goals = fan_out.goals.iter().map(|goal| hash_of(Document::stored(goal.goal.as_str()).as_ref()));
        let (goals, deadline): (Vec<_>, _) = (goals.collect(), fan_out.deadline.to_string());
        Some(format!("{:?} {:?} {:?} {goals:?}", Some(&fan_out.correlation), Some(goals.len()), Some(deadline)))
    })
}

fn said_completions(records: &[Record]) -> Vec<String> {
    all(records, |header, body| {
        let (ended, accepted) = (body.as_ended()?, accepted_of(records, header));
        let parent = accepted.parent.as_ref()?;
        let status = (!ended.reason.is_answer()).then_some("error");
        let (correlation, goal) = (Some(&parent.correlation), Some(accepted.question.text()));
        Some(format!("{} {correlation:?} {goal:?} {status:?} {:?}", header.session, ended.error))
    })
}

fn said_findings(records: &[Record]) -> Vec<String> {
    let joins = records.iter().filter_map(|record| Some((&record.header, record.body.as_joined()?)));
    let lines = joins.flat_map(|(header, joined)| {
        joined.members.iter().map(|member| {
            let document = hash_of(member.answer.as_ref());
            format!("{} {} {} {document:?} {:?}", header.session, member.index, member.goal, member.error)
        })
    });
    lines.collect()
}

fn said_joins(records: &[Record]) -> Vec<String> {
    all(records, |header, body| {
        let joined = body.as_joined()?;
        let findings: Vec<_> =
            joined.members.iter().map(|member| iri::finding(&header.session, member.index)).collect();
        Some(format!("{:?} {} {findings:?}", Some(&joined.correlation), joined.cause))
    })
}

fn said_reviews(records: &[Record]) -> Vec<String> {
    replies(records, |header, name, replied| {
        let Some(Question::Review(round)) = Question::of(name) else { return None };
        replied.reading.decision::<Goals>()?;
        Some(format!("{} {round} {:?}", header.session, Some(&replied.decision[0].chosen)))
    })
}

fn said_late_replies(records: &[Record]) -> Vec<String> {
    all(records, |header, body| {
        body.as_replied().filter(|_| header.late)?;
        Some(format!("{} {} true", header.session, header.name))
    })
}

fn said_late_results(records: &[Record]) -> Vec<String> {
    all(records, |header, body| {
        let observed = body.as_observed().filter(|_| header.late)?;
        let of = iri::step(&header.session, super::asked::step_result(header)?);
        Some(format!("{:?} {:?} true", Some(of), hash_of(observed.result.as_ref())))
    })
}

/// Goals that no fan-out was made of, in a session that has ended.
fn said_unused(records: &[Record]) -> Vec<String> {
    let fanned_out = records.iter().any(|record| record.body.as_fanned_out().is_some());
    replies(records, |header, name, replied| {
        let goals = *name == Name::decompose() && replied.reading.decision::<Goals>().is_some();
        (goals && !fanned_out).then(|| format!("{} {name}", header.session))
    })
}
