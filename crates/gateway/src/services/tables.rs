//! Tables without an agent around them: GraphQL over rows, the query for a question, rows for a question, and values by
//! meaning. Nothing of this belongs to a run, so nothing is recorded.

use super::model::begin;
use crate::call::Call;
use crate::error::{Code, ServiceError};
use crate::inside::Gateway;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Collection;
use trellis_orchestrator::permits::Permit;
use trellis_orchestrator::ports::{NearValue, TablePlace, TablesError};
use trellis_orchestrator::tables::graphql::{GraphqlAnswer, GraphqlRequest, answer};
use trellis_orchestrator::tables::{AskError, NearError, QuestionCall, RowFinder};

/// How long a query over rows may take.
const QUERY: Duration = Duration::from_mins(1);
/// Rows for a question, as the original has it, and at most.
const ROWS: u64 = 100;
const MOST_ROWS: u64 = 1_000;
/// Values by meaning, and at most: each of them is looked up.
const VALUES: u64 = 10;
const MOST_VALUES: u64 = 100;

impl From<TablesError> for ServiceError {
    fn from(error: TablesError) -> Self {
        match error {
            TablesError::Refused(what) => Self::request(what),
            error @ (TablesError::Busy | TablesError::Store(_)) => Self::gateway(error.to_string()),
        }
    }
}

fn collection(call: &Call) -> Result<Collection, ServiceError> {
    let named = call.members().text("collection")?.filter(|name| !name.is_empty());
    let named = named.map(Collection::new).transpose().map_err(|error| ServiceError::request(error.to_string()))?;
    Ok(named.unwrap_or_default())
}

/// `rows`: what is wrong with a query is in its answer.
pub(super) async fn rows(call: Call) -> Result<Value, ServiceError> {
    let (members, inside) = (call.members(), &call.inside);
    let request = GraphqlRequest {
        query: members.required("query")?.to_owned(),
        variables: members.object("variables")?.cloned().unwrap_or_default(),
        operation: members.text("operation-name")?.map(str::to_owned),
    };
    let (settings, collection) = (inside.config().pin(call.workspace()).await?, collection(&call)?);
    let place = (call.workspace(), &collection);
    let answering = answer(&**inside.tables().tables(), place, &settings.schemas, &request);
    Ok(reply(in_time(QUERY, Code::RowsQuery, answering).await?))
}

/// Nobody is kept waiting for ever, nor keeps others from their turn.
async fn in_time<T>(limit: Duration, code: Code, work: impl Future<Output = T>) -> Result<T, ServiceError> {
    let late = |_| ServiceError::new(code, format!("the query took longer than {} s", limit.as_secs()));
    tokio::time::timeout(limit, work).await.map_err(late)
}

fn reply(answer: GraphqlAnswer) -> Value {
    let mut reply = json!({"data": answer.data});
    if !answer.errors.is_empty() {
        reply["errors"] = json!(answer.errors);
    }
    let cut = answer.cut.iter().map(|field| (field.clone(), json!("there are more rows than are given at once")));
    let cut: Map<_, _> = cut.collect();
    if !cut.is_empty() {
        reply["extensions"] = Value::Object(cut);
    }
    reply
}

/// `nlp-query`: the query for a question, over all schemas of the workspace.
pub(super) async fn query_for(gateway: &Gateway, call: Call) -> Result<Value, ServiceError> {
    let _in_flight = begin(gateway)?;
    let rows = call.members().count("max-results")?.filter(|rows| *rows > 0).unwrap_or(ROWS).min(MOST_ROWS);
    let question = question(&call, rows).await?;
    let schemas = question.settings.schemas.clone();
    let failed = |error: AskError| ServiceError::new(Code::NlpQuery, error.reason);
    let (generated, _) = call.inside.asker().generate(question, &schemas).await.map_err(failed)?;
    Ok(json!({
        "graphql_query": generated.request.query,
        "variables": generated.request.variables,
        "detected_schemas": generated.prepared.tables(),
        "confidence": generated.confidence,
    }))
}

