//! Reflexion: ReAct with a critique after each action, which the next step has to take up.
//!
//! After the observation the model is asked what it thinks of what it just did. The next step is shown that, and a call
//! that was found wanting is not made again unchanged: the model is told instead.

mod critique;
mod describe;
mod prompt;
#[cfg(test)]
mod tests;

use crate::contract::{CallPlace, Order, Pattern, PromptOrder, Turn, settled};
use crate::describe::{Describer, Notice};
use crate::react::{self, Iteration, IterationNames};
use crate::reader::{ReadReply, Reader, ReplyForm};
use crate::session::Session;
use critique::{Critique, name_of};
use trellis_domain::decision::Decision;
use trellis_domain::message::AgentStep;
use trellis_domain::parts::Reply;
use trellis_domain::record::{Name, Replied};

#[derive(Debug, Clone, Copy)]
pub struct Reflexion;

impl Reflexion {
    pub const NAME: &'static str = "reflexion";
}

impl Pattern for Reflexion {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn prompts(&self) -> &'static [&'static str] {
        &[prompt::ACT, prompt::CRITIQUE]
    }

    fn first_turn(&self) -> Name {
        Name::iteration(1)
    }

    fn decide(&self, session: &Session, turn: &Turn) -> Vec<Order> {
        react::decide(self, session, turn)
    }

    fn causes(&self, session: &Session, name: &Name) -> Vec<Name> {
        react::causes(session, name)
    }

    fn history(&self, session: &Session, turn: &Name) -> Vec<AgentStep> {
        react::iterations_before(session, turn)
    }

    fn form(&self, prompt: &str) -> ReplyForm {
        if prompt == prompt::ACT { ReplyForm::Steps } else { ReplyForm::Whole }
    }

    fn read(&self, reader: &Reader, reply: &Reply, offered: Vec<Decision>) -> ReadReply {
        if reader.prompt() == prompt::ACT {
            react::read(reader, reply, offered)
        } else {
            critique::read(&reply.text(), offered)
        }
    }

    fn notice<'r>(&self, name: &Name, replied: &'r Replied) -> Option<Notice<'r>> {
        describe::notice(name, replied)
    }

    fn place_of_call(&self, session: &trellis_domain::SessionId, outcome: &Name) -> CallPlace {
        CallPlace::of_node(react::node_of_call(session, outcome))
    }

    fn describer(&self) -> Box<dyn Describer> {
        Box::<describe::ReflexionActs>::default()
    }

    #[cfg(test)]
    fn samples(&self) -> Vec<Vec<trellis_domain::record::Record>> {
        tests::samples()
    }
}

impl Iteration for Reflexion {
    fn prompt(&self, session: &Session, n: u32) -> PromptOrder {
        prompt::act(session, n)
    }

    fn is_conversation(&self, session: &Session) -> bool {
        react::is_conversation(session, prompt::ACT)
    }

    /// What was found wanting is not done again unchanged.
    fn objection(&self, session: &Session, n: u32) -> Option<String> {
        let before = n.checked_sub(1)?;
        let critique = critique_of(session, before).filter(|critique| !critique.sound)?;
        let calls = |n: u32| session.replied(&Name::iteration(n)).map(|replied| replied.reading.calls().collect());
        let now: Vec<_> = calls(n)?;
        let repeats = !now.is_empty() && Some(now) == calls(before);
        repeats.then(|| {
            format!(
                "this is the call that was found wanting, so it was not made again: {}; do something else, or answer",
                critique.in_words()
            )
        })
    }

    /// A call and its result are judged before the next step. A judgement that cannot be had keeps nobody from going on.
    fn between(&self, session: &Session, n: u32) -> Option<Order> {
        session.replied(&Name::iteration(n))?.reading.call()?;
        settled(session, &name_of(n), |problem| prompt::critique(session, n, problem)).err()
    }
}

/// What the model thinks of iteration `n`.
fn critique_of(session: &Session, n: u32) -> Option<Critique> {
    session.last_replied(&name_of(n))?.reading.decision()
}
