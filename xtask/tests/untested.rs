//! What is not built as tests has none: cargo would leave one out without a word.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod metadata;

use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Deserialize)]
struct Workspace {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
    /// Whether it is built as tests.
    test: bool,
}

#[test]
fn what_is_not_built_as_tests_has_none() {
    let packages = metadata::read::<Workspace>(&["--no-deps"]).packages;
    let targets = packages.iter().flat_map(|package| &package.targets);
    let untested = targets.filter(|target| !target.test && target.kind != ["custom-build"]);
    let folders: Vec<_> = untested.map(|target| target.src_path.parent().unwrap().to_owned()).collect();
    assert!(folders.iter().any(|folder| folder.ends_with("bench/src")), "{folders:?}");
    for folder in folders {
        let found = tests_in(&folder);
        assert!(found.is_empty(), "{found:?} have tests that nobody runs: take `test = false` out of Cargo.toml");
    }
}

#[test]
fn tests_are_found() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert!(tests_in(&own).iter().any(|file| file.ends_with("advisories.rs")));
}

/// The sources below a folder that have tests.
fn tests_in(folder: &Path) -> Vec<PathBuf> {
    const SIGNS: [&str; 4] = ["#[test]", "#[tokio::test", "proptest!", "cfg(test)"];
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let sources = files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    let has_tests = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        SIGNS.iter().any(|sign| text.contains(sign))
    };
    sources.filter(has_tests).chain(folders.iter().flat_map(|folder| tests_in(folder))).collect()
}
