//! The configuration at a glance: which pattern each task type allows, and what changed when.

use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::guarded::OWN;
use crate::show::{Marks, aligned, clean, columns_for, note, one_line, print_json, print_line, width};
use serde_json::json;
use std::collections::BTreeMap;
use trellis_domain::PatternName;
use trellis_domain::config::Settings;
use trellis_orchestrator::summary::Change;
use trellis_patterns::router::callable;

/// Task types below each other, patterns beside each other.
pub(super) async fn matrix(desk: &Desk, global: &Global) -> Result<Exit, Failure> {
    let (version, items) = desk.items().await?;
    let settings = Settings::take(version, items).0;
    let patterns = callable(&settings);
    let allowed: Vec<(String, Vec<PatternName>)> = settings
        .task_types
        .iter()
        .map(|(name, item)| {
            let valid = item.valid_patterns.clone().unwrap_or_else(|| patterns.clone());
            (clean(name), valid.into_iter().filter(|name| patterns.contains(name)).collect())
        })
        .collect();
    if global.output == Output::Json {
        let rows: BTreeMap<_, _> = allowed.iter().cloned().collect();
        print_json(&json!({"version": version, "patterns": patterns, "task_types": rows}).to_string())?;
        return Ok(Exit::Ok);
    }
    if allowed.is_empty() {
        note("no task types are configured; `trellis config put agent-task-type NAME '{…}'` adds one");
        return Ok(Exit::Ok);
    }
    let (columns, marks) = (columns_for(global), Marks::of(global.ascii));
    let head = std::iter::once(String::new()).chain(patterns.iter().map(|name| clean(name)));
    let row = |(name, valid): &(String, Vec<PatternName>)| {
        // The first is what is taken if no choice can be made.
        let mark = |pattern: &PatternName| match valid.iter().position(|name| name == pattern) {
            Some(0) => format!("{} first", marks.good),
            Some(_) => marks.good.to_owned(),
            None => "-".to_owned(),
        };
        std::iter::once(name.clone()).chain(patterns.iter().map(mark)).collect::<Vec<_>>()
    };
    let rows: Vec<_> = std::iter::once(head.collect()).chain(allowed.iter().map(row)).collect();
    let mut lines = aligned(&rows, None);
    if columns.is_some_and(|columns| lines.iter().any(|line| width(line) > columns)) {
        let listed = |(name, valid): &(String, Vec<PatternName>)| {
            let names: Vec<_> = valid.iter().map(|name| clean(name)).collect();
            vec![name.clone(), names.join(", ")]
        };
        lines = aligned(&allowed.iter().map(listed).collect::<Vec<_>>(), columns);
    }
    lines.iter().try_for_each(|line| print_line(line))?;
    note(
        "first: taken if the model's choice cannot be used; `trellis config get agent-task-type NAME` shows all of one",
    );
    Ok(Exit::Ok)
}

/// Versions with what each changed, the newest first.
pub(super) async fn log(desk: &Desk, global: &Global, limit: usize) -> Result<Exit, Failure> {
    let (_, items) = desk.items().await?;
    let mut versions: BTreeMap<u64, Vec<(String, Change)>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.kind != OWN) {
        for change in desk.history(&item.kind, &item.key).await? {
            let name = format!("{}/{}", item.kind, item.key);
            versions.entry(change.version).or_default().push((name, change));
        }
    }
    let newest: Vec<_> = versions.into_iter().rev().take(limit).collect();
    if global.output == Output::Json {
        let list = newest.iter().map(|(version, changes)| {
            let first = changes.first().map(|(_, change)| change);
            let items: Vec<_> =
                changes.iter().map(|(name, change)| json!({"item": name, "deleted": change.deleted})).collect();
            let (time, by) = (first.map(|change| &change.time), first.and_then(|change| change.by.as_ref()));
            json!({"version": version, "time": time, "by": by, "items": items})
        });
        print_json(&json!({"versions": list.collect::<Vec<_>>()}).to_string())?;
        return Ok(Exit::Ok);
    }
    let row = |(version, changes): &(u64, Vec<(String, Change)>)| {
        let first = changes.first().map(|(_, change)| change);
        let time = first.and_then(|change| change.time.get(..19)).unwrap_or_default();
        let by = first.and_then(|change| change.by.as_ref()).map(|by| clean(&by.to_string())).unwrap_or_default();
        vec![version.to_string(), format!("{time}Z"), by, items_of(changes)]
    };
    aligned(&newest.iter().map(row).collect::<Vec<_>>(), columns_for(global))
        .iter()
        .try_for_each(|line| print_line(line))?;
    note("items that were deleted are not listed; `trellis config history TYPE KEY` has the values of one");
    Ok(Exit::Ok)
}

/// What changed, as names; a version that seeds a workspace changes very many.
fn items_of(changes: &[(String, Change)]) -> String {
    const NAMED: usize = 6;
    let name = |(name, change): &(String, Change)| {
        if change.deleted { format!("{} (deleted)", one_line(name)) } else { one_line(name) }
    };
    let mut names: Vec<_> = changes.iter().take(NAMED).map(name).collect();
    names.extend((changes.len() > NAMED).then(|| format!("and {} more", changes.len() - NAMED)));
    names.join(", ")
}
