//! Checking a run's record: every link, every choice, every document, every hash, and its place in the log.

use super::log::read_checkpoint;
use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{clean, print_json, print_line};
use serde_json::json;
use std::path::Path;
use trellis_domain::{Hash, SessionId, counted};
use trellis_orchestrator::audit::Audit;
use trellis_orchestrator::replay::Replay;
use trellis_orchestrator::summary::{end_of, texts};
use trellis_patterns::project;
use trellis_provenance::iri::session_of;
use trellis_provenance::{Fault, check};

pub(crate) async fn run(desk: &Desk, global: &Global, wish: &str, anchor: Option<&Path>) -> Result<Exit, Failure> {
    let anchor = anchor.map(read_checkpoint).transpose()?;
    let run = desk.find_run(wish).await?;
    let (audited, records) = Audit::of(&desk.evidence(&run).await?);
    let ended = end_of(&records, &run).is_some();
    let (quads, texts) = (project(&records), texts(&records));
    let notes = notes(desk, &audited);
    let replay = audited.replay;
    let mut faults: Vec<String> = audited.faults;
    if let Some(anchor) = &anchor {
        faults.extend(desk.against(anchor).await?.faults);
    }
    // What cannot be read has been told; what follows from it would only be repeated.
    if faults.is_empty() {
        // A run that is still open has no end yet: that is not a fault of its record.
        let open = |fault: &Fault| !ended && matches!(fault, Fault::NoEnd { .. });
        // What a pattern's acts have to look like is known to programs that have the pattern.
        let is_unrecognised = |fault: &Fault| {
            let session = fault.node().and_then(session_of).and_then(|session| SessionId::new(session).ok());
            session.is_some_and(|session| replay.unknown.contains(&session))
        };
        let structural = check(&quads, &|id| texts.get(id).cloned());
        let told = structural.iter().filter(|fault| !open(fault) && !is_unrecognised(fault));
        faults.extend(told.map(ToString::to_string));
    }
    let (records, documents) = (audited.records, texts.len());
    let log = audited.checkpoint.map(|checkpoint| (checkpoint.size, checkpoint.root));
    if global.output == Output::Json {
        let object = json!({
            "run_id": run.as_str(), "ok": faults.is_empty(), "ended": ended, "faults": faults,
            "records": records, "quads": quads.len(), "documents": documents,
            "log": log.map(|(size, root)| json!({"size": size, "root": root})), "anchored": anchor.is_some(),
            "replayed": replay.gaps.is_empty(), "not_replayed": replay.gaps, "notes": notes,
        });
        print_json(&object.to_string())?;
    } else if faults.is_empty() {
        let state = if ended { "" } else { "; it has not ended yet" };
        let counts = [counted(records, "record"), counted(quads.len(), "statement"), counted(documents, "document")];
        print_line(&format!("ok: run {run}: {}{state}", counts.join(", ")))?;
        if let Some((size, root)) = log {
            let kept = if anchor.is_some() { ", which has all that the checkpoint covers" } else { "" };
            print_line(&format!("all of them in the log of {}{kept}; root {root}", counted(size, "entry")))?;
        }
        print_line(&replayed(&replay))?;
        for note in &notes {
            print_line(&format!("note: {}", clean(note)))?;
        }
    } else {
        for fault in &faults {
            print_line(&format!("fault: {}", clean(fault)))?;
        }
    }
    Ok(if faults.is_empty() { Exit::Ok } else { Exit::Faulty })
}

/// Whether every record was derived again from those before it.
fn replayed(replay: &Replay) -> String {
    match replay.gaps.as_slice() {
        [] => "replayed: every record follows from those before it".to_owned(),
        gaps => format!("not replayed: {}", clean(&gaps.join("; "))),
    }
}

/// What could not be checked here, and is no fault. The folder has the secrets, and has held each configuration against its
/// hash before they were left out.
fn notes(desk: &Desk, audited: &Audit) -> Vec<String> {
    let far = matches!(desk, Desk::Remote(_));
    let note =
        |hash: &Hash| format!("configuration {hash} came without its secrets and cannot be held against its hash here");
    audited.redacted.iter().filter(|_| far).map(note).collect()
}
