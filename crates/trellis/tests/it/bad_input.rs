//! Bad input gets a clear message, the right exit code, and loses nothing.

use crate::{PARTNER, fails, json, ok, stderr, trellis};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn ask_with_input(data: &Path, input: &[u8]) -> (i32, String) {
    let mut child = trellis(data, &["ask", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The command may refuse before it has read all.
    drop(stdin.write_all(input));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap_or(-1), stderr(&output))
}

#[test]
fn empty_long_and_broken_questions_are_refused() {
    let data = TempDir::new().unwrap();
    let (code, message) = fails(data.path(), &["ask", "  "]);
    assert_eq!((code, message.trim()), (2, "error: the question is empty; write what you want to know"));
    let (code, message) = ask_with_input(data.path(), "x".repeat((1 << 20) + 1).as_bytes());
    assert_eq!(code, 2);
    assert!(message.contains("the question has 1048577 bytes; at most 1048576 are allowed"), "{message}");
    let (code, message) = ask_with_input(data.path(), b"caf\xe9?");
    assert_eq!(code, 2);
    assert!(message.contains("the question on standard input is not UTF-8 (byte 3)"), "{message}");
    assert!(json(data.path(), &["runs"])["runs"].as_array().unwrap().is_empty(), "nothing was accepted");
}

#[test]
fn a_question_of_the_largest_size_is_answered() {
    let data = TempDir::new().unwrap();
    let (code, message) = ask_with_input(data.path(), "why? ".repeat((1 << 20) / 5).as_bytes());
    assert_eq!(code, 0, "{message}");
    ok(data.path(), &["verify", "last"]);
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    let data = TempDir::new().unwrap();
    let refused = |arguments: &[&str], expected: &str| {
        let (code, message) = fails(data.path(), &[&["ask", "Why?"], arguments].concat());
        assert_eq!(code, 2, "{message}");
        assert!(message.contains(expected), "{message}");
    };
    refused(
        &["--pattern", "telepathy"],
        "there is no pattern `telepathy`; choose one of debate, dispatch, plan-then-execute, react, reflexion, supervisor",
    );
    refused(
        &["--task-type", "gossip"],
        "there is no task type `gossip`; choose one of general, research, risk-assessment, summarisation",
    );
    refused(&["--group", "nobody"], "no tool is in group `nobody`; choose from default");
    refused(&["--session", "a b"], "the session id \"a b\" contains ' '");
    refused(&["--conversation", "a/b"], "the conversation id \"a/b\" contains '/'");
    refused(&["--collection", "<x>"], "the collection \"<x>\" contains '<'");
    let (code, message) = fails(data.path(), &["runs", "--workspace", "a/b"]);
    assert_eq!((code, message.contains("the workspace \"a/b\" contains '/'")), (2, true), "{message}");
}

#[test]
fn a_broken_configuration_file_is_refused_whole_and_the_old_one_stays() {
    let data = TempDir::new().unwrap();
    let file = data.path().join("import.json");
    let before = ok(data.path(), &["config", "export"]);
    std::fs::write(&file, "{ not json").unwrap();
    let path = file.to_str().unwrap();
    let (code, message) = fails(data.path(), &["config", "import", path]);
    assert_eq!(code, 6);
    assert!(message.contains("is not an exported configuration") && message.contains("line 1"), "{message}");
    let items = r#"{"items": [
        {"type": "tool", "key": "good", "value": {"type": "text-completion", "name": "good"}},
        {"type": "tool", "key": "bad", "value": {"type": "telepathy"}}]}"#;
    std::fs::write(&file, items).unwrap();
    let (code, message) = fails(data.path(), &["config", "import", path]);
    assert_eq!(code, 6);
    assert!(message.contains("tool/bad: field `type`: unknown tool type `telepathy`; use one of"), "{message}");
    assert_eq!(fails(data.path(), &["config", "validate", path]).0, 6);
    assert_eq!(ok(data.path(), &["config", "export"]), before, "nothing was written");
}

