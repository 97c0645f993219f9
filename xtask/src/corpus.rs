//! `cargo xtask corpus`: the Berkeley Function Calling Leaderboard, for the readers of calls and for `trellis eval`.

use crate::referees::Package;
use crate::{root, run};
use anyhow::{Context, Result, bail};
use std::fs;

/// Version 4 of the benchmark, Apache License 2.0.
pub(crate) const BFCL: Package = Package {
    name: "bfcl-eval==2026.3.23",
    file: "bfcl_eval-2026.3.23-py3-none-any.whl",
    hash: "sha256:3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
};

/// Fetches the package, writes its calls and questions to `target/bfcl`, compares the sample, and reads all calls.
pub(crate) fn corpus() -> Result<()> {
    let folder = root()?.join("target/bfcl");
    let wheel = BFCL.download(&folder)?;
    let shown = folder.display().to_string();
    run("python3", &["eval/bfcl.py", &wheel.display().to_string(), &shown])?;
    let kept = root()?.join("crates/patterns/tests/bfcl-sample.jsonl");
    let [made, kept] = [folder.join("sample.jsonl"), kept].map(fs::read_to_string);
    if made.context("the sample was made")? != kept.context("the sample lies in crates/patterns/tests")? {
        bail!(
            "crates/patterns/tests/bfcl-sample.jsonl is not what the package gives; copy target/bfcl/sample.jsonl there"
        );
    }
    run("cargo", &["test", "--package", "trellis-patterns", "--test", "bfcl", "--", "--include-ignored"])
}
