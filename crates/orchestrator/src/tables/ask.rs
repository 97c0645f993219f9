//! A question in words becomes a query in GraphQL, by a model, and rows.
//!
//! The model chooses tables where there are several, and writes a query over them. The query is held against the schemas
//! before it runs; what is wrong with it, or went wrong, is told the model once.

use super::graphql::{GraphqlAnswer, GraphqlError, GraphqlRequest, Prepared, Schemas, described, written_name};
use crate::permits::Permit;
use crate::ports::{
    CallLabels, PromptCall, PromptError, PromptReply, Prompter, ReplyContent, Tables, TablesError, World,
};
use crate::unheard::Unheard;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::Settings;
use trellis_domain::record::{ModelCall, PromptUse};
use trellis_domain::{Collection, Scope};

/// Which tables a question is about.
pub const SELECTION: &str = "schema-selection";
/// The query for a question.
pub const GRAPHQL: &str = "graphql-generation";
/// Tables that a model is shown at once.
const MOST_SHOWN: usize = 100;
/// Tables that are shown for the query if nobody can say which are meant.
const SHOWN_ANYWAY: usize = 8;
/// How sure a model is that does not say it; as TrustGraph has it.
const CONFIDENCE: f64 = 0.8;

/// Asks models about tables.
#[derive(Debug, Clone)]
pub struct Asker {
    pub prompter: Arc<dyn Prompter>,
    pub tables: Arc<dyn Tables>,
    pub world: Arc<dyn World>,
}

/// A question, and how it is asked.
#[derive(Debug, Clone)]
pub struct QuestionCall {
    pub scope: Scope,
    pub settings: Arc<Settings>,
    pub question: String,
    /// Rows that are wanted of each table, at most.
    pub rows: u64,
    /// How long each call of a model may take.
    pub timeout: Option<Duration>,
    /// How long a reply may be.
    pub max_reply_bytes: u64,
    pub labels: Option<CallLabels>,
    /// For the first call.
    pub permit: Permit,
}

/// A query that a model wrote, and that may run.
#[derive(Debug)]
pub struct Generated {
    pub request: GraphqlRequest,
    pub prepared: Prepared,
    /// The tables that were shown to the model for it.
    pub tables: Vec<String>,
    pub confidence: f64,
}

/// What came of a question.
#[derive(Debug)]
pub struct TableAnswer {
    pub generated: Generated,
    pub answer: GraphqlAnswer,
    pub calls: Vec<ModelCall>,
}

/// Why there is no answer, and what models were asked all the same.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct AskError {
    pub reason: String,
    pub calls: Vec<ModelCall>,
}

impl AskError {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), calls: Vec::new() }
    }
}

impl Asker {
    /// The query for a question, over these tables. What models were asked comes with it.
    pub async fn generate(
        &self,
        call: QuestionCall,
        schemas: &Schemas,
    ) -> Result<(Generated, Vec<ModelCall>), AskError> {
        let mut asking = Asking::new(self, call);
        match asking.generate(schemas).await {
            Ok(generated) => Ok((generated, asking.calls)),
            Err(reason) => Err(AskError { reason, calls: asking.calls }),
        }
    }

    /// The rows for a question, from the tables of a collection.
    pub async fn answer(&self, call: QuestionCall, collection: &Collection) -> Result<TableAnswer, AskError> {
        let failed = |error: TablesError| AskError::new(error.to_string());
        let loaded = self.tables.tables(&call.scope.workspace).await.map_err(failed)?;
        let here = |name: &String| loaded.iter().any(|table| &table.collection == collection && &table.table == name);
        let schemas: Schemas = call.settings.schemas.clone().into_iter().filter(|(name, _)| here(name)).collect();
        if schemas.is_empty() {
            return Err(AskError::new(format!("the collection `{collection}` has no tables")));
        }
        let mut asking = Asking::new(self, call);
        match asking.answer(&schemas, collection).await {
            Ok((generated, answer)) => Ok(TableAnswer { generated, answer, calls: asking.calls }),
            Err(reason) => Err(AskError { reason, calls: asking.calls }),
        }
    }
}

