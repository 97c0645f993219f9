//! The real binary, as a person or a script uses it.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail loudly")]

mod bad_input;
mod configuration;
mod everyday;
mod killed;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

pub(crate) const PARTNER: &str = "Assess the risk profile of Company X as a potential partner";

/// A command on this data folder, with a rehearsal that does not dawdle.
pub(crate) fn trellis(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trellis"));
    command.args(arguments).arg("--data").arg(data);
    command.env_remove("RUST_LOG").env("TRELLIS_REHEARSAL_DELAY_MS", "0").env_remove("TRELLIS_DATA");
    command
}

pub(crate) fn run(data: &Path, arguments: &[&str]) -> Output {
    trellis(data, arguments).output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The output of a command that must succeed.
pub(crate) fn ok(data: &Path, arguments: &[&str]) -> String {
    let output = run(data, arguments);
    assert!(output.status.success(), "{arguments:?}: {}\n{}", output.status, stderr(&output));
    stdout(&output)
}

pub(crate) fn json(data: &Path, arguments: &[&str]) -> Value {
    let text = ok(data, &[arguments, &["--output", "json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The exit code and message of a command that must fail.
pub(crate) fn fails(data: &Path, arguments: &[&str]) -> (i32, String) {
    let output = run(data, arguments);
    (output.status.code().unwrap_or(-1), stderr(&output))
}
