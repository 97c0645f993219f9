//! Loads files, folders and addresses into a collection. What a file is made into depends on what it is: one module per
//! kind of material.

mod document;
mod found;
mod progress;
mod rdf;
mod rows;

use crate::app::embedder;
use crate::cli::{Global, Load, Output};
use crate::desk::{Desk, LoadedDocument};
use crate::failure::{Exit, Failure};
use crate::show::{note, print_json, print_line};
use crate::state::Purpose;
use found::FoundFile;
use progress::Progress;
use serde::Serialize;
use std::sync::Arc;
use tokio::time::Instant;
use trellis_domain::{Collection, counted};
use trellis_orchestrator::documents::{ExtractedFacts, kind_of_name};
use trellis_orchestrator::knowledge::Loaded;
use trellis_orchestrator::ports::Embedder;
use trellis_orchestrator::tables::LoadedRows;

/// What a file is, and so what is made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Material {
    Rdf(trellis_rdf::Format),
    /// With its MIME type.
    Document(&'static str),
    Rows(trellis_tabular::Format),
}

impl Material {
    /// Everything that is understood, as a message lists it.
    fn list() -> String {
        let (rdf, rows) = (trellis_rdf::Format::list(), trellis_tabular::Format::list());
        format!("RDF as {rdf}; documents as text, markdown, html, pdf; rows of tables as {rows}")
    }

    /// By the name of a format.
    fn named(format: &str) -> Result<Self, Failure> {
        let unknown = || Failure::usage(format!("the format `{format}` is not known; understood are {}", Self::list()));
        let document = || match format {
            "text" => Some("text/plain"),
            "markdown" => Some("text/markdown"),
            "html" => Some("text/html"),
            "pdf" => Some("application/pdf"),
            _ => None,
        };
        let rdf = trellis_rdf::Format::named(format).map(Self::Rdf);
        let rows = || trellis_tabular::Format::named(format).map(Self::Rows);
        rdf.or_else(|| document().map(Self::Document)).or_else(rows).ok_or_else(unknown)
    }

    /// By the type that a server gives with a file.
    fn of_type(said: &str) -> Option<Self> {
        let kind = said.split(';').next().unwrap_or_default().trim();
        let documents = ["text/plain", "text/markdown", "text/html", "application/pdf"];
        let document = documents.into_iter().find(|known| kind.eq_ignore_ascii_case(known)).map(Self::Document);
        let rows = trellis_tabular::Format::of_type(said).map(Self::Rows);
        trellis_rdf::Format::named(said).map(Self::Rdf).or(document).or(rows)
    }

    /// The type of a document, if it is one.
    fn document(self) -> Option<&'static str> {
        if let Self::Document(kind) = self { Some(kind) } else { None }
    }

    /// By the end of a file's name.
    fn of_file(path: &std::path::Path) -> Option<Self> {
        let document = || kind_of_name(path.file_name()?.to_str()?);
        let rows = trellis_tabular::Format::of_file(path).map(Self::Rows);
        rows.or_else(|| trellis_rdf::Format::of_file(path).map(Self::Rdf)).or_else(|| document().map(Self::Document))
    }
}

/// What came of one file.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
enum Came {
    Knowledge(Loaded),
    Document(DocumentCame),
    Rows(LoadedTableRows),
}

#[derive(Debug, Clone, Copy, Serialize)]
struct DocumentCame {
    passages: u64,
    unchanged: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<ExtractedFacts>,
}

impl DocumentCame {
    fn in_words(self) -> String {
        let passages = counted(self.passages, "passage");
        let mut said = if self.unchanged { format!("{passages}, as they were") } else { passages };
        // Who was not asked again has nothing new to tell.
        if let Some(facts) = self.facts.filter(|facts| facts.asked + facts.unanswered > 0) {
            said.push_str(&in_words(&facts));
        }
        said
    }
}

/// What came of asking for facts, behind what else came.
fn in_words(facts: &ExtractedFacts) -> String {
    let tokens = counted(facts.in_token + facts.out_token, "token");
    let said = format!(", {} of {} ({tokens})", counted(facts.facts, "fact"), counted(facts.asked, "passage"));
    let unreadable = (facts.unreadable > 0)
        .then(|| format!("; what the model said of {} cannot be read", counted(facts.unreadable, "passage")));
    let failed = facts.unanswered.saturating_sub(facts.over_budget);
    let unanswered = (failed > 0).then(|| {
        let passages = counted(failed, "passage");
        format!("; {passages} without an answer: load again to ask about them")
    });
    let over_budget = (facts.over_budget > 0).then(|| {
        let passages = counted(facts.over_budget, "passage");
        format!("; {passages} not asked about, because the budget for facts is used up: load again to go on")
    });
    std::iter::once(said).chain(unreadable).chain(unanswered).chain(over_budget).collect()
}

