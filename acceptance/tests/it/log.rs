//! The log, checked by a program that shares no line with ours.

use acceptance::{Output, Stage};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const VERIFIER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../clients/python/verify_log.py");

/// A server with two runs, a checkpoint from between them, and its exported log.
struct Kept {
    stage: Stage,
    folder: TempDir,
    key: String,
}

impl Kept {
    async fn new() -> Self {
        let (stage, folder) = (Stage::open().await, TempDir::new().unwrap());
        stage.tg("tg-invoke-agent", &["-q", "Who was Ada?"]).await.ok();
        let kept = stage.trellis(&["log", "checkpoint"]).await.ok();
        std::fs::write(folder.path().join("kept.txt"), kept.stdout).unwrap();
        stage.tg("tg-invoke-agent", &["-q", "Ask the team: who was Ada?"]).await.ok();
        let key = stage.trellis(&["log", "key"]).await.ok().stdout.trim().to_owned();
        let kept = Self { stage, folder, key };
        kept.stage.trellis(&["log", "export", &kept.path("log.jsonl")]).await.ok();
        kept
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }

    /// What the verifier says of a log and of a checkpoint.
    async fn verified(&self, log: &str, checkpoint: &str) -> Output {
        let (log, checkpoint) = (self.path(log), self.path(checkpoint));
        self.stage.program("python", &[VERIFIER, &log, "--anchor", &checkpoint, "--key", &self.key]).await
    }

    /// What the verifier says of a log that somebody has changed.
    async fn changed(&self, change: impl Fn(&mut Vec<Value>)) -> Output {
        let mut lines = lines(&self.file("log.jsonl"));
        change(&mut lines);
        let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
        std::fs::write(self.file("changed.jsonl"), lines.join("\n")).unwrap();
        self.verified("changed.jsonl", "kept.txt").await
    }
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An entry with a text, early enough to be covered by the kept checkpoint.
fn with_a_text(lines: &[Value]) -> usize {
    let has_text = |line: &Value| line["texts"].as_str().is_some_and(|texts| texts.contains("Ada"));
    lines.iter().position(has_text).unwrap()
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_program_of_others_comes_to_our_verdict() {
    let kept = Kept::new().await;
    let ours = kept.stage.trellis(&["log", "verify", &kept.path("kept.txt"), "--key", &kept.key]).await;
    ours.ok().says(&["ok: the ", "are all here, unchanged"]);
    kept.verified("log.jsonl", "kept.txt").await.ok().says(&["ok: the log is the one"]);
    // A checkpoint of something else.
    let note = std::fs::read_to_string(kept.file("kept.txt")).unwrap();
    let root = note.lines().nth(2).unwrap();
    let other = format!("{}{}", if root.starts_with('A') { 'B' } else { 'A' }, &root[1..]);
    std::fs::write(kept.file("other.txt"), note.replace(root, &other)).unwrap();
    let ours = kept.stage.trellis(&["log", "verify", &kept.path("other.txt")]).await;
    assert!(!ours.succeeded, "{ours}");
    let theirs = kept.verified("log.jsonl", "other.txt").await;
    assert!(!theirs.succeeded, "{theirs}");
    theirs.says(&["fault: the beginning of the log is not the one that the kept checkpoint covers", "signature"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn whatever_is_changed_in_an_exported_log_is_found() {
    let kept = Kept::new().await;
    let text = kept.changed(|lines| {
        let at = with_a_text(lines);
        let texts = lines[at]["texts"].as_str().unwrap().replace("Ada", "Eve");
        lines[at]["texts"] = json!(texts);
    });
    let text = text.await;
    assert!(!text.succeeded, "{text}");
    text.says(&["fault: a text of record"]);
    let record = kept.changed(|lines| {
        let at = with_a_text(lines);
        let other = lines[at + 1]["input"].clone();
        lines[at]["input"] = other;
    });
    let record = record.await;
    assert!(!record.succeeded, "{record}");
    record.says(&["the kept checkpoint covers", "does not have the root that its own checkpoint says"]);
    let removed = kept.changed(|lines| {
        lines.remove(3);
        for (number, line) in lines.iter_mut().skip(1).enumerate() {
            line["number"] = json!(number);
        }
    });
    let removed = removed.await;
    assert!(!removed.succeeded, "{removed}");
    removed.says(&["1 of ", "entries that its own checkpoint covers are missing"]);
    let gap = kept.changed(|lines| drop(lines.remove(3))).await;
    assert!(!gap.succeeded, "{gap}");
    gap.says(&["fault: entry 2 is missing"]);
}
