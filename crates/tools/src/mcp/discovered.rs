//! The tools that a server says it has, as items of configuration.

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::Value;
use trellis_domain::config::ToolEffect;
use trellis_orchestrator::ports::Discovered;
use trellis_orchestrator::toolbox::{argument, short};

const MOST_ARGUMENTS: usize = 100;

/// A tool as its server describes it.
pub(super) fn discovered(server: &str, tool: &Tool) -> Discovered {
    let described = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let arguments = properties.into_iter().flatten().take(MOST_ARGUMENTS);
    let arguments = arguments.map(|(name, schema)| argument(name, schema, is_required(name)));
    Discovered {
        server: server.to_owned(),
        name: tool.name.to_string(),
        description: short(described),
        effect: effect(tool),
        arguments: arguments.collect(),
    }
}

/// What is not said is what the protocol takes for granted: that it may change something.
fn effect(tool: &Tool) -> ToolEffect {
    let says = |hint: fn(&ToolAnnotations) -> Option<bool>| tool.annotations.as_ref().and_then(hint) == Some(true);
    if says(|hints| hints.read_only_hint) {
        ToolEffect::Read
    } else if says(|hints| hints.idempotent_hint) {
        ToolEffect::Idempotent
    } else {
        ToolEffect::Unsafe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_become_arguments() {
        let optional = json!({ "anyOf": [{ "type": "null" }, { "type": "integer" }], "default": 3 });
        let unit = json!({ "type": "string", "enum": ["c", "f"], "description": "the unit" });
        let properties = json!({ "city": { "type": "string" }, "unit": unit, "days": optional, "where": {} });
        let schema = json!({ "type": "object", "properties": properties, "required": ["city", "where"] });
        let tool: Tool =
            serde_json::from_value(json!({ "name": "now", "description": "d", "inputSchema": schema })).unwrap();
        let found = discovered("weather", &tool);
        let shown: Vec<_> = found.arguments.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                r#"{"name":"city","type":"string","description":"","required":true}"#,
                r#"{"name":"unit","type":"string","description":"the unit; one of \"c\", \"f\"; may be null","required":false,"schema":{"type":"string","enum":["c","f"],"description":"the unit"}}"#,
                r#"{"name":"days","type":"integer","description":"may be null, which means 3","required":false,"schema":{"anyOf":[{"type":"null"},{"type":"integer"}],"default":3}}"#,
                r#"{"name":"where","type":"any","description":"","required":true}"#,
            ]
        );
        assert_eq!(found.item("weather_now")["mcp-tool"], "now");
    }

    #[test]
    fn a_schema_that_is_none_has_no_arguments() {
        for schema in [json!({}), json!({ "properties": [] }), json!({ "properties": { "a": 3 }, "required": "a" })] {
            let tool: Tool = serde_json::from_value(json!({ "name": "x", "inputSchema": schema })).unwrap();
            assert!(discovered("s", &tool).arguments.len() <= 1);
        }
    }
}
