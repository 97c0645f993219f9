//! The prompt of a dispatch and the set that it offers.

use super::Dispatch;
use super::choice::AGENT;
use crate::contract::PromptOrder;
use crate::fan_out;
use crate::reader::Reader;
use crate::session::Session;
use crate::toolset;
use serde_json::{Map, Value, json};
use trellis_domain::decision::{Decision, DecisionKind, Excluded};

pub(super) const CHOOSE: &str = "dispatch-choose";

/// The tools of the session, and the patterns that an agent below it may have.
pub(super) fn choice(session: &Session) -> Decision {
    let tools = toolset::visible(session);
    let names = tools.offered.iter().map(|tool| tool.name.clone());
    let (agents, not_agents) = agents(session);
    let options = names.chain(agents.into_iter().map(|agent| format!("{AGENT}{agent}"))).collect();
    let excluded = tools.excluded.into_iter().chain(not_agents).collect();
    Decision { excluded, ..session.offered(DecisionKind::Tool, options, session.config_source("tool")) }
}

fn agents(session: &Session) -> (Vec<String>, Vec<Excluded>) {
    let set = fan_out::offered(session).into_iter().find(|set| set.kind == DecisionKind::SubagentPattern);
    let (options, excluded) = set.map(|set| (set.options, set.excluded)).unwrap_or_default();
    let limit = session.limits().max_depth;
    let too_deep = session.depth() >= limit;
    let why = |name: &str| {
        let itself = (name == Dispatch::NAME).then(|| "it would choose once more".to_owned());
        itself.or_else(|| too_deep.then(|| format!("subagents are limited to depth {limit}")))
    };
    let marked = |name: String, reason: String| Excluded { name: format!("{AGENT}{name}"), reason };
    let mut out: Vec<_> = excluded.into_iter().map(|option| marked(option.name, option.reason)).collect();
    out.extend(options.iter().filter_map(|name| Some(marked(name.clone(), why(name)?))));
    (options.into_iter().filter(|name| why(name).is_none()).collect(), out)
}

pub(super) fn choose(session: &Session, problem: Option<&str>) -> PromptOrder {
    let offered = choice(session);
    let tools = toolset::visible(session)
        .offered
        .into_iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "arguments": tool.arguments }));
    let patterns = &session.settings().patterns;
    let agents = offered.options.iter().filter_map(|option| Some((option, option.strip_prefix(AGENT)?)));
    let agents = agents.map(|(option, name)| {
        let item = patterns.get(name);
        let text = |of: fn(&trellis_domain::config::PatternItem) -> &str| item.map(of).unwrap_or_default();
        json!({ "name": option, "description": text(|item| &item.description), "when_to_use": text(|item| &item.when_to_use) })
    });
    let variables = [
        ("question", json!(session.question())),
        ("context", session.context()),
        ("tools", tools.collect()),
        ("agents", agents.collect()),
        ("problem", json!(problem)),
    ];
    let variables: Map<String, Value> = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "choice": { "type": "string", "enum": offered.options },
            "arguments": { "type": "object" },
            "question": { "type": ["string", "null"] },
            "reason": { "type": "string" },
        },
        "required": ["choice", "arguments", "question", "reason"],
        "additionalProperties": false,
    });
    let reader = Reader::plain(CHOOSE);
    PromptOrder { id: CHOOSE, variables, schema: Some(schema), reader, offered: vec![offered], tools: None }
}
