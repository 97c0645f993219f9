//! ReAct: think, act, observe, until there is an answer.

mod describe;
mod history;
mod names;
pub mod parser;
mod prompt;

use crate::contract::{Effect, Ending, Order, Pattern, Turn};
use crate::describe::Describer;
use crate::reader::{ReadReply, Reader, ReplyForm};
use crate::session::Session;
use crate::toolset;
use trellis_domain::counted;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::message::AgentStep;
use trellis_domain::record::{Name, Observed, Reading, Replied};
use trellis_domain::reply::ReactReply;
use trellis_domain::run::Termination;

pub(crate) use describe::{as_json, with_tool_facts};
pub use names::IterationNames;
pub(crate) use prompt::cut;

/// The action that stands for a reply which could not be read.
pub const PARSE_ERROR: &str = "__parse_error__";

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
        let Some(n) = turn.name.as_iteration() else {
            let error = format!("a ReAct session has no turn `{}`", turn.name);
            return vec![Order::End(Ending::failed(Termination::Error, error))];
        };
        if n > session.limits().max_iterations {
            return vec![Order::End(out_of_iterations(session, n - 1))];
        }
        let Some(replied) = session.replied(&Name::iteration(n)) else {
            return vec![Order::Perform(Name::iteration(n), Effect::AskModel(Box::new(prompt::order(session, n))))];
        };
        let effect = match &replied.reading {
            Reading::Answered { text, .. } => {
                return vec![Order::End(Ending::answered(Termination::FinalAnswer, text.text()))];
            }
            Reading::Failed { reason } => {
                return vec![Order::End(Ending::failed(Termination::Error, reason.clone()))];
            }
            Reading::Acted { tool, .. } if !was_offered(replied, tool) => {
                Effect::Report { error: unknown_tool(replied, tool) }
            }
            Reading::Acted { tool, arguments, .. } => match times_in_a_row(session, n) {
                0..LOOP => Effect::CallTool { tool: tool.clone(), arguments: arguments.clone() },
                LOOP => Effect::Report { error: repeated(tool) },
                _ => return vec![Order::End(going_in_circles(session, n, tool))],
            },
            Reading::Unusable { reason } => Effect::Report { error: reason.clone() },
            Reading::Decided { .. } => Effect::Report { error: "the reply was read in another way".to_owned() },
        };
        if session.has(&Name::observation(n)) {
            vec![Order::Open(Name::iteration(n + 1))]
        } else {
            vec![Order::Perform(Name::observation(n), effect)]
        }
    }

    fn history(&self, session: &Session, turn: &Name) -> Vec<AgentStep> {
        turn.as_iteration().map(|n| history::iterations(session, n)).unwrap_or_default()
    }

    fn form(&self, _: &str) -> ReplyForm {
        ReplyForm::Grammar
    }

    fn read(&self, _: &Reader, raw: &str, offered: Vec<Decision>) -> ReadReply {
        read(raw, offered)
    }

    fn describer(&self) -> Box<dyn Describer> {
        Box::<describe::Iterations>::default()
    }
}

/// So many equal calls in a row are a loop: the model is told instead of the tool being called once more.
const LOOP: u32 = 3;

/// How often in a row, up to iteration `n`, the same tool was named with the same arguments.
fn times_in_a_row(session: &Session, n: u32) -> u32 {
    let call = |i: u32| session.replied(&Name::iteration(i))?.reading.call();
    let last = call(n);
    let equal = (1..=n).rev().take_while(|i| last.is_some() && call(*i) == last);
    u32::try_from(equal.count()).unwrap_or(u32::MAX)
}

fn repeated(tool: &str) -> String {
    format!(
        "you named `{tool}` with the same arguments {LOOP} times in a row, so it was not called again; \
         its result is above: use another tool or other arguments, or answer with what you know"
    )
}

/// A model that goes on after it was told ends the session with what it found out.
fn going_in_circles(session: &Session, n: u32, tool: &str) -> Ending {
    let answer = found_so_far(
        session,
        n - 1,
        &format!("No final answer: `{tool}` was named again and again with the same arguments."),
    );
    let error = format!("the model called `{tool}` with the same arguments {} times in a row", LOOP + 1);
    Ending { error: Some(error), ..Ending::answered(Termination::Limit, answer) }
}

/// The model can only call what it was offered in this turn.
fn was_offered(replied: &Replied, tool: &str) -> bool {
    replied.decision.iter().any(|decision| decision.chosen.iter().any(|chosen| chosen == tool))
}

fn unknown_tool(replied: &Replied, tool: &str) -> String {
    let options: Vec<_> = replied.decision.iter().flat_map(|decision| &decision.options).map(String::as_str).collect();
    if options.is_empty() {
        return format!("there is no tool `{tool}`, and no other; answer from what you know");
    }
    format!("there is no tool `{tool}`; available tools: {}", options.join(", "))
}

/// The limit ends the session with what it found out, not in silence.
fn out_of_iterations(session: &Session, n: u32) -> Ending {
    let heading = format!("No final answer after {}, which is the limit.", counted(n, "iteration"));
    let answer = found_so_far(session, n, &heading);
    let error = Some("Too many agent iterations".to_owned());
    Ending { error, ..Ending::answered(Termination::MaxIterations, answer) }
}

/// The last things that tools brought, as the answer of a session that has none. What only the model was told is no
/// finding.
fn found_so_far(session: &Session, n: u32, why: &str) -> String {
    const KEPT: usize = 3;
    let found = (1..=n).rev().filter_map(|i| step(session, i));
    let found = found.filter(|(_, observed)| observed.idempotency_key.is_some()).take(KEPT);
    let mut lines: Vec<_> = found.map(|(replied, observed)| finding(observed, replied)).collect();
    if lines.is_empty() {
        return format!("{why} Nothing was found so far.");
    }
    lines.reverse();
    format!("{why} Found so far:{}", lines.concat())
}

/// A reply and what came back.
pub(crate) fn step(session: &Session, n: u32) -> Option<(&Replied, &Observed)> {
    session.replied(&Name::iteration(n)).zip(session.observed(&Name::observation(n)))
}

fn finding(observed: &Observed, replied: &Replied) -> String {
    let text: String = observed.result.as_ref().map_or("nothing", Document::text).chars().take(500).collect();
    format!("\n- {}: {text}", action_of(replied))
}

/// The tool that a reply named, or the stand-in for a reply that named none.
pub fn action_of(replied: &Replied) -> &str {
    match &replied.reading {
        Reading::Acted { tool, .. } => tool,
        Reading::Unusable { .. } => PARSE_ERROR,
        Reading::Answered { .. } | Reading::Decided { .. } | Reading::Failed { .. } => "",
    }
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
fn offered_tools(session: &Session) -> Decision {
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
