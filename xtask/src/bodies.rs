//! The bodies of requests that tests send: kept while they run, then checked against the types that vendors publish.

use crate::{root, run};
use anyhow::{Context, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Names the folder for tests.
const VARIABLE: &str = "REQUEST_BODIES";

fn folder() -> Result<PathBuf> {
    Ok(root()?.join("target/request-bodies"))
}

/// What earlier tests have left is nothing that the program sends today.
pub(crate) fn forget() -> Result<()> {
    let folder = folder()?;
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        Err(_) | Ok(()) => Ok(()),
    }
}

/// What tells tests to keep what they send.
pub(crate) fn kept() -> Result<(&'static str, String)> {
    Ok((VARIABLE, folder()?.display().to_string()))
}

/// Every body that was kept, against the packages in `target/clients`.
pub(crate) fn check() -> Result<()> {
    let python = root()?.join("target/clients/bin/python").display().to_string();
    let folder = folder()?.display().to_string();
    run(&python, &["acceptance/python/request_bodies.py", &folder])
        .context("a request that the program sends is not what its vendor takes: the lines above say which and where")
}
