//! Supervisors and subagents tell the same story: who was sent out, came back, and brought what.

use super::Fault;
use super::acts::disagrees;
use super::choices::{not_followed, of_kind};
use crate::graph::{QuadIndex, Subject};
use crate::iri;
use crate::vocabulary::{prov, tg, trellis};
use std::collections::{BTreeMap, BTreeSet};
use trellis_domain::decision::DecisionKind;

/// Subagents and findings by what they derive from.
type Derived<'g> = BTreeMap<&'g str, Vec<Subject<'g>>>;

pub(super) fn faults(graph: &QuadIndex<'_>) -> Vec<Fault> {
    let children = derived(graph, tg::class::AGENT_QUESTION);
    let findings = derived(graph, tg::class::FINDING);
    let mut faults = Vec::new();
    for decomposition in graph.of_class(tg::class::DECOMPOSITION) {
        let children = children.get(decomposition.iri).map(Vec::as_slice).unwrap_or_default();
        let findings = findings.get(decomposition.iri).map(Vec::as_slice).unwrap_or_default();
        faults.extend(counts(graph, decomposition, children, findings));
        faults.extend(children.iter().flat_map(|child| subagent(graph, decomposition, *child)));
        faults.extend(findings.iter().flat_map(|found| finding(graph, decomposition, *found)));
    }
    faults.extend(graph.of_class(tg::class::SUBAGENT_COMPLETION).flat_map(|node| completion(graph, node)));
    faults
}

fn derived<'g>(graph: &'g QuadIndex<'_>, class: &str) -> Derived<'g> {
    let mut derived: Derived<'g> = BTreeMap::new();
    for node in graph.of_class(class) {
        for parent in node.links(prov::WAS_DERIVED_FROM) {
            derived.entry(parent).or_default().push(node);
        }
    }
    derived
}

