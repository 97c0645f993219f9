//! Checking a run's record: every link, every choice, every document, every hash.

use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{clean, note, print_json, print_line};
use serde_json::json;
use trellis_domain::counted;
use trellis_orchestrator::summary::{end_of, texts};
use trellis_provenance::{Fault, check, project};

pub(crate) async fn run(desk: &Desk, global: &Global, wish: &str) -> Result<Exit, Failure> {
    let run = desk.find_run(wish).await?;
    let records = desk.records(&run).await?;
    let ended = end_of(&records, &run).is_some();
    let audited = desk.audit(&run, &records).await?;
    let (quads, texts) = (project(&records), texts(&records));
    if audited.unchecked > 0 {
        let old = counted(audited.unchecked, "record");
        note(&format!(
            "{old} of an older format: only `trellis verify` on the data folder itself can check their hashes"
        ));
    }
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
