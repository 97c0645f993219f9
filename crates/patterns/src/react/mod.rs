//! ReAct: think, act, observe, until there is an answer.

pub mod calls;
pub mod conversation;
pub mod decoder;
mod describe;
mod fold;
pub mod functions;
mod history;
mod iterations;
mod names;
pub mod parser;
mod progress;
mod prompt;
mod written;

use crate::contract::{CallPlace, Order, Pattern, PromptOrder, Turn};
use crate::describe::Describer;
use crate::reader::{ReadReply, Reader, ReplyForm};
use crate::session::Session;
use crate::synthesis::citations;
use crate::toolset;
use serde_json::Value;
use trellis_domain::ToolName;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::message::AgentStep;
use trellis_domain::parts::Reply;
use trellis_domain::record::{Name, Reading};
use trellis_domain::reply::ReactReply;

pub(crate) use conversation::citable;
pub(crate) use describe::{Iterations, as_json, node_of_call, with_action, with_tool_facts};
pub(crate) use iterations::{Iteration, causes, decide, done};
pub use iterations::{PARSE_ERROR, action_of};
pub use names::IterationNames;
pub use prompt::REACT as PROMPT;
pub(crate) use prompt::{as_conversation, is_conversation, variables};

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

    fn causes(&self, session: &Session, name: &Name) -> Vec<Name> {
        causes(session, name)
    }

    fn history(&self, session: &Session, turn: &Name) -> Vec<AgentStep> {
        iterations_before(session, turn)
    }

    fn form(&self, _: &str) -> ReplyForm {
        ReplyForm::Steps
    }

    fn read(&self, reader: &Reader, reply: &Reply, offered: Vec<Decision>) -> ReadReply {
        read(reader, reply, offered)
    }

    fn place_of_call(&self, session: &trellis_domain::SessionId, outcome: &Name) -> CallPlace {
        CallPlace::of_node(node_of_call(session, outcome))
    }

    fn describer(&self) -> Box<dyn Describer> {
        Box::<Iterations>::default()
    }

    #[cfg(test)]
    fn samples(&self) -> Vec<Vec<trellis_domain::record::Record>> {
        several_tests::samples()
    }
}

/// Nothing but the question, the tools and what came before.
struct Plain;

impl Iteration for Plain {
    fn prompt(&self, session: &Session, n: u32) -> PromptOrder {
        prompt::order(session, n)
    }

    fn is_conversation(&self, session: &Session) -> bool {
        prompt::is_conversation(session, prompt::REACT)
    }
}

/// The iterations before a turn, as neighbours in TrustGraph are told.
pub(crate) fn iterations_before(session: &Session, turn: &Name) -> Vec<AgentStep> {
    turn.as_iteration().map(|n| history::iterations(session, n)).unwrap_or_default()
}

/// What a reply means: its reading, its thought, and the choice it makes in the set it was offered.
pub(crate) fn read(reader: &Reader, reply: &Reply, offered: Vec<Decision>) -> ReadReply {
    let (reply, notes) = decoder::decode(reply, reader.tools().map_or(&[], |tools| &tools[..]));
    let read = interpret(reply, offered).with_repairs(notes);
    let citations = match &read.reading {
        Reading::Answered { text, .. } => citations(text.text(), &reader.rules::<Vec<u32>>()),
        Reading::Acted { .. } | Reading::Decided { .. } | Reading::Unusable { .. } | Reading::Failed { .. } => {
            Vec::new()
        }
    };
    ReadReply { citations, ..read }
}

fn interpret(reply: ReactReply, mut offered: Vec<Decision>) -> ReadReply {
    let thought = reply.thought().to_owned();
    let reading = match reply {
        ReactReply::Answer { answer, .. } => {
            offered.clear();
            Reading::answered(answer)
        }
        ReactReply::Unreadable { reason, .. } => Reading::Unusable { reason },
        ReactReply::Action { tool, arguments, also, .. } => {
            // Each call is a choice of its own.
            let named = std::iter::once(&tool).chain(also.iter().map(|call| &call.tool));
            offered = named.flat_map(|tool| offered.iter().map(|offered| chosen(offered.clone(), tool))).collect();
            Reading::Acted { tool, arguments, also, value: Value::Null }
        }
    };
    ReadReply::new(&thought, reading, offered)
}

/// The decision with what was named, be it of the set or outside of it.
fn chosen(mut decision: Decision, tool: &ToolName) -> Decision {
    if decision.options.iter().any(|option| *tool == option.as_str()) {
        decision.chosen = vec![tool.to_string()];
    } else {
        decision.rejected = Document::stored(tool.as_str());
    }
    decision
}

/// The tool decision of an iteration before the model has replied.
pub(crate) fn offered_tools(session: &Session) -> Decision {
    let set = toolset::visible(session);
    let options = set.offered.iter().map(|tool| tool.name.to_string()).collect();
    let offered = session.offered(DecisionKind::Tool, options, session.config_source("tool"));
    Decision { excluded: set.excluded, ..offered }
}

#[cfg(test)]
#[path = "../react_tests.rs"]
mod tests;

#[cfg(test)]
pub(crate) mod several_tests;

#[cfg(test)]
#[path = "../react_loop_tests.rs"]
mod loop_tests;
