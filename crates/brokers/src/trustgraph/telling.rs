//! One run told to whoever asked: responses as they come, explanations to the triple store, texts to the librarian.

use super::broker::{Broker, Letter, Sent, Unsent};
use super::flow::{EXPLAINABILITY, NEXT, REQUEST, RESPONSE, RunningFlow};
use super::librarian::Saving;
use super::promises::{OpenDialog, ToldText};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::broker::{self as dialect, WideTriple};
use trellis_domain::message::{AgentRequest, AgentResponse, ErrorInfo, message_type};
use trellis_domain::rdf::{Quad, Term};
use trellis_orchestrator::dialog::Dialog;
use trellis_orchestrator::ports::Notes;
use trellis_orchestrator::{Item, RunService};
use trellis_patterns::wire::completed;
use trellis_provenance::Draft;
use trellis_provenance::vocabulary::{GRAPH_RETRIEVAL, prov};

/// What all dialogs need.
#[derive(Debug)]
pub(crate) struct Teller {
    pub(crate) broker: Arc<Broker>,
    pub(crate) runs: RunService,
    pub(crate) notes: Arc<dyn Notes>,
    pub(crate) librarian_timeout: Duration,
}

/// A dialog that somebody else tells, or has to tell later.
struct NotOurs;

impl Teller {
    /// Tells a run to its end. What was told before is not told again.
    pub(crate) async fn tell(&self, flow: &Arc<RunningFlow>, dialog: OpenDialog) {
        let note = dialog.note();
        let (done, failed) = match self.tell_all(flow, dialog).await {
            Ok(()) => (self.notes.remove(&note).await, "the note of a dialog that is over cannot be removed"),
            Err(NotOurs) => (self.notes.let_go(&note).await, "a dialog that cannot be told is not let go"),
        };
        if let Err(error) = done {
            tracing::warn!(%error, failed);
        }
    }

    async fn tell_all(&self, flow: &Arc<RunningFlow>, mut dialog: OpenDialog) -> Result<(), NotOurs> {
        let mut following = self.runs.follow(&dialog.scope.workspace, &dialog.run, 0);
        let mut messages = Dialog::new(dialog.run.clone(), dialog.streaming);
        let mut notes_texts = dialog.streaming && self.read_texts(&dialog, &mut messages).await;
        let saving = Saving::start(flow, self.librarian_timeout);
        // Whether the last response found somebody. If not, the next ones do not wait for anybody either.
        let mut is_heard = true;
        while !messages.is_over() {
            let item = match following.next().await {
                Ok(item) => item,
                Err(error) => {
                    tracing::error!(run = %dialog.run, %error, "a run cannot be told any further for now");
                    return Err(NotOurs);
                }
            };
            let record = if let Item::Record(record) = &item { Some(Arc::clone(record)) } else { None };
            let was_told = record.as_ref().is_some_and(|record| record.header.seq <= dialog.told);
            let (out, drafts) = messages.project_with_drafts(item);
            let mut explanations = Vec::with_capacity(drafts.len());
            for draft in drafts {
                let (draft, documents) = with_documents_apart(draft);
                for document in documents {
                    saving.put(document);
                }
                explanations.push(draft);
            }
            if was_told {
                continue;
            }
            let is_silent = out.is_empty() && explanations.is_empty();
            // The triple store and whoever asked do not wait for each other.
            let explained = join_all(explanations.into_iter().map(|draft| self.explain(flow, &dialog, draft)));
            let answered = self.send_all(flow, &dialog, &out, &mut is_heard, &mut notes_texts);
            let (answered, _) = tokio::join!(answered, explained);
            answered?;
            if let Some(record) = record {
                dialog.told = record.header.seq;
                // One that tells nothing may be read again.
                if !is_silent {
                    self.note(&dialog).await?;
                }
            }
        }
        saving.finish().await;
        Ok(())
    }

    /// Reads what a process before this one has told while it was written. Whether it can be noted from now on.
    async fn read_texts(&self, dialog: &OpenDialog, messages: &mut Dialog) -> bool {
        let lines = match self.notes.lines(&dialog.note()).await {
            Ok(lines) => lines,
            Err(error) => {
                tracing::warn!(run = %dialog.run, %error, "what was told of an answer is not known; it may come twice");
                return false;
            }
        };
        for line in &lines {
            match serde_json::from_str::<ToldText>(line) {
                Ok(told) => messages.sent_before(&told.kind, &told.id, &told.text),
                Err(error) => tracing::warn!(run = %dialog.run, %error, "a note of what was told cannot be read"),
            }
        }
        true
    }

