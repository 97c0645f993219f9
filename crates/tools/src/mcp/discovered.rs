//! The tools that a server says it has, as items of configuration.

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use trellis_domain::config::ToolEffect;

/// A tool that a server has.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovered {
    pub server: String,
    pub name: String,
    pub description: String,
    /// What a call changes, by the server's own account.
    pub effect: ToolEffect,
    /// What calls of it take, as the members of configuration items say it.
    pub arguments: Vec<Value>,
}

/// So much of a description is kept: a server that sends books does not fill every prompt with them.
const LONGEST: usize = 2_000;
const MOST_ARGUMENTS: usize = 100;
/// As many bytes as the configuration takes.
const LONGEST_SCHEMA: usize = 16 * 1024;

impl Discovered {
    pub(super) fn of(server: &str, tool: &Tool) -> Self {
        let described = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let required = tool.input_schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
        let properties = tool.input_schema.get("properties").and_then(Value::as_object);
        let arguments = properties.into_iter().flatten().take(MOST_ARGUMENTS);
        let arguments = arguments.map(|(name, schema)| argument(name, schema, is_required(name)));
        Self {
            server: server.to_owned(),
            name: tool.name.to_string(),
            description: short(described),
            effect: effect(tool),
            arguments: arguments.collect(),
        }
    }

    /// The item under which the tool is offered by this name.
    pub fn item(&self, name: &str) -> Value {
        json!({
            "type": "mcp-tool", "name": name, "description": self.description, "server": self.server,
            "mcp-tool": self.name, "effect": self.effect.as_str(), "arguments": self.arguments,
        })
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

fn argument(name: &str, schema: &Value, is_required: bool) -> Value {
    let said = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut words = vec![short(said)];
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<_> = values.iter().map(ToString::to_string).collect();
        words.push(short(&format!("one of {}", values.join(", "))));
    }
    if !is_required {
        words.push(match schema.get("default").filter(|value| !value.is_null()) {
            Some(value) => short(&format!("may be null, which means {value}")),
            None => "may be null".to_owned(),
        });
    }
    words.retain(|words| !words.is_empty());
    let mut argument =
        json!({ "name": name, "type": kind(schema), "description": words.join("; "), "required": is_required });
    if says_more_than_its_type(schema) {
        argument["schema"] = schema.clone();
    }
    argument
}

/// Whether a schema holds values to anything besides one type, and can stand on its own.
fn says_more_than_its_type(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return false };
    let says = |name: &str| !["type", "description", "title", "default", "examples"].contains(&name);
    let is_bare_list = members.get("type").is_some_and(Value::is_array);
    let text = schema.to_string();
    // What it refers to lies outside of it, and what is this long fills prompts.
    let is_whole = !text.contains("\"$ref\"") && text.len() <= LONGEST_SCHEMA;
    is_whole && (is_bare_list || members.keys().any(|name| says(name)))
}

/// The type of an argument in one word. Of several, the first that is something.
fn kind(schema: &Value) -> &str {
    let something = |kind: &&str| *kind != "null";
    let of_members = |members: &Map<String, Value>| {
        let choices = members.get("anyOf").or_else(|| members.get("oneOf")).and_then(Value::as_array)?;
        choices.iter().filter_map(|choice| choice.get("type")?.as_str()).find(something).map(str::to_owned)
    };
    let word = match schema.get("type") {
        Some(Value::String(kind)) => Some(kind.clone()),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(something).map(str::to_owned),
        _ => schema.as_object().and_then(of_members),
    };
    // Only these are checked; whatever else a schema says, the server judges.
    match word.as_deref() {
        Some("string") => "string",
        Some("number") => "number",
        Some("integer") => "integer",
        Some("boolean") => "boolean",
        Some("array") => "array",
        Some("object") => "object",
        _ => "any",
    }
}

fn short(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_become_arguments() {
        let optional = json!({ "anyOf": [{ "type": "null" }, { "type": "integer" }], "default": 3 });
        let unit = json!({ "type": "string", "enum": ["c", "f"], "description": "the unit" });
        let properties = json!({ "city": { "type": "string" }, "unit": unit, "days": optional, "where": {} });
        let schema = json!({ "type": "object", "properties": properties, "required": ["city", "where"] });
        let tool: Tool =
            serde_json::from_value(json!({ "name": "now", "description": "d", "inputSchema": schema })).unwrap();
        let found = Discovered::of("weather", &tool);
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
            assert!(Discovered::of("s", &tool).arguments.len() <= 1);
        }
    }
}
