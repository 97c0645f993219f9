//! The prompt of a dispatch and the set that it offers.

use super::Dispatch;
use super::choice::AGENT;
use crate::contract::PromptOrder;
use crate::fan_out;
use crate::reader::Reader;
use crate::session::Session;
use crate::spending::{most_to_ask_for, no_subagents};
use crate::toolset;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trellis_domain::config::ToolItem;
use trellis_domain::decision::{Decision, DecisionKind, Excluded};

pub(super) const CHOOSE: &str = "dispatch-choose";

/// The tools of the session, and the patterns that an agent below it may have.
pub(super) fn choice(session: &Session) -> Decision {
    let excluded = toolset::visible(session).excluded;
    let (tools, not_tools) = tools(session);
    let (agents, not_agents) = agents(session);
    let names = tools.iter().map(|tool| tool.name.to_string());
    let options = names.chain(agents.into_iter().map(|agent| format!("{AGENT}{agent}"))).collect();
    let excluded = excluded.into_iter().chain(not_tools).chain(not_agents).collect();
    Decision { excluded, ..session.offered(DecisionKind::Tool, options, session.config_source("tool")) }
}

/// The tools that can be told from agents by their names, and the others.
fn tools(session: &Session) -> (Vec<&Arc<ToolItem>>, Vec<Excluded>) {
    let visible = toolset::visible(session).offered;
    let (like_agents, tools): (Vec<_>, Vec<_>) = visible.into_iter().partition(|tool| tool.name.starts_with(AGENT));
    let reason = format!("its name begins with `{AGENT}`, as those of agents do");
    let out = like_agents.iter().map(|tool| Excluded { name: tool.name.to_string(), reason: reason.clone() });
    (tools, out.collect())
}

/// The sets behind a fan-out: an agent may have any pattern that can run below, but for this one.
pub(super) fn below(session: &Session) -> Vec<Decision> {
    fan_out::offered_unless(session, |name| (*name == Dispatch::NAME).then_some("it would choose once more"))
}

/// The patterns that an agent may have, and the others. None may if it would be too deep, or there is no budget for it.
fn agents(session: &Session) -> (Vec<String>, Vec<Excluded>) {
    let set = below(session).into_iter().find(|set| set.kind == DecisionKind::SubagentPattern);
    let (options, mut excluded) = set.map(|set| (set.options, set.excluded)).unwrap_or_default();
    let limit = session.limits().max_depth;
    let too_deep = (session.depth() >= limit).then(|| format!("subagents are limited to depth {limit}"));
    let against = too_deep.or_else(|| (most_to_ask_for(session) == 0).then(|| no_subagents(session)));
    let (out, options): (Vec<_>, Vec<_>) = options.into_iter().partition(|_| against.is_some());
    let reason = against.unwrap_or_default();
    excluded.extend(out.into_iter().map(|name| Excluded { name, reason: reason.clone() }));
    for option in &mut excluded {
        option.name.insert_str(0, AGENT);
    }
    (options, excluded)
}

pub(super) fn choose(session: &Session, problem: Option<&str>) -> PromptOrder {
    let offered = choice(session);
    let (tools, _) = tools(session);
    let tools = tools
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
    PromptOrder { id: CHOOSE, variables, schema: Some(schema), reader, offered: vec![offered], turns: Vec::new() }
}
