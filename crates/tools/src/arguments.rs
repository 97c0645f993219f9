//! The arguments of a call, held against what its tool says of them.

use jsonschema::Validator;
use serde_json::{Map, Value};
use trellis_domain::config::{ArgumentItem, ToolItem};

/// The arguments as the tool wants them. What a model wrote in quotes and meant as a number becomes one. The error names
/// everything that is wrong, for the model to correct.
pub(crate) fn fitted(tool: &ToolItem, arguments: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let (mut fitted, mut problems) = (Map::new(), Vec::new());
    for (name, value) in arguments {
        let Some(argument) = tool.arguments.iter().find(|argument| argument.name == *name) else {
            problems.push(format!("there is no argument `{name}`"));
            continue;
        };
        if value.is_null() && argument.required == Some(false) && !allows_null(argument) {
            // Models that have to name everything say so that there is nothing.
            continue;
        }
        match fit(argument, value) {
            Some(value) => {
                problems.extend(against_schema(argument, &value));
                fitted.insert(name.clone(), value);
            }
            None => problems.push(format!("`{name}` is to be {}, and is {}", in_words(&argument.kind), short(value))),
        }
    }
    let is_missing = |argument: &&ArgumentItem| {
        argument.required == Some(true) && arguments.get(&argument.name).is_none_or(Value::is_null)
    };
    let missing = tool.arguments.iter().filter(is_missing).filter(|argument| !allows_null(argument));
    problems.extend(missing.map(|argument| format!("`{}` is missing", argument.name)));
    if problems.is_empty() {
        return Ok(fitted);
    }
    let known = tool.arguments.iter().map(|argument| format!("{} ({})", argument.name, argument.kind));
    let known: Vec<_> = known.collect();
    let takes = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
    Err(format!("{}; `{}` takes {takes}", problems.join("; "), tool.name))
}

/// Schemas that say what they hold in other words than one type are judged by them alone.
fn compiled(argument: &ArgumentItem) -> Option<Result<Validator, String>> {
    let schema = argument.schema.as_ref()?;
    // Patterns are a workspace's: they must not be able to take for ever.
    let options = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
    Some(options.build(schema).map_err(|error| {
        format!("the schema of the argument `{}` cannot be used: {}", argument.name, short_text(&error.to_string()))
    }))
}

/// What is wrong with the schemas of a tool's arguments, if anything is.
pub(crate) fn obstacle(tool: &ToolItem) -> Option<String> {
    tool.arguments.iter().filter_map(compiled).find_map(Result::err)
}

fn allows_null(argument: &ArgumentItem) -> bool {
    argument.schema.is_some() && against_schema(argument, &Value::Null).is_none()
}

/// What a value lacks, in words.
fn against_schema(argument: &ArgumentItem, value: &Value) -> Option<String> {
    let validator = match compiled(argument)? {
        Ok(validator) => validator,
        Err(problem) => return Some(problem),
    };
    let told = |error: jsonschema::ValidationError<'_>| {
        let place = error.instance_path().to_string();
        format!("{place} {}", short_text(&error.to_string())).trim().to_owned()
    };
    let errors: Vec<_> = validator.iter_errors(value).take(MOST_ERRORS).map(told).collect();
    (!errors.is_empty()).then(|| format!("`{}`: {}", argument.name, errors.join(", ")))
}

/// So many faults of one argument are told at once.
const MOST_ERRORS: usize = 3;

/// The value, if it is what the argument wants or says the same in quotes.
fn fit(argument: &ArgumentItem, value: &Value) -> Option<Value> {
    if value.is_null() || is_of(&argument.kind, value) {
        return Some(value.clone());
    }
    match (argument.kind.as_str(), value) {
        ("string", other) => Some(other.to_string().into()),
        (kind, Value::String(text)) => serde_json::from_str(text.trim()).ok().filter(|value| is_of(kind, value)),
        _ => None,
    }
}

/// Kinds that nobody knows hold everything.
fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn in_words(kind: &str) -> &str {
    match kind {
        "number" => "a number",
        "integer" => "a whole number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "an object",
        other => other,
    }
}

fn short(value: &Value) -> String {
    const SHOWN: usize = 80;
    cut(value.to_string(), SHOWN)
}

fn short_text(text: &str) -> String {
    const SHOWN: usize = 300;
    cut(text.to_owned(), SHOWN)
}

