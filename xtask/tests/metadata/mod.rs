//! What cargo knows of the workspace.
//!
//! Read by ourselves: the crate for it switches something on in `serde_json`, for all that is built together with it.

use serde::de::DeserializeOwned;
use std::process::Command;

/// What `cargo metadata` says, with these arguments, as far as `T` wants to know it.
pub(crate) fn read<T: DeserializeOwned>(arguments: &[&str]) -> T {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(["metadata", "--format-version", "1"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
