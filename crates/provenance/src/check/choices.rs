//! No choice outside its set, and every node does what was chosen for it.

use super::Fault;
use crate::graph::{QuadIndex, Subject};
use crate::iri;
use crate::trace::{DecisionTrace, Word, decision, decisions};
use crate::vocabulary::{tg, trellis};
use trellis_domain::decision::option::NO_TOOL;
use trellis_domain::decision::{DecidedBy, DecisionKind, Enforcement};
use trellis_domain::fan_out::JoinCause;
use trellis_domain::run::Termination;

/// Which property of which class must say what a decision of which kind chose.
const CHOICES: &[(&str, &str, DecisionKind)] = &[
    (tg::class::PATTERN_DECISION, tg::PATTERN, DecisionKind::Pattern),
    (tg::class::PATTERN_DECISION, tg::TASK_TYPE, DecisionKind::TaskType),
    (tg::class::ANALYSIS, tg::ACTION, DecisionKind::Tool),
    (trellis::class::PARKED_ANSWER, trellis::ACT, DecisionKind::Approval),
    (trellis::class::PARKED_ANSWER, trellis::ACT, DecisionKind::ToolInput),
];

pub(super) fn faults(graph: &QuadIndex<'_>) -> Vec<Fault> {
    let mut faults: Vec<Fault> = graph.subjects().flat_map(unknown_words).collect();
    faults.extend(graph.of_class(trellis::class::DECISION).flat_map(|node| outside_the_set(&decision(node))));
    for (class, property, kind) in CHOICES {
        for node in graph.of_class(class) {
            faults.extend(of_kind(graph, node, *kind).filter_map(|decision| not_as_decided(node, property, &decision)));
        }
    }
    faults.extend(graph.subjects().filter(|node| chose_tool(*node)).flat_map(|step| tool_of_step(graph, step)));
    faults
}

/// Whether a node tells of a plan step's choice, be it in time or late.
fn chose_tool(node: Subject<'_>) -> bool {
    let is_late = || node.is(trellis::class::LATE_REPLY) && iri::number_of(node.iri, "step").is_some();
    node.is(tg::class::STEP_RESULT) || is_late()
}

/// A step uses the tool that was chosen for it, or none if that was the choice.
fn tool_of_step(graph: &QuadIndex<'_>, step: Subject<'_>) -> Vec<Fault> {
    let tool = step.text(trellis::TOOL);
    let choices: Vec<_> = of_kind(graph, step, DecisionKind::Tool).filter(|choice| !choice.chosen.is_empty()).collect();
    match (tool, choices.is_empty()) {
        (None, true) => Vec::new(),
        (Some(value), true) => vec![Fault::NotDecided { node: step.iri.to_owned(), value }],
        (tool, false) => {
            let value = tool.unwrap_or_else(|| NO_TOOL.to_owned());
            let others = choices.into_iter().filter(|choice| !choice.chosen.contains(&value));
            others.flat_map(|choice| not_followed(&choice, step)).collect()
        }
    }
}

/// The choices of a kind that belong to a node.
pub(super) fn of_kind<'g>(
    graph: &'g QuadIndex<'_>,
    node: Subject<'g>,
    kind: DecisionKind,
) -> impl Iterator<Item = DecisionTrace> + 'g {
    decisions(graph, node).into_iter().filter(move |found| is_of_kind(found, kind))
}

pub(super) fn not_followed(decision: &DecisionTrace, node: Subject<'_>) -> Vec<Fault> {
    let each = decision.chosen.iter().map(|chosen| Fault::NotFollowed {
        decision: decision.id.clone(),
        chosen: chosen.clone(),
        node: node.iri.to_owned(),
    });
    each.collect()
}

fn is_of_kind(decision: &DecisionTrace, kind: DecisionKind) -> bool {
    decision.kind == Some(Word::Known(kind))
}

fn unknown_words(node: Subject<'_>) -> Vec<Fault> {
    let unknown = |property: &str, known: &[&str]| -> Vec<Fault> {
        let words = node.texts(property).filter(|word| !known.contains(word));
        words
            .map(|word| Fault::UnknownWord {
                node: node.iri.to_owned(),
                property: property.to_owned(),
                word: word.to_owned(),
            })
            .collect()
    };
    [
        unknown(trellis::DECISION_KIND, DecisionKind::WORDS),
        unknown(trellis::DECIDED_BY, DecidedBy::WORDS),
        unknown(trellis::ENFORCEMENT, Enforcement::WORDS),
        unknown(trellis::JOIN_CAUSE, JoinCause::WORDS),
        unknown(trellis::STATUS, Termination::WORDS),
        unknown(tg::TERMINATION_REASON, Termination::WORDS),
    ]
    .concat()
}

/// Goals are written by the model: where none were offered, there is no set to be outside of.
fn outside_the_set(decision: &DecisionTrace) -> Vec<Fault> {
    if is_of_kind(decision, DecisionKind::Goals) && decision.options.is_empty() {
        return Vec::new();
    }
    let ruled_out = |chosen: &String| decision.excluded.iter().any(|option| option.name == *chosen);
    let outside = decision.chosen.iter().filter(|chosen| !decision.options.contains(chosen) || ruled_out(chosen));
    outside.map(|chosen| Fault::ChosenNotOffered { decision: decision.id.clone(), chosen: chosen.clone() }).collect()
}

/// A model that named a tool outside the set chose nothing: the node then tells what it named, and only
/// the router must stay inside the set all the same.
fn not_as_decided(node: Subject<'_>, property: &str, decision: &DecisionTrace) -> Option<Fault> {
    let value = node.text(property)?;
    let (node_iri, decision_iri) = (node.iri.to_owned(), decision.id.clone());
    if !decision.chosen.is_empty() && !decision.chosen.contains(&value) {
        return Some(Fault::NotChosen { node: node_iri, value, decision: decision_iri });
    }
    let must_be_offered = property == tg::PATTERN;
    (must_be_offered && !decision.options.contains(&value)).then_some(Fault::NotOffered {
        node: node_iri,
        value,
        decision: decision_iri,
    })
}
