//! The program as a command: one data folder, one model behind it, questions one after the other.

use crate::clients::{Output, command, end_within, run};
use crate::server::{connect_notes, program};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;

/// A data folder and the environment that its commands run in.
#[derive(Debug)]
pub struct Asking {
    folder: TempDir,
    environment: Vec<(&'static str, String)>,
}

impl Asking {
    /// An empty data folder. What is not set here is not set at all.
    pub fn with(environment: Vec<(&'static str, String)>) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        std::fs::write(folder.path().join("settings.toml"), "").expect("a temporary folder can be written to");
        connect_notes(folder.path());
        Self { folder, environment }
    }

    /// Sets another variable.
    #[must_use]
    pub fn set(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }

    /// Runs one command of the program.
    pub async fn trellis(&self, arguments: &[&str]) -> Output {
        let environment = self.whole_environment();
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        run(&program(), "trellis", arguments, &environment, self.folder.path()).await
    }

    /// The same, for a model that thinks on this machine, beside whatever else runs there.
    pub async fn trellis_patiently(&self, arguments: &[&str]) -> Output {
        const PATIENCE: Duration = Duration::from_mins(12);
        let environment = self.whole_environment();
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let place = (self.folder.path(), PATIENCE);
        let ended = end_within(&program(), "trellis", arguments, &environment, place).await;
        ended.expect("a small model answers in that time")
    }

    /// The same, for somebody who starts it and does not let it come to its end.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let environment = self.whole_environment();
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        command(&program(), arguments, &environment, self.folder.path())
    }

    fn whole_environment(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let own =
            [("TRELLIS_DATA", path("data")), ("TRELLIS_SETTINGS", path("settings.toml")), ("NO_COLOR", "1".to_owned())];
        own.into_iter().chain(self.environment.iter().cloned()).collect()
    }

    /// Asks, and gives the answer of a run that ends well and can be verified.
    pub async fn answer(&self, question: &str, more: &[&str]) -> String {
        let answer = self.trellis(&[&["ask", question], more].concat()).await.ok();
        self.trellis(&["verify", "last"]).await.ok();
        answer.stdout.trim().to_owned()
    }

    /// The parameters of each request that was in vain, as the records tell them, in their order. What was said in a
    /// request is no parameter.
    pub async fn failed_attempts(&self) -> Vec<Value> {
        let mut attempts = Vec::new();
        for body in self.all_records().await {
            collect(&body, &mut attempts);
        }
        attempts
    }

    /// The bodies of all records of this kind, in their order. Texts are only named by their hashes.
    pub async fn records(&self, event: &str) -> Vec<Value> {
        let mut records = self.all_records().await;
        records.retain(|body| body["event"] == event);
        records
    }

    async fn all_records(&self) -> Vec<Value> {
        let log = self.trellis(&["log", "export"]).await.ok();
        log.stdout.lines().filter_map(record_in).collect()
    }
}

/// The body of the record in a line of the exported log, if it is about one.
fn record_in(line: &str) -> Option<Value> {
    let line: Value = serde_json::from_str(line).expect("the log is exported as lines of JSON");
    let entry = BASE64_STANDARD.decode(line["input"].as_str()?).expect("entries are in base 64");
    // A record is its kind, its head and its body, a line each.
    let body = entry.strip_prefix(b"record\n")?.split(|byte| *byte == b'\n').nth(1)?;
    serde_json::from_slice(body).ok()
}

/// The parameters of failed attempts, wherever a record holds them.
fn collect(value: &Value, attempts: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if name == "failures" {
                    let failed = member.as_array().into_iter().flatten();
                    attempts.extend(failed.map(|attempt| attempt["asked"]["parameters"].clone()));
                } else {
                    collect(member, attempts);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, attempts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
