//! One run told to whoever asked: responses as they come, explanations to the triple store, texts to the librarian.

use super::broker::{Broker, Letter, Sent};
use super::flow::{EXPLAINABILITY, NEXT, REQUEST, RESPONSE, RunningFlow};
use super::librarian::Saving;
use super::notes::{Notes, OpenDialog, ToldText, ToldTexts};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::broker as dialect;
use trellis_domain::message::{AgentRequest, AgentResponse, AgentStep, ErrorInfo, message_type};
use trellis_domain::rdf::{Quad, Term};
use trellis_orchestrator::dialog::Dialog;
use trellis_orchestrator::{Item, RunService};
use trellis_patterns::Projector;
use trellis_patterns::wire::step_type;
use trellis_provenance::Draft;
use trellis_provenance::vocabulary::{GRAPH_RETRIEVAL, prov};

/// What all dialogs need.
#[derive(Debug)]
pub(crate) struct Teller {
    pub(crate) broker: Arc<Broker>,
    pub(crate) runs: RunService,
    pub(crate) notes: Notes,
    pub(crate) librarian_timeout: Duration,
}

impl Teller {
    /// Tells a run to its end. What was told before is not told again.
    pub(crate) async fn tell(&self, flow: &Arc<RunningFlow>, mut dialog: OpenDialog) {
        let mut following = self.runs.follow(&dialog.scope.workspace, &dialog.run, 0);
        let mut messages = Dialog::new(dialog.run.clone(), dialog.streaming);
        let mut texts = self.texts(&dialog, &mut messages);
        let mut projector = Projector::new();
        let saving = Saving::start(flow, self.librarian_timeout);
        // Whether the last response found somebody. If not, the next ones do not wait for anybody either.
        let mut is_heard = true;
        while !messages.is_over() {
            let item = match following.next().await {
                Ok(item) => item,
                Err(error) => {
                    // Whoever serves the folder next tells the rest.
                    tracing::error!(run = %dialog.run, %error, "a run cannot be told any further");
                    return;
                }
            };
            let record = if let Item::Record(record) = &item { Some(Arc::clone(record)) } else { None };
            let was_told = record.as_ref().is_some_and(|record| record.header.seq <= dialog.told);
            if let Some(record) = &record {
                for draft in projector.drafts(record) {
                    let (draft, documents) = with_documents_apart(draft);
                    for document in documents {
                        saving.put(document);
                    }
                    if !was_told {
                        self.explain(flow, &dialog, draft).await;
                    }
                }
            }
            let out = messages.project(item);
            if was_told {
                continue;
            }
            for message in out {
                is_heard = self.send(flow, &dialog, &message, is_heard).await == Sent::Queued;
                note_text(&mut texts, &dialog, &message);
            }
            if let Some(record) = record {
                dialog.told = record.header.seq;
                self.note(&dialog);
            }
        }
        saving.finish().await;
        if let Err(error) = self.notes.remove(&dialog) {
            tracing::warn!(run = %dialog.run, %error, "the note of a dialog that is over cannot be removed");
        }
    }

    /// The notes of what is told while it is written, if any is: what is in them was told by a process before this one.
    fn texts(&self, dialog: &OpenDialog, messages: &mut Dialog) -> Option<ToldTexts> {
        if !dialog.streaming {
            return None;
        }
        match self.notes.texts(dialog) {
            Ok(texts) => {
                for told in texts.earlier() {
                    messages.sent_before(&told.kind, &told.id, &told.text);
                }
                Some(texts)
            }
            Err(error) => {
                tracing::warn!(run = %dialog.run, %error, "what was told of an answer is not known; it may come twice");
                None
            }
        }
    }

    /// How far a dialog was told. If it is lost with the machine, some messages come twice, under the same ids.
    fn note(&self, dialog: &OpenDialog) {
        if let Err(error) = self.notes.write(dialog, false) {
            tracing::warn!(run = %dialog.run, %error, "how far a dialog was told cannot be noted");
        }
    }

    async fn explain(&self, flow: &RunningFlow, dialog: &OpenDialog, draft: Draft) {
        let Some(topic) = flow.topics.get(EXPLAINABILITY) else { return };
        let body = triples(&with_origin(draft, dialog), &dialog.collection);
        // As in the original, nothing ties it to a request.
        self.broker.publish_at_last(topic, Letter { id: "", body: &body, handed_on: 0 }).await;
    }

