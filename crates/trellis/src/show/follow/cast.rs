//! Who is who in a run: short names for subagents and plan steps, and what each is at.

use super::team::{Standing, Team};
use crate::show::{excerpt, padded, width};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use trellis_domain::record::Name;
use trellis_domain::{PatternName, SessionId, Timestamp};
use trellis_patterns::{Pattern, pattern};

/// Longest name, in columns.
const NAME: usize = 20;

/// Room for whose line it is on a screen with so many columns; none if numbers have to do.
pub(super) const fn name_columns(columns: usize) -> Option<usize> {
    match columns {
        0..60 => None,
        60..90 => Some(18),
        _ => Some(27),
    }
}

/// Whose line it is. Empty for the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Label {
    /// `#0.1` is the second subagent of the first, `step 2` a step of a plan. They count from 0, as answers cite them.
    pub(super) number: String,
    /// First words of the goal.
    pub(super) name: String,
}

impl Label {
    pub(super) fn is_root(&self) -> bool {
        self.number.is_empty()
    }

    /// Whether it belongs to that one, or to somebody who does.
    pub(super) fn is_below(&self, above: &Self) -> bool {
        let behind = self.number.strip_prefix(above.number.as_str());
        !above.is_root() && behind.is_some_and(|rest| rest.starts_with(['.', ' ']))
    }

    /// As wide as that, or the number alone.
    pub(super) fn within(&self, columns: Option<usize>) -> String {
        columns.map_or_else(|| self.number.clone(), |columns| padded(&excerpt(&self.to_string(), columns), columns))
    }

    /// Of a plan, not an agent.
    pub(super) fn is_step(&self) -> bool {
        self.number.contains("step ")
    }

    /// How many agents are above it, the root aside.
    pub(super) fn depth(&self) -> usize {
        let steps = usize::from(self.number.starts_with('#') && self.is_step());
        self.number.matches('.').count() + steps
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(format!("{} {}", self.number, self.name).trim_end())
    }
}

#[derive(Default)]
pub(super) struct Cast {
    agents: HashMap<SessionId, Label>,
    patterns: HashMap<SessionId, &'static dyn Pattern>,
    parts: HashMap<SessionId, Vec<Label>>,
    /// What each is at.
    pub(super) team: Arc<Mutex<Team>>,
    /// When what is shown now has happened.
    now: Timestamp,
    /// How many findings a session has to do without so far, over all rounds.
    missing: HashMap<SessionId, usize>,
    /// What the replies took whose lines come later.
    unpaid: HashMap<SessionId, Vec<(Name, String)>>,
}

impl Cast {
    pub(super) fn add_agent(&mut self, parent: &SessionId, session: &SessionId, index: u32, goal: &str) {
        let above = self.agents.get(parent).map_or("#".to_owned(), |agent| format!("{}.", agent.number));
        let label = Label { number: format!("{above}{index}"), name: first_words(goal) };
        self.team.lock().add(&label);
        self.agents.insert(session.clone(), label);
    }

    /// The pattern of a session is known.
    pub(super) fn becomes(&mut self, session: &SessionId, name: &PatternName) {
        if let Ok(pattern) = pattern(name) {
            self.patterns.insert(session.clone(), pattern);
        }
    }

    /// One more part of a session, such as a plan step. Numbers are never used again.
    pub(super) fn add_part(&mut self, session: &SessionId, goal: &str) -> usize {
        let parts = self.parts.entry(session.clone()).or_default();
        let number = parts.len();
        let label = match self.agents.get(session) {
            Some(agent) => Label { number: format!("{} step {number}", agent.number), name: String::new() },
            None => Label { number: format!("step {number}"), name: first_words(goal) },
        };
        self.team.lock().add(&label);
        parts.push(label);
        number
    }

    /// The part of its session that a record belongs to.
    pub(super) fn part(&self, session: &SessionId, record: &Name) -> Option<&Label> {
        let number = self.patterns.get(session)?.part(record)?;
        self.parts.get(session)?.get(usize::try_from(number).ok()?)
    }

    pub(super) fn agent(&self, session: &SessionId) -> Label {
        self.agents.get(session).cloned().unwrap_or_default()
    }

    /// Whose line a record is: an agent's, a plan step's, or the root's.
    pub(super) fn owner(&self, session: &SessionId, record: &Name) -> Label {
        self.part(session, record).cloned().unwrap_or_else(|| self.agent(session))
    }

    /// What comes next happened at that time.
    pub(super) fn at(&mut self, now: Timestamp) {
        self.now = now;
    }

