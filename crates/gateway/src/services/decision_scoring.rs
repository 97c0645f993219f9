//! `decision-scoring`: questions with options about a state, decided by the model inside of the options.
//!
//! The original hands this to a model that does nothing else. Here it is the configured one, under a schema that allows
//! nothing but the options; what it says is held against them in any case.

use super::asking::{Told, ask, mark};
use super::model::begin;
use crate::call::Call;
use crate::error::{Code, ServiceError};
use crate::inside::Gateway;
use serde_json::{Value, json};
use trellis_domain::decision::Enforcement;
use trellis_orchestrator::decision_scoring::{PROMPT, answers, questions, schema, shown};

/// Bytes of a state.
const LARGEST_STATE: usize = 256 << 10;

pub(super) async fn answer(gateway: &Gateway, call: Call) -> Result<Value, ServiceError> {
    let _in_flight = begin(gateway)?;
    let members = call.members();
    let missing = || ServiceError::request("the member `questions` is missing; it must be an object of questions");
    let questions = questions(members.object("questions")?.ok_or_else(missing)?).map_err(ServiceError::request)?;
    let state = match members.value("state") {
        None => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(state) => serde_json::to_string_pretty(state).expect("a value is always JSON"),
    };
    if state.len() > LARGEST_STATE {
        let (size, most) = (state.len(), LARGEST_STATE >> 10);
        return Err(ServiceError::request(format!("the state has {size} bytes; at most {most} KiB are read")));
    }
    let variables = [("state", json!(state)), ("questions", shown(&questions)), ("mark", mark(&call))];
    let Told { value, reply } = ask(&call, PROMPT, variables, schema(&questions)).await?;
    let answers = answers(&questions, &value).map_err(|why| ServiceError::new(Code::Model, why))?;
    let enforced = if reply.enforced { Enforcement::Decoding } else { Enforcement::Validated };
    Ok(json!({
        "answers": answers,
        "model": reply.model.unwrap_or_default(),
        "enforcement": enforced,
        "in_token": reply.in_token,
        "out_token": reply.out_token,
    }))
}