#[test]
fn a_folder_in_use_is_refused_and_names_its_holder() {
    let data = TempDir::new().unwrap();
    let mut holder = trellis(data.path(), &["ask", PARTNER, "--output", "ndjson"])
        .env("TRELLIS_REHEARSAL_DELAY_MS", "200")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let (code, message) = fails(data.path(), &["runs"]);
    assert_eq!(code, 7);
    assert!(message.contains(&format!("is in use by `trellis ask` (process {})", holder.id())), "{message}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(json(data.path(), &["runs"])["runs"].as_array().unwrap().len(), 1, "the lock goes with its holder");
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let (code, message) = fails(Path::new("/proc/nowhere"), &["ask", "Why?"]);
    assert_eq!(code, 7);
    assert!(message.contains("choose a folder you can write to with --data"), "{message}");
}

#[test]
fn looking_at_a_folder_that_is_not_there_does_not_make_it() {
    let data = TempDir::new().unwrap();
    let typo = data.path().join("typo");
    for arguments in [&["runs"][..], &["verify", "last"], &["sparql", "ASK {}"], &["resume"]] {
        let (code, message) = fails(&typo, arguments);
        assert_eq!(code, 5, "{arguments:?}: {message}");
        assert!(message.contains("there is no data in"), "{message}");
    }
    // What is set on this machine can be looked at all the same.
    let told = ok(&typo, &["doctor"]);
    assert!(told.contains("there is no data in") && told.contains("ok    model"), "{told}");
    assert!(!typo.exists());
}

#[test]
fn names_that_mean_a_place_are_no_session_ids() {
    let data = TempDir::new().unwrap();
    for name in ["last", "@2", ""] {
        assert_eq!(fails(data.path(), &["ask", "Why?", "--session", name]).0, 2, "{name:?}");
    }
}

/// A limit on the size of files stands in for a disk that is full.
#[test]
fn a_full_disk_is_reported_and_nothing_stored_is_lost() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "One?", "--session", "one"]);
    let program = env!("CARGO_BIN_EXE_trellis");
    let script = format!("trap '' XFSZ; ulimit -f 40; exec {program} ask 'Two?' --data {}", data.path().display());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write to the store"), "{}", stderr(&output));
    ok(data.path(), &["verify", "one"]);
    ok(data.path(), &["doctor"]);
}

#[test]
fn damage_and_newer_formats_are_refused_with_exit_7() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "One?"]);
    std::fs::write(data.path().join("format"), "3\n").unwrap();
    let (code, message) = fails(data.path(), &["runs"]);
    assert_eq!(code, 7);
    assert!(message.contains("use a newer version of trellis"), "{message}");
    std::fs::write(data.path().join("format"), "2\n").unwrap();
    let journal = data.path().join("journal");
    let logs = std::fs::read_dir(&journal).unwrap().map(|entry| entry.unwrap().path());
    let log = logs.filter(|path| path.extension().is_some_and(|e| e == "jnl")).max().unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&log, &bytes).unwrap();
    let (code, message) = fails(data.path(), &["runs"]);
    assert_eq!(code, 7);
    assert!(message.contains("is damaged") && message.contains("nothing was changed"), "{message}");
}

#[test]
fn a_wrong_query_says_where_it_is_wrong() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "Why?"]);
    let (code, message) = fails(data.path(), &["sparql", "SELECT ?s WHERE { ?s ?p }"]);
    assert_eq!(code, 2);
    assert!(message.contains("this is not a SPARQL query: error at 1:") && message.len() < 120, "{message}");
    let (code, message) = fails(data.path(), &["sparql", "DELETE WHERE { ?s ?p ?o }"]);
    assert_eq!((code, message.contains("SPARQL Update is refused")), (2, true), "{message}");
}

#[test]
fn terminal_escapes_in_a_question_are_not_printed_raw() {
    let data = TempDir::new().unwrap();
    let output = crate::run(data.path(), &["ask", "\u{1b}[2J\u{1b}]0;owned\u{7}Why?"]);
    assert!(output.status.success());
    for stream in [&output.stdout, &output.stderr] {
        assert!(!stream.contains(&0x1b) && !stream.contains(&0x07), "{}", String::from_utf8_lossy(stream));
    }
    ok(data.path(), &["ask", "\u{9b}2J \u{202e}desrever"]);
    let listed = crate::run(data.path(), &["runs", "--output", "json"]);
    let text = crate::stdout(&listed);
    assert!(!text.contains(['\u{9b}', '\u{202e}']) && text.contains("\\u009b2J"), "{text}");
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed["runs"][0]["question"], "\u{9b}2J \u{202e}desrever");
    for arguments in [&["run", "show", "last"][..], &["runs"], &["run", "show", "last", "--full"]] {
        let shown = crate::run(data.path(), arguments);
        assert!(!shown.stdout.contains(&0x1b) && !shown.stdout.contains(&0x07));
    }
    let question = "CONSTRUCT { ?s tg:query ?q } WHERE { ?s tg:query ?q }";
    let values = "SELECT ?q WHERE { ?s tg:query ?q }";
    for arguments in [
        &["runs"][..],
        &["run", "show", "last"],
        &["run", "show", "last", "--output", "json"],
        &["run", "export", "last"],
        &["run", "export", "last", "--format", "nquads"],
        &["run", "export", "last", "--format", "jsonld"],
        &["sparql", values],
        &["sparql", values, "--output", "json"],
        &["sparql", values, "--output", "csv"],
        &["sparql", question],
    ] {
        let text = ok(data.path(), arguments);
        assert!(text.contains("desrever") && !text.contains(['\u{9b}', '\u{202e}']), "{arguments:?}: {text}");
    }
}
