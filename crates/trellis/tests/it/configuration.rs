//! Configuration from the command line, and that it changes what runs do.

use crate::{fails, json, ok, stderr, trellis};
use serde_json::Value;
use std::path::Path;
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
    for own in [&["config", "put", "trellis", "seeds", "{}"][..], &["config", "delete", "trellis", "seeds"]] {
        let (code, message) = fails(data.path(), own);
        assert_eq!((code, message.contains("are the program's own")), (6, true), "{message}");
    }
    let template = r#"{"prompt":"{{ unclosed"}"#;
    let (code, message) = fails(data.path(), &["config", "put", "prompt", "template.bad", template]);
    assert_eq!((code, message.contains("the template cannot be compiled: line 1")), (6, true), "{message}");
    let (code, message) = fails(data.path(), &["config", "put", "tool", "x", r#"{"type":"prompt"}"#]);
    assert_eq!(code, 6);
    assert!(message.contains("tool/x: field `template`: is missing or empty; name a prompt"), "{message}");
}

/// A choice in the graph names the version of the configuration that it was made under.
#[test]
fn an_item_can_be_read_as_it_was_at_an_earlier_version() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "Why?", "--quiet"]);
    let version = || json(data.path(), &["config", "list"])["version"].as_u64().unwrap();
    let at = |version: u64| {
        ["config", "get", "agent", "additional-context", "--at", &version.to_string()].map(str::to_owned)
    };
    let get = |version: u64| ok(data.path(), &at(version).each_ref().map(String::as_str));
    let refused = |version: u64| fails(data.path(), &at(version).each_ref().map(String::as_str));
    let begin = version();
    for text in ["Be brief.", "Be long."] {
        ok(data.path(), &["config", "put", "agent", "additional-context", text]);
    }
    ok(data.path(), &["config", "put", "agent", "max-context", "3"]);
    ok(data.path(), &["config", "delete", "agent", "additional-context"]);
    assert_eq!((get(begin + 1).trim(), get(begin + 2).trim()), ("Be brief.", "Be long."));
    assert_eq!(get(begin + 3).trim(), "Be long.", "another item made this version");
    let (code, message) = refused(begin + 4);
    assert_eq!((code, message.contains(&format!("version {} deleted it", begin + 4))), (5, true), "{message}");
    let (code, message) = refused(begin);
    assert_eq!(
        (code, message.contains(&format!("version {} was the first with it", begin + 1))),
        (5, true),
        "{message}"
    );
    let (code, message) = refused(begin + 5);
    assert_eq!((code, message.contains("the configuration is at")), (2, true), "{message}");

    let history = ok(data.path(), &["config", "history", "agent", "additional-context"]);
    let lines: Vec<Vec<_>> = history.lines().map(|line| line.splitn(4, "  ").collect()).collect();
    let listed: Vec<_> = lines.iter().map(|cells| (cells[0].trim(), cells[3])).collect();
    assert!(lines.iter().all(|cells| cells[2].ends_with(" (command-line)")), "each says who: {history}");
    let numbers: Vec<_> = [1, 2, 4].iter().map(|n| (begin + n).to_string()).collect();
    let expected: Vec<_> = numbers.iter().map(String::as_str).zip(["Be brief.", "Be long.", "deleted"]).collect();
    assert_eq!(listed, expected);
    let entries = json(data.path(), &["config", "history", "agent", "additional-context"]);
    assert_eq!(entries["versions"][2]["deleted"], true, "{entries}");
    assert_eq!(fails(data.path(), &["config", "history", "tool", "nobody"]).0, 5);

    // Two versions, with what was deleted since.
    let difference = |to: &[&str]| {
        let from = begin.to_string();
        ok(data.path(), &[&["config", "diff", &from][..], to].concat())
    };
    let changed = "~ agent/max-context\n";
    assert!(!difference(&[&(begin + 2).to_string()]).contains("max-context"));
    assert_eq!(difference(&[&(begin + 1).to_string()]), "+ agent/additional-context\n    + Be brief.\n");
    let now = difference(&[]);
    assert!(now.starts_with(changed) || now.starts_with("+ agent/max-context\n"), "{now}");
    assert!(now.contains("    + 3\n") && !now.contains("additional-context"), "{now}");
    let (earlier, later) = ((begin + 3).to_string(), (begin + 4).to_string());
    let object = json(data.path(), &["config", "diff", &earlier, &later]);
    let expected = serde_json::json!([
        {"type": "agent", "key": "additional-context", "before": "Be long.", "after": null}
    ]);
    assert_eq!(object["changes"], expected, "{object}");
    let (code, message) = fails(data.path(), &["config", "diff", &later, "999"]);
    assert_eq!((code, message.contains("there is no version 999 yet")), (2, true), "{message}");

    // What the graph says leads to the value.
    let rows = json(data.path(), &["sparql", "SELECT DISTINCT ?v WHERE { ?choice trellis:configVersion ?v }"]);
    let recorded = rows["results"]["bindings"][0]["v"]["value"].as_str().unwrap().to_owned();
    assert!(ok(data.path(), &["config", "get", "tool", "news-search", "--at", &recorded]).contains("news-search"));
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
fn what_does_not_fit_together_is_told_and_found_by_the_doctor() {
    let data = TempDir::new().unwrap();
    let tool = r#"{"type":"prompt","name":"look","template":"gone"}"#;
    let output = crate::run(data.path(), &["config", "put", "tool", "look", tool]);
    assert!(output.status.success());
    assert!(stderr(&output).contains("warning: tool/look: field `template`: there is no prompt `gone`"));
    assert_eq!(fails(data.path(), &["config", "validate"]).0, 6);
    assert_eq!(fails(data.path(), &["doctor"]).0, 6);
    ok(data.path(), &["config", "delete", "tool", "look"]);
    ok(data.path(), &["doctor"]);
}

