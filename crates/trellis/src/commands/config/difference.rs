//! What differs between two versions of the configuration.

use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::guarded::OWN;
use crate::show::{clean, note, print_json, print_line};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use trellis_domain::config::StoredItem;

/// An item that is not the same in both.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Changed {
    #[serde(rename = "type")]
    kind: String,
    key: String,
    /// None if there was no such item.
    before: Option<String>,
    /// None if there is none any more.
    after: Option<String>,
}

pub(super) async fn run(desk: &Desk, global: &Global, from: u64, to: Option<u64>) -> Result<Exit, Failure> {
    let (newest, _) = desk.items().await?;
    let to = to.unwrap_or(newest);
    if let Some(version) = [from, to].into_iter().find(|version| *version > newest) {
        return Err(Failure::usage(format!("there is no version {version} yet; the configuration is at {newest}")));
    }
    let changes = changes(desk.items_at(from).await?, desk.items_at(to).await?);
    if global.output == Output::Json {
        print_json(&json!({"from": from, "to": to, "changes": changes}).to_string())?;
        return Ok(Exit::Ok);
    }
    for line in changes.iter().flat_map(lines) {
        print_line(&line)?;
    }
    if changes.is_empty() {
        note(&format!("versions {from} and {to} have the same items"));
    }
    Ok(Exit::Ok)
}

/// The program's own items are no matter of people's.
fn changes(before: Vec<StoredItem>, after: Vec<StoredItem>) -> Vec<Changed> {
    let values = |items: Vec<StoredItem>| -> BTreeMap<(String, String), String> {
        let items = items.into_iter().filter(|item| item.kind != OWN);
        items.map(|item| ((item.kind, item.key), item.value)).collect()
    };
    let (mut before, mut after) = (values(before), values(after));
    let names: BTreeSet<_> = before.keys().chain(after.keys()).cloned().collect();
    let changed = |name: (String, String)| {
        let (before, after) = (before.remove(&name), after.remove(&name));
        let (kind, key) = name;
        (before != after).then_some(Changed { kind, key, before, after })
    };
    names.into_iter().filter_map(changed).collect()
}

/// The name of the item with a sign for what became of it, and below it what went and what came.
fn lines(change: &Changed) -> Vec<String> {
    let sign = match (&change.before, &change.after) {
        (None, _) => '+',
        (Some(_), None) => '-',
        (Some(_), Some(_)) => '~',
    };
    let mut lines = vec![clean(&format!("{sign} {}/{}", change.kind, change.key))];
    let (before, after) = (change.before.as_deref().unwrap_or_default(), change.after.as_deref().unwrap_or_default());
    let (went, came) = match (members(before), members(after)) {
        (Some(before), Some(after)) => (told(&before, &after), told(&after, &before)),
        (None, _) | (_, None) => apart(before, after),
    };
    lines.extend(went.iter().map(|line| clean(&format!("    - {line}"))));
    lines.extend(came.iter().map(|line| clean(&format!("    + {line}"))));
    lines
}

fn members(value: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(value).ok()
}

/// The members that the other does not have so.
fn told(these: &Map<String, Value>, others: &Map<String, Value>) -> Vec<String> {
    let differs = |(name, value): &(&String, &Value)| others.get(*name) != Some(*value);
    these.iter().filter(differs).map(|(name, value)| format!("{name}: {value}")).collect()
}

/// The lines of two texts without those that they begin and end with alike.
fn apart(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let (before, after) = (&before[same..], &after[same..]);
    let same = before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    let owned = |lines: &[&str]| lines[..lines.len() - same].iter().map(|line| (*line).to_owned()).collect();
    (owned(before), owned(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: &str, key: &str, value: &str) -> StoredItem {
        StoredItem { kind: kind.to_owned(), key: key.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn what_came_went_and_changed_is_told_and_nothing_else() {
        let before = vec![
            item("agent", "additional-context", "Be brief.\nBe kind.\nBe right."),
            item("prompt", "system", "\"same\""),
            item("tool", "old", r#"{"type":"prompt","name":"old"}"#),
            item("tool", "search", r#"{"type":"prompt","name":"search","group":["a"],"description":"finds"}"#),
            item("trellis", "seeds", "1"),
        ];
        let after = vec![
            item("agent", "additional-context", "Be brief.\nBe just.\nBe right."),
            item("prompt", "system", "\"same\""),
            item("tool", "new\u{1b}", "plain"),
            item("tool", "search", r#"{"type":"prompt","name":"search","group":["a","b"],"state":"s"}"#),
            item("trellis", "seeds", "2"),
        ];
        let changes = changes(before, after);
        let told: Vec<_> = changes.iter().flat_map(lines).collect();
        let expected = [
            "~ agent/additional-context",
            "    - Be kind.",
            "    + Be just.",
            "+ tool/new␛",
            "    + plain",
            "- tool/old",
            r#"    - {"type":"prompt","name":"old"}"#,
            "~ tool/search",
            r#"    - group: ["a"]"#,
            r#"    - description: "finds""#,
            r#"    + group: ["a","b"]"#,
            r#"    + state: "s""#,
        ];
        assert_eq!(told, expected);
        assert_eq!(changes[1].before, None);
        assert_eq!(super::changes(Vec::new(), Vec::new()), []);
    }
}
