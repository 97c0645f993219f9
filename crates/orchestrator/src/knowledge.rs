//! The rules of loaded knowledge, the same for every adapter, and how a source is loaded.

use crate::ports::{Knowledge, KnowledgeError, KnowledgePlace};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trellis_domain::Caller;
use trellis_domain::rdf::{Quad, Term};
use trellis_provenance::iri;

/// How a version of a document is called, in the library as well. Graphs with its facts are called after it.
pub const DOCUMENT: &str = "urn:trellis:document:";
/// Bytes of an IRI or of a blank node's name.
pub const LONGEST_NAME: usize = 8 << 10;
/// Bytes of a literal.
pub const LONGEST_LITERAL: usize = 1 << 20;
/// Triples within triples.
pub const DEEPEST_TRIPLE: usize = 8;
/// Bytes of a source's name.
pub const LONGEST_SOURCE: usize = 2 << 10;
/// Collections of a workspace that have knowledge: a query over the workspace reads all of them.
pub const MOST_COLLECTIONS: usize = 100;
/// Sources of a collection that are remembered by name.
pub const MOST_SOURCES: usize = 100_000;

/// Quads of one batch, and the bytes after which it ends earlier.
const BATCH: usize = 16_384;
const BATCH_BYTES: usize = 8 << 20;

/// Why a quad cannot be kept.
///
/// What concerns a node of a run follows from records, so nobody can assert something of one: else a loaded file could
/// say what a run decided.
pub fn check(quad: &Quad) -> Result<(), String> {
    match &quad.s {
        Term::Iri { .. } | Term::Blank { .. } => {}
        Term::Literal { .. } | Term::Quoted { .. } => {
            return Err(format!("the subject {} is neither an IRI nor a blank node", shown(&quad.s)));
        }
    }
    if quad.p.as_iri().is_none() {
        return Err(format!("the predicate {} is not an IRI", shown(&quad.p)));
    }
    if let Some(node) = quad.s.as_iri().filter(|subject| iri::is_of_a_run(subject)) {
        let node = Term::iri(node);
        return Err(format!("{} is a node of a run: what is said of it follows from records", shown(&node)));
    }
    for term in [&quad.s, &quad.p, &quad.o] {
        check_term(term, 0)?;
    }
    let graph = quad.g.as_deref().unwrap_or_default();
    if graph.len() > LONGEST_NAME { Err(too_long("the name of a graph", LONGEST_NAME)) } else { Ok(()) }
}

/// The same for what somebody loads. Graphs of documents have what was read in these, and answers cite them: nobody else
/// writes into one.
pub fn check_loaded(quad: &Quad) -> Result<(), String> {
    match quad.g.as_deref() {
        Some(graph) if graph.starts_with(DOCUMENT) => {
            Err(format!("the graph {} is that of a document: only its facts lie there", shown(&Term::iri(graph))))
        }
        Some(_) | None => check(quad),
    }
}

/// The same for the name of a source.
pub fn check_source(source: &str) -> Result<(), String> {
    if source.is_empty() {
        return Err("a source needs a name".to_owned());
    }
    if source.len() > LONGEST_SOURCE { Err(too_long("the name of a source", LONGEST_SOURCE)) } else { Ok(()) }
}

/// What a workspace is told that has knowledge in too many collections.
pub fn too_many_collections() -> String {
    format!("a workspace has knowledge in at most {MOST_COLLECTIONS} collections; remove one, or load into another")
}

fn check_term(term: &Term, depth: usize) -> Result<(), String> {
    match term {
        Term::Iri { iri } if iri.is_empty() => Err("an IRI is empty".to_owned()),
        Term::Iri { iri } if iri.len() > LONGEST_NAME => Err(too_long("an IRI", LONGEST_NAME)),
        Term::Blank { id } if id.len() > LONGEST_NAME => Err(too_long("the name of a blank node", LONGEST_NAME)),
        Term::Literal { value, .. } if value.len() > LONGEST_LITERAL => Err(too_long("a literal", LONGEST_LITERAL)),
        Term::Literal { datatype, language, .. } if datatype.len().max(language.len()) > LONGEST_NAME => {
            Err(too_long("the type or language of a literal", LONGEST_NAME))
        }
        Term::Quoted { .. } if depth >= DEEPEST_TRIPLE => {
            Err(format!("triples are within triples more than {DEEPEST_TRIPLE} times"))
        }
        Term::Quoted { triple } => {
            [&triple.s, &triple.p, &triple.o].into_iter().try_for_each(|part| check_term(part, depth + 1))
        }
        Term::Iri { .. } | Term::Blank { .. } | Term::Literal { .. } => Ok(()),
    }
}

fn too_long(what: &str, most: usize) -> String {
    format!("{what} is longer than {} KiB", most >> 10)
}

/// As much of a term as a message needs.
fn shown(term: &Term) -> String {
    const SHOWN: usize = 200;
    let text = term.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// What a load came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    pub read: u64,
    pub new: u64,
}

/// Why a load ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum LoadError<E> {
    /// The source cannot be read further, or says something that cannot be kept.
    #[error("{0}")]
    Source(E),
    #[error(transparent)]
    Knowledge(#[from] KnowledgeError),
}

