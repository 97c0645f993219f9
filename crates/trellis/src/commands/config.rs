//! Configuration items from the command line.

use super::read_input;
use crate::app::App;
use crate::cli::{ConfigCommand, Global, Output};
use crate::failure::{Exit, Failure};
use crate::show::{clean, excerpt, print_line};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use trellis_domain::config::{Problem, Settings, StoredItem, validate};
use trellis_orchestrator::ports::Config;

/// An exported file.
#[derive(Debug, Deserialize)]
struct Exported {
    items: Vec<ExportedItem>,
}

#[derive(Debug, Deserialize)]
struct ExportedItem {
    #[serde(rename = "type")]
    kind: String,
    key: String,
    /// Objects and lists as JSON, everything else as the stored text.
    value: Value,
}

pub(crate) async fn run(global: &Global, command: &ConfigCommand) -> Result<Exit, Failure> {
    if let ConfigCommand::Validate { files } = command
        && !files.is_empty()
    {
        let mut problems = Vec::new();
        for file in files {
            let items = read_file(file)?;
            problems.extend(items.iter().filter_map(|item| validate(&item.kind, &item.key, &item.value).err()));
        }
        return report(global, &problems);
    }
    let app = App::open(global, "config").await?;
    let config = &*app.store.config;
    match command {
        ConfigCommand::List { kind } => list(&app, global, kind.as_deref()).await,
        ConfigCommand::Get { kind, key } => match config.get(app.workspace(), kind, key).await? {
            Some(value) => Ok(print_line(&value).map(|()| Exit::Ok)?),
            None => Err(missing(kind, key)),
        },
        ConfigCommand::Put { kind, key, value } => {
            let value = match value.strip_prefix('@') {
                Some(file) => read_text(Path::new(file))?,
                None if value == "-" => read_input("the value")?,
                None => value.clone(),
            };
            let item = StoredItem { kind: kind.clone(), key: key.clone(), value };
            let version = config.put(app.workspace(), vec![item]).await?;
            eprintln!("wrote {kind}/{key}, configuration version {version}; new runs use it");
            Ok(Exit::Ok)
        }
        ConfigCommand::Delete { kind, key } => match config.delete(app.workspace(), kind, key).await? {
            Some(version) => {
                eprintln!("deleted {kind}/{key}, configuration version {version}");
                Ok(Exit::Ok)
            }
            None => Err(missing(kind, key)),
        },
        ConfigCommand::Export { file } => export(&app, file.as_deref()).await,
        ConfigCommand::Import { file } => import(&app, file).await,
        ConfigCommand::Validate { .. } => {
            let (version, items) = config.all(app.workspace()).await?;
            report(global, &Settings::take(version, items).0.problems)
        }
    }
}

fn missing(kind: &str, key: &str) -> Failure {
    Failure::new(Exit::NotFound, format!("there is no {kind}/{key}; `trellis config list {kind}` shows what there is"))
}

async fn list(app: &App, global: &Global, kind: Option<&str>) -> Result<Exit, Failure> {
    let (version, mut items) = app.store.config.all(app.workspace()).await?;
    items.retain(|item| kind.is_none_or(|kind| item.kind == kind));
    if global.output == Output::Json {
        let items: Vec<_> = items.iter().map(exported).collect();
        print_line(&json!({"version": version, "items": items}).to_string())?;
        return Ok(Exit::Ok);
    }
    for item in &items {
        print_line(&format!("{:<18} {:<28} {}", item.kind, item.key, excerpt(&item.value, 80)))?;
    }
    Ok(Exit::Ok)
}

fn exported(item: &StoredItem) -> Value {
    let parsed = serde_json::from_str::<Value>(&item.value).ok();
    let value = parsed.filter(|value| value.is_object() || value.is_array()).unwrap_or_else(|| json!(item.value));
    json!({"type": item.kind, "key": item.key, "value": value})
}

async fn export(app: &App, file: Option<&Path>) -> Result<Exit, Failure> {
    let (version, items) = app.store.config.all(app.workspace()).await?;
    let items: Vec<_> = items.iter().map(exported).collect();
    let object = json!({"format": 1, "workspace": app.workspace().as_str(), "version": version, "items": items});
    let text = serde_json::to_string_pretty(&object).map_err(Failure::unexpected)?;
    match file {
        None => print_line(&text)?,
        Some(file) => std::fs::write(file, text + "\n")
            .map_err(|error| Failure::unexpected(format!("cannot write {}: {error}", file.display())))?,
    }
    Ok(Exit::Ok)
}

async fn import(app: &App, file: &Path) -> Result<Exit, Failure> {
    let (_, present) = app.store.config.all(app.workspace()).await?;
    let same = |a: &str, b: &str| a == b || serde_json::from_str::<Value>(a).ok() == serde_json::from_str(b).ok();
    let unchanged = |item: &StoredItem| {
        present.iter().any(|old| old.kind == item.kind && old.key == item.key && same(&old.value, &item.value))
    };
    let changed: Vec<_> = read_file(file)?.into_iter().filter(|item| !unchanged(item)).collect();
    if changed.is_empty() {
        eprintln!("nothing to change");
        return Ok(Exit::Ok);
    }
    let count = changed.len();
    let version = app.store.config.put(app.workspace(), changed).await?;
    eprintln!("wrote {count} items, configuration version {version}; new runs use them");
    Ok(Exit::Ok)
}

fn read_text(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))
}

fn read_file(file: &Path) -> Result<Vec<StoredItem>, Failure> {
    let exported: Exported = serde_json::from_str(&read_text(file)?).map_err(|error| {
        let mend = "write {\"items\": [{\"type\": …, \"key\": …, \"value\": …}]} as `trellis config export` does";
        Failure::new(
            Exit::InvalidConfig,
            format!("{} is not an exported configuration: {error}; {mend}", file.display()),
        )
    })?;
    let text = |value: Value| match value {
        Value::String(text) => text,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    let stored = |item: ExportedItem| StoredItem { kind: item.kind, key: item.key, value: text(item.value) };
    Ok(exported.items.into_iter().map(stored).collect())
}

fn report(global: &Global, problems: &[Problem]) -> Result<Exit, Failure> {
    if global.output == Output::Json {
        let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
        print_line(&json!({"ok": problems.is_empty(), "problems": list}).to_string())?;
    } else if problems.is_empty() {
        print_line("ok: every item is valid")?;
    } else {
        problems.iter().try_for_each(|problem| print_line(&clean(&problem.to_string())))?;
    }
    Ok(if problems.is_empty() { Exit::Ok } else { Exit::InvalidConfig })
}
