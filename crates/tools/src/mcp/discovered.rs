//! The tools that a server says it has, as items of configuration.

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::Value;
use trellis_domain::config::ToolEffect;
use trellis_orchestrator::ports::Discovered;
use trellis_orchestrator::toolbox::{argument, short, with_definitions};

const MOST_ARGUMENTS: usize = 100;

/// A tool as its server describes it.
pub(super) fn discovered(server: &str, tool: &Tool) -> Discovered {
    let described = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let arguments = properties.into_iter().flatten().take(MOST_ARGUMENTS);
    let argument = |(name, schema): (&String, &Value)| {
        argument(name, &with_definitions(schema, &tool.input_schema), is_required(name))
    };
    Discovered {
        server: server.to_owned(),
        name: tool.name.to_string(),
        description: short(described),
        effect: effect(tool),
        arguments: arguments.map(argument).collect(),
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
    fn what_an_argument_refers_to_comes_along() {
        let places = json!({ "place": { "type": "string", "minLength": 2 } });
        let properties = json!({
            "at": { "$ref": "#/$defs/place" },
            "lost": { "$ref": "#/$defs/none" },
            "root": { "type": "object", "properties": { "again": { "$ref": "#" } } },
            "plain": { "type": "string" },
        });
        let schema = json!({ "type": "object", "properties": properties, "$defs": places });
        let tool: Tool = serde_json::from_value(json!({ "name": "go", "inputSchema": schema })).unwrap();
        let found = discovered("s", &tool);
        let of =
            |name: &str| found.arguments.iter().find(|argument| argument["name"] == name).unwrap()["schema"].clone();
        assert_eq!(of("at"), json!({ "$ref": "#/$defs/place", "$defs": places }));
        for name in ["lost", "root", "plain"] {
            assert_eq!(of(name), Value::Null, "{name}: what is not there holds nothing");
        }
    }

    #[test]
    fn a_schema_that_is_none_has_no_arguments() {
        for schema in [json!({}), json!({ "properties": [] }), json!({ "properties": { "a": 3 }, "required": "a" })] {
            let tool: Tool = serde_json::from_value(json!({ "name": "x", "inputSchema": schema })).unwrap();
            assert!(discovered("s", &tool).arguments.len() <= 1);
        }
    }
}
