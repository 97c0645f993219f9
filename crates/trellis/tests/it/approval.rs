//! A tool that is called only with somebody's approval, as a person meets it.

use crate::{PARTNER, fails, json, ok, run, stderr};
use serde_json::json;
use tempfile::TempDir;

#[test]
fn a_run_that_waits_is_left_answered_and_finished() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "What is a trellis?"]);
    let tool = json(data.path(), &["config", "get", "tool", "financial-data"]);
    let mut tool: serde_json::Value = tool.as_str().map_or(tool.clone(), |text| serde_json::from_str(text).unwrap());
    tool["requires-approval"] = json!(true);
    ok(data.path(), &["config", "put", "tool", "financial-data", &tool.to_string()]);

    let asked = run(data.path(), &["ask", PARTNER, "--pattern", "react"]);
    let said = stderr(&asked);
    assert_eq!(asked.status.code(), Some(130), "{said}");
    assert!(said.contains("May `financial-data` be called with") && said.contains("run decide"), "{said}");
    let shown = ok(data.path(), &["run", "show", "last"]);
    assert!(shown.contains("waiting") && shown.contains("May `financial-data` be called"), "{shown}");
    let (code, told) = fails(data.path(), &["run", "decide", "last", "perhaps"]);
    assert!(code == 2 && told.contains("choose one of approve, deny"), "{code} {told}");
    let resumed = run(data.path(), &["resume"]);
    assert!(resumed.status.success() && stderr(&resumed).contains("waits for an answer"), "{}", stderr(&resumed));

    let mut answers = 0;
    while json(data.path(), &["runs"])["runs"][0]["state"] == "waiting" {
        ok(data.path(), &["run", "decide", "last", "approve", "--reason", "public data"]);
        ok(data.path(), &["resume"]);
        answers += 1;
        assert!(answers < 10, "it comes to its end");
    }
    assert!(ok(data.path(), &["run", "answer", "last"]).contains("Company X"));
    let verified = ok(data.path(), &["verify", "last"]);
    assert!(!verified.contains("not replayed"), "{verified}");
    let shown = ok(data.path(), &["run", "show", "last", "--full"]);
    assert!(shown.contains("public data") && shown.contains("approve"), "{shown}");
    let (code, told) = fails(data.path(), &["run", "decide", "last", "deny"]);
    assert!(code == 2 && told.contains("there is nothing to decide"), "{code} {told}");
}