#[test]
fn changed_plain_texts_are_imported() {
    let data = TempDir::new().unwrap();
    let file = data.path().join("context.json");
    for text in ["Be brief.", "Be long."] {
        let items = format!(r#"{{"items":[{{"type":"agent","key":"additional-context","value":"{text}"}}]}}"#);
        std::fs::write(&file, items).unwrap();
        ok(data.path(), &["config", "import", file.to_str().unwrap()]);
        assert_eq!(ok(data.path(), &["config", "get", "agent", "additional-context"]).trim(), text);
    }
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

fn put(data: &Path, kind: &str, key: &str, value: &str) -> String {
    let output = crate::run(data, &["config", "put", kind, key, value]);
    assert!(output.status.success(), "{}", stderr(&output));
    stderr(&output)
}

/// The options and the choice of a run's routing, task type first.
fn routing(data: &Path, run: &str) -> [(Vec<String>, String, String); 2] {
    let show = json(data, &["run", "show", run]);
    let decisions = show["sessions"][0]["steps"][0]["decisions"].clone();
    ["task-type", "pattern"].map(|kind| {
        let decision = decisions.as_array().unwrap().iter().find(|decision| decision["kind"] == kind).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let options = decision["options"].as_array().unwrap().iter().map(text).collect();
        (options, text(&decision["chosen"][0]), text(&decision["decided_by"]))
    })
}

#[test]
fn a_new_task_type_is_offered_to_the_next_question_without_a_restart() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "What is a trellis?", "--session", "before"]);
    let [(before, ..), _] = routing(data.path(), "before");
    let task_type = r#"{"name":"OSINT","description":"Open sources","valid_patterns":["react","supervisor"]}"#;
    assert_eq!(put(data.path(), "agent-task-type", "OSINT", task_type).matches("warning").count(), 0);
    ok(data.path(), &["ask", "What is a trellis?", "--session", "after"]);
    let [(after, chosen, by), _] = routing(data.path(), "after");
    assert_eq!(after.len(), before.len() + 1, "{after:?}");
    assert!(after.contains(&"OSINT".to_owned()) && !before.contains(&"OSINT".to_owned()), "keys keep their case");
    assert_eq!((chosen.as_str(), by.as_str()), ("general", "model"));
    // The caller may name it, as it is written.
    ok(data.path(), &["ask", "What is a trellis?", "--task-type", "OSINT", "--session", "named"]);
    let [(_, chosen, by), (patterns, ..)] = routing(data.path(), "named");
    assert_eq!((chosen.as_str(), by.as_str()), ("OSINT", "caller"));
    assert_eq!(patterns, ["react", "supervisor"]);
    let (code, message) = fails(data.path(), &["ask", "Why?", "--task-type", "osint"]);
    assert_eq!((code, message.contains("there is no task type `osint`")), (2, true), "{message}");
    ok(data.path(), &["config", "delete", "agent-task-type", "OSINT"]);
    ok(data.path(), &["ask", "What is a trellis?", "--session", "without"]);
    assert_eq!(routing(data.path(), "without")[0].0, before);
    for run in ["before", "after", "named", "without"] {
        ok(data.path(), &["verify", run]);
    }
}

#[test]
fn a_pattern_that_nothing_defines_is_told_and_never_offered() {
    let data = TempDir::new().unwrap();
    let task_type = r#"{"name":"duel","valid_patterns":["delphi","react"]}"#;
    let told = put(data.path(), "agent-task-type", "duel", task_type);
    assert!(
        told.contains("warning: agent-task-type/duel: field `valid_patterns`: there is no pattern `delphi`"),
        "{told}"
    );
    ok(data.path(), &["ask", "Why?", "--task-type", "duel", "--session", "duel"]);
    let [_, (patterns, chosen, by)] = routing(data.path(), "duel");
    assert_eq!(
        (patterns.as_slice(), chosen.as_str(), by.as_str()),
        (&["react".to_owned()][..], "react", "only-option")
    );
    let tree = ok(data.path(), &["run", "show", "duel"]);
    assert!(tree.contains("not offered: delphi (not defined in the configuration)"), "{tree}");
    // Defined, but nothing runs it: excluded for that reason.
    put(data.path(), "agent-pattern", "delphi", r#"{"name":"delphi","description":"Two sides"}"#);
    ok(data.path(), &["ask", "Why?", "--task-type", "duel", "--session", "later"]);
    assert!(ok(data.path(), &["run", "show", "later"]).contains("not offered: delphi (not implemented)"));
    ok(data.path(), &["verify", "later"]);
}

#[test]
fn a_prompt_that_a_pattern_needs_is_missed_by_the_doctor() {
    let data = TempDir::new().unwrap();
    let told = crate::run(data.path(), &["config", "delete", "prompt", "template.supervisor-decompose"]);
    let warning =
        "warning: prompt/template.supervisor-decompose: field `value`: is missing, and pattern `supervisor` needs it";
    assert!(stderr(&told).contains(warning), "{}", stderr(&told));
    assert_eq!(fails(data.path(), &["doctor"]).0, 6);
    // The router does without the pattern; who names it is told.
    ok(data.path(), &["ask", crate::PARTNER, "--quiet"]);
    let output = crate::run(data.path(), &["ask", crate::PARTNER, "--pattern", "supervisor", "--quiet"]);
    assert_eq!(output.status.code(), Some(10), "{}", stderr(&output));
    assert!(stderr(&output).contains("there is no prompt `supervisor-decompose`"), "{}", stderr(&output));
}