struct Asking<'a> {
    asker: &'a Asker,
    call: QuestionCall,
    /// Stands in the marks around what is shown; nothing that a question or a table can know.
    mark: String,
    calls: Vec<ModelCall>,
}

/// A query that did not work, and why.
struct Mistake {
    query: String,
    problem: String,
}

impl<'a> Asking<'a> {
    fn new(asker: &'a Asker, call: QuestionCall) -> Self {
        let mark = asker.world.fresh_id().chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        Self { asker, call, mark, calls: Vec::new() }
    }

    async fn answer(
        &mut self,
        schemas: &Schemas,
        collection: &Collection,
    ) -> Result<(Generated, GraphqlAnswer), String> {
        let shown = self.select(schemas).await?;
        let mut mistake = None;
        loop {
            let is_second = mistake.is_some();
            let (request, confidence) = self.write(&shown, mistake.take()).await?;
            let problem = match self.prepare(&shown, &request) {
                Ok(prepared) => {
                    let workspace = &self.call.scope.workspace;
                    let answer = prepared.run(&*self.asker.tables, workspace, collection).await;
                    if answer.errors.is_empty() || is_second {
                        let tables = shown.keys().cloned().collect();
                        return Ok((Generated { request, prepared, tables, confidence }, answer));
                    }
                    in_words(&answer.errors)
                }
                Err(error) if is_second => return Err(unusable(&error, &request.query)),
                Err(error) => error.message,
            };
            mistake = Some(Mistake { query: request.query, problem });
        }
    }

    async fn generate(&mut self, schemas: &Schemas) -> Result<Generated, String> {
        if schemas.is_empty() {
            return Err("no schema is configured; add an item of type `schema`".to_owned());
        }
        let shown = self.select(schemas).await?;
        let mut mistake = None;
        loop {
            let is_second = mistake.is_some();
            let (request, confidence) = self.write(&shown, mistake.take()).await?;
            match self.prepare(&shown, &request) {
                Ok(prepared) => {
                    let tables = shown.keys().cloned().collect();
                    return Ok(Generated { request, prepared, tables, confidence });
                }
                Err(error) if is_second => return Err(unusable(&error, &request.query)),
                Err(error) => mistake = Some(Mistake { query: request.query, problem: error.message }),
            }
        }
    }

    fn prepare(&self, schemas: &Schemas, request: &GraphqlRequest) -> Result<Prepared, GraphqlError> {
        let mut prepared = Prepared::new(schemas, request)?;
        prepared.at_most(self.call.rows);
        Ok(prepared)
    }

    /// The tables that the question is about. Nobody is asked if there is only one.
    async fn select(&mut self, schemas: &Schemas) -> Result<Schemas, String> {
        if schemas.len() == 1 {
            return Ok(schemas.clone());
        }
        if schemas.len() > MOST_SHOWN {
            let count = schemas.len();
            return Err(format!("there are {count} tables, of which {MOST_SHOWN} can be shown to a model at once"));
        }
        let names: Vec<_> = schemas.keys().collect();
        let schema = json!({"type": "array", "items": {"type": "string", "enum": names}});
        let variables = [("question", json!(self.call.question)), ("schemas", described(schemas, false))];
        let value = self.ask(SELECTION, variables, schema).await?;
        let chosen = chosen(&value);
        // They are shown as they are written in a query.
        let is_meant = |name: &String| {
            let is =
                |chosen: &str| chosen.eq_ignore_ascii_case(name) || chosen.eq_ignore_ascii_case(&written_name(name));
            chosen.iter().any(|chosen| is(chosen))
        };
        let selected: Schemas = schemas
            .iter()
            .filter(|(name, _)| is_meant(name))
            .map(|(name, schema)| (name.clone(), Arc::clone(schema)))
            .collect();
        match selected.len() {
            0 if schemas.len() <= SHOWN_ANYWAY => Ok(schemas.clone()),
            0 => Err("the model named none of the tables".to_owned()),
            _ => Ok(selected),
        }
    }

