//! Templates in Jinja syntax, lenient where prompts need it: what is missing or null prints nothing.

use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value};
use serde_json::Map;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use trellis_domain::Hash;

/// Compiled templates that are kept; a workspace has a dozen.
const KEPT: usize = 256;
/// How many instructions a template may take: a hundred times what a prompt over ten thousand facts takes, and done
/// within a second.
const FUEL: u64 = 10_000_000;
/// No model reads as much.
const LONGEST_PROMPT: usize = 16 << 20;
/// The one template of each environment.
const NAME: &str = "template";

/// Renders templates. Compiling costs more than rendering, so what was compiled is kept.
#[derive(Debug)]
pub(crate) struct Templates {
    environment: Environment<'static>,
    compiled: Mutex<HashMap<Hash, Arc<Environment<'static>>>>,
}

impl Templates {
    pub(crate) fn new() -> Self {
        let mut environment = Environment::new();
        // Prompts are not HTML.
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment.set_formatter(print);
        environment.add_filter("tojson", to_json);
        environment.set_unknown_method_callback(python_method);
        environment.set_fuel(Some(FUEL));
        Self { environment, compiled: Mutex::default() }
    }

    /// The reason why it cannot be rendered says where and how to mend it.
    pub(crate) fn render(&self, text: &str, variables: &Map<String, serde_json::Value>) -> Result<String, String> {
        let environment = self.compiled(text).map_err(|error| reason(&error))?;
        let template = environment.get_template(NAME).map_err(|error| reason(&error))?;
        let mut rendered = Bounded::default();
        let result = template.render_captured_to(Value::from(Serde(variables)), &mut rendered);
        if rendered.is_full {
            return Err(format!("it becomes longer than {LONGEST_PROMPT} bytes"));
        }
        result.map_err(|error| reason(&error))?;
        // A prompt waits for its model as long as the model takes: it should not hold twice its size.
        rendered.bytes.shrink_to_fit();
        String::from_utf8(rendered.bytes).map_err(|error| error.to_string())
    }

    fn compiled(&self, text: &str) -> Result<Arc<Environment<'static>>, Error> {
        let key = Hash::of(text);
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(environment) = compiled.get(&key) {
            return Ok(Arc::clone(environment));
        }
        let mut environment = self.environment.clone();
        environment.add_template_owned(NAME, text.to_owned())?;
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        let environment = Arc::new(environment);
        compiled.insert(key, Arc::clone(&environment));
        Ok(environment)
    }
}

/// A text that does not grow without end.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_full |= self.bytes.len() + bytes.len() > LONGEST_PROMPT;
        if self.is_full {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a template can be compiled; if not, where it is wrong and how to mend it.
pub fn check_template(text: &str) -> Result<(), String> {
    Templates::new().compiled(text).map(|_| ()).map_err(|error| reason(&error))
}

fn print(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    if value.is_none() { Ok(()) } else { minijinja::escape_formatter(out, state, value) }
}

/// The built-in filter writes JSON for HTML, with `\u0027` for an apostrophe; a model should see the apostrophe.
fn to_json(value: &Value) -> Result<String, Error> {
    let wrong = |error| Error::new(ErrorKind::InvalidOperation, "cannot be written as JSON").with_source(error);
    serde_json::to_string(value).map_err(wrong)
}

/// Templates made for TrustGraph walk over maps as Python does.
fn python_method(state: &mut State<'_, '_>, value: &Value, method: &str, _: &[Value]) -> Result<Value, Error> {
    match (value.kind(), method) {
        (ValueKind::Map, "items") => state.apply_filter("items", std::slice::from_ref(value)),
        (ValueKind::Map, "keys") => state.apply_filter("list", std::slice::from_ref(value)),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn reason(error: &Error) -> String {
    if error.kind() == ErrorKind::OutOfFuel {
        return "it takes too many steps; are there loops within loops?".to_owned();
    }
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    let line = error.line().map(|line| format!("line {line}: ")).unwrap_or_default();
    let hint = match error.detail() {
        Some("unknown statement empty") => ", write {% else %} instead of {% empty %}",
        Some(_) | None => "",
    };
    format!("{line}{}{detail}{hint}", error.kind())
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
