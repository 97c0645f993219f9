//! Looking at one run: as a tree, as its answer, or as RDF.

use super::put_missing;
use crate::app::App;
use crate::cli::{ExportFormat, Global, Output};
use crate::failure::{Exit, Failure};
use crate::show::tree::{Texts, Tree, usual_width};
use crate::show::{Marks, clean, note, print_json, print_line, seconds, tokens};
use serde_json::json;
use std::sync::Arc;
use trellis_domain::document::Document;
use trellis_domain::record::{Body, Ended, Record};
use trellis_domain::run::RunSummary;
use trellis_domain::{ConversationId, RunId, Timestamp};
use trellis_orchestrator::ports::{Graph, Journal};
use trellis_provenance::{Format, documents, export as write, trace};

/// The stored documents of a run, by id.
pub(crate) async fn texts(app: &App, run: &RunId) -> Result<Texts, Failure> {
    Ok(texts_of(&records(app, run).await?))
}

async fn records(app: &App, run: &RunId) -> Result<Vec<Arc<Record>>, Failure> {
    Ok(app.store.journal.events(app.workspace(), run, 0, usize::MAX).await?)
}

fn texts_of(records: &[Arc<Record>]) -> Texts {
    documents(records).into_iter().map(|document| (document.id, document.text.text().to_owned())).collect()
}

/// The end of the run itself, not of a subagent.
#[expect(clippy::wildcard_enum_match_arm, reason = "asks for one kind only")]
fn end_of<'a>(records: &'a [Arc<Record>], run: &RunId) -> Option<&'a Ended> {
    records.iter().filter(|record| record.header.session == *run).find_map(|record| match &record.body {
        Body::Ended(ended) => Some(ended),
        _ => None,
    })
}

pub(crate) async fn show(app: &App, global: &Global, wish: &str, full: bool) -> Result<Exit, Failure> {
    let run = app.find_run(wish).await?;
    let summary = app.store.journal.run(app.workspace(), &run).await?;
    let state = summary.as_ref().map(|summary| summary.state);
    let trace = trace(&app.store.graph.run(app.workspace(), &run).await?);
    let records = records(app, &run).await?;
    let texts = texts_of(&records);
    if global.output == Output::Json {
        let summary = summary.as_ref();
        let mut object = json!({
            "run_id": run.as_str(), "state": state,
            "task_type": summary.map(|run| &run.task_type), "pattern": summary.map(|run| &run.pattern),
            "conversation_id": summary.and_then(|run| run.conversation.as_ref()).map(ConversationId::as_str),
            "ms": summary.map(|run| run.ms(app.world.now())), "usage": summary.map(|run| &run.usage),
            "sessions": trace.sessions, "documents": texts,
        });
        put_missing(&mut object, end_of(&records, &run).map(|ended| ended.missing.as_slice()).unwrap_or_default());
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

/// The answer alone on stdout, so that it can be piped; why there is none goes to stderr.
pub(crate) async fn answer(app: &App, global: &Global, wish: &str, strict: bool) -> Result<Exit, Failure> {
    let run = app.find_run(wish).await?;
    let records = records(app, &run).await?;
    let Some(ended) = end_of(&records, &run) else {
        let message = format!("run {run} is not finished; `trellis resume` continues it");
        return Err(Failure::new(Exit::Interrupted, message));
    };
    let (state, text) = (ended.reason.run_state(), ended.answer.as_ref().map(Document::text));
    if global.output == Output::Json {
        let mut object = json!({"run_id": run.as_str(), "state": state, "answer": text, "error": ended.error});
        put_missing(&mut object, &ended.missing);
        print_json(&object.to_string())?;
        return Ok(Exit::of(state, strict));
    }
    if let Some(text) = text {
        print_line(clean(text).trim_end_matches('\n'))?;
    }
    if let Some(error) = &ended.error {
        note(&format!("run {run}: {}", clean(error)));
    }
    Ok(Exit::of(state, strict))
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
    let quads = app.store.graph.run(app.workspace(), &run).await?;
    let format = match format {
        ExportFormat::Turtle => Format::Turtle,
        ExportFormat::Nquads => Format::NQuads,
        ExportFormat::Jsonld => Format::JsonLd,
    };
    let text = write(&quads, format).map_err(Failure::unexpected)?;
    print_line(text.trim_end())?;
    Ok(Exit::Ok)
}
