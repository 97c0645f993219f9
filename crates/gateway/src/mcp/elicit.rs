//! Questions that a run waits for, put to whoever asked: a client that can show a form is handed each of them, and what
//! is answered there is decided for the caller, as over any other way.
//!
//! In the newest version a form travels in the result of a call, and the answer comes with the same call made again. In
//! older ones a client is asked while its call waits, which needs a stream of its own: over HTTP they are told in words.

use super::server::McpServer;
use super::tools::LONGEST_WAIT;
use super::words::quoted;
use crate::api::ApiError;
use crate::api::runs::decide::answering;
use crate::bounds;
use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, PrimitiveSchemaDefinition, ProtocolVersion,
    ServerRequest, StringSchema,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use trellis_domain::Surface;
use trellis_domain::park::answer;
use trellis_domain::record::Body;
use trellis_domain::run::{RunState, RunSummary};
use trellis_orchestrator::summary::OpenQuestion;
use trellis_orchestrator::{DecideError, Item};

/// So many questions are handed over at once; the others follow when these are answered.
const AT_ONCE: usize = 8;
/// Characters that a field of a form takes. What is recorded has a limit of its own.
const LONGEST_FIELD: u32 = 10_000;

/// How a client can be asked something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// With a form in the result of its call.
    InResult,
    /// With a form while its call waits.
    Meanwhile,
    /// It is told in words that the run waits, and how to answer.
    InWords,
}

pub(super) fn way(server: &McpServer, context: &RequestContext<RoleServer>) -> Way {
    let forms = context.client_capabilities().and_then(|client| client.elicitation);
    // Clients of the first version that had forms say so with an empty object.
    if !forms.is_some_and(|forms| forms.form.is_some() || forms.url.is_none()) {
        return Way::InWords;
    }
    if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
        return Way::InResult;
    }
    if server.has_stream { Way::Meanwhile } else { Way::InWords }
}

/// The questions of a run that this caller may answer, except for those.
pub(super) async fn open(
    server: &McpServer,
    run: &RunSummary,
    except: &BTreeSet<String>,
) -> Result<Vec<OpenQuestion>, ApiError> {
    if run.state != RunState::Waiting {
        return Ok(Vec::new());
    }
    let caller = server.inside.caller(Surface::Mcp).name;
    let is_for = |who: &[String]| caller.as_ref().is_some_and(|name| who.contains(name));
    let mut open = server.inside.runs().whole(run).await?.waiting_for;
    open.retain(|open| open.who.as_deref().is_none_or(is_for) && !except.contains(&key(open)));
    open.truncate(AT_ONCE);
    Ok(open)
}

/// What a client has to answer before its call can be.
pub(super) fn required(run: &RunSummary, open: &[OpenQuestion]) -> InputRequiredResult {
    // The run is found by it in the caller's own workspace, so nothing is trusted that comes back.
    InputRequiredResult::new(Some(requests(run, open)), Some(run.run.as_str().to_owned()))
}

pub(super) fn requests(run: &RunSummary, open: &[OpenQuestion]) -> InputRequests {
    open.iter().map(|open| (key(open), InputRequest::Elicitation(ElicitRequest::new(form(run, open))))).collect()
}

/// Decides what a client has answered. Returns the questions that it leaves open.
pub(super) async fn take(
    server: &McpServer,
    run: &RunSummary,
    responses: &InputResponses,
) -> Result<BTreeSet<String>, ApiError> {
    let (mut left, mut wrong) = (BTreeSet::new(), None);
    for open in open(server, run, &BTreeSet::new()).await? {
        let key = key(&open);
        let Some(response) = responses.get(&key) else { continue };
        let response = serde_json::from_value(response.clone()).map_err(|error| {
            let error = ApiError::request(format!("this is no answer to a form: {error}"));
            not_counted(run, error)
        });
        let decided = match response {
            Ok(response) => decide(server, run, &open, response).await,
            Err(error) => Err(error),
        };
        match decided {
            Ok(true) => {}
            Ok(false) => {
                left.insert(key);
            }
            // What was said well beside it counts all the same.
            Err(error) => {
                wrong.get_or_insert(error);
            }
        }
    }
    wrong.map_or(Ok(left), Err)
}