    async fn write(&mut self, schemas: &Schemas, mistake: Option<Mistake>) -> Result<(GraphqlRequest, f64), String> {
        let schema = json!({
            "type": "object",
            "required": ["query"],
            "properties": {"query": {"type": "string"}, "confidence": {"type": "number"}},
        });
        let mut variables = vec![
            ("question", json!(self.call.question)),
            ("schemas", described(schemas, true)),
            ("limit", json!(self.call.rows)),
        ];
        if let Some(Mistake { query, problem }) = mistake {
            variables.extend([("previous_query", json!(query)), ("problem", json!(problem))]);
        }
        let value = self.ask(GRAPHQL, variables, schema).await?;
        let query = value.get("query").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if query.is_empty() {
            return Err("the model wrote no query".to_owned());
        }
        let variables = value.get("variables").and_then(Value::as_object).cloned().unwrap_or_default();
        let confidence = value.get("confidence").and_then(Value::as_f64).unwrap_or(CONFIDENCE);
        Ok((GraphqlRequest { query: query.to_owned(), variables, operation: None }, confidence))
    }

    async fn ask(
        &mut self,
        id: &str,
        variables: impl IntoIterator<Item = (&str, Value)>,
        schema: Value,
    ) -> Result<Value, String> {
        let QuestionCall { scope, settings, labels, timeout, .. } = &self.call;
        let variables = variables.into_iter().chain([("mark", json!(self.mark))]);
        let call = PromptCall {
            scope: scope.clone(),
            settings: Arc::clone(settings),
            id: id.to_owned(),
            variables: variables.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>(),
            schema: Some(schema),
            timeout: *timeout,
            labels: labels.clone(),
            permit: std::mem::take(&mut self.call.permit),
            ..PromptCall::default()
        };
        let mut unheard = Unheard::up_to(self.call.max_reply_bytes);
        match self.asker.prompter.ask(call, &mut unheard).await {
            Ok(reply) => {
                self.calls.push(on_record(&reply));
                read(id, &reply)
            }
            Err(error) => {
                let reason = error.to_string();
                if let PromptError::Provider { failures, .. } = error {
                    let prompt = PromptUse { id: id.to_owned(), ..PromptUse::default() };
                    self.calls.push(ModelCall { prompt, failures, ..ModelCall::default() });
                }
                Err(reason)
            }
        }
    }
}

fn read(id: &str, reply: &PromptReply) -> Result<Value, String> {
    match &reply.content {
        ReplyContent::Object(value) => Ok(value.clone()),
        ReplyContent::List(values) => Ok(json!(values)),
        ReplyContent::Text => serde_json::from_str(reply.raw.trim())
            .map_err(|_| format!("the reply to `{id}` is no JSON; set its response-type to json")),
        // A prompt of another hand may ask for more than is needed.
        ReplyContent::Wrong { reason } => serde_json::from_str(reply.raw.trim())
            .map_err(|_| format!("the reply to `{id}` is not what it asks for: {reason}")),
    }
}

/// A list of names, alone or in an object.
fn chosen(value: &Value) -> Vec<String> {
    match value {
        Value::String(name) => vec![name.clone()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::Object(members) => members.values().flat_map(chosen).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn unusable(error: &GraphqlError, query: &str) -> String {
    const SHOWN: usize = 1_000;
    let query: String = query.chars().take(SHOWN).collect();
    format!("the model wrote a query that cannot be used: {error}. It was: {query}")
}

fn in_words(errors: &[GraphqlError]) -> String {
    errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; ")
}

fn on_record(reply: &PromptReply) -> ModelCall {
    ModelCall {
        prompt: reply.prompt.clone(),
        reply: Some(reply.raw.as_str().into()),
        model: reply.model.clone(),
        in_token: reply.in_token,
        out_token: reply.out_token,
        ms: reply.ms,
        failures: reply.failures.clone(),
    }
}
