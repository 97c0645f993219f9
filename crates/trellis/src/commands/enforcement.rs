//! Whether the models of a run could be held to their schemas. What is lost there is told, and not only recorded.

use crate::show::clean;
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::record::{Body, FailedAttempt, PromptUse, Record, Replied};

/// The members of a request that hold a reply to a schema.
const HOLDS: [&str; 5] = ["response_format", "output_config", "format", "text", "tools"];

/// So much of what a model wrote is repeated; all of it is on record.
const SHOWN: usize = 60;

/// One line about each model that was not held although that was asked for.
pub(super) fn lost(records: &[Arc<Record>]) -> Vec<String> {
    let replies = records.iter().filter_map(|record| {
        let Body::Replied(replied) = &record.body else { return None };
        lost_with(replied)
    });
    replies.collect::<BTreeSet<_>>().into_iter().collect()
}

fn lost_with(replied: &Replied) -> Option<String> {
    let model = replied.model.as_deref().unwrap_or("the model");
    if let Some(probe) = replied.prompt.probe.as_ref().filter(|probe| !probe.obeyed) {
        let wrote: String = clean(&probe.reply).chars().take(SHOWN).collect();
        return Some(format!(
            "{model} took a schema and did not keep to it when that was tried (it wrote {wrote}): its replies are only \
             checked"
        ));
    }
    let refused = replied.failures.iter().find(|attempt| held_more(attempt, &replied.prompt));
    let why = refused.map(|attempt| &attempt.reason).or(replied.prompt.refused_before.as_ref())?;
    let held = if was_held_to_json(&replied.prompt) {
        "was held to JSON and not to a schema"
    } else {
        "could not be held to a schema"
    };
    Some(format!("{model} {held}, its replies are only checked: {}", clean(why)))
}

/// Whether the provider only saw to it that the reply was JSON.
fn was_held_to_json(answered: &PromptUse) -> bool {
    answered.parameters.get("response_format").is_some_and(|format| format["type"] == "json_object")
}

/// Whether it was sent with a schema or with functions that the request which was answered lacks.
fn held_more(attempt: &FailedAttempt, answered: &PromptUse) -> bool {
    let Some(asked) = attempt.asked.as_ref().filter(|_| !attempt.too_long) else { return false };
    let same_model = asked.parameters.get("model") == answered.parameters.get("model");
    let weaker = |name: &&str| {
        let before = asked.parameters.get(*name);
        before.is_some() && before != answered.parameters.get(*name)
    };
    same_model && HOLDS.iter().any(weaker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};
    use trellis_domain::Hash;
    use trellis_domain::record::ProbeUse;

    fn replied(replied: &Value) -> Replied {
        let mut whole =
            json!({ "prompt": { "id": "p" }, "raw": "x", "reading": { "kind": "unusable", "reason": "?" }, "ms": 1 });
        whole.as_object_mut().unwrap().extend(replied.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn asked(parameters: Value) -> PromptUse {
        let parameters: Map<_, _> = parameters.as_object().unwrap().clone();
        PromptUse { id: "p".to_owned(), parameters, ..PromptUse::default() }
    }

    #[test]
    fn a_schema_that_was_refused_is_told_and_other_refusals_are_not() {
        let failed = |parameters: Value| FailedAttempt {
            reason: "openai answered 400: no".to_owned(),
            asked: Some(Box::new(asked(parameters))),
            ..FailedAttempt::default()
        };
        let answered = asked(json!({ "model": "m" }));
        assert!(held_more(&failed(json!({ "model": "m", "response_format": {} })), &answered));
        assert!(!held_more(&failed(json!({ "model": "m", "temperature": 1 })), &answered));
        assert!(!held_more(&failed(json!({ "model": "other", "response_format": {} })), &answered));
        let too_long = FailedAttempt { too_long: true, ..failed(json!({ "model": "m", "response_format": {} })) };
        assert!(!held_more(&too_long, &answered));
    }

    #[test]
    fn a_model_that_did_not_obey_is_named() {
        let probe = ProbeUse { sent: Hash::of("x"), reply: "{\"colour\": \"blue\"}".to_owned(), obeyed: false };
        let prompt = PromptUse { probe: Some(Box::new(probe)), ..asked(json!({})) };
        let reply = replied(&json!({ "model": "openai/m", "prompt": prompt }));
        let told = lost_with(&reply).unwrap();
        assert!(told.starts_with("openai/m took a schema and did not keep to it") && told.contains("blue"), "{told}");
        assert_eq!(lost_with(&replied(&json!({}))), None);
        let before = PromptUse { refused_before: Some("no such parameter".to_owned()), ..asked(json!({})) };
        let told = lost_with(&replied(&json!({ "model": "openai/m", "prompt": before }))).unwrap();
        assert!(told.ends_with("its replies are only checked: no such parameter"), "{told}");
        let json_mode = asked(json!({ "response_format": { "type": "json_object" } }));
        let json_mode = PromptUse { refused_before: Some("no schemas".to_owned()), ..json_mode };
        let told = lost_with(&replied(&json!({ "model": "openai/m", "prompt": json_mode }))).unwrap();
        let expected = "openai/m was held to JSON and not to a schema, its replies are only checked: no schemas";
        assert_eq!(told, expected);
    }
}
