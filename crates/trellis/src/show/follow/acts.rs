//! The larger acts of a run: routing, plans, fan-outs, joins, reviews.

use super::Follow;
use super::cast::Label;
use super::screen::{Line, WIDTH};
use crate::show::excerpt;
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::fan_out::{FannedOut, Goal, JoinCause, Joined, Member};
use trellis_domain::record::{Name, Routed};
use trellis_domain::{SessionId, counted};

impl Follow {
    /// Each choice with its options. What a supervisor chose for a subagent was shown with the fan-out.
    pub(super) fn routed(&mut self, session: &SessionId, routed: &Routed) {
        let who = self.cast.agent(session);
        self.cast.becomes(session, &routed.pattern);
        let own = |decision: &&Decision| decision.decided_by != DecidedBy::Supervisor;
        for decision in routed.decisions.iter().filter(own) {
            let (word, reply) = match decision.kind {
                DecisionKind::TaskType => ("task", Name::route_task_type()),
                DecisionKind::Pattern
                | DecisionKind::Tool
                | DecisionKind::Goals
                | DecisionKind::SubagentPattern
                | DecisionKind::SubagentGroup
                | DecisionKind::Replan
                | DecisionKind::Round
                | DecisionKind::Approval
                | DecisionKind::UncertainCall
                | DecisionKind::ToolInput
                | DecisionKind::Edges => ("pattern", Name::route_pattern()),
            };
            let cost = self.cast.pay(session, &reply);
            let line = Line::new(self.screen.marks.choice, word).of(who.clone());
            self.screen.line(&line.text(self.options(decision)).cost(cost));
            if !decision.signals.is_empty() {
                self.screen.under(&who, &format!("signals: {}", decision.signals.join(self.screen.marks.between)));
            }
            if let Some(reason) = &decision.rationale {
                self.screen.under(&who, &format!("stated reason: {}", reason.text()));
            }
        }
    }

    /// `● supervisor ○ react (by model)`.
    pub(super) fn options(&self, decision: &Decision) -> String {
        let marks = self.screen.marks;
        // The chosen one first: it must be seen where a line is too short for all.
        let (chosen, rest): (Vec<_>, Vec<_>) =
            decision.options.iter().partition(|option| decision.chosen.contains(option));
        let marked = |mark: &'static str, options: Vec<&String>| {
            options.into_iter().map(|option| format!("{mark} {option}")).collect::<Vec<_>>()
        };
        let options = [marked(marks.chosen, chosen), marked(marks.offered, rest)].concat();
        format!("{} (by {})", options.join(" "), decision.decided_by)
    }

    pub(super) fn repairs(&self, who: &Label, repairs: &[String]) {
        for problem in repairs {
            self.screen.under(who, &format!("put right: {problem}"));
        }
    }

    pub(super) fn fanned_out(&mut self, session: &SessionId, fan_out: &FannedOut) {
        let who = self.cast.agent(session);
        let cost = self.cast.pay_all(session);
        let round = if fan_out.round > 1 { format!("round {}: ", fan_out.round) } else { String::new() };
        let until = fan_out.deadline.to_string();
        let until = until.get(11..19).unwrap_or(&until);
        let text = format!("{round}{} at once, waiting until {until}Z", counted(fan_out.goals.len(), "agent"));
        self.screen.line(&Line::new(self.screen.marks.many, "split").of(who.clone()).text(text).cost(cost));
        for goal in &fan_out.goals {
            self.cast.add_agent(session, &goal.session, goal.index, &goal.goal);
            let number = self.cast.agent(&goal.session).number;
            self.screen.entry(&who, &format!("{number} {}", goal.goal), &means(goal));
        }
        self.cast.is_doing(&who, "waiting for its agents");
    }

    pub(super) fn joined(&mut self, session: &SessionId, joined: &Joined) {
        let who = self.cast.agent(session);
        let missing: Vec<_> = joined.members.iter().filter(|member| member.is_missing()).collect();
        let (all, there) = (joined.members.len(), joined.members.len() - missing.len());
        let cause = match joined.cause {
            JoinCause::AllEnded => "all have ended",
            JoinCause::Deadline => "the deadline has come",
        };
        let mark = if missing.is_empty() { self.screen.marks.good } else { self.screen.marks.partly };
        let text = format!("{cause}: {there} of {}", counted(all, "finding"));
        self.screen.line(&Line::new(mark, "join").of(who.clone()).text(text));
        self.cast.misses(session, missing.len());
        for member in missing {
            let goal = self.cast.agent(&member.session);
            self.screen.under(&who, &format!("missing: {goal}, {}", why(member)));
        }
        self.cast.is_doing(&who, "thinking");
    }
}

/// The pattern and the tools of a subagent.
fn means(goal: &Goal) -> String {
    let groups = goal.group.as_ref().map(|groups| format!(", tools {}", groups.join(" "))).unwrap_or_default();
    format!("{}{groups}", goal.pattern)
}

fn why(member: &Member) -> String {
    let error = member.error.as_deref().or(member.answer.as_ref().map(Document::text)).unwrap_or_default();
    if error.is_empty() { member.reason.to_string() } else { format!("{}: {}", member.reason, excerpt(error, WIDTH)) }
}
