//! Dispatch: the model as a router. One choice out of the tools and the agents there are, forwarded at once; no loop.
//!
//! A tool's result is the answer as it came. An agent is a subagent of another pattern, and its answer is the answer.

mod choice;
mod describe;
mod prompt;
#[cfg(test)]
mod tests;

use crate::contract::{CallPlace, Effect, Ending, Order, Pattern, Turn, settled};
use crate::describe::{Describer, Notice};
use crate::fan_out::{self, GoalDraft, has_only_partial_findings, members, missing};
use crate::react::{self, IterationNames};
use crate::reader::{ReadReply, Reader};
use crate::session::Session;
use choice::{AGENT, Forward};
use trellis_domain::decision::{DecidedBy, Decision, Enforcement};
use trellis_domain::document::Document;
use trellis_domain::message::AgentStep;
use trellis_domain::parts::Reply;
use trellis_domain::record::{Name, Observed, Reading, Replied};
use trellis_domain::run::Termination;

#[derive(Debug, Clone, Copy)]
pub struct Dispatch;

impl Dispatch {
    pub const NAME: &'static str = "dispatch";
}

/// The turn after the agent has ended.
fn forwarded() -> Name {
    Name::new("forwarded")
}

impl Pattern for Dispatch {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn prompts(&self) -> &'static [&'static str] {
        &[prompt::CHOOSE]
    }

    /// The only iteration there is.
    fn first_turn(&self) -> Name {
        Name::iteration(1)
    }

    fn decide(&self, session: &Session, turn: &Turn) -> Vec<Order> {
        if turn.name == self.first_turn() {
            return vec![choose(session, turn)];
        }
        if turn.name == forwarded() {
            return vec![Order::End(as_it_came(session))];
        }
        let error = format!("a dispatch has no turn `{}`", turn.name);
        vec![Order::End(Ending::failed(Termination::Error, error))]
    }

    fn after_join(&self, _: &Session, _: u32) -> Name {
        forwarded()
    }

    fn history(&self, session: &Session, turn: &Name) -> Vec<AgentStep> {
        react::iterations_before(session, turn)
    }

    fn read(&self, _: &Reader, reply: &Reply, offered: Vec<Decision>) -> ReadReply {
        choice::read(&reply.text(), offered)
    }

    fn notice<'r>(&self, _: &Name, replied: &'r Replied) -> Option<Notice<'r>> {
        describe::notice(replied)
    }

    fn place_of_call(&self, session: &trellis_domain::SessionId, outcome: &Name) -> CallPlace {
        CallPlace::of_node(react::node_of_call(session, outcome))
    }

    fn describer(&self) -> Box<dyn Describer> {
        Box::<describe::DispatchActs>::default()
    }

    #[cfg(test)]
    fn samples(&self) -> Vec<Vec<trellis_domain::record::Record>> {
        tests::samples()
    }
}

fn choose(session: &Session, turn: &Turn) -> Order {
    let failed = |error: &str| Order::End(Ending::failed(Termination::Error, error));
    // Once something was chosen, what is left to choose does not matter: the tool may have changed it.
    let first = session.replied(&Name::iteration(1));
    let is_open = first.is_none_or(|it| matches!(it.reading, Reading::Unusable { .. }))
        && !session.has(&Name::iteration(1).retry());
    if is_open && prompt::choice(session).options.is_empty() {
        return failed("there is neither a tool nor an agent to choose; configure one");
    }
    let replied = match settled(session, &Name::iteration(1), |problem| prompt::choose(session, problem)) {
        Err(order) => return order,
        Ok(replied) => replied,
    };
    match &replied.reading {
        Reading::Acted { tool, arguments, .. } => {
            let call = || Effect::CallTool { tool: tool.clone(), arguments: arguments.clone() };
            let observed = session.observed(&Name::observation(1));
            observed.map_or_else(
                || Order::Perform(Name::observation(1), call()),
                |observed| Order::End(as_observed(observed)),
            )
        }
        Reading::Decided { .. } => match replied.reading.decision::<Forward>() {
            Some(forward) => send_out(session, turn, &forward, replied.decision.clone()),
            None => failed("the reply was read in another way"),
        },
        Reading::Unusable { reason } => match fallback(session) {
            Some(forward) => send_out(session, turn, &forward, vec![fallback_choice(session, &forward)]),
            None => failed(reason),
        },
        Reading::Failed { reason } => Order::End(Ending::without_reply(replied, reason)),
        Reading::Answered { .. } => failed("the reply was read in another way"),
    }
}

/// The agent that gets what nobody could place: `react` if it is there, else the first.
fn fallback(session: &Session) -> Option<Forward> {
    let options = prompt::choice(session).options;
    let mut agents = options.iter().filter_map(|option| option.strip_prefix(AGENT));
    let agent = agents.clone().find(|agent| *agent == react::React::NAME).or_else(|| agents.next())?;
    Some(Forward { agent: agent.into(), question: None })
}

fn fallback_choice(session: &Session, forward: &Forward) -> Decision {
    let chosen = vec![format!("{AGENT}{}", forward.agent)];
    let (decided_by, enforcement) = (DecidedBy::Fallback, Enforcement::None);
    Decision { chosen, decided_by, enforcement, ..prompt::choice(session) }
}

/// The agent's session begins with the choice that led to it.
fn send_out(session: &Session, turn: &Turn, forward: &Forward, mut decisions: Vec<Decision>) -> Order {
    let by = decisions.first().map_or(DecidedBy::Rule, |choice| choice.decided_by);
    let goal = forward.question.clone().unwrap_or_else(|| session.question().to_owned());
    let drafts = [GoalDraft { goal, pattern: Some(forward.agent.clone()), ..GoalDraft::default() }];
    decisions.extend(fan_out::goal_decisions(&drafts, &prompt::below(session), by));
    fan_out::order(session, turn.now, 1, &drafts, decisions)
}

/// A tool's result, or its error.
fn as_observed(observed: &Observed) -> Ending {
    let text = observed.result.as_ref().map_or("", Document::text);
    match &observed.error {
        Some(error) => Ending::failed(Termination::Error, error.clone()),
        None => Ending::answered(Termination::FinalAnswer, text),
    }
}

/// What the agent brought, however far it came.
fn as_it_came(session: &Session) -> Ending {
    let Some(member) = members(session).next() else {
        return Ending::failed(Termination::Error, "the agent left no trace");
    };
    let missing = missing(session);
    let is_complete = missing.is_empty() && !has_only_partial_findings(session);
    let reason = if is_complete { Termination::SubagentsComplete } else { Termination::SubagentsPartial };
    if let Some(answer) = &member.answer {
        return Ending { missing, error: member.error.clone(), ..Ending::answered(reason, answer.text()) };
    }
    let error = member.error.clone().unwrap_or_else(|| member.reason.to_string());
    Ending { missing, ..Ending::failed(Termination::Error, error) }
}
