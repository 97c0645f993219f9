//! `graph-rag`: answers from loaded knowledge without an agent around them, as TrustGraph's service gives them. A client
//! that streams hears of each step, with what it says of itself, and of the answer while it is written.
//!
//! Nothing of this belongs to a run, so nothing is recorded; a caller that goes away ends its call.

use super::documents::collection;
use super::model::{Live, begin};
use crate::bounds;
use crate::call::Call;
use crate::error::{Code, ServiceError, StreamError};
use crate::inside::Gateway;
use crate::outbox::{self, Outbox};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::GRAPH_LIMITS;
use trellis_domain::rdf::Quad;
use trellis_domain::record::Explained;
use trellis_domain::usage::Usage;
use trellis_orchestrator::graph_rag::{
    Asker, GraphAnswer, GraphBounds, GraphQuestion, GraphRag, Listener, TraversalStep, Written,
};
use trellis_orchestrator::ports::{KnowledgePlace, ReplySink};
use trellis_provenance::vocabulary::GRAPH_RETRIEVAL;

/// Bytes of a question, concepts or entities that a caller names, and hops that it says something about.
const LONGEST_QUESTION: usize = 64 << 10;
const MOST_NAMED: usize = 100;

/// The whole answer.
pub(super) async fn answer(gateway: &Gateway, call: Call) -> Result<Value, ServiceError> {
    let _in_flight = begin(gateway)?;
    let (rag, question) = (rag(&call)?, question(&call)?);
    let answer = perform(rag, &question, &call, &mut Telling::new(&call)).await?;
    Ok(last(&answer, &answer.text, true))
}

/// The steps and the answer while they are made, if that is wished.
pub(super) async fn stream(gateway: &Gateway, call: Call, outbox: &Outbox) -> Result<(), StreamError> {
    if !call.members().flag("streaming")? {
        return Ok(outbox.last(&answer(gateway, call).await?).await?);
    }
    let _in_flight = begin(gateway)?;
    let (rag, question) = (rag(&call)?, question(&call)?);
    let telling = Telling::new(&call);
    let (heard, mut telling) = (telling.clone(), telling);
    let mut answering = pin!(perform(rag, &question, &call, &mut telling));
    let answer = loop {
        tokio::select! {
            biased;
            () = heard.live.news.notified() => {
                heard.send_steps(outbox).await?;
                heard.send_text(outbox).await?;
            }
            answer = &mut answering => break answer?,
        }
    };
    heard.send_steps(outbox).await?;
    if answer.written == Written::FromNothing {
        outbox.more(&chunk(&answer.text, true)).await?;
    } else {
        heard.send_text(outbox).await?;
        outbox.more(&chunk("", true)).await?;
    }
    heard.answer_begins(false);
    heard.send_steps(outbox).await?;
    Ok(outbox.last(&last(&answer, "", false)).await?)
}

fn rag(call: &Call) -> Result<&GraphRag, ServiceError> {
    call.inside.graph_rag().ok_or_else(|| ServiceError::gateway("no knowledge is loaded on this server"))
}

async fn perform(
    rag: &GraphRag,
    question: &GraphQuestion,
    call: &Call,
    telling: &mut Telling,
) -> Result<GraphAnswer, ServiceError> {
    let settings = call.inside.config().pin(call.workspace()).await?;
    let timeout = Duration::from_millis(call.inside.limits().model_timeout_ms);
    let asker = Asker { scope: call.scope(), settings, timeout, ..Asker::default() };
    let answering = rag.answer(question, asker, telling);
    let late = |_| ServiceError::new(Code::Model, format!("there was no answer within {} s", timeout.as_secs()));
    let answer = tokio::time::timeout(timeout, answering).await.map_err(late)?;
    if telling.live.is_too_long() {
        return Err(ServiceError::new(Code::Model, "the reply was longer than replies may be"));
    }
    let answer = answer.map_err(|error| ServiceError::gateway(error.reason))?;
    match &answer.written {
        Written::Unwritten(why) => Err(ServiceError::new(Code::Model, why.clone())),
        Written::ByModel | Written::CutShort | Written::FromNothing => Ok(answer),
    }
}

fn question(call: &Call) -> Result<GraphQuestion, ServiceError> {
    let members = call.members();
    let query = members.required("query")?;
    if query.len() > LONGEST_QUESTION {
        return Err(ServiceError::request(format!("`query` is longer than {LONGEST_QUESTION} bytes")));
    }
    let named = |name: &str| {
        let mut texts = members.texts(name)?.unwrap_or_default();
        once_each(&mut texts);
        if texts.len() > MOST_NAMED || texts.iter().map(String::len).sum::<usize>() > LONGEST_QUESTION {
            return Err(ServiceError::request(format!("`{name}` has more than can be looked for")));
        }
        Ok(texts)
    };
    let (concepts, entities) = (named("grounding-seeds")?, named("graph-seeds")?);
    if !concepts.is_empty() && !entities.is_empty() {
        return Err(ServiceError::request("`grounding-seeds` and `graph-seeds` are mutually exclusive"));
    }
    let mut limits = Vec::new();
    for name in GRAPH_LIMITS {
        limits.push((name, members.count(name)?));
    }
    let place = KnowledgePlace { workspace: call.workspace().clone(), collection: collection(call)? };
    Ok(GraphQuestion {
        bounds: GraphBounds::wished(|name| limits.iter().find(|(known, _)| *known == name)?.1),
        concepts,
        entities,
        languages: named("languages")?,
        steps: steps(members.list("traversal-instructions")?)?,
        graph: members.text("graph")?.map(str::to_owned),
        ..GraphQuestion::new(place, query, call.inside.world().fresh_id())
    })
}

