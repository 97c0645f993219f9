//! What was erased lies in no file, whatever happened before.

use crate::ok;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn occurs(folder: &Path, needle: &str) -> bool {
    let has = |path: PathBuf| fs::read(path).unwrap().windows(needle.len()).any(|window| window == needle.as_bytes());
    files(folder).into_iter().any(has)
}

/// Where the view has its index, which follows its dictionary.
fn index(data: &Path) -> PathBuf {
    let generation = fs::read_dir(data.join("view")).unwrap().next().unwrap().unwrap().path();
    generation.join("quads")
}

#[test]
fn a_text_that_only_the_dictionary_of_the_view_has_is_erased_too() {
    let data = TempDir::new().unwrap();
    // Nothing that can be compressed: it is found wherever it is.
    let secret = "k7Qz9XvW3mLp0RtYb2NcAe5U";
    ok(data.path(), &["ask", "What is a trellis?"]);
    ok(data.path(), &["graph", "rebuild"]);
    let before = TempDir::new().unwrap();
    let all = files(&index(data.path()));
    for file in &all {
        let to = before.path().join(file.strip_prefix(index(data.path())).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, to).unwrap();
    }
    ok(data.path(), &["ask", &format!("What of {secret}?"), "--pattern", "react"]);
    ok(data.path(), &["sparql", "ASK { ?s ?p ?o }"]);
    // As a crash leaves it between the two.
    let index = index(data.path());
    fs::remove_dir_all(&index).unwrap();
    fs::create_dir_all(index.join("tables")).unwrap();
    for file in files(before.path()) {
        fs::copy(&file, index.join(file.strip_prefix(before.path()).unwrap())).unwrap();
    }
    assert!(occurs(&data.path().join("view"), secret));
    ok(data.path(), &["erase", "last", "--reason", "asked to"]);
    assert!(!occurs(data.path(), secret), "it lies in a file");
    assert!(ok(data.path(), &["verify", "last"]).contains("\nnot replayed: texts of it were erased"));
    ok(data.path(), &["doctor"]);
}
