//! A run that is told something, and an agent that is called like a tool, with the real program.

use crate::{json, ok, run, stderr};
use tempfile::TempDir;

const AGENT: &str = r#"{"type": "agent", "name": "financial-data", "pattern": "react", "description": "knows the figures", "group": ["financial", "default"]"#;
const QUESTION: &str = "Assess the risk profile of Company X as a potential partner";

#[test]
fn an_agent_is_called_like_a_tool_and_the_run_shows_it() {
    let folder = TempDir::new().unwrap();
    ok(folder.path(), &["tools", "add", "financial-data", &format!("{AGENT}}}")]);
    let asked = json(folder.path(), &["ask", QUESTION, "--pattern", "react"]);
    assert_eq!(asked["state"], "answered", "{asked}");
    let shown = ok(folder.path(), &["run", "show", "last"]);
    assert!(shown.contains("Called 1 agent") || shown.contains("financial-data"), "{shown}");
    ok(folder.path(), &["verify", "last"]);
    let asking = "SELECT (COUNT(?q) AS ?n) WHERE { ?q a tg:AgentQuestion ; tg:parentSessionId ?parent }";
    let count = ok(folder.path(), &["sparql", asking, "--output", "csv"]);
    assert!(count.trim_end().ends_with('1'), "one session below the root: {count}");
}

#[test]
fn a_run_is_told_something_and_goes_on_knowing_it() {
    let folder = TempDir::new().unwrap();
    ok(folder.path(), &["tools", "add", "financial-data", &format!("{AGENT}, \"requires-approval\": true}}")]);
    let asked = run(folder.path(), &["ask", QUESTION, "--pattern", "react"]);
    assert!(stderr(&asked).contains("decide"), "it waits: {}", stderr(&asked));
    let told = ok(folder.path(), &["run", "tell", "last", "only the last two years"]);
    assert!(told.contains("told: 1 agent of run"), "{told}");
    ok(folder.path(), &["run", "decide", "last", "approve"]);
    ok(folder.path(), &["resume"]);
    ok(folder.path(), &["verify", "last"]);
    let shown = ok(folder.path(), &["run", "show", "last", "--full"]);
    assert!(shown.contains("only the last two years"), "{shown}");
    let heard = ok(folder.path(), &["sparql", "SELECT ?step WHERE { ?step t:heard ?message }", "--output", "csv"]);
    assert!(heard.lines().count() > 1, "{heard}");
    let late = run(folder.path(), &["run", "tell", "last", "too late"]);
    assert!(!late.status.success() && stderr(&late).contains("has ended"), "{}", stderr(&late));
}