    pub(super) fn is_doing(&self, who: &Label, what: &str) {
        // Only the beginning is shown, and a thought grows with every piece of it.
        let what = excerpt(&what[..what.floor_char_boundary(500)], 80);
        self.team.lock().works(who, &what, self.now);
    }

    /// Has nothing more to do.
    pub(super) fn ends(&self, who: &Label, standing: Standing) {
        self.team.lock().ends(who, standing, self.now);
    }

    /// What models took for it.
    pub(super) fn spends(&self, who: &Label, in_token: Option<u64>, out_token: Option<u64>) {
        self.team.lock().spends(who, in_token.unwrap_or(0) + out_token.unwrap_or(0));
    }

    pub(super) fn misses(&mut self, session: &SessionId, findings: usize) {
        *self.missing.entry(session.clone()).or_default() += findings;
    }

    pub(super) fn missing(&self, session: &SessionId) -> usize {
        self.missing.get(session).copied().unwrap_or(0)
    }

    /// Keeps what a reply took until the line that it led to.
    pub(super) fn defer_cost(&mut self, session: &SessionId, reply: Name, cost: String) {
        self.unpaid.entry(session.clone()).or_default().push((reply, cost));
    }

    /// What the reply of that name took, if it has no line yet.
    pub(super) fn pay(&mut self, session: &SessionId, reply: &Name) -> String {
        let Some(costs) = self.unpaid.get_mut(session) else { return String::new() };
        let place = costs.iter().position(|(name, _)| name.first_asking() == *reply);
        place.map(|place| costs.remove(place).1).unwrap_or_default()
    }

    /// What the replies took that have no line yet.
    pub(super) fn pay_all(&mut self, session: &SessionId) -> String {
        let costs = self.unpaid.remove(session).unwrap_or_default();
        costs.into_iter().map(|(_, cost)| cost).next_back().unwrap_or_default()
    }
}

/// As many whole words as fit into a name.
fn first_words(goal: &str) -> String {
    let mut name = String::new();
    for word in goal.split_whitespace() {
        let longer = if name.is_empty() { word.to_owned() } else { format!("{name} {word}") };
        if width(&longer) > NAME {
            break;
        }
        name = longer;
    }
    if name.is_empty() { excerpt(goal, NAME) } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_patterns::plan::PlanNames;

    fn id(text: &str) -> SessionId {
        SessionId::new(text).unwrap()
    }

    #[test]
    fn agents_and_steps_have_short_names() {
        let mut cast = Cast::default();
        cast.add_agent(&id("root"), &id("a"), 0, "Analyse financial health and stability of Company X");
        cast.add_agent(&id("root"), &id("c"), 1, "東京の天気を調べて、大阪と比べる");
        cast.add_agent(&id("a"), &id("b"), 1, "Unpronounceablecompanyname's debts");
        for session in ["root", "b"] {
            cast.becomes(&id(session), &"plan-then-execute".into());
        }
        for goal in ["One", "Two", "Put the owners in order"] {
            cast.add_part(&id("root"), goal);
        }
        for _ in 0..5 {
            cast.add_part(&id("b"), "Look");
        }
        assert!(cast.agent(&id("root")).is_root());
        assert_eq!(cast.agent(&id("a")).to_string(), "#0 Analyse financial");
        assert_eq!(cast.agent(&id("c")).to_string(), "#1 東京の天気を調べて…");
        assert_eq!(cast.agent(&id("b")).to_string(), "#0.1 Unpronounceablecomp…");
        assert_eq!(cast.owner(&id("root"), &Name::step_result(2)).to_string(), "step 2 Put the owners in");
        assert_eq!(cast.owner(&id("b"), &Name::step(4).retry()).to_string(), "#0.1 step 4");
    }

    #[test]
    fn labels_know_to_whom_they_belong() {
        let label = |number: &str| Label { number: number.to_owned(), name: String::new() };
        for (one, other, below) in [
            ("#0.1", "#0", true),
            ("#0.1 step 2", "#0", true),
            ("#0 step 1", "#0", true),
            ("#01", "#0", false),
            ("#0", "#0", false),
            ("step 1", "", false),
        ] {
            assert_eq!(label(one).is_below(&label(other)), below, "{one} {other}");
        }
        let depths = ["#0", "#0.1", "#0 step 1", "step 3"].map(|number| label(number).depth());
        assert_eq!(depths, [0, 1, 1, 0]);
    }
}
