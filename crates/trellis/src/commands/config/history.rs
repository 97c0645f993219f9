//! What an item was at an earlier version: choices name the version of the configuration that they were made under.

use super::missing;
use crate::app::App;
use crate::cli::{Global, Output};
use crate::failure::{Exit, Failure};
use crate::show::{aligned, columns, one_line, print_json, print_line};
use serde_json::json;
use trellis_orchestrator::ports::{Config, HistoryEntry};

/// The newest value that is not newer than the version.
pub(super) async fn value_at(app: &App, kind: &str, key: &str, version: u64) -> Result<String, Failure> {
    let (newest, _) = app.store.config.all(app.workspace()).await?;
    if version > newest {
        return Err(Failure::usage(format!("there is no version {version} yet; the configuration is at {newest}")));
    }
    let history = history(app, kind, key).await?;
    let none =
        |why: String| Failure::new(Exit::NotFound, format!("there was no {kind}/{key} at version {version}: {why}"));
    match history.iter().rev().find(|entry| entry.version <= version) {
        Some(HistoryEntry { value: Some(value), .. }) => Ok(value.clone()),
        Some(HistoryEntry { value: None, version: deleted, .. }) => Err(none(format!("version {deleted} deleted it"))),
        None => {
            let first = history.first().map_or(version, |entry| entry.version);
            Err(none(format!("version {first} was the first with it")))
        }
    }
}

/// Versions with their times, oldest first.
pub(super) async fn list(app: &App, global: &Global, kind: &str, key: &str) -> Result<Exit, Failure> {
    let history = history(app, kind, key).await?;
    if global.output == Output::Json {
        let entry = |entry: &HistoryEntry| {
            json!({
                "version": entry.version, "time": entry.time.to_string(),
                "deleted": entry.value.is_none(), "value": entry.value,
            })
        };
        let entries: Vec<_> = history.iter().map(entry).collect();
        print_json(&json!({"type": kind, "key": key, "versions": entries}).to_string())?;
        return Ok(Exit::Ok);
    }
    let cells = |entry: &HistoryEntry| {
        let value = entry.value.as_deref().map_or_else(|| "deleted".to_owned(), one_line);
        vec![entry.version.to_string(), entry.time.to_string(), value]
    };
    let rows: Vec<_> = history.iter().map(cells).collect();
    aligned(&rows, columns()).iter().try_for_each(|line| print_line(line))?;
    Ok(Exit::Ok)
}

/// All changes of an item that there is or was.
async fn history(app: &App, kind: &str, key: &str) -> Result<Vec<HistoryEntry>, Failure> {
    let history = app.store.config.history(app.workspace(), kind, key).await?;
    if history.is_empty() { Err(missing(kind, key)) } else { Ok(history) }
}
