//! The rehearsal as a planner: which steps, how each is carried out, and what happens when one fails.

use super::company::company_in;
use super::given::Given;
use super::inquiry::{ARCHIVE, FILINGS, Inquiry, NEWS, known};
use super::line;
use super::quote::{labelled, points};
use super::scenario::{DIMENSIONS, Dimension, IN_GENERAL, IN_NOTES, Scenario, in_short};
use super::synthesis::relevant;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const DIRECTLY: &str = "Answer the question directly";
const TOGETHER: &str = "Put together what the earlier steps found";
/// How much of one earlier result goes into a step that only thinks.
const POINTS: usize = 3;

/// A step before it is held against what is offered.
struct Draft {
    goal: String,
    inquiry: Option<&'static Inquiry>,
    /// Places in the same list.
    after: Vec<usize>,
    /// Numbers of steps that are finished.
    builds_on: Vec<u64>,
}

impl Draft {
    fn asking(inquiry: &'static Inquiry, goal: String) -> Self {
        Self { goal, inquiry: Some(inquiry), after: Vec::new(), builds_on: Vec::new() }
    }

    fn thinking(goal: &str, after: Vec<usize>) -> Self {
        Self { goal: goal.to_owned(), inquiry: None, after, builds_on: Vec::new() }
    }
}

/// The reply to `plan-create`.
pub(super) fn create(given: Given<'_>) -> Value {
    let question = given.question();
    let drafts = match Scenario::of(question) {
        Scenario::Trace { company } => trace(&company),
        Scenario::PartnerRisk { company } => of_goals(in_dimensions(&DIMENSIONS, &company)),
        Scenario::Weighing { company } => of_goals(in_dimensions(in_short(), &company)),
        Scenario::Comparison { companies } => {
            of_goals(companies.iter().flat_map(|company| in_dimensions(in_short(), company)))
        }
        Scenario::Dimension { .. } | Scenario::Register { .. } | Scenario::Source { .. } => {
            of_goals([question.to_owned()])
        }
        Scenario::Other => {
            let mut drafts = of_goals([IN_NOTES.of(question), IN_GENERAL.of(question)]);
            drafts.push(Draft::thinking(TOGETHER, vec![0, 1]));
            drafts
        }
    };
    json!({ "steps": steps(given, drafts, 0) })
}

/// The two first steps are independent. The archive is closed, so what comes after it has to be planned anew.
fn trace(company: &str) -> Vec<Draft> {
    let dates = format!("Date each change of ownership of {company} by its documents in the archive");
    vec![
        Draft::asking(&NEWS, format!("Find what was reported about the owners of {company}")),
        Draft::asking(&ARCHIVE, format!("Search the archive for earlier owners of {company}")),
        Draft { after: vec![1], ..Draft::asking(&ARCHIVE, dates) },
        Draft::thinking(&format!("Put the owners of {company} in order"), vec![0, 2]),
    ]
}

fn in_dimensions(dimensions: &[Dimension], company: &str) -> Vec<String> {
    dimensions.iter().map(|dimension| dimension.goal.of(company)).collect()
}

/// Independent steps for goals that the script knows.
fn of_goals(goals: impl IntoIterator<Item = String>) -> Vec<Draft> {
    let draft = |goal: String| Draft { inquiry: asked_for(&goal), ..Draft::thinking(&goal, Vec::new()) };
    goals.into_iter().map(draft).collect()
}

/// The tool that one of the script's own goals needs.
fn asked_for(goal: &str) -> Option<&'static Inquiry> {
    match Scenario::of(goal) {
        scenario @ (Scenario::Dimension { .. }
        | Scenario::Weighing { .. }
        | Scenario::Register { .. }
        | Scenario::Source { .. }) => scenario.inquiries().first().copied(),
        Scenario::Comparison { .. } | Scenario::PartnerRisk { .. } | Scenario::Trace { .. } | Scenario::Other => None,
    }
}

/// The steps that can be taken with the offered tools, numbered from `first`; a single step if none can.
fn steps(given: Given<'_>, drafts: Vec<Draft>, first: u64) -> Vec<Value> {
    let most = given.number("max_steps").and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX).max(1);
    let possible = |draft: &Draft| draft.inquiry.is_none_or(|inquiry| inquiry.offered(given));
    let asks = drafts.iter().any(|draft| draft.inquiry.is_some() && possible(draft));
    let thinks = drafts.iter().any(|draft| !draft.builds_on.is_empty());
    if !asks && !thinks {
        return vec![json!({ "goal": DIRECTLY, "tool_hint": "", "depends_on": [] })];
    }
    let kept: Vec<_> = drafts.iter().enumerate().filter(|(_, draft)| possible(draft)).take(most).collect();
    let number = |place: usize| {
        let new = kept.iter().position(|(old, _)| *old == place)?;
        Some(first.saturating_add(new as u64))
    };
    let step = |(_, draft): &(usize, &Draft)| {
        let new = draft.after.iter().filter_map(|place| number(*place));
        let depends_on: BTreeSet<u64> = draft.builds_on.iter().copied().chain(new).collect();
        let hint = draft.inquiry.map_or("", |inquiry| inquiry.tool);
        json!({ "goal": draft.goal, "tool_hint": hint, "depends_on": depends_on })
    };
    kept.iter().map(step).collect()
}

