//! The broker's dialect: one JSON object per message with every field written, absent ones as null.
//!
//! What is written borrows from what it says: a session explains hundreds of triples, and each is told twice.

use crate::message::{AgentRequest, AgentResponse, ErrorInfo};
use crate::rdf::{Quad, Term, Triple};
use serde::Serialize;
use serde_json::{Value, json};

/// A request as it lies on the queue.
pub fn request(request: &AgentRequest) -> Value {
    json!(request)
}

/// A response as it lies on the queue.
#[derive(Debug, Serialize)]
pub struct Response<'a> {
    message_type: &'a str,
    content: &'a str,
    end_of_message: bool,
    end_of_dialog: bool,
    explain_id: Option<&'a str>,
    explain_graph: Option<&'a str>,
    explain_triples: Vec<WideTriple<'a>>,
    message_id: &'a str,
    error: Option<&'a ErrorInfo>,
    in_token: Option<u64>,
    out_token: Option<u64>,
    model: Option<&'a str>,
    /// Stock readers overlook it.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
}

/// A triple with its graph, all four members present.
#[derive(Debug, Serialize)]
pub struct WideTriple<'a> {
    s: WideTerm<'a>,
    p: WideTerm<'a>,
    o: WideTerm<'a>,
    g: Option<&'a str>,
}

/// A term with every member present.
#[derive(Debug, Default, Serialize)]
pub struct WideTerm<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    iri: &'a str,
    id: &'a str,
    value: &'a str,
    datatype: &'a str,
    language: &'a str,
    triple: Option<Box<WideTriple<'a>>>,
}

/// A response with the members that the original writes.
pub fn response(response: &AgentResponse) -> Response<'_> {
    Response {
        message_type: &response.message_type,
        content: &response.content,
        end_of_message: response.end_of_message,
        end_of_dialog: response.end_of_dialog,
        explain_id: response.explain_id.as_deref(),
        explain_graph: response.explain_graph.as_deref(),
        explain_triples: response.explain_triples.iter().map(triple).collect(),
        message_id: &response.message_id,
        error: response.error.as_ref(),
        in_token: response.in_token,
        out_token: response.out_token,
        model: response.model.as_deref(),
        session_id: None,
    }
}

impl<'a> Response<'a> {
    /// The same with the session that it belongs to.
    #[must_use]
    pub fn of_session(self, session_id: &'a str) -> Self {
        Self { session_id: Some(session_id), ..self }
    }
}

pub fn triple(quad: &Quad) -> WideTriple<'_> {
    WideTriple { s: term(&quad.s), p: term(&quad.p), o: term(&quad.o), g: quad.g.as_deref() }
}

/// The same for one that is in no graph.
pub fn triple_in_no_graph(triple: &Triple) -> WideTriple<'_> {
    WideTriple { s: term(&triple.s), p: term(&triple.p), o: term(&triple.o), g: None }
}

pub fn term(of: &Term) -> WideTerm<'_> {
    let none = WideTerm::default();
    match of {
        Term::Iri { iri } => WideTerm { kind: "i", iri, ..none },
        Term::Blank { id } => WideTerm { kind: "b", id, ..none },
        Term::Literal { value, datatype, language } => WideTerm { kind: "l", value, datatype, language, ..none },
        Term::Quoted { triple } => WideTerm { kind: "t", triple: Some(Box::new(triple_in_no_graph(triple))), ..none },
    }
}