    /// How far a dialog was told. If it is lost with the machine, some messages come twice, under the same ids.
    async fn note(&self, dialog: &OpenDialog) -> Result<(), NotOurs> {
        match self.notes.update(&dialog.note()).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                tracing::warn!(run = %dialog.run, "another process tells this dialog now");
                Err(NotOurs)
            }
            Err(error) => {
                tracing::warn!(run = %dialog.run, %error, "how far a dialog was told cannot be noted");
                Ok(())
            }
        }
    }

    /// Only what is told while it is written has to be known apart from the records. Whether more can be noted: with a gap
    /// in it, it would be of no use.
    async fn note_text(&self, dialog: &OpenDialog, message: &AgentResponse) -> Result<bool, NotOurs> {
        let is_text = [message_type::THOUGHT, message_type::ANSWER].contains(&message.message_type.as_str());
        if !is_text || message.content.is_empty() {
            return Ok(true);
        }
        let AgentResponse { message_type: kind, message_id: id, content: text, .. } = message;
        let told = ToldText { kind: kind.clone(), id: id.clone(), text: text.clone() };
        let line = serde_json::to_string(&told).expect("it has texts only");
        match self.notes.add(&dialog.note(), &line).await {
            Ok(true) => Ok(true),
            Ok(false) => Err(NotOurs),
            Err(error) => {
                tracing::warn!(run = %dialog.run, %error, "what was told of an answer cannot be noted");
                Ok(false)
            }
        }
    }

    async fn explain(&self, flow: &RunningFlow, dialog: &OpenDialog, draft: Draft) {
        let Some(topic) = flow.topics.get(EXPLAINABILITY) else { return };
        let body = written(&triples(&with_origin(draft, dialog), &dialog.collection));
        // As in the original, nothing ties it to a request.
        self.broker.publish_at_last(topic, Letter { id: "", body: &body, handed_on: 0 }).await;
    }

    async fn send_all(
        &self,
        flow: &RunningFlow,
        dialog: &OpenDialog,
        messages: &[AgentResponse],
        is_heard: &mut bool,
        notes_texts: &mut bool,
    ) -> Result<(), NotOurs> {
        // What ends a dialog is sent once everything before it is there.
        let end = messages.iter().position(|message| message.end_of_dialog).unwrap_or(messages.len());
        let (before, last) = messages.split_at(end);
        *is_heard = self.send_together(flow, dialog, before, *is_heard).await;
        for message in before {
            if *notes_texts {
                *notes_texts = self.note_text(dialog, message).await?;
            }
        }
        for message in last {
            *is_heard = self.send(flow, dialog, message, *is_heard).await == Sent::Queued;
            if *notes_texts {
                *notes_texts = self.note_text(dialog, message).await?;
            }
        }
        Ok(())
    }

    /// Responses that end nothing. RabbitMQ gets them in this order, before it has confirmed any: waiting for each one takes
    /// longer than everything else. What it does not have then is sent again. Whether the last one found somebody.
    async fn send_together(
        &self,
        flow: &RunningFlow,
        dialog: &OpenDialog,
        messages: &[AgentResponse],
        mut is_heard: bool,
    ) -> bool {
        let (topic, id) = (flow.topics.needed(RESPONSE), dialog.id.as_str());
        let bodies: Vec<String> = messages.iter().map(response).collect();
        let letters = bodies.iter().map(|body| Letter { id, body: body.as_str(), handed_on: 0 });
        let sent = join_all(letters.map(|letter| self.broker.publish(topic, letter))).await;
        for (body, sent) in bodies.iter().zip(sent) {
            is_heard = match sent {
                Ok(Sent::Queued) => true,
                Ok(Sent::Unwanted) if !is_heard => false,
                Ok(Sent::Refused) => false,
                Ok(Sent::Unwanted) | Err(Unsent(_)) => self.respond(flow, id, body, is_heard).await == Sent::Queued,
            };
        }
        is_heard
    }

    async fn send(&self, flow: &RunningFlow, dialog: &OpenDialog, message: &AgentResponse, is_heard: bool) -> Sent {
        if let (Some(request), true) = (&dialog.subagent, message.end_of_dialog) {
            return self.complete(flow, dialog, request, message).await;
        }
        self.respond(flow, &dialog.id, &response(message), is_heard).await
    }

    async fn respond(&self, flow: &RunningFlow, id: &str, body: &str, wait: bool) -> Sent {
        let (topic, letter) = (flow.topics.needed(RESPONSE), Letter { id, body, handed_on: 0 });
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
        let body = written(&completion(request, last));
        let topic = flow.topics.get(NEXT).unwrap_or_else(|| flow.topics.needed(REQUEST));
        self.broker.publish_to_somebody(topic, Letter { id: &dialog.id, body: &body, handed_on: 0 }).await
    }

    /// A request that no run can answer.
    pub(crate) async fn refuse(&self, flow: &RunningFlow, id: &str, session: &str, why: &str) {
        let message = AgentResponse {
            session_id: session.to_owned(),
            message_type: message_type::ERROR.to_owned(),
            content: why.to_owned(),
            end_of_message: true,
            end_of_dialog: true,
            error: Some(ErrorInfo { kind: "agent-error".to_owned(), message: why.to_owned() }),
            ..AgentResponse::default()
        };
        self.respond(flow, id, &response(&message), false).await;
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

/// What goes to the triple store.
#[derive(Serialize)]
struct Triples<'a> {
    metadata: Value,
    triples: Vec<WideTriple<'a>>,
}

fn triples<'a>(draft: &'a Draft, collection: &str) -> Triples<'a> {
    Triples {
        metadata: json!({ "id": draft.event.explain_id, "root": "", "collection": collection }),
        triples: draft.event.quads.iter().map(dialect::triple).collect(),
    }
}

fn response(message: &AgentResponse) -> String {
    written(&dialect::response(message).of_session(&message.session_id))
}

fn written(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("every key is a text")
}

fn completion(request: &AgentRequest, last: &AgentResponse) -> AgentRequest {
    let error = last.error.as_ref();
    let observation = error.map_or_else(|| last.content.clone(), |error| format!("Error: {}", error.message));
    completed(request.clone(), error.is_none(), observation)
}

#[cfg(test)]
#[path = "telling_tests.rs"]
mod tests;
