//! Configuration items from the command line.

mod difference;
mod history;
mod overview;

use super::read_input;
use crate::cli::{ConfigCommand, Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::guarded::{OWN, broken_template};
use crate::show::{aligned, clean, columns_for, note, one_line, print_json, print_line};
use crate::state::Purpose;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::Path;
use trellis_domain::config::{AGENT_TYPES, Problem, Settings, StoredItem, not_served, validate};
use trellis_patterns::missing_prompts;

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
            problems.extend(items.iter().filter_map(broken_template));
            problems.extend(items.iter().filter_map(|item| not_served(&item.kind, &item.key, &item.value)));
        }
        return report(global, &problems);
    }
    let desk = Desk::work(global, "config", purpose(command)).await?;
    match command {
        ConfigCommand::List { kind } => list(&desk, global, kind.as_deref()).await,
        ConfigCommand::Get { kind, key, at: None } => {
            let (_, items) = desk.items().await?;
            let found = items.into_iter().find(|item| item.kind == *kind && item.key == *key);
            print_value(found.ok_or_else(|| missing(kind, key))?.value)
        }
        ConfigCommand::Get { kind, key, at: Some(version) } => {
            print_value(history::value_at(&desk, kind, key, *version).await?)
        }
        ConfigCommand::Matrix => overview::matrix(&desk, global).await,
        ConfigCommand::Log { limit } => overview::log(&desk, global, *limit).await,
        ConfigCommand::History { kind, key } => history::list(&desk, global, kind, key).await,
        ConfigCommand::Diff { from, to } => difference::run(&desk, global, *from, *to).await,
        ConfigCommand::Put { kind, key, value } => {
            let value = match value.strip_prefix('@') {
                Some(file) => read_text(Path::new(file))?,
                None if value == "-" => read_input("the value")?,
                None => value.clone(),
            };
            let item = StoredItem { kind: kind.clone(), key: key.clone(), value };
            let version = desk.configure(global, vec![item]).await?;
            let name = clean(&format!("{kind}/{key}"));
            if AGENT_TYPES.contains(&kind.as_str()) {
                note(&format!("wrote {name}, configuration version {version}; new runs use it"));
            } else {
                let known = AGENT_TYPES.join(", ");
                note(&format!("wrote {name}, configuration version {version}; agents read only {known}"));
            }
            warn(&desk).await?;
            Ok(Exit::Ok)
        }
        ConfigCommand::Delete { kind, key } => {
            let Some(version) = desk.delete(kind, key).await? else {
                return Err(missing(kind, key));
            };
            note(&format!("deleted {}, configuration version {version}", clean(&format!("{kind}/{key}"))));
            warn(&desk).await?;
            Ok(Exit::Ok)
        }
        ConfigCommand::Export { file } => export(&desk, file.as_deref()).await,
        ConfigCommand::Import { file } => import(&desk, global, file).await,
        ConfigCommand::Validate { .. } => {
            let (version, items) = desk.items().await?;
            report(global, &problems(&Settings::take(version, items.clone()).0, &items))
        }
    }
}

const fn purpose(command: &ConfigCommand) -> Purpose {
    match command {
        ConfigCommand::List { .. }
        | ConfigCommand::Get { .. }
        | ConfigCommand::Matrix
        | ConfigCommand::Log { .. }
        | ConfigCommand::History { .. }
        | ConfigCommand::Diff { .. }
        | ConfigCommand::Export { .. }
        | ConfigCommand::Validate { .. } => Purpose::Read,
        ConfigCommand::Put { .. } | ConfigCommand::Delete { .. } | ConfigCommand::Import { .. } => Purpose::Write,
    }
}

fn print_value(value: String) -> Result<Exit, Failure> {
    let value = if std::io::stdout().is_terminal() { clean(&value) } else { value };
    Ok(print_line(&value).map(|()| Exit::Ok)?)
}

/// Everything that is wrong with a configuration: item by item, and together.
pub(crate) fn problems(settings: &Settings, items: &[StoredItem]) -> Vec<Problem> {
    let mut problems = settings.problems.clone();
    problems.extend(items.iter().filter_map(broken_template));
    problems.extend(items.iter().filter_map(|item| not_served(&item.kind, &item.key, &item.value)));
    problems.extend(settings.inconsistencies());
    problems.extend(missing_prompts(settings));
    problems
}

/// Tells what does not fit together after a change.
async fn warn(desk: &Desk) -> Result<(), Failure> {
    let (version, items) = desk.items().await?;
    let settings = Settings::take(version, items).0;
    for problem in settings.inconsistencies().into_iter().chain(missing_prompts(&settings)) {
        note(&format!("warning: {}", clean(&problem.to_string())));
    }
    Ok(())
}

