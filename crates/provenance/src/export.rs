//! Quads as files that other tools read.

use crate::vocabulary::PREFIXES;
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer};
use serde_json::{Map, Value, json};
use std::io;
use trellis_domain::marks::with_visible_marks;
use trellis_domain::rdf::{Quad, Term, Triple};

/// The formats that we write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Cannot hold named graphs: the triples of all graphs are written as one.
    Turtle,
    NQuads,
    JsonLd,
}

/// Why quads cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{iri:?} is not an IRI: {reason}")]
    Iri { iri: String, reason: oxrdf::IriParseError },
    #[error("{id:?} is not the id of a blank node: {reason}")]
    BlankNode { id: String, reason: oxrdf::BlankNodeIdParseError },
    #[error("{language:?} is not a language tag: {reason}")]
    Language { language: String, reason: oxrdf::LanguageTagParseError },
    #[error("{term} cannot stand as the {role} of a statement")]
    Misplaced { term: Term, role: &'static str },
    #[error("the format cannot hold the quads: {0}")]
    Format(#[from] io::Error),
    #[error("the written JSON-LD is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Writes quads, sorted, so that the same quads always give the same text. Controls and direction marks, which can make
/// a line read as something else, are written as escapes: all three formats know `\u`, and nothing is lost.
///
/// ```
/// use trellis_domain::rdf::{Quad, Term};
/// use trellis_provenance::{Format, export, vocabulary::tg};
///
/// let (s, p) = (Term::iri("urn:trustgraph:agent:S"), Term::iri(tg::QUERY));
/// let quad = Quad { s, p, o: Term::literal("why?"), g: Some("urn:graph:retrieval".to_owned()) };
/// assert_eq!(
///     export(&[quad], Format::NQuads)?,
///     "<urn:trustgraph:agent:S> <https://trustgraph.ai/ns/query> \"why?\" <urn:graph:retrieval> .\n"
/// );
/// # Ok::<(), trellis_provenance::ExportError>(())
/// ```
pub fn export(quads: &[Quad], format: Format) -> Result<String, ExportError> {
    let mut quads = quads.to_vec();
    let text = match format {
        Format::NQuads => serialize(sorted(quads), RdfFormat::NQuads)?,
        Format::Turtle => {
            for quad in &mut quads {
                quad.g = None;
            }
            serialize(sorted(quads), RdfFormat::Turtle)?
        }
        Format::JsonLd => {
            let expanded = serialize(sorted(quads), RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() })?;
            serde_json::to_string_pretty(&with_context(serde_json::from_str(&expanded)?))?
        }
    };
    Ok(with_visible_marks(&text).into_owned())
}

/// By graph, then by subject: what belongs together is written together.
fn sorted(mut quads: Vec<Quad>) -> Vec<Quad> {
    quads.sort_unstable_by(|a, b| (&a.g, a).cmp(&(&b.g, b)));
    quads.dedup();
    quads
}

fn serialize(quads: Vec<Quad>, format: RdfFormat) -> Result<String, ExportError> {
    let with_prefixes = PREFIXES
        .iter()
        .try_fold(RdfSerializer::from_format(format), |serializer, (name, iri)| serializer.with_prefix(*name, *iri));
    let mut writer = with_prefixes.expect("our namespaces are IRIs").for_writer(Vec::new());
    for quad in quads {
        writer.serialize_quad(&to_oxrdf(&quad)?)?;
    }
    Ok(String::from_utf8(writer.finish()?).expect("every RDF text format is UTF-8"))
}

/// JSON-LD with short names. The serializer knows no prefixes for this format and writes every name in full.
fn with_context(expanded: Value) -> Value {
    let context: Map<String, Value> = PREFIXES.iter().map(|(name, iri)| ((*name).to_owned(), json!(iri))).collect();
    json!({ "@context": context, "@graph": with_short_keys(expanded) })
}

fn with_short_keys(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (short(&key), with_short_keys(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(with_short_keys).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn short(key: &str) -> String {
    let shortened = PREFIXES.iter().find_map(|(name, iri)| Some(format!("{name}:{}", key.strip_prefix(iri)?)));
    shortened.unwrap_or_else(|| key.to_owned())
}

/// A quad as the RDF libraries know it.
pub fn to_oxrdf(quad: &Quad) -> Result<oxrdf::Quad, ExportError> {
    let graph_name = match &quad.g {
        Some(graph) => GraphName::NamedNode(named_node(graph)?),
        None => GraphName::DefaultGraph,
    };
    let oxrdf::Triple { subject, predicate, object } = triple(&quad.s, &quad.p, &quad.o)?;
    Ok(oxrdf::Quad { subject, predicate, object, graph_name })
}

fn triple(s: &Term, p: &Term, o: &Term) -> Result<oxrdf::Triple, ExportError> {
    Ok(oxrdf::Triple { subject: subject(s)?, predicate: predicate(p)?, object: object(o)? })
}

fn subject(term: &Term) -> Result<NamedOrBlankNode, ExportError> {
    match term {
        Term::Iri { iri } => Ok(named_node(iri)?.into()),
        Term::Blank { id } => Ok(blank_node(id)?.into()),
        Term::Literal { .. } | Term::Quoted { .. } => {
            Err(ExportError::Misplaced { term: term.clone(), role: "subject" })
        }
    }
}

fn predicate(term: &Term) -> Result<NamedNode, ExportError> {
    match term {
        Term::Iri { iri } => named_node(iri),
        Term::Literal { .. } | Term::Blank { .. } | Term::Quoted { .. } => {
            Err(ExportError::Misplaced { term: term.clone(), role: "property" })
        }
    }
}

fn object(term: &Term) -> Result<oxrdf::Term, ExportError> {
    match term {
        Term::Iri { iri } => Ok(named_node(iri)?.into()),
        Term::Blank { id } => Ok(blank_node(id)?.into()),
        Term::Literal { value, datatype, language } => Ok(literal(value, datatype, language)?.into()),
        Term::Quoted { triple: quoted } => {
            let Triple { s, p, o } = quoted.as_ref();
            Ok(triple(s, p, o)?.into())
        }
    }
}

fn literal(value: &str, datatype: &str, language: &str) -> Result<Literal, ExportError> {
    if !language.is_empty() {
        let tagged = Literal::new_language_tagged_literal(value, language);
        return tagged.map_err(|reason| ExportError::Language { language: language.to_owned(), reason });
    }
    if datatype.is_empty() {
        return Ok(Literal::new_simple_literal(value));
    }
    Ok(Literal::new_typed_literal(value, named_node(datatype)?))
}

fn named_node(iri: &str) -> Result<NamedNode, ExportError> {
    NamedNode::new(iri).map_err(|reason| ExportError::Iri { iri: iri.to_owned(), reason })
}

fn blank_node(id: &str) -> Result<BlankNode, ExportError> {
    BlankNode::new(id).map_err(|reason| ExportError::BlankNode { id: id.to_owned(), reason })
}