fn cut(text: String, shown: usize) -> String {
    let end = text.floor_char_boundary(shown);
    if end < text.len() { format!("{}…", &text[..end]) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use trellis_domain::config::{ConfigItem, validate};

    fn fit(arguments: Value) -> Result<Value, String> {
        let named = |name: &str, kind: &str| json!({ "name": name, "type": kind });
        let wanted =
            [named("city", "string"), named("days", "integer"), named("exact", "boolean"), named("at", "place")];
        let item = json!({ "type": "http", "name": "weather", "url": "https://a.example/", "arguments": wanted });
        let Ok(ConfigItem::Tool(tool)) = validate("tool", "weather", &item.to_string()) else { panic!("{item}") };
        fitted(&tool, arguments.as_object().unwrap()).map(Value::Object)
    }

    #[test]
    fn what_says_the_same_is_taken() {
        let given = json!({ "city": 7, "days": "3", "exact": "true", "at": [1] });
        assert_eq!(fit(given), Ok(json!({ "city": "7", "days": 3, "exact": true, "at": [1] })));
        assert_eq!(fit(json!({ "days": null })), Ok(json!({ "days": null })), "nothing is nothing");
        assert_eq!(fit(json!({})), Ok(json!({})));
    }

    #[test]
    fn everything_that_is_wrong_is_named_at_once() {
        let problem = fit(json!({ "days": "soon", "exact": 3, "town": "Oslo" })).unwrap_err();
        let words = "`days` is to be a whole number, and is \"soon\"; `exact` is to be true or false, and is 3; \
                     there is no argument `town`; `weather` takes city (string), days (integer), exact (boolean), at (place)";
        assert_eq!(problem, words);
        assert!(fit(json!({ "days": "x".repeat(9_000) })).unwrap_err().len() < 400);
    }

    #[test]
    fn schemas_are_kept_to_and_what_is_missing_is_named() {
        let wanted = json!([
            { "name": "unit", "type": "string", "required": true, "schema": { "enum": ["c", "f"] } },
            { "name": "days", "type": "integer", "required": false, "schema": { "type": "integer", "maximum": 7 } },
            { "name": "tags", "type": "array", "schema": { "type": "array", "items": { "type": "string" } } },
        ]);
        let item = json!({ "type": "http", "name": "weather", "url": "https://a.example/", "arguments": wanted });
        let Ok(ConfigItem::Tool(tool)) = validate("tool", "weather", &item.to_string()) else { panic!("{item}") };
        let fit = |arguments: Value| fitted(&tool, arguments.as_object().unwrap()).map(Value::Object);
        assert_eq!(fit(json!({ "unit": "c", "days": "3" })), Ok(json!({ "unit": "c", "days": 3 })));
        assert_eq!(fit(json!({ "unit": "c", "days": null })), Ok(json!({ "unit": "c" })), "no value is none");
        let problem = fit(json!({ "unit": "k", "days": 9, "tags": ["a", 3] })).unwrap_err();
        for words in
            ["`unit`: \"k\" is not one of", "`days`: 9 is greater than the maximum of 7", "`tags`: /1 3 is not of type"]
        {
            assert!(problem.contains(words), "{words}: {problem}");
        }
        assert!(fit(json!({})).unwrap_err().starts_with("`unit` is missing"));
        assert_eq!(obstacle(&tool), None);
        let broken = json!({ "type": "http", "name": "x", "url": "https://a.example/", "arguments": [
            { "name": "a", "schema": { "type": "nothing" } },
        ] });
        let Ok(ConfigItem::Tool(tool)) = validate("tool", "x", &broken.to_string()) else { panic!("{broken}") };
        assert!(obstacle(&tool).unwrap().starts_with("the schema of the argument `a` cannot be used"));
    }

    /// However much of it a model was shown.
    #[test]
    fn a_schema_that_refers_to_itself_is_kept_to_at_any_depth() {
        let tree = json!({ "type": "object", "additionalProperties": false, "properties": { "left": { "$ref": "#/$defs/tree" } } });
        let schema = json!({ "$ref": "#/$defs/tree", "$defs": { "tree": tree } });
        let wanted = json!([{ "name": "tree", "type": "object", "schema": schema }]);
        let item = json!({ "type": "http", "name": "grow", "url": "https://a.example/", "arguments": wanted });
        let Ok(ConfigItem::Tool(tool)) = validate("tool", "grow", &item.to_string()) else { panic!("{item}") };
        let nested = |innermost: Value| (0..6).fold(innermost, |inner, _| json!({ "left": inner }));
        let fit = |tree: Value| fitted(&tool, json!({ "tree": tree }).as_object().unwrap());
        assert_eq!(obstacle(&tool), None);
        assert!(fit(nested(json!({}))).is_ok());
        let problem = fit(nested(json!({ "right": 1 }))).unwrap_err();
        assert!(problem.starts_with("`tree`: /left/left/left/left/left/left"), "{problem}");
    }
}