    async fn send(&self, flow: &RunningFlow, dialog: &OpenDialog, message: &AgentResponse, is_heard: bool) -> Sent {
        if let (Some(request), true) = (&dialog.subagent, message.end_of_dialog) {
            return self.complete(flow, dialog, request, message).await;
        }
        self.respond(flow, &dialog.id, message, is_heard).await
    }

    async fn respond(&self, flow: &RunningFlow, id: &str, message: &AgentResponse, wait: bool) -> Sent {
        let mut body = dialect::response(message);
        // Stock readers overlook it.
        body["session_id"] = json!(message.session_id);
        let (topic, letter) = (flow.topics.needed(RESPONSE), Letter { id, body: &body, handed_on: 0 });
        let sent = if wait {
            self.broker.publish_to_somebody(topic, letter).await
        } else {
            self.broker.publish_at_last(topic, letter).await
        };
        if sent == Sent::Unwanted {
            tracing::debug!(id, "nobody listens to the responses");
        }
        sent
    }

    /// Tells the supervisor that sent it how a subagent ended.
    async fn complete(
        &self,
        flow: &RunningFlow,
        dialog: &OpenDialog,
        request: &AgentRequest,
        last: &AgentResponse,
    ) -> Sent {
        let body = dialect::request(&completion(request, last));
        let topic = flow.topics.get(NEXT).unwrap_or_else(|| flow.topics.needed(REQUEST));
        self.broker.publish_to_somebody(topic, Letter { id: &dialog.id, body: &body, handed_on: 0 }).await
    }

    /// A request that no run can answer.
    pub(crate) async fn refuse(&self, flow: &RunningFlow, id: &str, why: &str) {
        let message = AgentResponse {
            message_type: message_type::ERROR.to_owned(),
            content: why.to_owned(),
            end_of_message: true,
            end_of_dialog: true,
            error: Some(ErrorInfo { kind: "agent-error".to_owned(), message: why.to_owned() }),
            ..AgentResponse::default()
        };
        self.respond(flow, id, &message, false).await;
    }
}

/// Only what is told while it is written has to be known apart from the records.
fn note_text(texts: &mut Option<ToldTexts>, dialog: &OpenDialog, message: &AgentResponse) {
    let is_text = [message_type::THOUGHT, message_type::ANSWER].contains(&message.message_type.as_str());
    let Some(open) = texts.as_mut().filter(|_| is_text && !message.content.is_empty()) else { return };
    let told =
        ToldText { kind: message.message_type.clone(), id: message.message_id.clone(), text: message.content.clone() };
    if let Err(error) = open.add(&told) {
        tracing::warn!(run = %dialog.run, %error, "what was told of an answer cannot be noted");
        // With a gap in it, it would be of no use.
        *texts = None;
    }
}

fn with_documents_apart(draft: Draft) -> (Draft, Vec<trellis_provenance::DocumentRef>) {
    let Draft { event, documents } = draft;
    (Draft { event, documents: Vec::new() }, documents)
}

/// The question, with what it follows from elsewhere.
fn with_origin(mut draft: Draft, dialog: &OpenDialog) -> Draft {
    const FIRST: u64 = 1;
    if let (Some(follows), FIRST) = (&dialog.follows, draft.event.seq) {
        draft.event.quads.push(Quad {
            s: Term::iri(&draft.event.explain_id),
            p: Term::iri(prov::WAS_DERIVED_FROM),
            o: Term::iri(follows),
            g: Some(GRAPH_RETRIEVAL.to_owned()),
        });
    }
    draft
}

fn triples(draft: &Draft, collection: &str) -> Value {
    json!({
        "metadata": { "id": draft.event.explain_id, "root": "", "collection": collection },
        "triples": draft.event.quads.iter().map(dialect::triple).collect::<Vec<_>>(),
    })
}

fn completion(request: &AgentRequest, last: &AgentResponse) -> AgentRequest {
    let error = last.error.as_ref();
    let observation = error.map_or_else(|| last.content.clone(), |error| format!("Error: {}", error.message));
    let thought = if error.is_none() { "Subagent completed" } else { "Subagent did not complete" };
    let step = AgentStep {
        thought: thought.to_owned(),
        action: "complete".to_owned(),
        observation,
        step_type: step_type::COMPLETION.to_owned(),
        ..AgentStep::default()
    };
    AgentRequest {
        history: vec![step],
        state: String::new(),
        pattern: String::new(),
        task_type: String::new(),
        framing: String::new(),
        streaming: false,
        ..request.clone()
    }
}
