//! Loads files, folders and addresses into a collection. What a file is made into depends on what it is: one module per
//! kind of material.

mod found;
mod progress;
mod rdf;

use crate::app::Purpose;
use crate::cli::{Global, Load, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{note, print_json, print_line};
use found::FoundFile;
use progress::Progress;
use serde::Serialize;
use tokio::time::Instant;
use trellis_domain::{Collection, counted};
use trellis_orchestrator::knowledge::Loaded;

/// What a file is, and so what is made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Material {
    Rdf(trellis_rdf::Format),
}

impl Material {
    /// Everything that is understood, as a message lists it.
    fn list() -> String {
        format!("RDF as {}", trellis_rdf::Format::list())
    }

    /// By the name of a format.
    fn named(format: &str) -> Result<Self, Failure> {
        let unknown = || Failure::usage(format!("the format `{format}` is not known; understood are {}", Self::list()));
        trellis_rdf::Format::named(format).map(Self::Rdf).ok_or_else(unknown)
    }

    /// By the end of a file's name.
    fn of_file(path: &std::path::Path) -> Option<Self> {
        trellis_rdf::Format::of_file(path).map(Self::Rdf)
    }
}

/// What came of one file.
#[derive(Debug, Serialize)]
struct LoadedSource {
    source: String,
    #[serde(flatten)]
    loaded: Loaded,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What came of all.
#[derive(Debug, Serialize)]
struct Totals {
    collection: Collection,
    read: u64,
    new: u64,
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
    for file in files {
        let came = one(&desk, &collection, &file, &progress).await;
        let (loaded, error) = match came {
            Ok(loaded) => (loaded, None),
            Err(failure) => {
                let message = failure.message.clone();
                first_failure.get_or_insert(failure);
                (Loaded::default(), Some(message))
            }
        };
        // The last word on an error that ends the command is the command's.
        if error.is_none() || load.keep_going {
            progress.done(&file, &loaded, error.as_deref());
        }
        done.push(LoadedSource { source: file.name.clone(), loaded, error });
        if first_failure.is_some() && !load.keep_going {
            break;
        }
    }
    progress.end();
    let sum = |part: fn(&Loaded) -> u64| done.iter().map(|file| part(&file.loaded)).sum();
    let seconds = begun.elapsed().as_secs_f64();
    let totals = Totals { collection, read: sum(|l| l.read), new: sum(|l| l.new), seconds, files: done };
    match first_failure {
        Some(failure) if !load.keep_going => Err(failure),
        failure => {
            tell(global, &totals)?;
            Ok(if failure.is_some() { Exit::Partial } else { Exit::Ok })
        }
    }
}

async fn one(desk: &Desk, collection: &Collection, file: &FoundFile, progress: &Progress) -> Result<Loaded, Failure> {
    match file.material {
        Material::Rdf(format) => rdf::load(desk, collection, file, format, progress).await,
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
    print_line(&format!("loaded {files} into {collection}: {triples} read, {new} new, {seconds:.1} s"))?;
    if failed > 0 {
        note(&format!("{} could not be loaded whole", counted(failed, "file")));
    }
    Ok(())
}
