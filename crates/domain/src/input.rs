//! Input that a tool asks a person for before it does what it was called for.

use crate::ToolName;
use crate::document::Payload;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A tool was called and has not done anything yet: it asks for input, and is called again with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequired {
    pub tool: ToolName,
    /// The key that it was called with.
    pub idempotency_key: String,
    /// The intent that this call was made for, of those about the same outcome; 0 if none was recorded. That call is not
    /// uncertain any more: it is known to have changed nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub intent: u32,
    pub forms: Vec<Form>,
    /// What the tool wants to be told again with the answers. Nobody here looks into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Payload>,
    pub ms: u64,
}

impl InputRequired {
    /// So often one call may ask.
    pub const MOST_TIMES: u32 = 8;
    /// So many forms it may ask at once.
    pub const MOST_FORMS: usize = 8;
    /// So many bytes its state may have.
    pub const MOST_STATE: usize = 64 << 10;
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One form: what is asked, and which fields the answer has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Form {
    /// How the tool tells it from its other forms.
    pub name: String,
    /// In the tool's words.
    pub message: String,
    /// A JSON schema of an object with plain fields.
    pub schema: Map<String, Value>,
}

/// What a call is made again with, after its tool has asked for input.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenInput {
    /// As the tool gave it.
    pub state: Option<String>,
    /// What was answered, by the names of the forms; none to those that were declined.
    pub answers: BTreeMap<String, Option<Map<String, Value>>>,
}

/// What was answered, by the names of the forms.
pub type Content = Map<String, Value>;

impl Form {
    /// So many bytes its message, its name and its schema may have.
    pub const MOST_MESSAGE: usize = 4 << 10;
    pub const MOST_NAME: usize = 200;
    pub const MOST_SCHEMA: usize = 16 << 10;

    /// The names of its fields, with their schemas.
    pub fn fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    }

    pub fn requires(&self, field: &str) -> bool {
        let required = self.schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().any(|name| name == field)
    }

    /// Why this is not what the form asks for, if it is not.
    ///
    /// ```
    /// use serde_json::json;
    /// use trellis_domain::input::Form;
    ///
    /// let schema = json!({"type": "object", "properties": {"people": {"type": "integer", "minimum": 1}}});
    /// let schema = schema.as_object().unwrap().clone();
    /// let form = Form { name: "table".into(), message: "How many?".into(), schema };
    /// assert_eq!(form.check(&json!({"people": 4})), Ok(()));
    /// assert_eq!(form.check(&json!({"people": 0})), Err("`people` must be at least 1".to_owned()));
    /// ```
    pub fn check(&self, content: &Value) -> Result<(), String> {
        let Some(content) = content.as_object() else {
            return Err("it must be an object with the fields of the form".to_owned());
        };
        if let Some(missing) =
            self.fields().map(|(name, _)| name).find(|it| self.requires(it) && !content.contains_key(*it))
        {
            return Err(format!("the field `{missing}` is missing"));
        }
        for (name, value) in content {
            let Some((_, schema)) = self.fields().find(|(field, _)| *field == name) else {
                let fields: Vec<_> = self.fields().map(|(name, _)| name.as_str()).collect();
                return Err(format!("the form has no field `{}`; it has {}", shown(name), fields.join(", ")));
            };
            check_field(schema, value).map_err(|why| format!("`{name}` {why}"))?;
        }
        Ok(())
    }
}

/// Why this does not answer these forms, if it does not.
pub fn check(forms: &[Form], content: &Content) -> Result<(), String> {
    for form in forms {
        let answer = content.get(&form.name).ok_or_else(|| format!("nothing is said to the form `{}`", form.name))?;
        form.check(answer).map_err(|why| format!("the form `{}`: {why}", form.name))?;
    }
    match content.keys().find(|name| !forms.iter().any(|form| form.name == **name)) {
        Some(other) => Err(format!("there is no form `{}`", shown(other))),
        None => Ok(()),
    }
}

/// What somebody wrote, by the names of the forms: where there is only one, they need not name it.
pub fn by_form(forms: &[Form], written: &Map<String, Value>) -> Content {
    match forms {
        [only] => Content::from_iter([(only.name.clone(), Value::Object(written.clone()))]),
        _ => written.clone(),
    }
}

