//! Supervisor: split a task into goals, send a subagent after each, judge what they bring, answer.
//!
//! The supervisor stops after a fan-out. It neither waits nor polls: the join opens its next turn.

mod describe;
mod history;
mod names;
mod prompt;
mod read;
mod value;

pub use names::TeamNames;
pub use read::GoalRules;
pub use value::Goals;

use crate::contract::{Ending, Order, Pattern, Turn, settled};
use crate::describe::{Describer, Notice};
use crate::fan_out::{self, GoalDraft, has_only_partial_findings, missing, most_rounds, without_synthesis};
use crate::reader::{ReadReply, Reader, ReplyForm};
use crate::session::Session;
use crate::spending::{most_to_ask_for, no_subagents};
use crate::synthesis::{self, SynthesisName};
use names::TeamTurn;
use trellis_domain::decision::{DecidedBy, Decision};
use trellis_domain::message::AgentStep;
use trellis_domain::parts::Reply;
use trellis_domain::record::{Name, Reading, Replied};
use trellis_domain::run::Termination;

#[derive(Debug, Clone, Copy)]
pub struct Supervisor;

impl Supervisor {
    pub const NAME: &'static str = "supervisor";
}

impl Pattern for Supervisor {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn prompts(&self) -> &'static [&'static str] {
        &[prompt::DECOMPOSE, prompt::REVIEW, prompt::SYNTHESISE]
    }

    fn first_turn(&self) -> Name {
        Name::decompose()
    }

    fn decide(&self, session: &Session, turn: &Turn) -> Vec<Order> {
        let order = match TeamTurn::of(&turn.name) {
            Some(TeamTurn::Decompose) => decompose(session, turn),
            Some(TeamTurn::Review(round)) => review(session, turn, round),
            Some(TeamTurn::Synthesis) => synthesise(session),
            None => {
                let error = format!("a supervisor session has no turn `{}`", turn.name);
                Order::End(Ending::failed(Termination::Error, error))
            }
        };
        vec![order]
    }

    /// A judgement if another round is possible, else the synthesis.
    fn after_join(&self, session: &Session, round: u32) -> Name {
        if round < most_rounds(session) { Name::review(round) } else { Name::synthesis() }
    }

    fn form(&self, prompt: &str) -> ReplyForm {
        if prompt == prompt::SYNTHESISE { ReplyForm::Answer } else { ReplyForm::Whole }
    }

    fn read(&self, reader: &Reader, reply: &Reply, offered: Vec<Decision>) -> ReadReply {
        let raw = &reply.text();
        match reader.prompt() {
            prompt::DECOMPOSE => read::read_goals(raw, &reader.rules(), offered),
            prompt::REVIEW => read::read_review(raw, &reader.rules(), offered),
            _ => synthesis::read(raw, &reader.rules::<Vec<u32>>(), offered),
        }
    }

    fn history(&self, session: &Session, _: &Name) -> Vec<AgentStep> {
        history::rounds(session)
    }

    fn notice<'r>(&self, name: &Name, replied: &'r Replied) -> Option<Notice<'r>> {
        describe::notice(name, replied)
    }

    fn describer(&self) -> Box<dyn Describer> {
        Box::<describe::TeamActs>::default()
    }
}

fn decompose(session: &Session, turn: &Turn) -> Order {
    if !session.found_before().is_empty() {
        // Others have sent out and joined them.
        return Order::Open(Name::synthesis());
    }
    let limit = session.limits().max_depth;
    if session.depth() >= limit {
        let error = format!("a supervisor needs subagents, and their depth is limited to {limit}; raise max-depth");
        return Order::End(Ending::failed(Termination::Limit, error));
    }
    if !session.has(&Name::decompose()) && most_to_ask_for(session) == 0 {
        return Order::End(Ending::failed(Termination::Limit, no_subagents(session)));
    }
    let replied = match settled(session, &Name::decompose(), |problem| prompt::decompose(session, problem)) {
        Err(order) => return order,
        Ok(replied) => replied,
    };
    if let Reading::Failed { reason } = &replied.reading {
        return Order::End(Ending::without_reply(replied, reason));
    }
    if let Some(goals) = goals_of(replied) {
        return fan_out::order(session, turn.now, 1, &goals, replied.decision.clone());
    }
    // As in the original: the whole question becomes the only goal.
    let goals = [GoalDraft { goal: session.question().to_owned(), ..GoalDraft::default() }];
    let decisions = fan_out::goal_decisions(&goals, &fan_out::offered(session), DecidedBy::Fallback);
    fan_out::order(session, turn.now, 1, &goals, decisions)
}

/// The goals that a reply sends subagents after, if it does.
fn goals_of(replied: &Replied) -> Option<Vec<GoalDraft>> {
    Goals::of(&replied.reading)?.goals
}

/// A judgement that cannot be had is no reason to go round again: the answer is given with what is there.
fn review(session: &Session, turn: &Turn, round: u32) -> Order {
    if !session.has(&Name::review(round)) && most_to_ask_for(session) == 0 {
        return Order::Open(Name::synthesis());
    }
    match settled(session, &Name::review(round), |problem| prompt::review(session, round, problem)) {
        Err(order) => order,
        Ok(replied) => match goals_of(replied) {
            Some(goals) => {
                let decisions = replied.decision.iter().filter(|decision| !read::is_round(decision)).cloned();
                fan_out::order(session, turn.now, round + 1, &goals, decisions.collect())
            }
            None => Order::Open(Name::synthesis()),
        },
    }
}

fn synthesise(session: &Session) -> Order {
    let replied = match settled(session, &Name::synthesis(), |problem| prompt::synthesise(session, problem)) {
        Err(order) => return order,
        Ok(replied) => replied,
    };
    let missing = missing(session);
    let is_complete = missing.is_empty() && session.left_out().is_empty() && !has_only_partial_findings(session);
    let reason = if is_complete { Termination::SubagentsComplete } else { Termination::SubagentsPartial };
    match &replied.reading {
        Reading::Answered { text, .. } => Order::End(Ending { missing, ..Ending::answered(reason, text.text()) }),
        Reading::Unusable { reason } | Reading::Failed { reason } => {
            Order::End(without_synthesis(session, replied, reason))
        }
        Reading::Acted { .. } | Reading::Decided { .. } => {
            Order::End(without_synthesis(session, replied, "the reply was read in another way"))
        }
    }
}

#[cfg(test)]
#[path = "../supervisor_tests.rs"]
mod tests;
