//! The rehearsal as a supervisor: which goals, and whether the findings suffice.

use super::given::Given;
use super::line;
use super::router::{REACT, chosen};
use super::scenario::{DIMENSIONS, Dimension, IN_GENERAL, IN_NOTES, LOOKING_UP, Scenario, WEIGHING, in_short};
use serde_json::{Map, Value, json};
use trellis_domain::counted;

/// A goal before it is held against what is offered.
struct Draft {
    goal: String,
    pattern: &'static str,
    group: Option<&'static str>,
}

impl Draft {
    fn new(goal: String) -> Self {
        Self { goal, pattern: REACT, group: None }
    }
}

/// The reply to `supervisor-decompose`.
pub(super) fn decompose(given: Given<'_>) -> Value {
    let question = given.question();
    let drafts = match Scenario::of(question) {
        Scenario::PartnerRisk { company } => dimensions(&DIMENSIONS, &company),
        Scenario::Weighing { company } => dimensions(in_short(), &company),
        Scenario::Comparison { companies } => comparison(&companies),
        Scenario::Dimension { .. }
        | Scenario::Register { .. }
        | Scenario::Source { .. }
        | Scenario::Trace { .. }
        | Scenario::Other => vec![Draft::new(IN_NOTES.of(question)), Draft::new(IN_GENERAL.of(question))],
    };
    json!({ "goals": goals(given, drafts) })
}

fn dimensions(dimensions: &[Dimension], company: &str) -> Vec<Draft> {
    let draft =
        |dimension: &Dimension| Draft { group: Some(dimension.group), ..Draft::new(dimension.goal.of(company)) };
    dimensions.iter().map(draft).collect()
}

/// The first company gets a supervisor of its own, the others one agent each, and nobody hears from the register.
fn comparison(companies: &[String]) -> Vec<Draft> {
    let weighing = |company: &String| Draft::new(WEIGHING.of(company));
    let mut drafts: Vec<_> = companies.iter().map(weighing).collect();
    if let Some(first) = drafts.first_mut() {
        first.pattern = "supervisor";
    }
    drafts.push(Draft::new(LOOKING_UP.of(&companies.join(" and "))));
    drafts
}

/// The reply to `supervisor-review`: one round is enough, unless the question wants to dig deeper.
pub(super) fn review(given: Given<'_>) -> Value {
    let (question, round) = (given.question(), given.number("round").unwrap_or(1));
    let more = question.to_lowercase().contains("dig deeper") && round == 1;
    if more && given.number("max_rounds").is_none_or(|most| round < most) {
        let reason = "Scripted decision: the question wants to dig deeper, so one more agent is sent out.";
        let goals = goals(given, vec![Draft::new(IN_GENERAL.of(&format!("what is still open in: {question}")))]);
        return json!({ "decision": "again", "reason": reason, "goals": goals });
    }
    let (found, missing) = (given.all("results").count(), given.all("missing").count());
    let reason = match missing {
        0 => format!("Scripted decision: {}, nothing is missing.", counted(found, "finding")),
        _ => format!("Scripted decision: {}, {missing} missing; the answer will say so.", counted(found, "finding")),
    };
    json!({ "decision": "answer", "reason": reason, "goals": [] })
}

/// As many as may be, with names out of the offered sets only.
fn goals(given: Given<'_>, drafts: Vec<Draft>) -> Vec<Value> {
    let most = given.number("max_subagents").and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let (patterns, groups) = (given.names("patterns"), given.texts("groups"));
    let context = format!("This is one part of a larger task: {}", line(given.question(), 200));
    let goal = |draft: Draft| {
        let group = draft.group.filter(|group| groups.contains(group)).map(|group| vec![group]);
        let mut goal = Map::from_iter([("goal".to_owned(), json!(draft.goal))]);
        if let Some(pattern) = chosen(draft.pattern, &patterns, REACT) {
            goal.insert("pattern".to_owned(), json!(pattern));
        }
        goal.insert("group".to_owned(), json!(group));
        goal.insert("context".to_owned(), json!(context));
        Value::Object(goal)
    };
    drafts.into_iter().take(most.max(1)).map(goal).collect()
}
