//! The broker's dialect: one JSON object per message with every field written, absent ones as null.

use crate::message::{AgentRequest, AgentResponse};
use crate::rdf::{Quad, Term, Triple};
use serde_json::{Value, json};

/// A request as it lies on the queue.
pub fn request(request: &AgentRequest) -> Value {
    json!(request)
}

/// A response as it lies on the queue.
pub fn response(response: &AgentResponse) -> Value {
    json!({
        "message_type": response.message_type,
        "content": response.content,
        "end_of_message": response.end_of_message,
        "end_of_dialog": response.end_of_dialog,
        "explain_id": response.explain_id,
        "explain_graph": response.explain_graph,
        "explain_triples": response.explain_triples.iter().map(triple).collect::<Vec<_>>(),
        "message_id": response.message_id,
        "error": response.error,
        "in_token": response.in_token,
        "out_token": response.out_token,
        "model": response.model,
    })
}

/// A triple with its graph, all four members present.
pub fn triple(quad: &Quad) -> Value {
    json!({ "s": term(&quad.s), "p": term(&quad.p), "o": term(&quad.o), "g": quad.g })
}

/// The same for one that is in no graph.
pub fn triple_in_no_graph(triple: &Triple) -> Value {
    json!({ "s": term(&triple.s), "p": term(&triple.p), "o": term(&triple.o), "g": Value::Null })
}

/// A term with every member present.
pub fn term(of: &Term) -> Value {
    let wide = |kind: &str, iri: &str, id: &str, value: &str, datatype: &str, language: &str, triple: Value| {
        json!({
            "type": kind, "iri": iri, "id": id, "value": value,
            "datatype": datatype, "language": language, "triple": triple,
        })
    };
    match of {
        Term::Iri { iri } => wide("i", iri, "", "", "", "", Value::Null),
        Term::Blank { id } => wide("b", "", id, "", "", "", Value::Null),
        Term::Literal { value, datatype, language } => wide("l", "", "", value, datatype, language, Value::Null),
        Term::Quoted { triple } => wide("t", "", "", "", "", "", triple_in_no_graph(triple)),
    }
}