fn steps(values: &[Value]) -> Result<Vec<TraversalStep>, ServiceError> {
    if values.len() > MOST_NAMED {
        return Err(ServiceError::request(format!("`traversal-instructions` has more than {MOST_NAMED} steps")));
    }
    let read = |value: &Value| serde_json::from_value(value.clone());
    let steps: Result<Vec<TraversalStep>, _> = values.iter().map(read).collect();
    let mut steps = steps.map_err(|error| {
        let form = "objects with the lists `types`, `relationships` and `graphs`";
        ServiceError::request(format!("`traversal-instructions` are not {form}: {error}"))
    })?;
    for step in &mut steps {
        for names in [&mut step.types, &mut step.relationships, &mut step.graphs] {
            once_each(names);
            if names.len() > MOST_NAMED {
                return Err(ServiceError::request(format!(
                    "a step of `traversal-instructions` has more than {MOST_NAMED} names"
                )));
            }
        }
    }
    Ok(steps)
}

/// The same names, each once, in their order.
fn once_each(names: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
}

/// What is on its way from an answer to a socket.
#[derive(Debug, Clone)]
struct Telling {
    steps: Arc<Mutex<Steps>>,
    live: Live,
}

/// The answer is told between what came before it and what came after, however fast all of it is made.
#[derive(Debug, Default)]
struct Steps {
    before: Vec<Explained>,
    after: Vec<Explained>,
    is_answering: bool,
}

impl Telling {
    fn new(call: &Call) -> Self {
        Self { steps: Arc::default(), live: Live::new(&call.inside) }
    }

    async fn send_steps(&self, outbox: &Outbox) -> Result<(), StreamError> {
        let steps = std::mem::take(&mut self.steps.lock().before);
        for step in steps {
            outbox.more(&explained(&step)).await?;
        }
        Ok(())
    }

    /// From now on steps wait for the end of the answer, or no longer do.
    fn answer_begins(&self, is_answering: bool) {
        let mut steps = self.steps.lock();
        steps.is_answering = is_answering;
        if !is_answering {
            let after = std::mem::take(&mut steps.after);
            steps.before.extend(after);
        }
    }

    async fn send_text(&self, outbox: &Outbox) -> Result<(), StreamError> {
        let mut unsent = self.live.take()?;
        while !unsent.is_empty() {
            let rest = unsent.split_off(unsent.floor_char_boundary(bounds::PIECE));
            outbox.more(&chunk(&unsent, false)).await?;
            unsent = rest;
        }
        Ok(())
    }
}

impl Listener for Telling {
    fn explained(&mut self, told: &Explained) {
        let mut steps = self.steps.lock();
        let waiting = if steps.is_answering { &mut steps.after } else { &mut steps.before };
        waiting.push(told.clone());
        drop(steps);
        self.live.news.notify_one();
    }

    fn answer(&mut self) -> &mut dyn ReplySink {
        self.answer_begins(true);
        &mut self.live
    }
}

/// A step with what it says of itself. One that is too long for a frame goes without, as an agent's does.
fn explained(step: &Explained) -> Value {
    let told = |quads: &[Quad]| {
        json!({
            "message_type": "explain", "response": "", "explain_id": step.id, "explain_graph": GRAPH_RETRIEVAL,
            "explain_triples": quads, "end_of_stream": false, "end_of_session": false,
        })
    };
    let whole = told(&step.quads);
    let bytes = step.quads.iter().map(Quad::text_bytes).sum();
    if outbox::is_too_long(bytes, || &whole) { told(&[]) } else { whole }
}

fn chunk(text: &str, last: bool) -> Value {
    json!({"message_type": "chunk", "response": text, "end_of_stream": last, "end_of_session": false})
}

/// The message that ends the session, with what the answer took and what it rests on. What is not known is left out.
fn last(answer: &GraphAnswer, text: &str, ends_stream: bool) -> Value {
    let mut last = chunk(text, ends_stream);
    last["end_of_session"] = json!(true);
    let mut usage = Usage::default();
    for call in &answer.calls {
        usage.add(&call.usage());
    }
    let known =
        [("in_token", json!(usage.in_token)), ("out_token", json!(usage.out_token)), ("model", json!(usage.model))];
    for (name, value) in known.into_iter().filter(|(_, value)| !value.is_null()) {
        last[name] = value;
    }
    if !answer.sources.is_empty() {
        last["sources"] = json!(answer.sources);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::rdf::{Term, Triple};

    #[test]
    fn a_step_that_is_too_long_for_a_frame_goes_without_what_it_says() {
        let node = || Term::iri("urn:a");
        let triple = Box::new(Triple { s: node(), p: node(), o: Term::literal("x".repeat(100 << 10)) });
        let quad = Quad { s: node(), p: node(), o: Term::Quoted { triple }, g: None };
        let told = |count| explained(&Explained { id: "urn:step".to_owned(), quads: vec![quad.clone(); count] });
        assert_eq!(told(10)["explain_triples"].as_array().unwrap().len(), 10);
        let long = told(11);
        assert_eq!((&long["explain_triples"], &long["explain_id"]), (&json!([]), &json!("urn:step")));
    }
}
