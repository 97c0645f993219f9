//! The log that proves all records: checkpoints to keep, and whether they still hold.

use crate::cli::{Global, LogCommand, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{clean, print_json, print_line};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use trellis_domain::counted;
use trellis_orchestrator::checkpoint::Checkpoint;
use trellis_orchestrator::log_key::verify_signature;
use trellis_orchestrator::ports::Verdict;

pub(crate) async fn run(desk: &Desk, global: &Global, command: &LogCommand) -> Result<Exit, Failure> {
    match command {
        LogCommand::Checkpoint => {
            let checkpoint = desk.checkpoint().await?;
            if global.output == Output::Json {
                print_json(&json!({ "checkpoint": checkpoint, "key": desk.log_key().await? }).to_string())?;
            } else {
                print_line(checkpoint.trim_end_matches('\n'))?;
            }
            Ok(Exit::Ok)
        }
        LogCommand::Key => {
            let key = desk.log_key().await?;
            if global.output == Output::Json {
                print_json(&json!({ "key": key }).to_string())?;
            } else {
                print_line(&key)?;
            }
            Ok(Exit::Ok)
        }
        LogCommand::Verify { checkpoint, key } => verify(desk, global, checkpoint, key.as_deref()).await,
        LogCommand::Export { file } => export(desk, file.as_deref()).await,
    }
}

async fn verify(desk: &Desk, global: &Global, file: &Path, key: Option<&str>) -> Result<Exit, Failure> {
    let note = read_checkpoint(file)?;
    let mut verdict = desk.against(&note).await?;
    if let Some(key) = key {
        let parsed = Checkpoint::parse(&note).map_err(|error| Failure::usage(error.to_string()))?;
        verdict.faults.extend(verify_signature(&parsed.0, &parsed.1, key).err().map(|error| error.to_string()));
    }
    let Verdict { covered, size, root, faults } = verdict;
    if global.output == Output::Json {
        let object = json!({"ok": faults.is_empty(), "covered": covered, "size": size, "root": root, "faults": faults});
        print_json(&object.to_string())?;
    } else if faults.is_empty() {
        let (covered, now) = (counted(covered, "entry"), counted(size, "entry"));
        print_line(&format!("ok: the {covered} that the checkpoint covers are all here, unchanged; {now} now"))?;
        print_line(&format!("root {}", root.map(|root| root.to_string()).unwrap_or_default()))?;
    } else {
        for fault in &faults {
            print_line(&format!("fault: {}", clean(fault)))?;
        }
    }
    Ok(if faults.is_empty() { Exit::Ok } else { Exit::Faulty })
}

/// The checkpoint first, then an entry a line. What was added meanwhile is left out: the checkpoint does not cover it.
async fn export(desk: &Desk, file: Option<&Path>) -> Result<Exit, Failure> {
    let (checkpoint, key) = (desk.checkpoint().await?, desk.log_key().await?);
    let (parsed, _) = Checkpoint::parse(&checkpoint).map_err(Failure::unexpected)?;
    let mut output: Box<dyn Write> = match file {
        Some(file) => {
            let created = std::fs::File::create(file);
            Box::new(std::io::BufWriter::new(
                created.map_err(|error| Failure::usage(format!("cannot write {}: {error}", file.display())))?,
            ))
        }
        None => Box::new(std::io::stdout().lock()),
    };
    writeln!(output, "{}", json!({ "checkpoint": checkpoint, "key": key }))?;
    let mut next = 0;
    while next < parsed.size {
        let entries = desk.entries(next).await?;
        if entries.is_empty() {
            return Err(Failure::new(Exit::DataFolder, format!("entry {next} of the log is missing")));
        }
        for entry in entries.iter().filter(|entry| entry.number < parsed.size) {
            writeln!(output, "{}", serde_json::to_string(entry).map_err(Failure::unexpected)?)?;
        }
        next += entries.len() as u64;
    }
    output.flush()?;
    Ok(Exit::Ok)
}

/// A checkpoint from a file, or from standard input.
pub(super) fn read_checkpoint(file: &Path) -> Result<String, Failure> {
    let note = if file == Path::new("-") {
        super::read_input("the checkpoint")?
    } else {
        let text = std::fs::read_to_string(file);
        text.map_err(|error| Failure::usage(format!("cannot read the checkpoint {}: {error}", file.display())))?
    };
    let checked = Checkpoint::parse(&note);
    checked.map_err(|error| Failure::usage(format!("{} is no checkpoint: {error}", file.display())))?;
    Ok(note)
}