/// Asks a client while its call waits. False if the question is still open afterwards.
pub(super) async fn ask(
    server: &McpServer,
    run: &RunSummary,
    open: &OpenQuestion,
    context: &RequestContext<RoleServer>,
) -> Result<bool, ApiError> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form(run, open)));
    let sent = tokio::select! {
        sent = context.peer.send_request_with_option(request, PeerRequestOptions::no_options()) => sent,
        () = context.ct.cancelled() => return Ok(false),
        // One that reads nothing is not asked.
        () = tokio::time::sleep(Duration::from_secs(LONGEST_WAIT)) => return Ok(false),
    };
    // A client that has left is not there to be told of it.
    let Ok(mut handle) = sent else { return Ok(false) };
    let answered = tokio::select! {
        answered = &mut handle.rx => answered.ok(),
        settled = decided_elsewhere(server, run, open) => {
            drop(handle.cancel(Some("it is decided".to_owned())).await);
            settled?;
            return Ok(true);
        }
        () = context.ct.cancelled() => None,
        () = tokio::time::sleep(Duration::from_secs(LONGEST_WAIT)) => {
            drop(handle.cancel(Some("nobody has answered".to_owned())).await);
            return Ok(false);
        }
    };
    match answered {
        Some(Ok(ClientResult::ElicitResult(result))) => decide(server, run, open, result).await,
        Some(Ok(_) | Err(_)) | None => Ok(false),
    }
}

/// Waits until somebody else has answered, or nobody has in time.
async fn decided_elsewhere(server: &McpServer, run: &RunSummary, open: &OpenQuestion) -> Result<(), ApiError> {
    let (inside, unread) = (&server.inside, &server.gateway.capacity().unread);
    let mut subscription = inside.runs().follow(inside.workspace(), &run.run, run.seq);
    while let Some(item) = server.gateway.follow(&mut subscription, || unread.take(bounds::FRAME)).await {
        let (Item::Record(record), _room) = item? else { continue };
        let over = matches!(record.body, Body::Settled(_) | Body::Ended(_));
        if over && record.header.session == open.session_id {
            return Ok(());
        }
    }
    Ok(())
}

/// Makes an answer the decision. False if there is none: whoever closes a form has said nothing.
async fn decide(
    server: &McpServer,
    run: &RunSummary,
    open: &OpenQuestion,
    result: ElicitResult,
) -> Result<bool, ApiError> {
    let mut body = match result.action {
        ElicitationAction::Accept if passed_on(open).is_some() => {
            let content = result.content.unwrap_or_default();
            Map::from_iter([("choice".to_owned(), json!(answer::ANSWER)), ("content".to_owned(), content)])
        }
        ElicitationAction::Accept => filled_in(result.content).map_err(|error| not_counted(run, error))?,
        ElicitationAction::Decline => match declined(open) {
            Some(choice) => Map::from_iter([("choice".to_owned(), json!(choice))]),
            None => return Ok(false),
        },
        // Closed, or something that is not known yet.
        ElicitationAction::Cancel | _ => return Ok(false),
    };
    body.insert("session_id".to_owned(), json!(open.session_id));
    body.insert("park".to_owned(), json!(open.park));
    let answer = answering(&body, server.inside.caller(Surface::Mcp)).map_err(|error| not_counted(run, error))?;
    match server.inside.decide(&run.run, answer).await? {
        // Somebody was faster: the run goes on with their answer.
        Ok(_) | Err(DecideError::AlreadyDecided { .. } | DecideError::Ended(_)) => Ok(true),
        Err(error) => Err(not_counted(run, error.into())),
    }
}

fn not_counted(run: &RunSummary, error: ApiError) -> ApiError {
    let (_, _, message, _) = error.into_parts();
    ApiError::request(format!("the answer does not count: {message}. Run {} still waits for it", run.run))
}

