//! The arguments of a tool call: one JSON object, wherever the model put it.

use serde_json::{Map, Value};

const NOT_AN_OBJECT: &str =
    r#"what follows "Args:" is not a JSON object; write {"name": value}, or {} for no arguments"#;
const TOO_DEEP: &str = r#"the JSON object after "Args:" is nested more than 64 levels deep; write it flatter"#;
const NEVER_CLOSED: &str = r#"the JSON object after "Args:" never ends; close every brace and every quoted text"#;

/// Collects the JSON object behind `Args:` until its braces balance.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    stage: Stage,
    open_braces: usize,
    json: String,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Stage {
    #[default]
    Missing,
    BeforeObject,
    InFenceLine,
    InObject,
    InString,
    InEscape,
    Closed,
    NotAnObject,
}

impl Arguments {
    pub(super) fn start(&mut self) {
        self.stage = Stage::BeforeObject;
    }

    pub(super) fn push(&mut self, c: char) {
        let was_inside = self.open_braces > 0;
        self.stage = self.next_stage(c);
        if was_inside || self.open_braces > 0 {
            self.json.push(c);
        }
    }

    /// A fence line ends at the brace too: the object may stand between backticks on one line.
    pub(super) fn next_stage(&mut self, c: char) -> Stage {
        match (self.stage, c) {
            (Stage::BeforeObject | Stage::InFenceLine | Stage::InObject, '{') => self.open_brace(),
            (Stage::BeforeObject, '`') => Stage::InFenceLine,
            (Stage::BeforeObject, c) if !c.is_whitespace() => Stage::NotAnObject,
            (Stage::InFenceLine, '\n') => Stage::BeforeObject,
            (Stage::InObject, '}') => self.close_brace(),
            (Stage::InObject, '"') => Stage::InString,
            (Stage::InString, '\\') => Stage::InEscape,
            (Stage::InString, '"') => Stage::InObject,
            (Stage::InEscape, _) => Stage::InString,
            (Stage::BeforeObject | Stage::InFenceLine | Stage::InObject | Stage::InString, _) => self.stage,
            (Stage::Missing | Stage::Closed | Stage::NotAnObject, _) => self.stage,
        }
    }

    pub(super) fn open_brace(&mut self) -> Stage {
        self.open_braces += 1;
        Stage::InObject
    }

    pub(super) fn close_brace(&mut self) -> Stage {
        self.open_braces -= 1;
        if self.open_braces == 0 { Stage::Closed } else { Stage::InObject }
    }

    /// No later text can change what the arguments are.
    pub(super) fn are_settled(&self) -> bool {
        matches!(self.stage, Stage::Closed | Stage::NotAnObject)
    }

    pub(super) fn read(self) -> Result<Map<String, Value>, String> {
        match self.stage {
            Stage::Missing => Ok(Map::new()),
            Stage::BeforeObject | Stage::InFenceLine | Stage::NotAnObject => Err(NOT_AN_OBJECT.to_owned()),
            Stage::InObject | Stage::InString | Stage::InEscape => Err(NEVER_CLOSED.to_owned()),
            Stage::Closed => {
                let arguments: Map<String, Value> = serde_json::from_str(&self.json).map_err(|error| {
                    format!(r#"the JSON object after "Args:" is broken ({error}); write it again as valid JSON"#)
                })?;
                if is_flat_enough(&arguments) { Ok(arguments) } else { Err(TOO_DEEP.to_owned()) }
            }
        }
    }
}

/// Deeper arguments could be read here but not from a record, where they lie deeper still.
const DEEPEST: usize = 64;

pub(in crate::react) fn is_flat_enough(arguments: &Map<String, Value>) -> bool {
    arguments.values().all(|value| depth(value) < DEEPEST)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