/// `structured-query`: the rows for a question.
pub(super) async fn ask(gateway: &Gateway, call: Call) -> Result<Value, ServiceError> {
    let _in_flight = begin(gateway)?;
    let question = question(&call, ROWS).await?;
    let failed = |error: AskError| ServiceError::new(Code::StructuredQuery, error.reason);
    let (asker, collection) = (call.inside.asker(), collection(&call)?);
    // First a model is asked, then the tables are.
    let limit = Duration::from_millis(call.inside.limits().model_timeout_ms) + QUERY;
    let answering = in_time(limit, Code::StructuredQuery, asker.answer(question, &collection));
    let found = answering.await?.map_err(failed)?;
    let errors: Vec<_> = found.answer.errors.iter().map(|error| error.message.clone()).collect();
    Ok(json!({"data": found.answer.data, "errors": errors}))
}

async fn question(call: &Call, rows: u64) -> Result<QuestionCall, ServiceError> {
    let inside = &call.inside;
    Ok(QuestionCall {
        scope: call.scope(),
        settings: inside.config().pin(call.workspace()).await?,
        question: call.members().required("question")?.to_owned(),
        rows,
        timeout: Some(Duration::from_millis(inside.limits().model_timeout_ms)),
        max_reply_bytes: inside.limits().max_reply_bytes,
        labels: None,
        permit: Permit::default(),
    })
}

/// `row-embeddings`: values near to a vector that the caller had made by `embeddings`.
pub(super) async fn near(call: Call) -> Result<Value, ServiceError> {
    let members = call.members();
    let missing = || ServiceError::request("the member `vector` is missing; it must be a list of numbers");
    let numbers = members.value("vector").and_then(Value::as_array).ok_or_else(missing)?;
    #[allow(clippy::cast_possible_truncation, reason = "vectors are compared in single precision")]
    let number = |number: &Value| number.as_f64().map(|number| number as f32);
    let vector: Option<Vec<f32>> = numbers.iter().map(number).collect();
    let vector = vector.ok_or_else(|| ServiceError::request("`vector` has something that is no number"))?;
    if vector.is_empty() {
        return Ok(json!({"matches": []}));
    }
    if members.object("attributes")?.is_some_and(|attributes| !attributes.is_empty()) {
        return Err(ServiceError::request("rows have no attributes here; leave `attributes` out"));
    }
    let table = members.required("schema-name")?.to_owned();
    let limit = members.count("limit")?.unwrap_or(VALUES).min(MOST_VALUES);
    let field = members.text("index-name")?.filter(|name| !name.is_empty());
    let loader = call.inside.tables();
    let unset = "no embedding model is configured; the operator can set TRELLIS_EMBEDDING_MODEL";
    let embedder = loader.embedder().ok_or_else(|| ServiceError::gateway(unset))?;
    let finder = RowFinder { tables: Arc::clone(loader.tables()), embedder: Arc::clone(embedder) };
    let place = TablePlace { workspace: call.workspace().clone(), collection: collection(&call)?, table };
    let finding = finder.near(&place, field, vector, usize::try_from(limit).unwrap_or(usize::MAX));
    let found = in_time(QUERY, Code::RowsQuery, finding).await?.map_err(|error| match error {
        NearError::Tables(error) => error.into(),
        NearError::Embed(error) => error.into(),
        NearError::NoVectors { .. } => ServiceError::request(error.to_string()),
    })?;
    let shown = |value: NearValue| {
        let NearValue { field, text, score } = value;
        json!({"index_name": field, "index_value": [text], "text": text, "score": score})
    };
    Ok(json!({"matches": found.into_iter().map(shown).collect::<Vec<_>>()}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_query_that_does_not_end_is_ended() {
        let endless = std::future::pending::<()>();
        let error = in_time(Duration::from_millis(1), Code::StructuredQuery, endless).await.unwrap_err();
        assert!(error.object().to_string().contains("took longer than"), "{error:?}");
    }
}