fn missing(kind: &str, key: &str) -> Failure {
    Failure::new(Exit::NotFound, format!("there is no {kind}/{key}; `trellis config list {kind}` shows what there is"))
}

async fn list(desk: &Desk, global: &Global, kind: Option<&str>) -> Result<Exit, Failure> {
    let (version, mut items) = desk.items().await?;
    items.retain(|item| kind.is_none_or(|kind| item.kind == kind));
    if global.output == Output::Json {
        let items: Vec<_> = items.iter().map(exported).collect();
        print_json(&json!({"version": version, "items": items}).to_string())?;
        return Ok(Exit::Ok);
    }
    let cells = |item: &StoredItem| vec![clean(&item.kind), clean(&item.key), one_line(&item.value)];
    let rows: Vec<_> = items.iter().map(cells).collect();
    aligned(&rows, columns_for(global)).iter().try_for_each(|line| print_line(line))?;
    Ok(Exit::Ok)
}

fn exported(item: &StoredItem) -> Value {
    let parsed = serde_json::from_str::<Value>(&item.value).ok();
    let value = parsed.filter(|value| value.is_object() || value.is_array()).unwrap_or_else(|| json!(item.value));
    json!({"type": item.kind, "key": item.key, "value": value})
}

async fn export(desk: &Desk, file: Option<&Path>) -> Result<Exit, Failure> {
    let (version, items) = desk.items().await?;
    let items: Vec<_> = items.iter().map(exported).collect();
    let object = json!({"format": 1, "workspace": desk.workspace().await?, "version": version, "items": items});
    let text = serde_json::to_string_pretty(&object).map_err(Failure::unexpected)?;
    match file {
        None => print_line(&text)?,
        Some(file) => std::fs::write(file, text + "\n")
            .map_err(|error| Failure::unexpected(format!("cannot write {}: {error}", file.display())))?,
    }
    Ok(Exit::Ok)
}

async fn import(desk: &Desk, global: &Global, file: &Path) -> Result<Exit, Failure> {
    let (_, present) = desk.items().await?;
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    let same = |a: &str, b: &str| a == b || json(a).is_some_and(|a| Some(a) == json(b));
    let unchanged = |item: &StoredItem| {
        present.iter().any(|old| old.kind == item.kind && old.key == item.key && same(&old.value, &item.value))
    };
    // An export has the program's own items too; they are not for import.
    let wanted = read_file(file)?.into_iter().filter(|item| item.kind != OWN);
    let changed: Vec<_> = wanted.filter(|item| !unchanged(item)).collect();
    if changed.is_empty() {
        note("nothing to change");
        return Ok(Exit::Ok);
    }
    let count = changed.len();
    let version = desk.configure(global, changed).await?;
    note(&format!("items written: {count}, configuration version {version}; new runs use them"));
    warn(desk).await?;
    Ok(Exit::Ok)
}

fn read_text(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))
}

fn read_file(file: &Path) -> Result<Vec<StoredItem>, Failure> {
    let exported: Exported = serde_json::from_str(&read_text(file)?).map_err(|error| {
        let mend = "write {\"items\": [{\"type\": ..., \"key\": ..., \"value\": ...}]} as `trellis config export` does";
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
        print_json(&json!({"ok": problems.is_empty(), "problems": list}).to_string())?;
    } else if problems.is_empty() {
        print_line("ok: every item is valid")?;
    } else {
        problems.iter().try_for_each(|problem| print_line(&clean(&problem.to_string())))?;
    }
    Ok(if problems.is_empty() { Exit::Ok } else { Exit::InvalidConfig })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It cannot be written any more, but may have been, by a program from before.
    #[test]
    fn doctor_names_a_service_that_has_only_queues() {
        let value = json!({ "request-queue": "request:tg:joke", "response-queue": "response:tg:joke" }).to_string();
        let items = [StoredItem { kind: "tool-service".to_owned(), key: "joke".to_owned(), value }];
        let told: Vec<_> =
            problems(&Settings::take(1, items.to_vec()).0, &items).iter().map(ToString::to_string).collect();
        let named = told.iter().filter(|problem| problem.contains("joke") && problem.contains("message broker"));
        assert_eq!(named.count(), 1, "{told:?}");
        let value = json!({ "url": "https://jokes.example.com/" }).to_string();
        let items = items.map(|item| StoredItem { value: value.clone(), ..item });
        assert!(!problems(&Settings::take(1, items.to_vec()).0, &items).iter().any(|problem| problem.key == "joke"));
    }
}
