//! Debate: several agents reason on the same question from different stances, answer each other, and a judge reconciles
//! them. The answer says what they agree on and where they do not.
//!
//! The first round is independent. In each later round every agent is shown what the others said and rebuts it. How many
//! rounds there are is bounded; after the second one a model may say that more would bring nothing.

mod describe;
mod names;
mod prompt;
mod read;
mod rounds;
#[cfg(test)]
mod tests;

use crate::contract::{Ending, Order, Pattern, Turn, settled};
use crate::describe::{Describer, Notice};
use crate::fan_out::{has_only_partial_findings, missing, most_rounds, without_synthesis};
use crate::reader::{ReadReply, Reader, ReplyForm};
use crate::session::Session;
use crate::spending::{most_subagents, most_to_ask_for, no_subagents};
use crate::synthesis::SynthesisName;
use names::DebateTurn;
use read::{Moderation, Stances};
use trellis_domain::decision::{DecidedBy, Decision};
use trellis_domain::parts::Reply;
use trellis_domain::record::{Name, Reading, Replied};
use trellis_domain::run::Termination;

/// With fewer sides it is no debate.
const FEWEST: u32 = 2;

#[derive(Debug, Clone, Copy)]
pub struct Debate;

impl Debate {
    pub const NAME: &'static str = "debate";
}

impl Pattern for Debate {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn prompts(&self) -> &'static [&'static str] {
        &[prompt::STANCES, prompt::MODERATE, prompt::JUDGE]
    }

    fn first_turn(&self) -> Name {
        DebateTurn::Stances.name()
    }

    fn decide(&self, session: &Session, turn: &Turn) -> Vec<Order> {
        let order = match DebateTurn::of(&turn.name) {
            Some(DebateTurn::Stances) => open(session, turn),
            Some(DebateTurn::Moderate(round)) => moderate(session, turn, round),
            Some(DebateTurn::Judge) => judge(session),
            None => failed(&format!("a debate has no turn `{}`", turn.name)),
        };
        vec![order]
    }

    fn after_join(&self, session: &Session, round: u32) -> Name {
        if round < most_rounds(session) { DebateTurn::Moderate(round).name() } else { Name::synthesis() }
    }

    fn form(&self, prompt: &str) -> ReplyForm {
        if prompt == prompt::JUDGE { ReplyForm::Answer } else { ReplyForm::Whole }
    }

    fn read(&self, reader: &Reader, reply: &Reply, offered: Vec<Decision>) -> ReadReply {
        let raw = &reply.text();
        match reader.prompt() {
            prompt::STANCES => read::stances(raw, reader.rules(), offered),
            prompt::MODERATE => read::moderation(raw, offered),
            _ => read::verdict(raw, &reader.rules(), offered),
        }
    }

    fn notice<'r>(&self, name: &Name, replied: &'r Replied) -> Option<Notice<'r>> {
        describe::notice(name, replied)
    }

    fn describer(&self) -> Box<dyn Describer> {
        Box::<describe::DebateActs>::default()
    }

    #[cfg(test)]
    fn samples(&self) -> Vec<Vec<trellis_domain::record::Record>> {
        tests::samples()
    }
}

fn failed(error: &str) -> Order {
    Order::End(Ending::failed(Termination::Error, error))
}

/// Who argues for what; for and against if no model can say it.
fn open(session: &Session, turn: &Turn) -> Order {
    let limits = session.limits();
    let limited = |error: String| Order::End(Ending::failed(Termination::Limit, error));
    if session.depth() >= limits.max_depth {
        let limit = limits.max_depth;
        return limited(format!("a debate needs subagents, and their depth is limited to {limit}; raise max-depth"));
    }
    let has_room = session.has(&DebateTurn::Stances.name()) || most_to_ask_for(session) >= FEWEST;
    if limits.max_siblings >= FEWEST && !has_room {
        return limited(no_subagents(session));
    }
    if limits.max_siblings < FEWEST {
        let limit = limits.max_siblings;
        return limited(format!(
            "a debate needs {FEWEST} subagents at once, and the limit is {limit}; raise max-siblings"
        ));
    }
    match settled(session, &DebateTurn::Stances.name(), |problem| prompt::stances(session, problem)) {
        Err(order) => order,
        Ok(replied @ Replied { reading: Reading::Failed { reason }, .. }) => {
            Order::End(Ending::without_reply(replied, reason))
        }
        Ok(replied) => match replied.reading.decision::<Stances>() {
            Some(stances) => rounds::first(session, turn, &stances, DecidedBy::Model),
            None => rounds::first(session, turn, &Stances::usual(), DecidedBy::Fallback),
        },
    }
}

/// The first rebuttal is a rule: a debate in which nobody answers is none. Whether there is another one is asked.
fn moderate(session: &Session, turn: &Turn, round: u32) -> Order {
    if round == 1 {
        // All are heard once more, or none.
        let has_room = rounds::voices_at_once(session) <= most_subagents(session);
        return if has_room { rounds::rebuttal(session, turn, 2) } else { Order::Open(Name::synthesis()) };
    }
    let name = DebateTurn::Moderate(round).name();
    if !session.has(&name) && most_to_ask_for(session) < rounds::voices_at_once(session) {
        return Order::Open(Name::synthesis());
    }
    match settled(session, &name, |problem| prompt::moderate(session, round, problem)) {
        Err(order) => order,
        Ok(replied) => match replied.reading.decision::<Moderation>() {
            Some(Moderation { again: true }) => rounds::rebuttal(session, turn, round + 1),
            Some(Moderation { again: false }) | None => Order::Open(Name::synthesis()),
        },
    }
}

fn judge(session: &Session) -> Order {
    let replied = match settled(session, &Name::synthesis(), |problem| prompt::judge(session, problem)) {
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
