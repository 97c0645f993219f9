//! What a piece of a file looks like: which format it has, and what its columns are called. Pure.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What may stand between columns, the likeliest first.
const DELIMITERS: [char; 4] = [',', ';', '\t', '|'];
/// Columns that are looked at.
const MOST_COLUMNS: usize = 1_000;

/// A format, by the word that loaders have for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Csv,
    Json,
    Xml,
}

impl Kind {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Xml => "xml",
        }
    }

    pub(super) fn named(word: &str) -> Option<Self> {
        [Self::Csv, Self::Json, Self::Xml].into_iter().find(|kind| kind.word().eq_ignore_ascii_case(word))
    }

    /// By how a sample begins, and how sure that is; as the original has it. None of a sample that says nothing.
    pub(super) fn of(sample: &str) -> Option<(Self, f64)> {
        let sample = sample.trim_start_matches('\u{feff}').trim();
        match sample.chars().next()? {
            '{' | '[' => Some((Self::Json, 0.9)),
            '<' if sample.starts_with("<?xml") || sample.contains("</") => Some((Self::Xml, 0.9)),
            _ => Some((Self::Csv, 0.8)),
        }
    }
}

/// What a sample shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) kind: Kind,
    /// Empty if they cannot be told.
    pub(super) columns: Vec<String>,
    /// How a loader has to read the file.
    pub(super) options: Map<String, Value>,
}

impl Look {
    pub(super) fn at(sample: &str, kind: Kind) -> Self {
        let sample = sample.trim_start_matches('\u{feff}');
        let (columns, options) = match kind {
            Kind::Csv => delimited(sample),
            Kind::Json => objects(sample),
            // What repeats in it, and where a value stands, is a matter of judgement.
            Kind::Xml => (Vec::new(), Map::new()),
        };
        Self { kind, columns, options }
    }
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn delimited(sample: &str) -> (Vec<String>, Map<String, Value>) {
    let first = sample.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let count = |delimiter: char| fields(first, delimiter).len();
    let most = DELIMITERS.iter().map(|delimiter| count(*delimiter)).max().unwrap_or_default();
    let delimiter = DELIMITERS.into_iter().find(|delimiter| count(*delimiter) == most).unwrap_or(',');
    let columns = fields(first, delimiter);
    let is_number = |text: &String| text.trim().parse::<f64>().is_ok();
    let mut seen = BTreeSet::new();
    let has_header = columns.iter().all(|name| !name.trim().is_empty() && !is_number(name) && seen.insert(name));
    let options = object([("delimiter", json!(delimiter)), ("has_header", json!(has_header))]);
    (if has_header { columns } else { Vec::new() }, options)
}

/// The fields of a line. Quotes hold delimiters.
fn fields(line: &str, delimiter: char) -> Vec<String> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
            '"' => is_quoted = !is_quoted,
            letter if letter == delimiter && !is_quoted => fields.push(std::mem::take(&mut field)),
            letter => field.push(letter),
        }
    }
    fields.push(field);
    fields.truncate(MOST_COLUMNS);
    fields
}

/// The members of the first record. The sample may end in the middle of the file, so that no more than that is read.
fn objects(sample: &str) -> (Vec<String>, Map<String, Value>) {
    let names = |record: &Map<String, Value>| record.keys().take(MOST_COLUMNS).cloned().collect();
    let start = sample.trim_start();
    if let Some(rest) = start.strip_prefix('[') {
        return (first_object(rest).map(|record| names(&record)).unwrap_or_default(), Map::new());
    }
    // One record, or an object with a list of them.
    let whole = first_object(start);
    let list = whole
        .as_ref()
        .and_then(|whole| whole.iter().find_map(|(name, value)| Some((name.clone(), value.as_array()?.clone()))));
    match (list, whole) {
        (Some((name, list)), _) => {
            let record = list.first().and_then(Value::as_object).map(names).unwrap_or_default();
            (record, object([("root_path", json!(format!("$.{name}")))]))
        }
        (None, Some(record)) => (names(&record), Map::new()),
        (None, None) => match start.split_once('[').map(|(before, rest)| (before.split('"').nth(1), rest)) {
            Some((Some(name), rest)) => {
                let record = first_object(rest).map(|record| names(&record)).unwrap_or_default();
                (record, object([("root_path", json!(format!("$.{name}")))]))
            }
            _ => (Vec::new(), Map::new()),
        },
    }
}

fn first_object(text: &str) -> Option<Map<String, Value>> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next()?.ok()? {
        Value::Object(members) => Some(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(sample: &str) -> (Vec<String>, Value) {
        let (kind, _) = Kind::of(sample).unwrap();
        let look = Look::at(sample, kind);
        (look.columns, Value::Object(look.options))
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_format_is_known_by_how_it_begins() {
        let kind = |sample: &str| Kind::of(sample).map(|(kind, _)| kind);
        assert_eq!(kind("  [{\"a\": 1}"), Some(Kind::Json));
        assert_eq!(kind("<?xml version=\"1.0\"?>"), Some(Kind::Xml));
        assert_eq!(kind("<a><b>1</b></a>"), Some(Kind::Xml));
        assert_eq!(kind("\u{feff}a,b\n1,2"), Some(Kind::Csv));
        assert_eq!(kind(" \n "), None);
    }

    #[test]
    fn columns_are_those_of_the_first_line() {
        let comma = json!({"delimiter": ",", "has_header": true});
        assert_eq!(look("id,name\n1,Oslo\n2,Tu"), (names(&["id", "name"]), comma.clone()));
        assert_eq!(look("\"a, b\",c\n"), (names(&["a, b", "c"]), comma));
        assert_eq!(look("id;price, EUR;x\n").0, names(&["id", "price, EUR", "x"]));
        assert_eq!(look("1,2\n3,4"), (Vec::new(), json!({"delimiter": ",", "has_header": false})));
    }

    #[test]
    fn records_are_found_in_json_that_breaks_off() {
        assert_eq!(look("[{\"id\": 1, \"name\": \"a\"}, {\"id\":"), (names(&["id", "name"]), json!({})));
        assert_eq!(look("{\"id\": 1}"), (names(&["id"]), json!({})));
        let rooted = json!({"root_path": "$.rows"});
        assert_eq!(look("{\"rows\": [{\"id\": 1}]}"), (names(&["id"]), rooted.clone()));
        assert_eq!(look("{\"rows\": [{\"id\": 1}, {\"i"), (names(&["id"]), rooted));
        assert_eq!(look("[1, 2").0, names(&[]));
        assert_eq!(look("{\"rows").0, names(&[]));
    }
}
