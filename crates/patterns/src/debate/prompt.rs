//! The prompts of a debate and their variables.

use super::names::DebateTurn;
use super::read::{Moderation, VerdictRules};
use super::{FEWEST, rounds};
use crate::contract::PromptOrder;
use crate::fan_out::{members, most_rounds, round_by_model, round_without_model};
use crate::reader::Reader;
use crate::session::Session;
use crate::spending::most_to_ask_for;
use crate::synthesis::SynthesisName;
use serde_json::{Map, Value, json};
use trellis_domain::fan_out::Member;
use trellis_domain::record::Name;

pub(super) const STANCES: &str = "debate-stances";
pub(super) const MODERATE: &str = "debate-moderate";
pub(super) const JUDGE: &str = "debate-judge";

pub(super) fn stances(session: &Session, problem: Option<&str>) -> PromptOrder {
    let most = most_to_ask_for(session).max(FEWEST);
    let text = json!({ "type": "string" });
    let stance = object(json!({ "stance": text, "brief": text }));
    PromptOrder {
        id: STANCES,
        variables: variables(session, [("max_stances", json!(most)), ("problem", json!(problem))]),
        schema: Some(object(
            json!({ "stances": { "type": "array", "items": stance, "minItems": FEWEST, "maxItems": most } }),
        )),
        reader: Reader::under(STANCES, most),
        offered: Vec::new(),
        turns: Vec::new(),
    }
}

pub(super) fn moderate(session: &Session, round: u32, problem: Option<&str>) -> PromptOrder {
    let choice = round_by_model(session);
    let decision = json!({ "type": "string", "enum": choice.options });
    let schema = object(json!({ "decision": decision, "reason": { "type": "string" } }));
    let own = [
        ("positions", positions(session)),
        ("round", json!(round)),
        ("max_rounds", json!(most_rounds(session))),
        ("problem", json!(problem)),
    ];
    PromptOrder {
        id: MODERATE,
        variables: variables(session, own),
        schema: Some(schema),
        reader: Reader::plain(MODERATE),
        offered: vec![choice],
        turns: Vec::new(),
    }
}

/// The judge sees everything that was said, round by round.
pub(super) fn judge(session: &Session, problem: Option<&str>) -> PromptOrder {
    let texts = members(session).filter_map(|member| Some(member.answer.as_ref()?.text()));
    let budget = session.room_for(&Name::synthesis()).shared_by(texts);
    let heard = members(session).filter(|member| member.answer.is_some());
    let known = heard.map(|member| member.index).collect();
    let said = rounds::voices(session).filter_map(|(member, who)| {
        let answer = member.answer.as_ref()?;
        Some(json!({ "index": member.index, "who": who, "result": budget.shown(answer.text()) }))
    });
    let reason = |member: &Member| member.error.clone().unwrap_or_else(|| member.reason.to_string());
    let missing = rounds::voices(session).filter(|(member, _)| member.is_missing());
    let missing = missing.map(|(member, who)| json!({ "index": member.index, "who": who, "reason": reason(member) }));
    let own = [
        ("statements", said.collect()),
        ("missing", missing.collect()),
        ("framing", json!(session.routed().map_or("", |routed| &*routed.framing))),
        ("problem", json!(problem)),
    ];
    PromptOrder {
        id: JUDGE,
        variables: variables(session, own),
        schema: None,
        reader: Reader::under(JUDGE, VerdictRules { known, strict: problem.is_none() }),
        offered: round_without_model(session, rounds::voices_at_once(session), |round| is_judged(session, round))
            .into_iter()
            .collect(),
        turns: Vec::new(),
    }
}

/// Whether a model has said what follows that round.
fn is_judged(session: &Session, round: u32) -> bool {
    let replied = session.last_replied(&DebateTurn::Moderate(round).name());
    replied.is_some_and(|replied| replied.reading.decision::<Moderation>().is_some())
}

/// What every voice said last.
fn positions(session: &Session) -> Value {
    let said = rounds::last_said(session).into_iter();
    said.map(|(index, stance, text)| json!({ "index": index, "stance": stance.stance, "result": text })).collect()
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
