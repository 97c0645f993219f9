//! Questions to agents, as the stock clients ask them.

use crate::bounds;
use crate::call::Call;
use crate::error::{Code, Gone, ServiceError, StreamError};
use crate::inside::Gateway;
use crate::outbox::{self, Outbox};
use serde_json::{Map, Value, json};
use trellis_domain::gateway::{self as dialect, Compact};
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::{AgentRequest, AgentResponse, ErrorInfo, message_type};
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, Selection, Workspace};
use trellis_orchestrator::accept::{Question, UnknownNames};
use trellis_orchestrator::dialog::Dialog;
use trellis_orchestrator::{AcceptError, Item, RunSubscription};

/// The messages of a run as they come, until the dialog is over.
pub(crate) async fn stream(gateway: &Gateway, call: Call, outbox: &Outbox) -> Result<(), StreamError> {
    let (mut following, streaming) = match begin(gateway, call).await {
        Ok(begun) => begun,
        // In the response too, as agents tell of their errors.
        Err(error) => return Ok(outbox.failed(&Compact::from(&failed(&error)), &error).await?),
    };
    let mut dialog = Dialog::new(following.run.clone(), streaming);
    while !dialog.is_over() {
        let (item, _floor) = following.next(gateway, || outbox.floor()).await?;
        for message in dialog.project(item) {
            send(message, outbox).await?;
        }
    }
    Ok(())
}

/// Sends a message, in several frames if it is long. An explanation that is too long goes without its triples: clients
/// that want them ask the graph then.
async fn send(mut message: AgentResponse, outbox: &Outbox) -> Result<(), Gone> {
    if !message.explain_triples.is_empty() && is_too_long(&message) {
        message.explain_triples.clear();
    }
    while is_too_long(&message) {
        let cut = message.content.floor_char_boundary(bounds::PIECE);
        let rest = message.content.split_off(cut);
        let piece = AgentResponse { end_of_message: false, end_of_dialog: false, error: None, ..message.clone() };
        outbox.more(&Compact::from(&piece)).await?;
        message.content = rest;
    }
    let reply = Compact::from(&message);
    match &message.error {
        Some(error) => outbox.failed(&reply, &ServiceError::new(Code::Agent, error.message.as_str())).await,
        None if message.end_of_dialog => outbox.last(&reply).await,
        None => outbox.more(&reply).await,
    }
}

/// The whole answer at once. Beside the last message's own members it has those that the SDK reads.
pub(crate) async fn answer(gateway: &Gateway, call: Call) -> Result<Value, ServiceError> {
    let (mut following, _) = begin(gateway, call).await?;
    let mut dialog = Dialog::new(following.run.clone(), false);
    let (mut thought, mut observation) = (String::new(), String::new());
    loop {
        let (item, ()) = following.next(gateway, || std::future::ready(())).await?;
        for message in dialog.project(item) {
            if let Some(error) = message.error {
                return Err(ServiceError::new(Code::Agent, error.message));
            }
            if message.end_of_dialog {
                let mut reply = json!(dialect::response(&message));
                reply["answer"] = json!(message.content);
                reply["thought"] = json!(thought);
                reply["observation"] = json!(observation);
                return Ok(reply);
            }
            match message.message_type.as_str() {
                message_type::THOUGHT => thought = message.content,
                message_type::OBSERVATION => observation = message.content,
                _ => {}
            }
        }
    }
}

/// Whether a message does not fit into a frame. The envelope around it is small.
fn is_too_long(message: &AgentResponse) -> bool {
    let explained: usize = message.explain_triples.iter().map(Quad::text_bytes).sum();
    outbox::is_too_long(message.content.len() + explained, || Compact::from(message))
}

/// A run that somebody follows.
struct Following {
    workspace: Workspace,
    run: RunId,
    subscription: RunSubscription,
}

impl Following {
    async fn next<R: Future>(
        &mut self,
        gateway: &Gateway,
        make_room: impl Fn() -> R,
    ) -> Result<(Item, R::Output), ServiceError> {
        if let Some(item) = gateway.follow(&mut self.subscription, make_room).await {
            return Ok(item?);
        }
        let Self { workspace, run, .. } = self;
        let message = format!("the server is stopping; the run {run} of workspace {workspace} goes on when it is back");
        Err(ServiceError::gateway(message))
    }
}

/// The request, or which of its members is wrong.
fn read(members: Map<String, Value>) -> Result<AgentRequest, ServiceError> {
    let request = |members| serde_json::from_value::<AgentRequest>(Value::Object(members));
    request(members.clone()).map_err(|error| {
        let alone = |(name, value): (String, Value)| {
            let question = ("question".to_owned(), Value::Null);
            let error = request([question, (name.clone(), value)].into_iter().collect()).err()?;
            Some(format!("the member `{name}` is wrong: {error}"))
        };
        let which = members.into_iter().find_map(alone).unwrap_or_else(|| error.to_string());
        ServiceError::request(format!("this is not a request to an agent: {which}"))
    })
}

/// Accepts the question; from then on the run goes on whoever listens.
async fn begin(gateway: &Gateway, call: Call) -> Result<(Following, bool), ServiceError> {
    if !gateway.takes_questions() {
        return Err(ServiceError::stopping());
    }
    let (scope, by) = (call.scope(), Some(call.caller()));
    let Call { inside, request, .. } = call;
    let request = read(request)?;
    let streaming = request.streaming;
    let request_id = inside.runs().new_request_id().map_err(|error| ServiceError::gateway(error.to_string()))?;
    let workspace = scope.workspace.clone();
    let (limits, selection) = (SomeLimits::default(), Selection::default());
    let question = Question { scope, request_id, request, limits, names: UnknownNames::FallBack, selection, by };
    let accepted = inside.accept(question).await?;
    let run = accepted.map_err(refused)?.run;
    let subscription = inside.runs().follow(&workspace, &run, 0);
    Ok((Following { workspace, run, subscription }, streaming))
}

fn refused(error: AcceptError) -> ServiceError {
    ServiceError::new(Code::Agent, error.to_string())
}

fn failed(error: &ServiceError) -> AgentResponse {
    AgentResponse {
        message_type: message_type::ERROR.to_owned(),
        content: error.message.clone(),
        end_of_message: true,
        end_of_dialog: true,
        error: Some(ErrorInfo { kind: Code::Agent.word().to_owned(), message: error.message.clone() }),
        ..AgentResponse::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::rdf::{Term, Triple};

    /// The edges of an explanation are quoted triples.
    #[test]
    fn what_a_quoted_triple_says_counts() {
        let node = || Term::iri("urn:a");
        let triple = Box::new(Triple { s: node(), p: node(), o: Term::literal("x".repeat(100 << 10)) });
        let quad = Quad { s: node(), p: node(), o: Term::Quoted { triple }, g: None };
        let explained =
            |count| AgentResponse { explain_triples: vec![quad.clone(); count], ..AgentResponse::default() };
        assert!(!is_too_long(&explained(10)));
        assert!(is_too_long(&explained(11)));
    }
}
