//! What a graph says of documents and passages that facts were taken from: which passages were asked about, by whom, and
//! where they stand. It is written after the facts, so that what is noted is there.

use super::extract::ExtractedFacts;
use super::names::{self, document_of, document_of_passage, words};
use crate::ports::{DocumentInfo, Knowledge, KnowledgeError, KnowledgePlace, Passage, QuadPattern};
use std::collections::BTreeMap;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{Hash, Timestamp};
use trellis_provenance::vocabulary::{prov, rdf, tg};

/// Passages of a document that facts were taken from, at most.
const MOST: usize = crate::documents::MOST_PASSAGES;

/// A passage that facts were taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotedPassage {
    pub(crate) document: String,
    pub(crate) title: String,
    /// The library's document that the lines are those of.
    pub(crate) text: String,
    pub(crate) lines: Option<(u64, u64)>,
}

/// Who was asked about a passage, and when.
#[derive(Debug, Clone)]
pub(super) struct AskedOf {
    pub(super) model: String,
    pub(super) template: Option<Hash>,
    pub(super) time: Timestamp,
}

fn say(node: &str, property: &str, value: Term, graph: &str) -> Quad {
    Quad { s: Term::iri(node), p: Term::iri(property), o: value, g: Some(graph.to_owned()) }
}

/// How many passages there are to ask about: what is to be removed one day is known before anything is written. It lies
/// in a graph of its own, which goes last.
pub(super) fn begin(document: &str, passages: usize) -> Quad {
    say(document, words::PASSAGES, Term::literal(passages.to_string()), &names::count(document))
}

/// Its facts are being removed: what is noted of passages does not hold any more.
pub(super) fn leaving(document: &str) -> Quad {
    say(document, words::LEAVING, Term::literal("true"), &names::count(document))
}

/// Of the document as a whole.
pub(super) fn of_document(document: &str, info: &DocumentInfo) -> Vec<Quad> {
    let class = |class: &str| say(document, rdf::TYPE, Term::iri(class), document);
    vec![
        class(prov::class::ENTITY),
        class(words::DOCUMENT_CLASS),
        say(document, words::TITLE, Term::literal(&info.title), document),
        say(document, words::SOURCE, Term::literal(&info.id), document),
    ]
}

/// All passages of the document, as it is searched now, have been asked about.
pub(super) fn complete(document: &str, hash: &Hash) -> Quad {
    say(document, words::COMPLETE, Term::literal(hash.to_string()), document)
}

/// What is left of it for another load.
pub(super) fn outcome(document: &str, came: &ExtractedFacts) -> Vec<Quad> {
    let graph = names::outcome(document);
    let said = [(words::UNANSWERED, came.unanswered), (words::OVER_BUDGET, came.over_budget)];
    said.map(|(property, count)| say(document, property, Term::literal(count.to_string()), &graph)).into()
}

pub(super) fn of_passage(info: &DocumentInfo, number: u64, passage: &Passage, asked: &AskedOf) -> Vec<Quad> {
    let document = document_of(&info.text);
    let (node, graph) = (names::passage(document, number), names::notes(document));
    let say = |property: &str, value: Term| say(&node, property, value, &graph);
    let (first, last) = passage.place.lines;
    let mut notes = vec![
        say(rdf::TYPE, Term::iri(prov::class::ENTITY)),
        say(rdf::TYPE, Term::iri(words::PASSAGE_CLASS)),
        say(prov::WAS_DERIVED_FROM, Term::iri(document)),
        say(words::NUMBER, Term::literal(number.to_string())),
        say(words::TEXT, Term::iri(&info.text)),
        say(words::FIRST_LINE, Term::literal(first.to_string())),
        say(words::LAST_LINE, Term::literal(last.to_string())),
        say(words::TEXT_HASH, Term::literal(hash_of(passage))),
        say(tg::LLM_MODEL, Term::literal(&asked.model)),
        say(prov::GENERATED_AT_TIME, Term::literal(asked.time.to_string())),
    ];
    notes.extend(asked.template.map(|template| say(words::TEMPLATE, Term::literal(template.to_string()))));
    notes
}

pub(super) fn hash_of(passage: &Passage) -> String {
    Hash::of(&passage.text).to_string()
}

/// The passages that have been asked about, with the hash of what they said.
pub(super) async fn asked(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    document: &str,
) -> Result<BTreeMap<u64, String>, KnowledgeError> {
    let pattern =
        QuadPattern { p: Some(Term::iri(words::TEXT_HASH)), g: Some(names::notes(document)), ..QuadPattern::default() };
    let found = knowledge.matching(place, &pattern, MOST).await?;
    let number = |quad: &Quad| quad.s.text().rsplit_once('/')?.1.parse().ok();
    Ok(found.iter().filter_map(|quad| Some((number(quad)?, quad.o.text().to_owned()))).collect())
}

/// What is known of a document before its passages are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody has begun, or all of it was removed.
    Unknown,
    Begun,
    /// Somebody began to remove it.
    Leaving,
}

