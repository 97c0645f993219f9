//! Configuration from the command line, and that it changes what runs do.

use crate::{fails, json, ok, stderr, trellis};
use std::process::Stdio;
use tempfile::TempDir;

#[test]
fn items_are_put_read_listed_and_deleted() {
    let data = TempDir::new().unwrap();
    let tool = r#"{"type":"text-completion","name":"oracle","description":"knows"}"#;
    ok(data.path(), &["config", "put", "tool", "oracle", tool]);
    assert_eq!(ok(data.path(), &["config", "get", "tool", "oracle"]).trim(), tool);
    assert!(ok(data.path(), &["config", "list", "tool"]).contains("oracle"));
    ok(data.path(), &["config", "delete", "tool", "oracle"]);
    assert_eq!(fails(data.path(), &["config", "get", "tool", "oracle"]).0, 5);
    assert_eq!(fails(data.path(), &["config", "delete", "tool", "oracle"]).0, 5);
    let (code, message) = fails(data.path(), &["config", "put", "tool", "x", r#"{"type":"prompt"}"#]);
    assert_eq!(code, 6);
    assert!(message.contains("tool/x: field `template`: is missing or empty; name a prompt"), "{message}");
}

#[test]
fn an_export_can_be_imported_elsewhere_and_changes_nothing_twice() {
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    ok(one.path(), &["config", "put", "agent", "additional-context", "Answer like a pirate."]);
    let file = one.path().join("all.json");
    let path = file.to_str().unwrap();
    ok(one.path(), &["config", "export", path]);
    ok(two.path(), &["config", "import", path]);
    assert_eq!(ok(two.path(), &["config", "get", "agent", "additional-context"]).trim(), "Answer like a pirate.");
    let version = json(two.path(), &["config", "list"])["version"].clone();
    ok(two.path(), &["config", "import", path]);
    assert_eq!(json(two.path(), &["config", "list"])["version"], version, "nothing changed, so no new version");
    assert_eq!(ok(two.path(), &["config", "validate"]).trim(), "ok: every item is valid");
    assert_eq!(ok(two.path(), &["config", "validate", path]).trim(), "ok: every item is valid");
}

#[test]
fn what_a_user_edited_survives_the_next_start() {
    let data = TempDir::new().unwrap();
    let edited = r#"{"prompt":"Be brief: {{ question }}"}"#;
    ok(data.path(), &["config", "put", "prompt", "template.question", edited]);
    ok(data.path(), &["config", "delete", "tool", "supply-chain"]);
    ok(data.path(), &["ask", "Why?"]);
    assert_eq!(ok(data.path(), &["config", "get", "prompt", "template.question"]).trim(), edited);
    assert_eq!(fails(data.path(), &["config", "get", "tool", "supply-chain"]).0, 5, "a deleted seed stays deleted");
}

#[test]
fn a_run_stays_with_the_configuration_it_started_with() {
    let data = TempDir::new().unwrap();
    // The first question is accepted and cut off before its first reply.
    let mut child = trellis(data.path(), &["ask", "Before?", "--session", "before", "--output", "ndjson"])
        .env("TRELLIS_REHEARSAL_DELAY_MS", "500")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    for tool in ["financial-data", "regulatory-filings", "news-search", "supply-chain", "search-notes", "ask-model"] {
        ok(data.path(), &["config", "delete", "tool", tool]);
    }
    let output = crate::run(data.path(), &["resume"]);
    assert!(output.status.success(), "{}", stderr(&output));
    ok(data.path(), &["ask", "After?", "--session", "after"]);
    let tools_used = |run: &str| {
        let show = json(data.path(), &["run", "show", run]);
        show["sessions"][0]["totals"]["tool_calls"].as_u64().unwrap()
    };
    assert!(tools_used("before") > 0, "the tools of its own configuration");
    assert_eq!(tools_used("after"), 0, "new runs see the change");
    assert_eq!(fails(data.path(), &["verify", "before"]).0, 0);
}
