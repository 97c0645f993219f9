//! Looking at one run: as a tree, or as RDF.

use crate::app::App;
use crate::cli::{ExportFormat, Global, Output};
use crate::failure::{Exit, Failure};
use crate::show::tree::{Texts, Tree, usual_width};
use crate::show::{Marks, clean, print_json, print_line, seconds, tokens};
use serde_json::json;
use trellis_domain::run::RunSummary;
use trellis_domain::{ConversationId, RunId, Timestamp};
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
    let state = summary.as_ref().map(|summary| summary.state);
    let trace = trace(&app.store.graph.run(app.workspace(), &run)?);
    let texts = texts(app, &run).await?;
    if global.output == Output::Json {
        let summary = summary.as_ref();
        let object = json!({
            "run_id": run.as_str(), "state": state,
            "task_type": summary.map(|run| &run.task_type), "pattern": summary.map(|run| &run.pattern),
            "conversation_id": summary.and_then(|run| run.conversation.as_ref()).map(ConversationId::as_str),
            "ms": summary.map(|run| run.ms(app.world.now())), "usage": summary.map(|run| &run.usage),
            "sessions": trace.sessions, "documents": texts,
        });
        print_json(&object.to_string())?;
        return Ok(Exit::Ok);
    }
    let marks = Marks::of(global.ascii);
    let parts = match &summary {
        Some(summary) => heading(summary, app.world.now()),
        None => vec![format!("run {run}"), "unknown".to_owned()],
    };
    print_line(&parts.join(marks.between))?;
    Tree { trace: &trace, texts: &texts, full, marks, width: usual_width() }.print()?;
    Ok(Exit::Ok)
}

/// The run in one line.
fn heading(summary: &RunSummary, now: Timestamp) -> Vec<String> {
    let usage = &summary.usage;
    let conversation = summary.conversation.as_ref().map(|id| format!("conversation {}", id.as_str()));
    let parts = [
        format!("run {}", summary.run),
        summary.state.to_string(),
        seconds(summary.ms(now)),
        tokens(usage.in_token, usage.out_token),
        clean(usage.model.as_deref().unwrap_or_default()),
        conversation.unwrap_or_default(),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect()
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