pub(super) async fn standing(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    document: &str,
) -> Result<Standing, KnowledgeError> {
    let count = names::count(document);
    if first(knowledge, place, (document, words::LEAVING), &count).await?.is_some() {
        return Ok(Standing::Leaving);
    }
    let is_counted = !counts(knowledge, place, document).await?.is_empty();
    Ok(if is_counted { Standing::Begun } else { Standing::Unknown })
}

/// Whether an earlier load has left something.
pub(super) async fn has_outcome(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    document: &str,
) -> Result<bool, KnowledgeError> {
    Ok(first(knowledge, place, (document, words::UNANSWERED), &names::outcome(document)).await?.is_some())
}

/// How many passages a document is said to have. One that was split in another way before has several numbers.
async fn counts(knowledge: &dyn Knowledge, place: &KnowledgePlace, document: &str) -> Result<Vec<u64>, KnowledgeError> {
    let (s, p) = (Term::iri(document), Term::iri(words::PASSAGES));
    let mut counts = Vec::new();
    // Once, the number lay among the notes.
    for graph in [names::count(document), names::notes(document)] {
        let pattern = QuadPattern { s: Some(s.clone()), p: Some(p.clone()), g: Some(graph), ..QuadPattern::default() };
        let found = knowledge.matching(place, &pattern, MOST).await?;
        counts.extend(found.iter().filter_map(|quad| quad.o.text().parse::<u64>().ok()));
    }
    Ok(counts)
}

/// Whether all passages of a document in this form have been asked about.
pub(in crate::documents) async fn is_complete(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    info: &DocumentInfo,
) -> Result<bool, KnowledgeError> {
    let document = document_of(&info.text);
    let Quad { s, p, o, g } = complete(document, &info.hash);
    let pattern = QuadPattern { s: Some(s), p: Some(p), o: Some(o), g, collection: None };
    Ok(!knowledge.matching(place, &pattern, 1).await?.is_empty())
}

/// Whether the graph calls the document something else than it is called now.
pub(super) async fn is_renamed(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    info: &DocumentInfo,
) -> Result<bool, KnowledgeError> {
    let title = title(knowledge, place, document_of(&info.text)).await?;
    Ok(title.is_some_and(|title| title != info.title))
}

async fn title(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    document: &str,
) -> Result<Option<String>, KnowledgeError> {
    first(knowledge, place, (document, words::TITLE), document).await
}

async fn first(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    (node, property): (&str, &str),
    graph: &str,
) -> Result<Option<String>, KnowledgeError> {
    let (s, p) = (Some(Term::iri(node)), Some(Term::iri(property)));
    let pattern = QuadPattern { s, p, g: Some(graph.to_owned()), ..QuadPattern::default() };
    let found = knowledge.matching(place, &pattern, 1).await?;
    Ok(found.into_iter().next().map(|quad| quad.o.text().to_owned()))
}

/// Where a passage stands. What is not noted is left open; none if the graph is no passage's.
pub(crate) async fn noted(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    passage: &str,
) -> Result<Option<NotedPassage>, KnowledgeError> {
    let Some(document) = document_of_passage(passage) else { return Ok(None) };
    let graph = names::notes(document);
    let line = |text: Option<String>| text.and_then(|text| text.parse().ok());
    let first_line = line(first(knowledge, place, (passage, words::FIRST_LINE), &graph).await?);
    let last_line = line(first(knowledge, place, (passage, words::LAST_LINE), &graph).await?);
    let text = first(knowledge, place, (passage, words::TEXT), &graph).await?;
    Ok(Some(NotedPassage {
        document: document.to_owned(),
        title: title(knowledge, place, document).await?.unwrap_or_default(),
        text: text.unwrap_or_else(|| document.to_owned()),
        lines: first_line.zip(last_line),
    }))
}

/// Takes all facts of a document away. `known` is how many passages it has, if the caller knows: what says so may be gone
/// already. That goes last: whoever is stopped in between asks again, and the rest leaves.
pub(in crate::documents) async fn remove(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    document: &str,
    known: Option<usize>,
) -> Result<u64, KnowledgeError> {
    let counts = counts(knowledge, place, document).await?;
    let noted = asked(knowledge, place, document).await?.last_key_value().map(|(last, _)| last + 1);
    if !counts.is_empty() || noted.is_some() {
        // On disk before anything leaves: who is stopped and loads the document again begins anew.
        knowledge.add(place, document, vec![leaving(document)]).await?;
        knowledge.save(place, document).await?;
    }
    let passages = counts.into_iter().chain(noted).chain(known.map(|known| known as u64)).max().unwrap_or_default();
    let passages = (0..passages.min(MOST as u64)).map(|number| names::passage(document, number));
    let own = [document.to_owned(), names::outcome(document), names::notes(document), names::count(document)];
    let graphs: Vec<String> = passages.chain(own).collect();
    // Also if nothing is noted: then what is left is the name of a source.
    knowledge.remove_graphs(place, document, &graphs).await
}
