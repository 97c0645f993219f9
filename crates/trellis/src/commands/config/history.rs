//! What an item was at an earlier version: choices name the version of the configuration that they were made under.

use super::missing;
use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{aligned, clean, columns_for, one_line, print_json, print_line};
use serde_json::json;
use trellis_orchestrator::summary::Change;

/// The newest value that is not newer than the version.
pub(super) async fn value_at(desk: &Desk, kind: &str, key: &str, version: u64) -> Result<String, Failure> {
    let (newest, _) = desk.items().await?;
    if version > newest {
        return Err(Failure::usage(format!("there is no version {version} yet; the configuration is at {newest}")));
    }
    let history = history(desk, kind, key).await?;
    let none =
        |why: String| Failure::new(Exit::NotFound, format!("there was no {kind}/{key} at version {version}: {why}"));
    match history.iter().rev().find(|entry| entry.version <= version) {
        Some(Change { value: Some(value), .. }) => Ok(value.clone()),
        Some(Change { value: None, version: deleted, .. }) => Err(none(format!("version {deleted} deleted it"))),
        None => {
            let first = history.first().map_or(version, |entry| entry.version);
            Err(none(format!("version {first} was the first with it")))
        }
    }
}

/// Versions with their times and who made them, oldest first.
pub(super) async fn list(desk: &Desk, global: &Global, kind: &str, key: &str) -> Result<Exit, Failure> {
    let history = history(desk, kind, key).await?;
    if global.output == Output::Json {
        print_json(&json!({"type": kind, "key": key, "versions": history}).to_string())?;
        return Ok(Exit::Ok);
    }
    let cells = |entry: &Change| {
        let value = entry.value.as_deref().map_or_else(|| "deleted".to_owned(), one_line);
        let by = entry.by.as_ref().map(|by| clean(&by.to_string())).unwrap_or_default();
        vec![entry.version.to_string(), entry.time.clone(), by, value]
    };
    let rows: Vec<_> = history.iter().map(cells).collect();
    aligned(&rows, columns_for(global)).iter().try_for_each(|line| print_line(line))?;
    Ok(Exit::Ok)
}

/// All changes of an item that there is or was.
async fn history(desk: &Desk, kind: &str, key: &str) -> Result<Vec<Change>, Failure> {
    let history = desk.history(kind, key).await?;
    if history.is_empty() { Err(missing(kind, key)) } else { Ok(history) }
}
