//! `search_knowledge`: passages of documents for some words, and what was loaded about a thing. No model is asked.

use super::arguments::Arguments;
use super::reply::ToolReply;
use super::server::McpServer;
use super::tools::{MOST_FOUND, USUAL_FOUND};
use crate::api::ApiError;
use crate::error::ServiceError;
use serde_json::{Map, Value, json};
use trellis_domain::Collection;
use trellis_domain::rdf::{Quad, Term};
use trellis_orchestrator::documents::Loader;
use trellis_orchestrator::ports::{FoundPassage, KnowledgePlace, QuadPattern};

pub(super) const SEARCH: [&str; 4] = ["query", "about", "collection", "limit"];
/// Bytes of all passages and statements together: what a model reads has an end.
const LONGEST: usize = 48 << 10;

/// What was found.
#[derive(Debug, Default)]
struct Findings {
    passages: Vec<FoundPassage>,
    statements: Vec<Quad>,
    notes: Vec<String>,
}

pub(super) async fn search_knowledge(server: &McpServer, given: &Map<String, Value>) -> Result<ToolReply, ApiError> {
    let arguments = Arguments::new("search_knowledge", given, &SEARCH)?;
    let (query, about, collection) = (arguments.text("query")?, arguments.text("about")?, arguments.collection()?);
    let limit = arguments.count("limit", USUAL_FOUND, 1, MOST_FOUND)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if query.is_empty() && about.is_empty() {
        return Err(ApiError::request("give `query`, words to look for in documents, or `about`, the IRI of a thing"));
    }
    let mut found = Findings::default();
    if !query.is_empty() {
        passages(server, &collection, &query, limit, &mut found).await?;
    }
    if !about.is_empty() {
        statements(server, &collection, about, limit, &mut found).await?;
    }
    Ok(reply(&collection, found))
}

async fn passages(
    server: &McpServer,
    collection: &Collection,
    query: &str,
    limit: usize,
    found: &mut Findings,
) -> Result<(), ApiError> {
    let inside = &server.inside;
    let Some(retriever) = inside.documents().map(Loader::retriever) else {
        found.notes.push("No documents are searched on this server.".to_owned());
        return Ok(());
    };
    let fitting = retriever.find(inside.workspace(), collection, query, limit).await.map_err(ServiceError::from)?;
    found.passages = fitting.passages;
    let compared = fitting.words_only.filter(|_| !found.passages.is_empty());
    found.notes.extend(compared.map(|why| format!("Only words were compared, not meaning: {why}.")));
    Ok(())
}

async fn statements(
    server: &McpServer,
    collection: &Collection,
    about: String,
    limit: usize,
    found: &mut Findings,
) -> Result<(), ApiError> {
    let inside = &server.inside;
    let place = KnowledgePlace { workspace: inside.workspace().clone(), collection: collection.clone() };
    let about = about.trim_start_matches('<').trim_end_matches('>');
    // What is said of it goes before what is said of others that names it.
    let said = QuadPattern { s: Some(Term::iri(about)), ..QuadPattern::default() };
    let named = QuadPattern { o: Some(Term::iri(about)), ..QuadPattern::default() };
    for pattern in [said, named] {
        let room = limit.saturating_sub(found.statements.len());
        found.statements.extend(inside.knowledge().matching(&place, &pattern, room).await?);
    }
    Ok(())
}

fn reply(collection: &Collection, found: Findings) -> ToolReply {
    let Findings { passages, statements, mut notes } = found;
    let (mut texts, mut told_passages, mut told_statements) = (Vec::new(), Vec::new(), Vec::new());
    let mut room = LONGEST;
    let mut fits = |text: &str| {
        let fits = text.len() < room;
        room = if fits { room - text.len() } else { 0 };
        fits
    };
    for (number, passage) in (1..).zip(&passages) {
        let text = passage.marked(&format!("(p{number})"));
        if !fits(&text) {
            notes.push(format!("{} more passages had no room; ask more precisely.", passages.len() + 1 - number));
            break;
        }
        let place = &passage.passage.place;
        told_passages.push(json!({
            "title": passage.document.title, "document": passage.document.text, "source": passage.document.id,
            "headings": place.headings, "lines": [place.lines.0, place.lines.1], "text": passage.passage.text,
            "score": passage.score,
        }));
        texts.push(text);
    }
    for (number, quad) in (1..).zip(&statements) {
        let text = format!("{} {} {}", quad.s, quad.p, quad.o);
        if !fits(&text) {
            notes.push(format!("{} more statements had no room; ask for fewer.", statements.len() + 1 - number));
            break;
        }
        told_statements.push(json!({
            "subject": quad.s.to_string(), "predicate": quad.p.to_string(), "object": quad.o.to_string(), "graph": quad.g,
        }));
        texts.push(text);
    }
    if texts.is_empty() {
        texts.push(format!("Nothing was found in the collection `{collection}`."));
    }
    texts.extend(notes.iter().cloned());
    let value = json!({
        "collection": collection, "passages": told_passages, "statements": told_statements, "notes": notes,
    });
    ToolReply { text: texts.join("\n\n"), value, is_error: false }
}
