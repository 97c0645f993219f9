//! The decisions of a run: what could have been chosen, what was, by whom, and where the options came from.

use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::look::{Placed, RunView, decided_by, enforced, kind_word, source_words};
use crate::show::{Marks, clean, columns_for, excerpt, print_json, print_said};
use serde_json::{Value, json};
use trellis_domain::decision::DecisionKind;
use trellis_provenance::trace::{DecisionTrace, Word};

/// How much of a reason is shown.
const SHOWN: usize = 300;

pub(crate) async fn run(desk: &Desk, global: &Global, wish: &str) -> Result<Exit, Failure> {
    let view = RunView::of(desk, wish).await?;
    let all = view.decisions();
    if global.output == Output::Json {
        let list: Vec<_> = all.iter().map(|(placed, decision)| as_json(&view, *placed, decision)).collect();
        print_json(&json!({"run_id": view.run, "decisions": list}).to_string())?;
        return Ok(Exit::Ok);
    }
    let (columns, marks) = (columns_for(global), Marks::of(global.ascii));
    for (number, (placed, decision)) in all.iter().enumerate() {
        let before = format!("{:>3}  ", number + 1);
        let told = Told::of(&view, *placed, decision);
        print_said(&before, &format!("{}: {}", view.step_name(*placed), told.choice), columns)?;
        let hang = " ".repeat(before.len());
        let set = set(decision, marks);
        for line in set.iter().chain(&told.more) {
            print_said(&hang, line, columns)?;
        }
    }
    if all.is_empty() {
        crate::show::note("nothing was chosen in this run so far");
    }
    Ok(Exit::Ok)
}

/// One choice as `run why` and `run decisions` tell it.
pub(super) struct Told {
    /// What was chosen by whom.
    pub(super) choice: String,
    /// Where the options came from, what was not offered, and what the model said.
    pub(super) more: Vec<String>,
}

impl Told {
    pub(super) fn of(view: &RunView, (session, _): Placed<'_>, decision: &DecisionTrace) -> Self {
        let kind = kind_word(decision.kind.as_ref());
        let whose = if session.parent.is_some() { format!(", in {}", view.agent_name(session)) } else { String::new() };
        let chosen: Vec<_> = decision.chosen.iter().map(|option| excerpt(option, 60)).collect();
        let (by, by_means) = decided_by(decision.decided_by.as_ref());
        let is_goals = known(decision) == Some(DecisionKind::Goals);
        let what = match (chosen.as_slice(), is_goals) {
            ([], _) => "nothing of the set was named".to_owned(),
            (goals, true) => format!("{} named by {by}", trellis_domain::counted(goals.len(), "goal")),
            (chosen, false) => {
                let out_of = decision.options.len();
                let verb = if chosen.len() > 1 { "were" } else { "was" };
                format!("{} {verb} chosen out of {out_of}, by {by}", chosen.join(", "))
            }
        };
        let version = decision.config_version.map(|version| format!(", configuration version {version}"));
        let source = source_words(decision.source.as_deref());
        let (held, held_means) = enforced(decision.enforcement.as_ref());
        let mut more = vec![
            format!("{by_means} The options come from {source}{}.", version.unwrap_or_default()).trim().to_owned(),
            format!("Set {held}: {held_means}"),
        ];
        if !decision.excluded.is_empty() {
            let excluded: Vec<_> = decision
                .excluded
                .iter()
                .map(|option| format!("{} ({})", clean(&option.name), clean(&option.reason)))
                .collect();
            more.push(format!("Not offered: {}", excluded.join("; ")));
        }
        if !decision.signals.is_empty() {
            let signals: Vec<_> = decision.signals.iter().map(|signal| clean(signal)).collect();
            more.push(format!("Signals: {}", signals.join("; ")));
        }
        let reason = decision.rationale.as_deref().map(|id| excerpt(view.text_of(id), SHOWN));
        more.extend(reason.map(|reason| format!("Stated reason, a claim that nobody checked: “{reason}”")));
        let rejected = decision.rejected.as_deref().map(|id| excerpt(view.text_of(id), SHOWN));
        more.extend(rejected.map(|reply| format!("A reply was outside of the set: “{reply}”")));
        Self { choice: format!("{kind}{whose}: {what}."), more }
    }
}

/// The options with the chosen ones marked.
pub(super) fn set(decision: &DecisionTrace, marks: &Marks) -> Option<String> {
    if known(decision) == Some(DecisionKind::Goals) || decision.options.is_empty() {
        return None;
    }
    let mark = |option: &String| if decision.chosen.contains(option) { marks.chosen } else { marks.offered };
    let options: Vec<_> =
        decision.options.iter().map(|option| format!("{} {}", mark(option), excerpt(option, 60))).collect();
    Some(options.join("  "))
}

/// Whether what was chosen is none of the options. Goals are the model's own words.
pub(super) fn is_outside(decision: &DecisionTrace) -> bool {
    let has_set = known(decision) != Some(DecisionKind::Goals) && !decision.options.is_empty();
    has_set && decision.chosen.iter().any(|chosen| !decision.options.contains(chosen))
}

fn known(decision: &DecisionTrace) -> Option<DecisionKind> {
    decision.kind.as_ref().and_then(Word::known).copied()
}

fn as_json(view: &RunView, placed: Placed<'_>, decision: &DecisionTrace) -> Value {
    let (session, step) = placed;
    let reason = decision.rationale.as_deref().map(|id| view.text_of(id));
    json!({
        "session_id": session.session, "agent": view.number_of(session), "step": step.id(),
        "step_name": view.step_name(placed), "decision": decision, "stated_reason": reason,
    })
}
