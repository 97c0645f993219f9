//! The steps of one session as nodes.

use super::agents::has_join;
use super::choices::word;
use super::node::TreeNode;
use super::plans::has_plan;
use super::{Tree, behind, labelled, marked};
use crate::show::{clean, seconds, tokens};
use owo_colors::OwoColorize;
use serde_json::Value;
use trellis_domain::run::{RunState, Termination};
use trellis_provenance::trace::{
    Analysis, Conclusion, DecisionTrace, LateReply, Observation, PatternAct, Routing, SessionTrace, Step, Thought,
    UnusedReply, Word,
};

impl Tree<'_> {
    /// What came of a step is drawn with it: observations with their calls, step results below their plan, findings
    /// below their join.
    pub(super) fn steps(&self, session: &SessionTrace, path: &str) -> Vec<TreeNode> {
        let mut nodes: Vec<TreeNode> = Vec::new();
        let mut calls: Vec<(&str, usize)> = Vec::new();
        for step in &session.steps {
            match step {
                Step::Routing(routing) => nodes.push(self.routing(routing)),
                Step::Analysis(analysis) => {
                    calls.push((&analysis.id, nodes.len()));
                    nodes.push(self.call(analysis));
                }
                Step::Observation(observation) => {
                    let of = observation.id.strip_suffix("/observation");
                    let call = calls.iter().find(|(id, _)| Some(*id) == of).map(|(_, place)| *place);
                    let place = call.unwrap_or_else(|| {
                        nodes.push(TreeNode::new(format!("{} Observation", observation.n)));
                        nodes.len() - 1
                    });
                    nodes[place].details.extend(self.observation(observation));
                }
                Step::Plan(plan) => nodes.push(self.plan(session, plan)),
                Step::PlanReview(review) => nodes.push(self.plan_review(review)),
                Step::Decomposition(decomposition) => nodes.extend(self.decomposition(session, decomposition, path)),
                Step::Review(review) => nodes.push(self.review(review)),
                Step::StepResult(result) if has_plan(session, result) => {}
                Step::StepResult(result) => nodes.push(self.step_result(result)),
                Step::Finding(finding) if has_join(session, finding) => {}
                Step::Finding(finding) => nodes.push(self.finding(finding)),
                Step::UnusedReply(reply) => nodes.push(self.unused_reply(reply)),
                Step::LateReply(reply) => nodes.push(self.late_reply(reply)),
                Step::LateResult(result) => nodes.push(self.late_result(result)),
                Step::PatternAct(act) => nodes.push(self.pattern_act(act)),
                Step::Conclusion(conclusion) => nodes.push(self.conclusion(session, conclusion)),
                Step::Synthesis(synthesis) => nodes.push(self.synthesis(session, synthesis)),
            }
        }
        nodes
    }

    fn routing(&self, routing: &Routing) -> TreeNode {
        // The task type is chosen first, then a pattern among those it allows.
        let mut decisions: Vec<_> = routing.decisions.iter().collect();
        decisions.sort_by_key(|decision| decision.id.ends_with("/pattern"));
        let title = format!("{} {}{}", self.marks.choice.cyan(), "Routing".bold(), marked(&routing.mark));
        TreeNode::new(title).with(self.choices(decisions))
    }

    fn call(&self, analysis: &Analysis) -> TreeNode {
        let call = self.cut(&call(&analysis.tool, &analysis.arguments));
        let title = format!("{} {call}{}{}", analysis.n, behind(&analysis.cost), marked(&analysis.mark));
        let mut node =
            TreeNode::new(title).with(self.failures(&analysis.cost)).with(self.thoughts(analysis.thought.as_ref()));
        node.details.extend(self.choices(&analysis.decisions));
        node.details.extend(analysis.repairs.iter().map(|what| labelled("put right", &self.cut(what))));
        node
    }

    fn observation(&self, observation: &Observation) -> Vec<String> {
        let ms = observation.tool_ms.map(seconds).unwrap_or_default();
        let spent = tokens(observation.cost.in_token, observation.cost.out_token);
        let cost = format!("{ms}  {spent}{}", marked(&observation.mark));
        vec![self.result(observation.error.as_deref(), self.document(observation.document.as_ref()), &cost)]
    }

    /// `result     ✓ Sample data …  247 ms`; what a whole text took stands in front of it.
    pub(super) fn result(&self, error: Option<&str>, text: Option<String>, cost: &str) -> String {
        let mark = match error {
            Some(_) => self.marks.bad.red().to_string(),
            None => self.marks.good.green().to_string(),
        };
        let text = text.or_else(|| error.map(|error| self.cut(error))).unwrap_or_default();
        match (cost.trim(), text.contains('\n')) {
            ("", _) => labelled("result", &format!("{mark} {text}")),
            (cost, true) => labelled("result", &format!("{mark} {}\n{text}", cost.dimmed())),
            (cost, false) => labelled("result", &format!("{mark} {text}  {}", cost.dimmed())),
        }
    }

    pub(super) fn thoughts<'a>(&self, thoughts: impl IntoIterator<Item = &'a Thought>) -> Vec<String> {
        let texts = thoughts.into_iter().filter_map(|thought| self.document(thought.document.as_ref()));
        texts.map(|text| labelled("thought", &text)).collect()
    }

    fn unused_reply(&self, reply: &UnusedReply) -> TreeNode {
        let title = format!("{} unused reply to {}{}", self.marks.thought, clean(&reply.name), behind(&reply.cost));
        self.set_aside(title + &marked(&reply.mark), &reply.thoughts, reply.error.as_deref(), &reply.decisions)
            .with(self.failures(&reply.cost))
    }

    fn late_reply(&self, reply: &LateReply) -> TreeNode {
        let title = format!("{} late reply to {}{}", self.marks.thought, clean(&reply.name), behind(&reply.cost));
        self.set_aside(title + &marked(&reply.mark), reply.thought.as_ref(), reply.error.as_deref(), &reply.decisions)
            .with(self.failures(&reply.cost))
    }

    /// What a pattern did, in its own words: a title, its texts, then whatever else it says.
    fn pattern_act(&self, act: &PatternAct) -> TreeNode {
        let mark =
            if act.error.is_some() { self.marks.bad.red().to_string() } else { self.marks.choice.cyan().to_string() };
        let name = act.label.clone().unwrap_or_else(|| act.act.clone());
        let number = act.number.map(|number| format!("{number} ")).unwrap_or_default();
        let title = format!("{mark} {number}{}{}{}", clean(&name).bold(), behind(&act.cost), marked(&act.mark));
        let facts = act.facts.iter().flat_map(|(name, texts)| texts.iter().map(move |text| (spaced(name), text)));
        let called = act.tool.as_ref().map(|tool| call(tool, act.arguments.as_ref().unwrap_or(&Value::Null)));
        TreeNode::new(title)
            .with(self.failures(&act.cost))
            .with(self.thoughts(&act.thoughts))
            .with(called.map(|called| labelled("call", &self.cut(&called))))
            .with(self.document(act.document.as_ref()).map(|text| labelled("text", &text)))
            .with(facts.map(|(name, text)| labelled(&name, &self.cut(text))))
            .with(act.error.as_ref().map(|error| labelled("error", &self.cut(error))))
            .with(self.choices(&act.decisions))
            .with(act.repairs.iter().map(|what| labelled("put right", &self.cut(what))))
    }

    /// A reply that nothing came of.
    fn set_aside<'a>(
        &self,
        title: String,
        thoughts: impl IntoIterator<Item = &'a Thought>,
        error: Option<&str>,
        decisions: &[DecisionTrace],
    ) -> TreeNode {
        let error = error.map(|error| labelled("error", &self.cut(error)));
        TreeNode::new(title.dimmed().to_string())
            .with(self.thoughts(thoughts))
            .with(error)
            .with(self.choices(decisions))
    }

    fn conclusion(&self, session: &SessionTrace, conclusion: &Conclusion) -> TreeNode {
        let title = self.end_title("Conclusion", conclusion.error.as_deref(), conclusion.reason.as_ref());
        TreeNode::new(format!("{title}{}{}", behind(&conclusion.cost), marked(&conclusion.mark)))
            .with(self.failures(&conclusion.cost))
            .with(self.thoughts(conclusion.thought.as_ref()))
            .with(not_done(&conclusion.left_out, &conclusion.uncertain))
            .with(self.end_details(session, conclusion.error.as_deref(), conclusion.criteria.as_deref()))
            .with(conclusion.outage_ms.map(not_served))
            .with(self.choices(&conclusion.decisions))
            .with(self.document(conclusion.document.as_ref()).map(|text| labelled("answer", &text)))
    }

    pub(super) fn end_title(&self, what: &str, error: Option<&str>, reason: Option<&Word<Termination>>) -> String {
        let mark = self.end_mark(error, reason);
        format!("{mark} {}  {}", what.bold(), clean(word(reason, "not recorded", |reason| reason.as_str())))
    }

    /// Answered, answered in part, or not.
    pub(super) fn end_mark(&self, error: Option<&str>, reason: Option<&Word<Termination>>) -> String {
        match (error, reason.and_then(Word::known).map(|reason| reason.run_state())) {
            (_, Some(RunState::AnsweredPartial)) => self.marks.partly.yellow().to_string(),
            (None, Some(RunState::Answered) | None) => self.marks.good.green().to_string(),
            (_, Some(_)) | (Some(_), None) => self.marks.bad.red().to_string(),
        }
    }

    /// The criteria are the same for all sessions of a run: the root's end names them.
    pub(super) fn end_details(
        &self,
        session: &SessionTrace,
        error: Option<&str>,
        criteria: Option<&str>,
    ) -> Vec<String> {
        let criteria = criteria.filter(|_| self.full || session.parent.is_none());
        let error = error.map(|error| labelled("reason", &clean(error)));
        let criteria = criteria.map(|criteria| labelled("criteria", &self.cut(criteria)));
        error.into_iter().chain(criteria).collect()
    }
}

/// `sameMistake` as words: `same mistake`.
fn spaced(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// For how long nobody worked on it, which did not count as its time.
pub(super) fn not_served(ms: u64) -> String {
    labelled("outage", &format!("nobody served it for {}, which did not count", seconds(ms)))
}

/// What an end has to do without: what limits left out, and calls that may or may not have been made.
pub(super) fn not_done(left_out: &[String], uncertain: &[String]) -> Vec<String> {
    let left_out = left_out.iter().map(|cut| labelled("left out", &clean(cut)));
    let uncertain = uncertain.iter().map(|tool| {
        labelled("uncertain", &format!("`{}` was about to be called; whether it was is not known", clean(tool)))
    });
    left_out.chain(uncertain).map(|line| line.yellow().to_string()).collect()
}

/// `financial-data(company: "Company X")`.
pub(super) fn call(tool: &str, arguments: &Value) -> String {
    let arguments = match arguments {
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join(", ")
        }
        Value::Null => String::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => other.to_string(),
    };
    format!("{tool}({arguments})")
}