/// The reply to `plan-step-execute`.
pub(super) fn step(given: Given<'_>) -> Value {
    let goal = given.text("goal");
    let inquiry = known(given.text("tool_hint")).or_else(|| asked_for(goal)).filter(|inquiry| inquiry.offered(given));
    match inquiry {
        Some(inquiry) => {
            let arguments = inquiry.arguments(given, &subject(inquiry, goal, given.question()));
            json!({ "tool": inquiry.tool, "arguments": arguments, "answer": null, "surprising": false })
        }
        None => json!({ "tool": "none", "arguments": {}, "answer": thought(given), "surprising": false }),
    }
}

/// What the goal is about; else what the question is about.
fn subject(inquiry: &Inquiry, goal: &str, question: &str) -> String {
    match Scenario::of(goal) {
        scenario @ (Scenario::Dimension { .. }
        | Scenario::Weighing { .. }
        | Scenario::Register { .. }
        | Scenario::Source { .. }) => scenario.subject(goal),
        Scenario::Comparison { .. } | Scenario::PartnerRisk { .. } | Scenario::Trace { .. } | Scenario::Other => {
            if inquiry.takes_questions() {
                question.to_owned()
            } else {
                company_in(&format!("{goal}. {question}"))
            }
        }
    }
}

/// The points of the earlier results, one after the other.
fn thought(given: Given<'_>) -> String {
    let scenario = Scenario::of(given.question());
    let taken = |step: Given<'_>| {
        let text = step.text("result");
        let number = step.number("index").unwrap_or_default();
        let mark = |point: String| format!("- step {number}: {}", point.trim_start_matches("- "));
        let marked: Vec<_> = relevant(&scenario, points(text)).into_iter().take(POINTS).map(mark).collect();
        (!marked.is_empty()).then(|| labelled(text, &marked))
    };
    let taken: Vec<_> = given.all("previous_results").filter_map(taken).collect();
    if taken.is_empty() {
        return "Scripted: no earlier step brought anything to think about, and no language model was asked."
            .to_owned();
    }
    format!("Scripted: this only repeats what earlier steps brought.\n\n{}", taken.join("\n\n"))
}

/// The reply to `plan-revise`.
pub(super) fn revise(given: Given<'_>) -> Value {
    let keep =
        |reason: &str| json!({ "decision": "keep", "reason": format!("Scripted decision: {reason}."), "steps": [] });
    let with_status = |status: &'static str| given.all("steps").filter(move |step| step.text("status") == status);
    let failed: Vec<_> = with_status("failed").collect();
    if failed.is_empty() {
        return keep("nothing failed");
    }
    if with_status("pending").next().is_none() || given.number("max_steps") == Some(0) {
        return keep("there is nothing left that could be planned anew");
    }
    let other_way = other_way(given);
    let instead = if other_way.is_some() { "another source is asked instead" } else { "the rest goes on without it" };
    let Some(drafts) = other_way.or_else(|| without_failed(given, &failed)) else {
        return keep("what is still to come does not need what failed");
    };
    let names: Vec<_> = failed.iter().map(|step| format!("\"{}\"", line(step.text("goal"), 120))).collect();
    let reason = format!("Scripted decision: {} failed, so {instead}.", names.join(" and "));
    let first = given.number("next_index").unwrap_or_else(|| given.all("steps").count() as u64);
    json!({ "decision": "revise", "reason": reason, "steps": steps(given, drafts, first) })
}

/// Where the archive is closed, the filings tell about owners; tried once.
fn other_way(given: Given<'_>) -> Option<Vec<Draft>> {
    let Scenario::Trace { company } = Scenario::of(given.question()) else { return None };
    let goal = format!("Look up the changes of ownership of {company} in the filings instead of the archive");
    let tried = given.all("steps").any(|step| step.text("goal") == goal);
    (!tried && FILINGS.offered(given)).then(|| {
        let order = format!("Put the owners of {company} in order without the archive");
        vec![Draft::asking(&FILINGS, goal), Draft { builds_on: completed(given), ..Draft::thinking(&order, vec![0]) }]
    })
}

/// The pending steps that do not need what failed, and a last look at what there is; None if nothing is blocked.
fn without_failed(given: Given<'_>, failed: &[Given<'_>]) -> Option<Vec<Draft>> {
    let mut lost: BTreeSet<u64> = failed.iter().filter_map(|step| step.number("index")).collect();
    let (mut free, mut blocked) = (Vec::new(), false);
    for step in given.all("steps").filter(|step| step.text("status") == "pending") {
        if step.numbers("depends_on").iter().any(|index| lost.contains(index)) {
            blocked = true;
            lost.extend(step.number("index"));
        } else {
            free.push(step);
        }
    }
    let done = completed(given);
    let place = |index: &u64| free.iter().position(|step| step.number("index") == Some(*index));
    let draft = |step: &Given<'_>| {
        let needs = step.numbers("depends_on");
        Draft {
            goal: step.text("goal").to_owned(),
            inquiry: asked_for(step.text("goal")),
            after: needs.iter().filter_map(place).collect(),
            builds_on: needs.into_iter().filter(|index| done.contains(index)).collect(),
        }
    };
    let mut drafts: Vec<_> = free.iter().map(draft).collect();
    let after = (0..drafts.len()).collect();
    drafts.push(Draft { builds_on: done.clone(), ..Draft::thinking(TOGETHER, after) });
    blocked.then_some(drafts)
}

fn completed(given: Given<'_>) -> Vec<u64> {
    let completed = given.all("steps").filter(|step| step.text("status") == "completed");
    completed.filter_map(|step| step.number("index")).collect()
}