/// A source that is loaded.
#[derive(Debug, Clone)]
pub struct NewSource {
    pub place: KnowledgePlace,
    /// What its load is remembered by.
    pub name: String,
    /// Who loads it.
    pub by: Caller,
}

/// Adds what a source says, batch by batch, and tells how far it is. Reading a source blocks, so it has a thread of its
/// own; it is not read ahead of what is stored.
///
/// What was added before an error stays, and the source counts as unfinished: loading it again, once it is right,
/// completes it.
pub async fn load<E: Send + 'static>(
    knowledge: Arc<dyn Knowledge>,
    source: NewSource,
    quads: impl Iterator<Item = Result<Quad, E>> + Send + 'static,
    progress: impl Fn(Loaded) + Send + 'static,
) -> Result<Loaded, LoadError<E>> {
    let runtime = tokio::runtime::Handle::current();
    let work = move || {
        let NewSource { place, name: source, by } = source;
        let (mut loaded, mut batch, mut bytes) = (Loaded::default(), Vec::new(), 0);
        let add = |batch: &mut Vec<Quad>, loaded: &mut Loaded| {
            // A source of which nothing can be read leaves no trace.
            if batch.is_empty() {
                return Ok(());
            }
            let full = std::mem::take(batch);
            let read = full.len() as u64;
            loaded.new += runtime.block_on(knowledge.add(&place, &source, full))?.new;
            if loaded.read == 0 {
                runtime.block_on(knowledge.note_loader(&place, &source, &by))?;
            }
            loaded.read += read;
            progress(*loaded);
            Ok::<_, KnowledgeError>(())
        };
        for quad in quads {
            let quad = match quad {
                Ok(quad) => quad,
                Err(error) => {
                    // What is right up to there is kept: a load of the mended file has less to do.
                    add(&mut batch, &mut loaded)?;
                    return Err(LoadError::Source(error));
                }
            };
            bytes += size_of(&quad);
            batch.push(quad);
            if batch.len() >= BATCH || bytes >= BATCH_BYTES {
                bytes = 0;
                add(&mut batch, &mut loaded)?;
            }
        }
        add(&mut batch, &mut loaded)?;
        runtime.block_on(knowledge.finish(&place, &source))?;
        Ok(loaded)
    };
    let failed = |error: tokio::task::JoinError| crate::ports::JournalError::Read(error.to_string());
    tokio::task::spawn_blocking(work).await.map_err(|error| KnowledgeError::from(failed(error)))?
}

fn size_of(quad: &Quad) -> usize {
    fn of(term: &Term) -> usize {
        match term {
            Term::Iri { iri } => iri.len(),
            Term::Blank { id } => id.len(),
            Term::Literal { value, datatype, language } => value.len() + datatype.len() + language.len(),
            Term::Quoted { triple } => of(&triple.s) + of(&triple.p) + of(&triple.o),
        }
    }
    of(&quad.s) + of(&quad.p) + of(&quad.o) + quad.g.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::rdf::Triple;

    fn quad(s: Term, p: Term, o: Term) -> Quad {
        Quad { s, p, o, g: None }
    }

    #[test]
    fn what_cannot_be_kept_is_named() {
        let (s, p) = (Term::iri("urn:s"), Term::iri("urn:p"));
        assert_eq!(check(&quad(s.clone(), p.clone(), Term::literal("o"))), Ok(()));
        let refused = |quad: Quad| check(&quad).expect_err("this is refused");
        assert!(refused(quad(Term::literal("s"), p.clone(), s.clone())).contains("subject"));
        assert!(refused(quad(s.clone(), Term::literal("p"), s.clone())).contains("predicate"));
        let node = Term::iri("urn:trustgraph:agent:S/i1");
        assert!(refused(quad(node.clone(), p.clone(), s.clone())).contains("follows from records"));
        let focus = Term::iri("urn:trustgraph:prov:focus:6a3f");
        assert!(refused(quad(focus, p.clone(), s.clone())).contains("follows from records"));
        assert_eq!(check(&quad(s.clone(), p.clone(), node)), Ok(()), "a run may be pointed at");
        let in_passage =
            Quad { g: Some("urn:trellis:document:6a3f/passage/1".to_owned()), ..quad(s.clone(), p.clone(), s.clone()) };
        assert_eq!(check(&in_passage), Ok(()));
        assert!(check_loaded(&in_passage).is_err_and(|why| why.contains("is that of a document")));
        assert_eq!(check_loaded(&Quad { g: Some("urn:mine".to_owned()), ..in_passage }), Ok(()));
        let long = Term::literal("x".repeat(LONGEST_LITERAL + 1));
        assert!(refused(quad(s.clone(), p.clone(), long)).contains("literal is longer than 1024 KiB"));
        let mut nested = s.clone();
        for _ in 0..=DEEPEST_TRIPLE {
            nested = Term::Quoted { triple: Box::new(Triple { s: s.clone(), p: p.clone(), o: nested }) };
        }
        assert!(refused(quad(s, p, nested)).contains("within triples"));
    }
}
