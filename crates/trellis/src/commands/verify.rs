//! Checking a run's record: every link, every choice, every document, every hash.

use super::run::records;
use crate::app::App;
use crate::cli::{Global, Output};
use crate::failure::{Exit, Failure};
use crate::show::{clean, print_json, print_line};
use serde_json::json;
use trellis_domain::counted;
use trellis_orchestrator::ports::Journal;
use trellis_orchestrator::summary::texts;
use trellis_provenance::{Fault, check, project};

pub(crate) async fn run(app: &App, global: &Global, wish: &str) -> Result<Exit, Failure> {
    let run = app.find_run(wish).await?;
    let summary = app.store.journal.run(app.workspace(), &run).await?;
    let ended = summary.as_ref().is_some_and(|summary| summary.state.is_end());
    let records = records(app, &run).await?;
    let (quads, texts) = (project(&records), texts(&records));
    let audited = app.store.journal.audit(app.workspace(), &run).await?;
    let mut faults: Vec<String> = audited.faults;
    // A run that is still open has no end yet: that is not a fault of its record.
    let open = |fault: &Fault| !ended && matches!(fault, Fault::NoEnd { .. });
    let structural = check(&quads, &|id| texts.get(id).cloned());
    faults.extend(structural.iter().filter(|fault| !open(fault)).map(ToString::to_string));
    let (records, documents) = (audited.records, texts.len());
    if global.output == Output::Json {
        let object = json!({
            "run_id": run.as_str(), "ok": faults.is_empty(), "ended": ended, "faults": faults,
            "records": records, "quads": quads.len(), "documents": documents,
        });
        print_json(&object.to_string())?;
    } else if faults.is_empty() {
        let state = if ended { "" } else { "; it has not ended yet" };
        let counts = [counted(records, "record"), counted(quads.len(), "statement"), counted(documents, "document")];
        print_line(&format!("ok: run {run}: {}{state}", counts.join(", ")))?;
    } else {
        for fault in &faults {
            print_line(&format!("fault: {}", clean(fault)))?;
        }
    }
    Ok(if faults.is_empty() { Exit::Ok } else { Exit::Faulty })
}
