//! Schemas of what is written as the domain has it.

use serde_json::Value;
use std::borrow::Cow;
use trellis_domain::run::RunState;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A [`RunState`].
#[derive(Debug)]
pub struct State;

impl PartialSchema for State {
    fn schema() -> RefOr<Schema> {
        let words = RunState::ALL.iter().map(|state| state.as_str());
        let object = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words));
        object.description(Some("Where a run stands. The last five are ends.")).build().into()
    }
}

impl ToSchema for State {
    fn name() -> Cow<'static, str> {
        "State".into()
    }
}

/// A record as the journal has it, with all texts in it.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "the schema of a domain type")]
pub struct RunRecord {
    header: RecordHeader,
    #[schema(value_type = Object)]
    body: Value,
}

/// What the journal knows of a record.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "the schema of a domain type")]
pub struct RecordHeader {
    format: u16,
    workspace: String,
    flow: String,
    run: String,
    session: String,
    /// Such as `i3/observation`
    name: String,
    /// Position among the run's events, gapless from 1
    seq: u64,
    version: u64,
    causes: Vec<String>,
    parents: Vec<String>,
    content: String,
    config: String,
    attempt: u32,
    /// Arrived after the session's end
    #[schema(nullable = false)]
    late: Option<bool>,
    #[schema(nullable = false)]
    trace: Option<String>,
    /// Microseconds since 1970
    time: i64,
}
