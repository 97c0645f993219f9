//! JSON schemas of the replies, for providers that can enforce them. The readers accept more.

use crate::react::functions::argument_schema;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trellis_domain::config::ToolItem;
use trellis_domain::decision::option::{KEEP, REVISE};

pub(super) fn plan(most: u32) -> Value {
    object(json!({ "steps": steps(1, most) }))
}

pub(super) fn step(options: &[String], tools: &[&Arc<ToolItem>]) -> Value {
    object(json!({
        "tool": { "type": "string", "enum": options },
        "arguments": arguments(tools),
        "answer": { "type": ["string", "null"] },
        "surprising": { "type": "boolean" },
    }))
}

/// The arguments of one of the tools, or none.
fn arguments(tools: &[&Arc<ToolItem>]) -> Value {
    let mut ways = Vec::new();
    for tool in tools {
        let members: Map<_, _> =
            tool.arguments.iter().map(|argument| (argument.name.clone(), argument_schema(argument))).collect();
        let way = object(Value::Object(members));
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    let none = object(json!({}));
    if !ways.contains(&none) {
        ways.push(none);
    }
    if ways.len() == 1 { ways.remove(0) } else { json!({ "anyOf": ways }) }
}

/// A plan that is kept has no new steps.
pub(super) fn revision(most: u32) -> Value {
    object(json!({
        "decision": { "type": "string", "enum": [KEEP, REVISE] },
        "reason": { "type": "string" },
        "steps": steps(0, most),
    }))
}

fn steps(fewest: u32, most: u32) -> Value {
    let step = object(json!({
        "goal": { "type": "string" },
        "tool_hint": { "type": ["string", "null"] },
        "depends_on": { "type": "array", "items": { "type": "integer", "minimum": 0 } },
    }));
    json!({ "type": "array", "items": step, "minItems": fewest, "maxItems": most })
}

/// Every member is required: some providers enforce no other kind of object.
fn object(properties: Value) -> Value {
    let required: Vec<_> = properties.as_object().into_iter().flat_map(|members| members.keys().cloned()).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
