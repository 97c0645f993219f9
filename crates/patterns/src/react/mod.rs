//! ReAct: think, act, observe, until there is an answer.

mod describe;
mod history;
mod iterations;
mod names;
pub mod parser;
mod prompt;

use crate::contract::{Order, Pattern, PromptOrder, Turn};
use crate::describe::Describer;
use crate::reader::{ReadReply, Reader, ReplyForm};
use crate::session::Session;
use crate::toolset;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::message::AgentStep;
use trellis_domain::record::{Name, Reading};
use trellis_domain::reply::ReactReply;

pub(crate) use describe::{Iterations, as_json, with_action, with_tool_facts};
pub(crate) use iterations::{Iteration, decide, step};
pub use iterations::{PARSE_ERROR, action_of};
pub use names::IterationNames;
pub(crate) use prompt::variables;

#[derive(Debug, Clone, Copy)]
pub struct React;

impl React {
    pub const NAME: &'static str = "react";
}

impl Pattern for React {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn prompts(&self) -> &'static [&'static str] {
        &[prompt::REACT]
    }

    fn first_turn(&self) -> Name {
        Name::iteration(1)
    }

    fn decide(&self, session: &Session, turn: &Turn) -> Vec<Order> {
        decide(&Plain, session, turn)
    }

    fn history(&self, session: &Session, turn: &Name) -> Vec<AgentStep> {
        iterations_before(session, turn)
    }

    fn form(&self, _: &str) -> ReplyForm {
        ReplyForm::Grammar
    }

    fn read(&self, _: &Reader, raw: &str, offered: Vec<Decision>) -> ReadReply {
        read(raw, offered)
    }

    fn describer(&self) -> Box<dyn Describer> {
        Box::<Iterations>::default()
    }
}

/// Nothing but the question, the tools and what came before.
struct Plain;

impl Iteration for Plain {
    fn prompt(&self, session: &Session, n: u32) -> PromptOrder {
        prompt::order(session, n)
    }
}

/// The iterations before a turn, as neighbours in TrustGraph are told.
pub(crate) fn iterations_before(session: &Session, turn: &Name) -> Vec<AgentStep> {
    turn.as_iteration().map(|n| history::iterations(session, n)).unwrap_or_default()
}

/// What a reply means: its reading, its thought, and the choice it makes in the set it was offered.
pub(crate) fn read(raw: &str, offered: Vec<Decision>) -> ReadReply {
    let mut parser = parser::ReplyParser::new();
    parser.push(raw);
    let (_, reply) = parser.finish();
    interpret(reply, offered)
}

fn interpret(reply: ReactReply, mut offered: Vec<Decision>) -> ReadReply {
    let thought = reply.thought().to_owned();
    let reading = match reply {
        ReactReply::Answer { answer, .. } => {
            offered.clear();
            Reading::answered(answer)
        }
        ReactReply::Unreadable { reason, .. } => Reading::Unusable { reason },
        ReactReply::Action { tool, arguments, .. } => {
            for decision in &mut offered {
                if decision.options.contains(&tool) {
                    decision.chosen = vec![tool.clone()];
                } else {
                    decision.rejected = Document::stored(tool.as_str());
                }
            }
            Reading::acted(tool, arguments)
        }
    };
    ReadReply::new(&thought, reading, offered)
}

/// The tool decision of an iteration before the model has replied.
pub(crate) fn offered_tools(session: &Session) -> Decision {
    let set = toolset::visible(session);
    let options = set.offered.iter().map(|tool| tool.name.clone()).collect();
    let offered = session.offered(DecisionKind::Tool, options, session.config_source("tool"));
    Decision { excluded: set.excluded, ..offered }
}

#[cfg(test)]
#[path = "../react_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "../react_loop_tests.rs"]
mod loop_tests;
