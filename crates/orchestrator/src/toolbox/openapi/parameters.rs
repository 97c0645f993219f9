//! Parameters of an operation: where each of them goes in the request, and the argument that it is.

use super::reference::resolved;
use super::schema::inlined;
use super::{OpenApiError, Operation};
use crate::toolbox::argument::{argument, type_word};
use serde_json::{Map, Value, json};

const MOST_ARGUMENTS: usize = 100;
const LONGEST_NAME: usize = 64;
/// Headers that the request has by itself, or that say where it goes.
const OTHERS: [&str; 8] = [
    "accept",
    "content-type",
    "authorization",
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "idempotency-key",
];

/// A request as it is put together.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) query: Map<String, Value>,
    pub(super) headers: Map<String, Value>,
    pub(super) body: Option<Value>,
    pub(super) arguments: Vec<Value>,
    pub(super) notes: Vec<String>,
    names: Vec<String>,
    /// Parameters of the path, and the arguments that they are.
    in_path: Vec<(String, String)>,
}

impl Request {
    pub(super) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }

    /// Adds an argument, and gives the name that stands for it. Two things of one name have to be told apart.
    pub(super) fn argument(
        &mut self,
        (name, place): (&str, &str),
        schema: &Value,
        is_required: bool,
    ) -> Result<String, OpenApiError> {
        if self.arguments.len() == MOST_ARGUMENTS {
            let (place, limit) = ("the operation".to_owned(), MOST_ARGUMENTS);
            return Err(OpenApiError::TooLarge { place, limit, unit: "arguments" });
        }
        let own = plain(name);
        let with_place = format!("{own}_{place}");
        let numbered = (2..).map(|number| format!("{with_place}_{number}"));
        let mut names = [own, with_place.clone()].into_iter().chain(numbered);
        let name = names.find(|name| !self.names.contains(name)).unwrap_or(with_place);
        self.names.push(name.clone());
        self.arguments.push(argument(&name, schema, is_required));
        Ok(name)
    }
}

impl Request {
    /// Puts the names of arguments into the path, all at once: one may be called as another parameter is. The error is a
    /// place that nothing is said of.
    fn fill_path(&mut self) -> Result<(), String> {
        let (mut filled, mut rest) = (String::new(), self.path.as_str());
        while let Some((before, inside)) = rest.split_once('{') {
            let (place, after) = inside.split_once('}').ok_or_else(|| inside.to_owned())?;
            let argument = self.in_path.iter().find(|(parameter, _)| parameter == place);
            let (_, name) = argument.ok_or_else(|| place.to_owned())?;
            filled.extend([before, "{", name, "}"]);
            rest = after;
        }
        filled.push_str(rest);
        self.path = filled;
        Ok(())
    }
}

/// A name that models can write.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = name.chars().take(LONGEST_NAME).map(|c| if is_plain(c) { c } else { '_' }).collect();
    if name.is_empty() { "value".to_owned() } else { name }
}

/// Parameters of an operation, those that are not sent among them.
const MOST_WRITTEN: usize = 200;

/// Adds all parameters. The operation's own count before those of its path.
pub(super) fn add(operation: &Operation<'_>, request: &mut Request) -> Result<(), OpenApiError> {
    let written = [operation.own, operation.shared];
    let written = written.into_iter().filter_map(|of| of.get("parameters")?.as_array()).flatten();
    if written.clone().count() > MOST_WRITTEN {
        let place = operation.place();
        return Err(OpenApiError::TooLarge { place, limit: MOST_WRITTEN, unit: "parameters" });
    }
    let mut seen = Vec::new();
    for written in written {
        let parameter = Parameter::read(operation, written)?;
        let key = (parameter.name.clone(), parameter.place.clone());
        if !seen.contains(&key) {
            seen.push(key);
            parameter.add(request)?;
        }
    }
    request.fill_path().map_err(|name| OpenApiError::NotSupported {
        place: operation.place(),
        why: format!("nothing is said of `{{{name}}}` in its path"),
    })
}

struct Parameter {
    name: String,
    place: String,
    schema: Value,
    is_required: bool,
    style: Option<String>,
    explode: Option<bool>,
}

impl Parameter {
    fn read(operation: &Operation<'_>, written: &Value) -> Result<Self, OpenApiError> {
        let place = operation.place();
        let found = resolved(operation.document, written, &place)?;
        let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = text("name");
        let here = format!("the parameter `{}`", name.chars().take(100).collect::<String>());
        // One that holds JSON says so with a type of media.
        let of_content = || super::members(found.get("content")).next().and_then(|(_, media)| media.get("schema"));
        let schema = found.get("schema").or_else(of_content);
        let mut schema = schema.map_or(Ok(json!({})), |schema| inlined(operation.document, schema, &here))?;
        if let (Some(description), Some(schema)) = (found.get("description"), schema.as_object_mut()) {
            schema.insert("description".to_owned(), description.clone());
        }
        Ok(Self {
            name,
            place: text("in"),
            schema,
            is_required: found.get("required") == Some(&Value::Bool(true)),
            style: found.get("style").and_then(Value::as_str).map(str::to_owned),
            explode: found.get("explode").and_then(Value::as_bool),
        })
    }

    fn add(&self, request: &mut Request) -> Result<(), OpenApiError> {
        let kind = type_word(&self.schema);
        match (self.place.as_str(), kind) {
            ("path", "array" | "object") => self.refuse(request, "lists and objects in a path are not supported"),
            ("path", _) => {
                let name = self.argument(request, true)?;
                request.in_path.push((self.name.clone(), name));
                Ok(())
            }
            ("query", "object") => self.refuse(request, "objects in a query are not supported"),
            ("query", "array") if !self.is_repeated() => {
                self.refuse(request, "lists in a query are sent as repeated parameters only")
            }
            ("query", kind) => {
                let name = self.argument(request, self.is_required)?;
                let place = format!("{{{name}}}");
                let value = if kind == "array" { json!([place]) } else { json!(place) };
                request.query.insert(self.name.clone(), value);
                Ok(())
            }
            ("header", _) if OTHERS.contains(&self.name.to_ascii_lowercase().as_str()) => Ok(()),
            ("header", "array" | "object") => self.refuse(request, "lists and objects in a header are not supported"),
            ("header", _) => {
                let name = self.argument(request, self.is_required)?;
                request.headers.insert(self.name.clone(), json!(format!("{{{name}}}")));
                Ok(())
            }
            _ => self.refuse(request, "cookies are not sent"),
        }
    }

    fn argument(&self, request: &mut Request, is_required: bool) -> Result<String, OpenApiError> {
        request.argument((&self.name, &self.place), &self.schema, is_required)
    }

    fn is_repeated(&self) -> bool {
        self.style.as_deref().is_none_or(|style| style == "form") && self.explode != Some(false)
    }

    /// What cannot be sent is left out if it may be.
    fn refuse(&self, request: &mut Request, why: &str) -> Result<(), OpenApiError> {
        let place = format!("the parameter `{}`", self.name.chars().take(100).collect::<String>());
        if self.is_required {
            return Err(OpenApiError::NotSupported { place, why: why.to_owned() });
        }
        request.notes.push(format!("{place} is left out: {why}"));
        Ok(())
    }
}
