//! The prompts of a debate and their variables.

use super::read::VerdictRules;
use super::rounds;
use crate::contract::PromptOrder;
use crate::fan_out::members;
use crate::reader::Reader;
use crate::session::Session;
use crate::text::cut;
use serde_json::{Map, Value, json};
use trellis_domain::decision::DecisionKind;
use trellis_domain::decision::option::{AGAIN, ANSWER};
use trellis_domain::document::Document;
use trellis_domain::fan_out::Member;

pub(super) const STANCES: &str = "debate-stances";
pub(super) const MODERATE: &str = "debate-moderate";
pub(super) const JUDGE: &str = "debate-judge";

pub(super) fn stances(session: &Session, problem: Option<&str>) -> PromptOrder {
    let most = session.limits().max_siblings.max(2);
    let text = json!({ "type": "string" });
    let stance = object(json!({ "stance": text, "brief": text }));
    PromptOrder {
        id: STANCES,
        variables: variables(session, [("max_stances", json!(most)), ("problem", json!(problem))]),
        schema: Some(object(
            json!({ "stances": { "type": "array", "items": stance, "minItems": 2, "maxItems": most } }),
        )),
        reader: Reader::under(STANCES, most),
        offered: Vec::new(),
        tools: None,
    }
}

pub(super) fn moderate(session: &Session, round: u32, problem: Option<&str>) -> PromptOrder {
    let options = vec![ANSWER.to_owned(), AGAIN.to_owned()];
    let schema = object(json!({ "decision": { "type": "string", "enum": options }, "reason": { "type": "string" } }));
    let own = [
        ("positions", positions(session)),
        ("round", json!(round)),
        ("max_rounds", json!(rounds::most(session))),
        ("problem", json!(problem)),
    ];
    let choice = session.offered(DecisionKind::Round, options, session.config_source("agent-pattern"));
    PromptOrder {
        id: MODERATE,
        variables: variables(session, own),
        schema: Some(schema),
        reader: Reader::plain(MODERATE),
        offered: vec![choice],
        tools: None,
    }
}

/// The judge sees everything that was said, round by round.
pub(super) fn judge(session: &Session, problem: Option<&str>) -> PromptOrder {
    let shown = usize::try_from(session.limits().shown_observation_bytes).unwrap_or(usize::MAX);
    let said: Vec<_> = members(session).filter_map(|member| Some((member, member.answer.as_ref()?))).collect();
    let known = said.iter().map(|(member, _)| member.index).collect();
    let statement = |(member, answer): (&Member, &Document)| json!({ "index": member.index, "goal": member.goal, "result": cut(answer.text(), shown) });
    let missing = members(session).filter(|member| member.is_missing());
    let reason = |member: &Member| member.error.clone().unwrap_or_else(|| member.reason.to_string());
    let missing = missing.map(|member| json!({ "index": member.index, "goal": member.goal, "reason": reason(member) }));
    let own = [
        ("statements", said.into_iter().map(statement).collect()),
        ("missing", missing.collect()),
        ("framing", json!(session.routed().map_or("", |routed| &*routed.framing))),
        ("problem", json!(problem)),
    ];
    PromptOrder {
        id: JUDGE,
        variables: variables(session, own),
        schema: None,
        reader: Reader::under(JUDGE, VerdictRules { known, strict: problem.is_none() }),
        offered: Vec::new(),
        tools: None,
    }
}

/// What every voice said last.
fn positions(session: &Session) -> Value {
    let said = rounds::positions(session).into_iter().filter_map(|(member, stance)| {
        Some(json!({ "index": member.index, "stance": stance.stance, "result": rounds::text(member)? }))
    });
    said.collect()
}

fn variables<const N: usize>(session: &Session, own: [(&str, Value); N]) -> Map<String, Value> {
    let all = [("question", json!(session.question())), ("context", session.context())];
    all.into_iter().chain(own).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Every member is required: some providers enforce no other kind of object.
fn object(properties: Value) -> Value {
    let required: Vec<_> = properties.as_object().into_iter().flat_map(|members| members.keys().cloned()).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