impl Came {
    fn triples(self) -> Loaded {
        if let Self::Knowledge(loaded) = self { loaded } else { Loaded::default() }
    }

    fn passages(self) -> Option<u64> {
        if let Self::Document(document) = self { Some(document.passages) } else { None }
    }

    fn facts(self) -> Option<ExtractedFacts> {
        if let Self::Document(document) = self { document.facts } else { None }
    }

    fn rows(self) -> Option<LoadedTableRows> {
        if let Self::Rows(rows) = self { Some(rows) } else { None }
    }

    fn in_words(self) -> String {
        match self {
            Self::Knowledge(loaded) => format!("{} read, {} new", counted(loaded.read, "triple"), loaded.new),
            Self::Document(document) => document.in_words(),
            Self::Rows(LoadedTableRows { rows, new_rows, changed, without_vectors }) => {
                let unfound = match without_vectors {
                    0 => String::new(),
                    values => format!(", {} without vectors", counted(values, "value")),
                };
                format!("{} read, {new_rows} new, {changed} changed{unfound}", counted(rows, "row"))
            }
        }
    }
}

/// Rows of a file, under names that tell them from triples.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct LoadedTableRows {
    rows: u64,
    new_rows: u64,
    changed: u64,
    /// Values that are not found by meaning.
    #[serde(skip_serializing_if = "is_zero")]
    without_vectors: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<LoadedRows> for LoadedTableRows {
    fn from(LoadedRows { rows, new, changed, without_vectors }: LoadedRows) -> Self {
        Self { rows, new_rows: new, changed, without_vectors }
    }
}

#[derive(Debug, Serialize)]
struct LoadedSource {
    source: String,
    #[serde(flatten)]
    came: Option<Came>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What came of all.
#[derive(Debug, Serialize)]
struct Totals {
    collection: Collection,
    read: u64,
    new: u64,
    documents: usize,
    passages: u64,
    /// None if nobody was asked for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<ExtractedFacts>,
    tables: usize,
    #[serde(flatten)]
    rows: LoadedTableRows,
    seconds: f64,
    files: Vec<LoadedSource>,
}

pub(crate) async fn run(global: &Global, load: &Load) -> Result<Exit, Failure> {
    let collection = Collection::new(&load.collection).map_err(|error| Failure::usage(error.to_string()))?;
    let format = load.format.as_deref().map(Material::named).transpose()?;
    let begun = Instant::now();
    let files = found::all(&load.sources, format, load.base.as_deref()).await?;
    let desk = Desk::work(global, "load", Purpose::Write).await?;
    let progress = Progress::begin(&files);
    let (mut done, mut first_failure) = (Vec::new(), None);
    let is_knowledge = |file: &FoundFile| matches!(file.material, Material::Rdf(_));
    let embedder = if files.iter().all(is_knowledge) { None } else { embedder(global)? };
    let together = match (&desk, &embedder) {
        // Each is a request of its own.
        (Desk::Remote(_), _) => 1,
        // What a model takes for the facts of one is more than what is shared.
        (Desk::Local(app), _) if !load.no_facts && app.extraction(global)?.is_some() => 1,
        (Desk::Local(_), Some(_)) => document::MOST_WITH_VECTORS,
        (Desk::Local(_), None) => document::MOST_TOGETHER,
    };
    for group in groups(&files, together) {
        let came = some(&desk, &collection, group, &progress, (global, embedder.clone()), load).await;
        for (file, came) in group.iter().zip(came) {
            let (came, error) = match came {
                Ok(came) => (Some(came), None),
                Err(failure) => {
                    let message = failure.message.clone();
                    first_failure.get_or_insert(failure);
                    (None, Some(message))
                }
            };
            // The last word on an error that ends the command is the command's.
            if error.is_none() || load.keep_going {
                progress.done(file, came.map(Came::in_words), error.as_deref());
            }
            done.push(LoadedSource { source: file.name.clone(), came, error });
        }
        if first_failure.is_some() && !load.keep_going {
            break;
        }
    }
    progress.end();
    let came = || done.iter().filter_map(|file| file.came);
    let sum = |part: fn(Loaded) -> u64| came().map(|came| part(came.triples())).sum();
    let totals = Totals {
        collection,
        read: sum(|loaded| loaded.read),
        new: sum(|loaded| loaded.new),
        documents: came().filter_map(Came::passages).count(),
        passages: came().filter_map(Came::passages).sum(),
        facts: came().filter_map(Came::facts).reduce(ExtractedFacts::plus),
        tables: came().filter_map(Came::rows).count(),
        rows: came().filter_map(Came::rows).fold(LoadedTableRows::default(), |sum, rows| LoadedTableRows {
            rows: sum.rows + rows.rows,
            new_rows: sum.new_rows + rows.new_rows,
            changed: sum.changed + rows.changed,
            without_vectors: sum.without_vectors + rows.without_vectors,
        }),
        seconds: begun.elapsed().as_secs_f64(),
        files: done,
    };
    match first_failure {
        Some(failure) if !load.keep_going => Err(failure),
        failure => {
            tell(global, &totals)?;
            Ok(if failure.is_some() { Exit::Partial } else { Exit::Ok })
        }
    }
}

/// Files that are loaded in one go: small documents, as they follow each other, and every other file for itself.
fn groups(files: &[FoundFile], most: usize) -> impl Iterator<Item = &[FoundFile]> {
    let mut rest = files;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |file: &&FoundFile| {
            bytes += file.bytes;
            file.material.document().is_some() && bytes <= document::LARGEST_TOGETHER
        };
        let together = rest.iter().take(most).take_while(fits).count();
        let (group, others) = rest.split_at_checked(together.max(1))?;
        rest = others;
        Some(group)
    })
}

