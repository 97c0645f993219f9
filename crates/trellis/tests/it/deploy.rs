//! The files that deployments start from: their form, and that this program knows the commands in them.

use crate::{somewhere, stderr};
use std::path::PathBuf;
use tempfile::TempDir;

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/deploy").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether the program would take this command: every word of it but for what it does.
fn is_known(words: &[String]) {
    let home = TempDir::new().unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = somewhere(home.path(), &[&words[..], &["--help"]].concat()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    let wrong = somewhere(home.path(), &[&words[..], &["--no-such-flag"]].concat()).output().unwrap();
    assert!(stderr(&wrong).contains("'--no-such-flag'"), "{words:?}: {}", stderr(&wrong));
}

/// YAML as these files have it: no tabs, two spaces a step, a key or an item on each line, and deeper only below one that
/// has no value.
fn check_form(text: &str) {
    let mut deepest = 0;
    for (number, line) in text.lines().enumerate() {
        let (content, at) = (line.trim_start(), number + 1);
        if content.is_empty() || content.starts_with('#') || content == "---" {
            continue;
        }
        assert!(!line.contains('\t') && line.trim_end() == line, "line {at}: {line:?}");
        let depth = line.len() - content.len();
        assert!(depth % 2 == 0 && depth <= deepest, "line {at} is too deep: {line}");
        let item = content.strip_prefix("- ");
        let entry = item.unwrap_or(content);
        let (key, value) = entry.split_once(':').unwrap_or(("", entry));
        assert!(item.is_some() || !key.is_empty(), "line {at} has no key: {line}");
        let value = value.trim();
        let is_open = value.is_empty() || value.starts_with('&') && !value.contains(' ');
        deepest = depth + if item.is_some() || is_open { 2 } else { 0 };
        deepest += if item.is_some() && is_open { 2 } else { 0 };
        if value.starts_with('[') {
            serde_json::from_str::<Vec<String>>(value).unwrap_or_else(|error| panic!("line {at}: {error}"));
        }
        assert_eq!(line.matches('"').count() % 2, 0, "line {at} has half a quotation: {line}");
    }
}

/// Lists of words behind a key.
fn commands(text: &str, key: &str) -> Vec<Vec<String>> {
    let lists = text.lines().filter_map(|line| line.trim().strip_prefix(key));
    lists.map(|list| serde_json::from_str(list.trim()).unwrap()).collect()
}

#[test]
fn the_files_have_their_form_and_their_commands_are_known() {
    for (name, key, count) in [("compose.yaml", "command:", 3), ("kubernetes.yaml", "args:", 3)] {
        let text = file(name);
        check_form(&text);
        let commands = commands(&text, key);
        assert_eq!(commands.len(), count, "{name}");
        for words in commands {
            is_known(&words);
        }
    }
    let unit = file("trellis@.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/trellis ")).unwrap();
    is_known(&start.split(' ').map(str::to_owned).collect::<Vec<_>>());
    for line in unit.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let is_section = line.starts_with('[') && line.ends_with(']');
        assert!(
            is_section || line.split_once('=').is_some_and(|(key, _)| key.chars().all(char::is_alphanumeric)),
            "{line}"
        );
    }
}
