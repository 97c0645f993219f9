//! Choices with the sets they were made from.

use super::{Tree, labelled, spent};
use crate::show::{clean, excerpt};
use owo_colors::OwoColorize;
use trellis_domain::decision::{DecidedBy, DecisionKind};
use trellis_provenance::trace::{DecisionTrace, Word};

/// A longer set is only counted, unless everything is wanted.
const LISTED: usize = 5;

impl Tree<'_> {
    pub(super) fn choices<'a>(&self, decisions: impl IntoIterator<Item = &'a DecisionTrace>) -> Vec<String> {
        decisions.into_iter().flat_map(|decision| self.choice(decision)).collect()
    }

    /// `pattern    ● react ○ supervisor   by only-option, from agent-task-type:general v3`, and what speaks for it.
    fn choice(&self, decision: &DecisionTrace) -> Vec<String> {
        let kind = word(decision.kind.as_ref(), "choice", |kind| kind_name(*kind));
        let mut lines =
            vec![labelled(&clean(kind), &format!("{}   {}", self.set(decision), origin(decision).dimmed()))];
        let more = |text: String| labelled("", &text);
        lines.extend(decision.cost.failures.iter().map(|why| more(format!("no reply: {}", self.cut(why)))));
        if self.full || self.columns.is_none() {
            let excluded = decision.excluded.iter();
            lines.extend(
                excluded
                    .map(|option| more(format!("not offered: {} ({})", clean(&option.name), clean(&option.reason)))),
            );
        } else if !decision.excluded.is_empty() {
            lines.push(more(format!("not offered: {} (--full tells which)", decision.excluded.len())));
        }
        if !decision.signals.is_empty() {
            let signals: Vec<_> = decision.signals.iter().map(|signal| clean(signal)).collect();
            lines.push(more(format!("signals: {}", signals.join(self.marks.between))));
        }
        lines.extend(decision.rationale.as_ref().map(|id| more(format!("stated reason: {}", self.text(id)))));
        lines.extend(decision.rejected.as_ref().map(|id| more(format!("outside the set: {}", self.text(id)))));
        lines
    }

    fn set(&self, decision: &DecisionTrace) -> String {
        let known = |kind: DecisionKind| decision.kind.as_ref().and_then(Word::known) == Some(&kind);
        let chosen: Vec<_> = decision.chosen.iter().map(|option| clean(option)).collect();
        if chosen.is_empty() && !decision.options.is_empty() {
            return format!("none of {} was named", decision.options.len());
        }
        // Goals are the model's own words, not names out of a list.
        if known(DecisionKind::Goals) {
            return format!("{} named", chosen.len());
        }
        if decision.options.len() > LISTED && !self.full {
            let named = excerpt(&chosen.join(", "), self.width);
            return format!("{} {named} ({} of {})", self.marks.chosen, chosen.len(), decision.options.len());
        }
        let mark =
            |option: &String| if decision.chosen.contains(option) { self.marks.chosen } else { self.marks.offered };
        let options: Vec<_> =
            decision.options.iter().map(|option| format!("{} {}", mark(option), clean(option))).collect();
        options.join(" ")
    }
}

/// Below an agent it goes without saying whose pattern or tools are meant.
fn kind_name(kind: DecisionKind) -> &'static str {
    match kind {
        DecisionKind::SubagentPattern => "pattern",
        DecisionKind::SubagentGroup => "tools of",
        DecisionKind::TaskType => "task type",
        DecisionKind::Pattern
        | DecisionKind::Tool
        | DecisionKind::Goals
        | DecisionKind::Replan
        | DecisionKind::Round
        | DecisionKind::Approval
        | DecisionKind::UncertainCall
        | DecisionKind::ToolInput
        | DecisionKind::Edges => kind.as_str(),
    }
}

/// Who chose, out of which version of what, and what asking took.
fn origin(decision: &DecisionTrace) -> String {
    let by = word(decision.decided_by.as_ref(), "?", |by: &DecidedBy| by.as_str());
    let source = decision.source.as_deref().unwrap_or("").trim_start_matches("urn:trellis:config:");
    let version = decision.config_version.map(|version| format!(" v{version}")).unwrap_or_default();
    let from = if source.is_empty() { String::new() } else { format!(", from {}{version}", clean(source)) };
    let spent = spent(&decision.cost);
    let cost = if spent.is_empty() { spent } else { format!("  {spent}") };
    format!("by {}{from}{cost}", clean(by))
}

/// A known word, the unknown one as it is, or what stands for none.
pub(super) fn word<'a, T>(found: Option<&'a Word<T>>, none: &'a str, known: impl Fn(&T) -> &'static str) -> &'a str {
    match found {
        Some(Word::Known(value)) => known(value),
        Some(Word::Unknown(word)) => word,
        None => none,
    }
}