/// What came of the files of a group, in their order.
async fn some(
    desk: &Desk,
    collection: &Collection,
    group: &[FoundFile],
    progress: &Progress,
    (global, embedder): (&Global, Option<Arc<dyn Embedder>>),
    load: &Load,
) -> Vec<Result<Came, Failure>> {
    let Some(first) = group.first() else { return Vec::new() };
    match first.material {
        Material::Rdf(format) => {
            vec![rdf::load(desk, collection, first, format, progress).await.map(Came::Knowledge)]
        }
        Material::Rows(format) => {
            let settings = rows::Reading { format, schema: load.schema.as_deref(), encoding: load.encoding.as_deref() };
            let loaded = rows::load(desk, collection, first, settings, progress, embedder).await;
            vec![loaded.map(|loaded| Came::Rows(loaded.into()))]
        }
        Material::Document(_) => {
            let documents: Vec<_> = group.iter().filter_map(|file| Some((file, file.material.document()?))).collect();
            let reading = document::Reading { facts: !load.no_facts, embedder, global, progress };
            let loaded = document::load(desk, collection, &documents, reading).await;
            progress.read(group.iter().map(|file| file.bytes).sum());
            let came = |LoadedDocument { passages, unchanged, facts }| {
                Came::Document(DocumentCame { passages, unchanged, facts })
            };
            loaded.into_iter().map(|loaded| loaded.map(came)).collect()
        }
    }
}

fn tell(global: &Global, totals: &Totals) -> Result<(), Failure> {
    if global.output == Output::Json {
        print_json(&serde_json::to_string(totals).map_err(Failure::unexpected)?)?;
        return Ok(());
    }
    let failed = totals.files.iter().filter(|file| file.error.is_some()).count();
    let (files, triples) = (counted(totals.files.len() - failed, "file"), counted(totals.read, "triple"));
    let (new, seconds, collection) = (totals.new, totals.seconds, &totals.collection);
    let others = totals.documents + totals.tables + failed;
    let knowledge = (others < totals.files.len()).then(|| format!("{triples} read, {new} new"));
    let LoadedTableRows { rows, new_rows, changed, without_vectors } = totals.rows;
    let rows = (totals.tables > 0).then(|| format!("{} read, {new_rows} new, {changed} changed", counted(rows, "row")));
    let facts = totals.facts.filter(|facts| facts.asked + facts.unanswered > 0);
    let facts = facts.as_ref().map(in_words).unwrap_or_default();
    let documents = (totals.documents > 0).then(|| format!("{}{facts}", counted(totals.passages, "passage")));
    let what: Vec<_> = knowledge.into_iter().chain(documents).chain(rows).collect();
    print_line(&format!("loaded {files} into {collection}: {}, {seconds:.1} s", what.join(", ")))?;
    if without_vectors > 0 {
        let values = counted(without_vectors, "value");
        let full = "a table has vectors of at most 200,000; name fewer fields in `vector-indexes` of its schema";
        note(&format!("{values} of rows cannot be found by meaning: {full}"));
    }
    if failed > 0 {
        note(&format!("{} could not be loaded whole", counted(failed, "file")));
    }
    Ok(())
}
