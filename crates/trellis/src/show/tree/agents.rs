//! Fan-outs with the sessions they began, what came back, and what was made of it.

use super::choices::word;
use super::node::TreeNode;
use super::steps::{not_done, not_served};
use super::{Tree, behind, labelled, marked, number_of};
use crate::show::{clean, grouped};
use owo_colors::OwoColorize;
use trellis_domain::budget::Budget;
use trellis_domain::counted;
use trellis_domain::fan_out::JoinCause;
use trellis_domain::run::Termination;
use trellis_provenance::trace::{
    DecisionTrace, Decomposition, FanOut, Finding, Join, Review, SessionTrace, Step, Synthesis, Word,
};

impl Tree<'_> {
    /// The fan-out with an agent's session for each goal; then the join with its findings.
    pub(super) fn decomposition(
        &self,
        session: &SessionTrace,
        decomposition: &Decomposition,
        path: &str,
    ) -> Vec<TreeNode> {
        let (own, of_goals): (Vec<_>, Vec<_>) =
            decomposition.decisions.iter().partition(|decision| decision.goal.is_none());
        let round = if decomposition.round > 1 { format!(", round {}", decomposition.round) } else { String::new() };
        let count = decomposition.goals.len();
        let agents = format!("{count} agent{}{round}", if count == 1 { "" } else { "s" });
        let title = format!(
            "{} {}  {agents}{}{}",
            self.marks.many.cyan(),
            "Decomposition".bold(),
            behind(&decomposition.cost),
            marked(&decomposition.mark)
        );
        let mut node = TreeNode::new(title).with(self.failures(&decomposition.cost)).with(self.choices(own));
        node.details.extend(decomposition.repairs.iter().map(|what| labelled("put right", &self.cut(what))));
        node.details.extend(decomposition.fan_out.iter().map(fan_out));
        let mut agents: Vec<_> = self.trace.sessions.iter().filter(|session| began(session, decomposition)).collect();
        agents.sort_by_key(|session| session.parent.as_ref().and_then(|parent| parent.index));
        node.children = agents.into_iter().map(|session| self.agent(session, &of_goals, path)).collect();
        let join = decomposition.fan_out.as_ref().and_then(|fan_out| fan_out.join.as_ref());
        std::iter::once(node).chain(join.map(|join| self.join(session, join))).collect()
    }

    /// A subagent's session: who, how it ended, what it cost, then its own steps.
    fn agent(&self, session: &SessionTrace, choices: &[&DecisionTrace], path: &str) -> TreeNode {
        let index = session.parent.as_ref().and_then(|parent| parent.index);
        let index = index.map_or("?".to_owned(), |index| index.to_string());
        let number = format!("{path}{index}");
        let (mark, status) = match end_of(session) {
            Some((error, reason)) => (self.end_mark(error, reason), word(reason, "ended", |reason| reason.as_str())),
            None => (self.marks.thought.to_owned(), "has not ended"),
        };
        let how = [clean(session.pattern.as_deref().unwrap_or("?")), clean(status)].join(self.marks.between);
        let mut node = TreeNode::new(format!(
            "{mark} {} {}  {}",
            format!("#{number}").bold(),
            self.cut(&session.question),
            how.cyan()
        ));
        let spent = self.totals(session.totals_with_subagents.as_ref().unwrap_or(&session.totals));
        node.details.extend((!spent.is_empty()).then(|| labelled("took", &spent).dimmed().to_string()));
        let mine = |decision: &&&DecisionTrace| {
            let real = self.full || decision.options.len() > 1;
            decision.goal.as_deref().map(number_of) == Some(index.as_str()) && real
        };
        let mut mine: Vec<_> = choices.iter().filter(mine).copied().collect();
        mine.reverse();
        node.details.extend(self.choices(mine));
        // The supervisor chose the pattern: the agent's own routing says the same again.
        let again = |step: &&Step| !self.full && matches!(step, Step::Routing(_));
        let skipped = session.steps.iter().take_while(again).count();
        node.children = self.steps(session, &format!("{number}.")).split_off(skipped);
        node
    }

    fn join(&self, session: &SessionTrace, join: &Join) -> TreeNode {
        let findings: Vec<_> = session.steps.iter().filter_map(as_finding).collect();
        let mut joined: Vec<_> = findings.into_iter().filter(|finding| join.findings.contains(&finding.id)).collect();
        joined.sort_by_key(|finding| finding.index);
        let there = joined.iter().filter(|finding| !is_missing(finding)).count();
        let cause = match &join.cause {
            Some(Word::Known(JoinCause::AllEnded)) => "all have ended".to_owned(),
            Some(Word::Known(JoinCause::Deadline)) => "the deadline had come".to_owned(),
            Some(Word::Unknown(word)) => clean(word),
            None => "cause not recorded".to_owned(),
        };
        let mark = if there == joined.len() {
            self.marks.good.green().to_string()
        } else {
            self.marks.partly.yellow().to_string()
        };
        let title = format!("{mark} {}  {cause}: {there} of {} findings", "Join".bold(), joined.len());
        let node = TreeNode::new(title).with(join.outage_ms.map(not_served));
        TreeNode { children: joined.into_iter().map(|finding| self.finding(finding)).collect(), ..node }
    }

    pub(super) fn finding(&self, finding: &Finding) -> TreeNode {
        let status = word(finding.status.as_ref(), "?", |status| status.as_str());
        let number = format!("finding {}", finding.index);
        if is_missing(finding) {
            let why = finding.error.as_ref().map(|error| format!(": {}", self.cut(error))).unwrap_or_default();
            let missing = format!("{} {number} missing", self.marks.bad);
            return TreeNode::new(format!("{}  {}{why}", missing.red(), clean(status)));
        }
        let confidence = finding.confidence.as_ref().map(|word| format!("  confidence {} (claimed)", clean(word)));
        let text = self.document(finding.document.as_ref()).unwrap_or_default();
        let confidence = confidence.unwrap_or_default();
        let mark = marked(&finding.mark);
        let title = format!("{} {}{}{mark}", self.marks.good.green(), number.bold(), confidence.cyan());
        if self.full { TreeNode::new(title).with([text]) } else { TreeNode::new(format!("{title}  {text}")) }
    }

    pub(super) fn review(&self, review: &Review) -> TreeNode {
        let title =
            format!("{} {}{}{}", self.marks.choice.cyan(), "Review".bold(), behind(&review.cost), marked(&review.mark));
        let error = review.error.as_ref().map(|error| labelled("unusable", &self.cut(error)));
        TreeNode::new(title).with(self.failures(&review.cost)).with(self.choices(&review.decisions)).with(error)
    }

    pub(super) fn synthesis(&self, session: &SessionTrace, synthesis: &Synthesis) -> TreeNode {
        let title = self.end_title("Synthesis", synthesis.error.as_deref(), synthesis.reason.as_ref());
        let confidence = |iri: &String| {
            let of = session.steps.iter().find(|step| step.id() == iri).and_then(claimed)?;
            Some(format!(" ({})", clean(of)))
        };
        let with_confidence = |iri: &String| format!("{}{}", named(iri), confidence(iri).unwrap_or_default());
        let cites: Vec<_> = synthesis.cites.iter().map(with_confidence).collect();
        let missing: Vec<_> = synthesis.missing.iter().map(|iri| named(iri)).collect();
        let mut node = TreeNode::new(format!("{title}{}{}", behind(&synthesis.cost), marked(&synthesis.mark)))
            .with(self.failures(&synthesis.cost));
        node.details.extend((!cites.is_empty()).then(|| labelled("cites", &cites.join(", "))));
        let without = || labelled("missing", &missing.join(", ")).yellow().to_string();
        node.details.extend((!missing.is_empty()).then(without));
        node.with(not_done(&synthesis.left_out, &synthesis.uncertain))
            .with(self.end_details(session, synthesis.error.as_deref(), synthesis.criteria.as_deref()))
            .with(synthesis.outage_ms.map(not_served))
            .with(self.choices(&synthesis.decisions))
            .with(self.document(synthesis.document.as_ref()).map(|text| labelled("answer", &text)))
    }
}