/// The members of a decision in a form that was filled in. Fields that were left empty are not there.
fn filled_in(content: Option<Value>) -> Result<Map<String, Value>, ApiError> {
    let Some(Value::Object(mut content)) = content else {
        return Err(ApiError::request("the form came back without its content"));
    };
    content.retain(|name, value| FIELDS.contains(&name.as_str()) && *value != json!(""));
    for name in ["arguments", "content"] {
        if let Some(Value::String(text)) = content.get(name) {
            let object: Map<String, Value> = serde_json::from_str(text)
                .map_err(|error| ApiError::request(format!("`{name}` must be an object of JSON: {error}")))?;
            content.insert(name.to_owned(), Value::Object(object));
        }
    }
    Ok(content)
}

/// What is done for somebody who does not want what is asked.
fn declined(open: &OpenQuestion) -> Option<&'static str> {
    [answer::DENY, answer::CONTINUE, answer::DECLINE]
        .into_iter()
        .find(|choice| open.options.iter().any(|option| option == choice))
}

/// Names a question within its run.
pub(super) fn key(open: &OpenQuestion) -> String {
    format!("{}@{}", open.park, open.session_id)
}

const FIELDS: [&str; 5] = ["choice", "reason", "arguments", "result", "content"];

/// The only form that a tool asks for, which is handed on as it is: accepting it is the answer, declining it is none.
fn passed_on(open: &OpenQuestion) -> Option<ElicitationSchema> {
    let [only] = open.forms.as_slice() else { return None };
    serde_json::from_value(Value::Object(only.schema.clone())).ok()
}

fn form(run: &RunSummary, open: &OpenQuestion) -> ElicitRequestParams {
    if let Some(requested_schema) = passed_on(open) {
        return ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: message(run, open),
            requested_schema,
        };
    }
    let text = |title: &'static str, description: &'static str| {
        let schema = StringSchema::new().title(title).description(description).max_length(LONGEST_FIELD);
        PrimitiveSchemaDefinition::String(schema)
    };
    let choice = EnumSchema::builder(open.options.clone()).title("Answer").build();
    let mut fields = ElicitationSchema::builder().required_property(FIELDS[0], PrimitiveSchemaDefinition::Enum(choice));
    fields = fields.property(FIELDS[1], text("Reason", "Why, if you like; it is recorded"));
    let has = |option: &str| open.options.iter().any(|offered| offered == option);
    if open.tool.is_some() && (has(answer::APPROVE) || has(answer::RETRY)) {
        let other = text("Other arguments", "An object of JSON to call the tool with instead; empty: as it is");
        fields = fields.property(FIELDS[2], other);
    }
    if has(answer::RESULT) {
        fields = fields.property(FIELDS[3], text("Result", "What the call brought; only with the answer `result`"));
    }
    if has(answer::ANSWER) {
        let content = text("Content", "An object of JSON with a member for each form; only with the answer `answer`");
        fields = fields.property(FIELDS[4], content);
    }
    let mut schema = ElicitationSchema::new(fields.properties);
    schema.required = Some(fields.required);
    let in_order = FIELDS.iter().filter(|name| schema.properties.contains_key(**name));
    schema.property_order = Some(in_order.map(|name| (*name).to_owned()).collect());
    ElicitRequestParams::FormElicitationParams { meta: None, message: message(run, open), requested_schema: schema }
}

/// The question, told apart from what is said about it: its words may come from a model.
fn message(run: &RunSummary, open: &OpenQuestion) -> String {
    let mut told = format!("Run {} of Trellis waits for an answer:\n\n{}", run.run, quoted(&open.question));
    // A question shows the beginning of long arguments. Nobody should agree to what they have not seen.
    if let Some(arguments) = &open.arguments {
        let whole = json!(arguments).to_string();
        if !open.question.contains(&whole) {
            told.push_str("\n\nThe arguments are:\n\n");
            told.push_str(&quoted(&whole));
        }
    }
    format!("{told}\n\nIf nobody answers until {}: {}.", open.expires, open.otherwise)
}
