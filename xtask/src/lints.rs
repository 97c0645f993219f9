//! Form and lints. The lints are looked at while the tests are built.
//!
//! `cargo clippy` would build everything that we depend on once more, only to look at our own sources: that is a third of
//! the time of `cargo xtask test` on a new machine. Clippy's driver is a whole compiler, so it builds the tests as well.

use crate::{root, run, run_with};
use anyhow::Result;
use std::process::Command;

/// What cargo needs to have our own crates compiled by Clippy's driver, every warning an error. All of cargo's calls that
/// build the same things have to have it: else they would be built again.
pub(crate) type Environment = Vec<(&'static str, String)>;

/// Looks whether there is such a driver. Without it only what the compiler itself says is heard.
pub(crate) fn environment() -> Environment {
    if !is_there("clippy-driver", &["--version"]) {
        eprintln!("warning: there is no clippy-driver on this machine: NO LINTS ARE CHECKED");
        return Vec::new();
    }
    // As `cargo clippy -- --deny warnings` hands them on.
    let arguments = ["--deny", "warnings", ""].join("__CLIPPY_HACKERY__");
    vec![("RUSTC_WORKSPACE_WRAPPER", "clippy-driver".to_owned()), ("CLIPPY_ARGS", arguments)]
}

pub(crate) fn format() -> Result<()> {
    if !is_there("cargo", &["fmt", "--version"]) {
        eprintln!("warning: there is no rustfmt on this machine: THE FORM OF THE SOURCES IS NOT CHECKED");
        return Ok(());
    }
    run("cargo", &["fmt", "--all", "--check"])
}

/// The program as users build it: what only tests switch on must not be needed. It lies in a folder of its own, as tests
/// run the other one; what both are made of is shared.
pub(crate) fn build_as_users(linted: &Environment) -> Result<()> {
    let target = root()?.join("target");
    let (shared, own) = (target.display().to_string(), target.join("as-users").display().to_string());
    let mut environment: Vec<_> = linted.iter().map(|(name, value)| (*name, value.as_str())).collect();
    environment.extend([("CARGO_BUILD_BUILD_DIR", shared.as_str()), ("CARGO_TARGET_DIR", own.as_str())]);
    run_with("nice", &["-n", "19", "cargo", "build", "--quiet", "--package", "trellis"], &environment)
}

fn is_there(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}