/// Whether a finding is drawn below its join.
pub(super) fn has_join(session: &SessionTrace, finding: &Finding) -> bool {
    session.steps.iter().filter_map(join_of).any(|join| join.findings.contains(&finding.id))
}

/// The correlation ties the completions to the fan-out.
fn fan_out(fan_out: &FanOut) -> String {
    let correlation = fan_out.correlation.as_deref().unwrap_or("?");
    let expected = fan_out.expected.map_or("?".to_owned(), |expected| expected.to_string());
    let deadline = fan_out.deadline.as_deref().unwrap_or("none");
    let share = fan_out.share.map(|share| format!(", {}", each_may(&share))).unwrap_or_default();
    let text = format!("expects {expected}, deadline {}, correlation {}{share}", clean(deadline), clean(correlation));
    labelled("fan-out", &text)
}

/// What each of the subagents may spend.
fn each_may(share: &Budget) -> String {
    let Budget { model_calls, tokens, agents, cost_micros: _ } = *share;
    let (tokens, agents) = (grouped(tokens), counted(agents, "agent"));
    format!("each may spend {}, {tokens} tokens and {agents}", counted(model_calls, "model call"))
}

fn began(session: &SessionTrace, decomposition: &Decomposition) -> bool {
    session.parent.as_ref().and_then(|parent| parent.decomposition.as_ref()) == Some(&decomposition.id)
}

fn is_missing(finding: &Finding) -> bool {
    // How those of others have ended is not known: what they found is there.
    !finding.mark.brought
        && !finding.status.as_ref().and_then(Word::known).is_some_and(|status: &Termination| status.is_answer())
}

/// `finding 2`, `step 0`.
fn named(iri: &str) -> String {
    let mut parts = iri.rsplit('/');
    let number = parts.next().unwrap_or(iri);
    format!("{} {number}", clean(parts.next().unwrap_or_default())).trim().to_owned()
}

/// The error and the reason of a session's end.
#[expect(clippy::wildcard_enum_match_arm, reason = "asks for two kinds only")]
fn end_of(session: &SessionTrace) -> Option<(Option<&str>, Option<&Word<Termination>>)> {
    session.steps.iter().find_map(|step| match step {
        Step::Conclusion(end) => Some((end.error.as_deref(), end.reason.as_ref())),
        Step::Synthesis(end) => Some((end.error.as_deref(), end.reason.as_ref())),
        _ => None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "asks for one kind only")]
fn join_of(step: &Step) -> Option<&Join> {
    match step {
        Step::Decomposition(decomposition) => decomposition.fan_out.as_ref()?.join.as_ref(),
        _ => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "asks for one kind only")]
fn as_finding(step: &Step) -> Option<&Finding> {
    match step {
        Step::Finding(finding) => Some(finding),
        _ => None,
    }
}

/// How sure the answer says it is of a step or finding.
#[expect(clippy::wildcard_enum_match_arm, reason = "asks for two kinds only")]
fn claimed(step: &Step) -> Option<&str> {
    match step {
        Step::Finding(finding) => finding.confidence.as_deref(),
        Step::StepResult(result) => result.confidence.as_deref(),
        _ => None,
    }
}
