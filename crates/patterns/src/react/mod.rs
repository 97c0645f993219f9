//! ReAct: think, act, observe, until there is an answer.

pub mod parser;
mod prompt;

use crate::contract::{Effect, Ending, Order, Pattern, Turn};
use crate::session::Session;
use crate::toolset;
use trellis_domain::decision::{DecidedBy, Decision};
use trellis_domain::document::Document;
use trellis_domain::record::{Name, Reading, Replied};
use trellis_domain::reply::ReactReply;
use trellis_domain::run::Termination;

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

    fn decide(&self, session: &Session, turn: &Turn) -> Vec<Order> {
        let Some(n) = turn.name.as_iteration() else {
            let error = format!("a ReAct session has no turn `{}`", turn.name);
            return vec![Order::End(Ending::failed(Termination::Error, error))];
        };
        if n > session.limits().max_iterations {
            return vec![Order::End(out_of_iterations(session, n - 1))];
        }
        let Some(replied) = session.reply(n) else {
            return vec![Order::Perform(Name::iteration(n), Effect::AskModel(Box::new(prompt::order(session, n))))];
        };
        let effect = match &replied.reading {
            Reading::Answer { answer } => return vec![Order::End(answered(answer.text()))],
            Reading::Failed { reason } => {
                return vec![Order::End(Ending::failed(Termination::Error, reason.clone()))];
            }
            Reading::Action { tool, arguments } if was_offered(replied, tool) => {
                Effect::CallTool { tool: tool.clone(), arguments: arguments.clone() }
            }
            Reading::Action { tool, .. } => Effect::Report { error: unknown_tool(replied, tool) },
            Reading::Unreadable { reason } => Effect::Report { error: reason.clone() },
        };
        if session.has(&Name::observation(n)) {
            vec![Order::Open(Name::iteration(n + 1))]
        } else {
            vec![Order::Perform(Name::observation(n), effect)]
        }
    }
}

fn answered(answer: &str) -> Ending {
    Ending { reason: Termination::FinalAnswer, answer: answer.to_owned(), error: None }
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
    const KEPT: u32 = 3;
    let mut answer = format!("No final answer after {n} iterations, which is the limit. Found so far:");
    for i in n.saturating_sub(KEPT) + 1..=n {
        let Some((observed, replied)) = session.observation(i).zip(session.reply(i)) else { continue };
        let text = observed.result.as_ref().map_or("", Document::text);
        let cut: String = text.chars().take(500).collect();
        answer.extend(["\n- ", action_of(replied), ": ", if cut.is_empty() { "nothing" } else { &cut }]);
    }
    Ending { reason: Termination::MaxIterations, answer, error: Some("Too many agent iterations".to_owned()) }
}

/// The tool that a reply named, or the stand-in for a reply that named none.
pub fn action_of(replied: &Replied) -> &str {
    match &replied.reading {
        Reading::Action { tool, .. } => tool,
        Reading::Unreadable { .. } => PARSE_ERROR,
        Reading::Answer { .. } | Reading::Failed { .. } => "",
    }
}

/// What a reply means: its reading, its thought, and the choice it makes in the set it was offered.
pub fn interpret(reply: ReactReply, mut offered: Decision) -> (Option<Document>, Reading, Vec<Decision>) {
    let thought = Document::stored(reply.thought());
    match reply {
        ReactReply::Answer { answer, .. } => (thought, Reading::Answer { answer: answer.into() }, Vec::new()),
        ReactReply::Unreadable { reason, .. } => (thought, Reading::Unreadable { reason }, vec![offered]),
        ReactReply::Action { tool, arguments, .. } => {
            if offered.options.contains(&tool) {
                offered.chosen = vec![tool.clone()];
            } else {
                offered.rejected = Document::stored(tool.as_str());
            }
            (thought, Reading::Action { tool, arguments }, vec![offered])
        }
    }
}

/// The tool decision of an iteration before the model has replied.
fn offered_tools(session: &Session) -> Decision {
    let set = toolset::visible(session);
    Decision {
        kind: trellis_domain::decision::DecisionKind::Tool,
        options: set.offered.iter().map(|tool| tool.name.clone()).collect(),
        excluded: set.excluded,
        chosen: Vec::new(),
        source: session.config_source("tool"),
        config_version: session.settings().version,
        decided_by: DecidedBy::Model,
        enforcement: trellis_domain::decision::Enforcement::Validated,
        signals: Vec::new(),
        rationale: None,
        rejected: None,
    }
}

#[cfg(test)]
#[path = "../react_tests.rs"]
mod tests;