/// All subagents are there once the session has ended, and all findings if it ended by putting them together.
fn counts(
    graph: &QuadIndex<'_>,
    decomposition: Subject<'_>,
    children: &[Subject<'_>],
    findings: &[Subject<'_>],
) -> Vec<Fault> {
    let Some(session) = iri::session_of(decomposition.iri) else { return Vec::new() };
    let fan_out = decomposition.links(trellis::FAN_OUT).find_map(|iri| graph.subject(iri));
    let Some((fan_out, expected)) = fan_out.and_then(|node| Some((node, node.number(tg::EXPECTED_SIBLINGS)?))) else {
        return Vec::new();
    };
    let ended = |class: &str| graph.within(session).any(|node| node.is(class));
    let is_answered = ended(tg::class::SYNTHESIS);
    let is_over = is_answered || ended(tg::class::CONCLUSION);
    let join = fan_out.links(trellis::JOIN).find_map(|iri| graph.subject(iri));
    let joined = join.map(|join| join.links(trellis::JOINED).count());
    [
        is_over.then_some(("subagents", children.len())),
        is_answered.then_some(("findings", findings.len())),
        joined.or(is_answered.then_some(0)).map(|joined| ("joined findings", joined)),
    ]
    .into_iter()
    .flatten()
    .map(|(what, found)| (what, found as u64))
    .filter(|(_, found)| *found != expected)
    .map(|(what, found)| Fault::Count { node: fan_out.iri.to_owned(), what: what.to_owned(), expected, found })
    .collect()
}

/// A subagent's session is the one that the decomposition began, with the pattern and the tools chosen for it.
fn subagent(graph: &QuadIndex<'_>, decomposition: Subject<'_>, child: Subject<'_>) -> Vec<Fault> {
    let fan_out = decomposition.links(trellis::FAN_OUT).find_map(|iri| graph.subject(iri));
    let correlation =
        fan_out.and_then(|fan_out| disagrees(child, tg::PARENT_CORRELATION_ID, fan_out, tg::CORRELATION_ID));
    let goal = disagrees(child, tg::QUERY, decomposition, tg::SUBAGENT_GOAL);
    let numbered = fan_out.and_then(|fan_out| own_goal(graph, fan_out, child));
    let numbered = numbered.and_then(|numbered| disagrees(child, tg::QUERY, numbered, trellis::GOAL));
    let parent = child.link(tg::PARENT_SESSION_ID);
    let stranger = parent.filter(|parent| iri::session_of(parent) != iri::session_of(decomposition.iri));
    let stranger = stranger.map(|value| Fault::Disagreement {
        node: child.iri.to_owned(),
        property: tg::PARENT_SESSION_ID.to_owned(),
        value,
        other: decomposition.iri.to_owned(),
    });
    let mut faults: Vec<_> = [correlation, goal, numbered, stranger].into_iter().flatten().collect();
    faults.extend(pattern(graph, decomposition, child));
    faults.extend(groups(graph, decomposition, child));
    faults
}

/// The goal of the subagent's number.
fn own_goal<'g>(graph: &'g QuadIndex<'_>, fan_out: Subject<'_>, child: Subject<'_>) -> Option<Subject<'g>> {
    let index = child.number(trellis::SIBLING_INDEX)?;
    let mut goals = fan_out.links(tg::SUBAGENT_GOALS).filter_map(|goal| graph.subject(goal));
    goals.find(|goal| goal.number(trellis::SIBLING_INDEX) == Some(index))
}

fn pattern(graph: &QuadIndex<'_>, decomposition: Subject<'_>, child: Subject<'_>) -> Vec<Fault> {
    let Some(routing) = graph.subject(&format!("{}/pattern-decision", child.iri)) else { return Vec::new() };
    let Some(pattern) = routing.text(tg::PATTERN) else { return Vec::new() };
    let choices = of_kind(graph, decomposition, DecisionKind::SubagentPattern).filter(|choice| concerns(choice, child));
    let others = choices.filter(|choice| !choice.chosen.is_empty() && !choice.chosen.contains(&pattern));
    others.flat_map(|choice| not_followed(&choice, routing)).collect()
}

/// A subagent that states no group, or all of them, leaves nothing to compare.
fn groups(graph: &QuadIndex<'_>, decomposition: Subject<'_>, child: Subject<'_>) -> Vec<Fault> {
    let stated: BTreeSet<String> = child.texts(trellis::TOOL_GROUP).map(str::to_owned).collect();
    if stated.is_empty() || stated.contains("*") {
        return Vec::new();
    }
    let choices = of_kind(graph, decomposition, DecisionKind::SubagentGroup).filter(|choice| concerns(choice, child));
    let others = choices.filter(|choice| !choice.chosen.is_empty() && !choice.chosen.iter().eq(&stated));
    others.flat_map(|choice| not_followed(&choice, child)).collect()
}

/// Whether a choice was made for this subagent: both name the same goal by its number.
fn concerns(choice: &crate::trace::DecisionTrace, child: Subject<'_>) -> bool {
    let goal = choice.goal.as_deref().and_then(|goal| goal.rsplit('/').next()?.parse::<u64>().ok());
    goal.is_some() && goal == child.number(trellis::SIBLING_INDEX)
}

/// A finding has one of the goals, and is what the subagent of its number ended with.
fn finding(graph: &QuadIndex<'_>, decomposition: Subject<'_>, finding: Subject<'_>) -> Vec<Fault> {
    let goal = disagrees(finding, tg::SUBAGENT_GOAL, decomposition, tg::SUBAGENT_GOAL);
    let ends = finding.links(prov::WAS_DERIVED_FROM).filter_map(|parent| graph.subject(parent));
    let end = ends.into_iter().find(|end| end.is(tg::class::CONCLUSION) || end.is(tg::class::SYNTHESIS));
    let status = end.and_then(|end| disagrees(finding, trellis::STATUS, end, tg::TERMINATION_REASON));
    let subagent = end.and_then(|end| graph.subject(&format!("{}{}", iri::AGENT, iri::session_of(end.iri)?)));
    let number = subagent.and_then(|subagent| disagrees(finding, tg::STEP_NUMBER, subagent, trellis::SIBLING_INDEX));
    let fan_out = decomposition.links(trellis::FAN_OUT).find_map(|iri| graph.subject(iri));
    let correlation = fan_out.and_then(|fan_out| disagrees(finding, tg::CORRELATION_ID, fan_out, tg::CORRELATION_ID));
    [goal, status, number, correlation].into_iter().flatten().collect()
}

/// What a subagent reported is what it found, to whom it belongs.
fn completion(graph: &QuadIndex<'_>, completion: Subject<'_>) -> Vec<Fault> {
    let Some(session) = iri::session_of(completion.iri) else { return Vec::new() };
    let Some(question) = graph.subject(&format!("{}{session}", iri::AGENT)) else { return Vec::new() };
    let correlation = disagrees(completion, tg::CORRELATION_ID, question, tg::PARENT_CORRELATION_ID);
    let goal = disagrees(completion, tg::SUBAGENT_GOAL, question, tg::QUERY);
    let end = graph.within(session).find(|node| node.is(tg::class::CONCLUSION) || node.is(tg::class::SYNTHESIS));
    let result = end.and_then(|end| disagrees(completion, tg::RESULT, end, tg::DOCUMENT));
    [correlation, goal, result].into_iter().flatten().collect()
}
