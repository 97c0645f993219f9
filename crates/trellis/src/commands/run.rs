//! Looking at one run: as a tree, or as RDF.

use crate::app::App;
use crate::cli::{ExportFormat, Global, Output};
use crate::failure::{Exit, Failure};
use crate::show::tree::{Texts, Tree};
use crate::show::{Marks, print_json, print_line};
use serde_json::json;
use trellis_domain::RunId;
use trellis_orchestrator::ports::Journal;
use trellis_provenance::{Format, documents, export as write, trace};

/// The stored documents of a run, by id.
pub(crate) async fn texts(app: &App, run: &RunId) -> Result<Texts, Failure> {
    let records = app.store.journal.events(app.workspace(), run, 0, usize::MAX).await?;
    Ok(documents(&records).into_iter().map(|document| (document.id, document.text.text().to_owned())).collect())
}

pub(crate) async fn show(app: &App, global: &Global, wish: &str, full: bool) -> Result<Exit, Failure> {
    let run = app.find_run(wish).await?;
    let summary = app.store.journal.run(app.workspace(), &run).await?;
    let state = summary.map(|summary| summary.state);
    let trace = trace(&app.store.graph.run(app.workspace(), &run)?);
    let texts = texts(app, &run).await?;
    if global.output == Output::Json {
        let object = json!({"run_id": run.as_str(), "state": state, "sessions": trace.sessions, "documents": texts});
        print_json(&object.to_string())?;
        return Ok(Exit::Ok);
    }
    let marks = Marks::of(global.ascii);
    print_line(
        &[format!("run {run}"), state.map_or("unknown", |state| state.as_str()).to_owned()].join(marks.between),
    )?;
    Tree { texts: &texts, full, marks }.print(&trace)?;
    Ok(Exit::Ok)
}

pub(crate) async fn export(app: &App, wish: &str, format: ExportFormat) -> Result<Exit, Failure> {
    let run = app.find_run(wish).await?;
    let quads = app.store.graph.run(app.workspace(), &run)?;
    let format = match format {
        ExportFormat::Turtle => Format::Turtle,
        ExportFormat::Nquads => Format::NQuads,
        ExportFormat::Jsonld => Format::JsonLd,
    };
    let text = write(&quads, format).map_err(Failure::unexpected)?;
    print_line(text.trim_end())?;
    Ok(Exit::Ok)
}