fn check_field(schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(options) = options(schema) {
        let is_one = options.contains(&value);
        return if is_one { Ok(()) } else { Err(format!("must be one of {}", listed(&options))) };
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => check_text(schema, value.as_str().ok_or("must be a text")?),
        Some("integer") if !is_whole(value) => Err("must be a whole number".to_owned()),
        Some("number" | "integer") => check_number(schema, value),
        Some("boolean") if !value.is_boolean() => Err("must be true or false".to_owned()),
        Some("array") => check_list(schema, value.as_array().ok_or("must be a list")?),
        Some(_) | None => Ok(()),
    }
}

/// The values that may be chosen; none if it is no choice.
fn options(schema: &Value) -> Option<Vec<&Value>> {
    let titled = |list: &str| schema.get(list).and_then(Value::as_array);
    if let Some(plain) = titled("enum") {
        return Some(plain.iter().collect());
    }
    let titled = titled("oneOf").or_else(|| titled("anyOf"))?;
    Some(titled.iter().filter_map(|option| option.get("const")).collect())
}

fn listed(options: &[&Value]) -> String {
    options.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn check_text(schema: &Value, text: &str) -> Result<(), String> {
    check_count(schema, text.chars().count(), ["minLength", "maxLength"], "characters")?;
    let is_right = match schema.get("format").and_then(Value::as_str) {
        Some("date") => is_date(text),
        Some("date-time") => is_moment(text),
        Some("email") => text.split_once('@').is_some_and(|(who, place)| !who.is_empty() && !place.is_empty()),
        Some("uri") => text.split_once(':').is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty()),
        Some(_) | None => true,
    };
    let format = || schema.get("format").and_then(Value::as_str).unwrap_or_default();
    if is_right { Ok(()) } else { Err(format!("must be of the format `{}`", format())) }
}

/// Such as `2026-02-28`. Which month has how many days is the tool's business.
fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').map(|part| (part.len(), digits(part))).collect();
    matches!(parts.as_slice(), [(4, Some(_)), (2, Some(1..=12)), (2, Some(1..=31))])
}

/// Such as `2026-02-28T10:00:00Z`, or with the distance from Greenwich at the end.
fn is_moment(text: &str) -> bool {
    let Some((date, rest)) = text.split_once(['T', 't', ' ']) else { return false };
    let Some((time, zone)) = rest.find(['Z', 'z', '+', '-']).map(|at| rest.split_at(at)) else { return false };
    let parts: Vec<_> = time.split_once('.').map_or(time, |(time, _)| time).split(':').map(digits).collect();
    let is_zone = matches!(zone, "Z" | "z") || zone.len() == 6 && zone[1..].split(':').all(|it| digits(it).is_some());
    is_date(date) && is_zone && matches!(parts.as_slice(), [Some(0..=23), Some(0..=59), Some(0..=60)])
}

fn digits(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn check_number(schema: &Value, value: &Value) -> Result<(), String> {
    let number = value.as_f64().ok_or("must be a number")?;
    let limit = |name: &str| Some((schema.get(name)?, schema.get(name)?.as_f64()?));
    match (limit("minimum"), limit("maximum")) {
        (Some((written, least)), _) if number < least => Err(format!("must be at least {written}")),
        (_, Some((written, most))) if number > most => Err(format!("must be at most {written}")),
        _ => Ok(()),
    }
}

fn check_list(schema: &Value, list: &[Value]) -> Result<(), String> {
    check_count(schema, list.len(), ["minItems", "maxItems"], "items")?;
    let items = schema.get("items").unwrap_or(&Value::Null);
    list.iter().try_for_each(|item| check_field(items, item).map_err(|why| format!("has an item that {why}")))
}

fn check_count(schema: &Value, count: usize, [least, most]: [&str; 2], what: &str) -> Result<(), String> {
    let limit = |name: &str| schema.get(name).and_then(Value::as_u64);
    let count = count as u64;
    match (limit(least), limit(most)) {
        (Some(least), _) if count < least => Err(format!("must have at least {least} {what}")),
        (_, Some(most)) if count > most => Err(format!("must have at most {most} {what}")),
        _ => Ok(()),
    }
}

/// What somebody wrote may be long.
fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
