//! A process that is killed while it loads leaves documents whole or absent, and all that it acknowledged.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::contract::search::{document, with_vectors};
use trellis_orchestrator::ports::{Search, SearchDocument, SearchQuery};
use trellis_search::EmbeddedSearch;

const FOLDER: &str = "TRELLIS_TEST_SEARCH_FOLDER";
/// Documents that are replaced again and again.
const IDS: u32 = 6;

/// A version of a document. Each passage tells of which version it is, in words and by its vector.
fn version(number: u32) -> SearchDocument {
    let texts: Vec<String> = (0..40).map(|n| format!("passage {n} of version{number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vector = vector(number);
    let vectors: Vec<&[f32]> = texts.iter().map(|_| vector.as_slice()).collect();
    with_vectors(document(&format!("d{}", number % IDS), &texts), "m", &vectors)
}

fn vector(number: u32) -> Vec<f32> {
    let angle = f64::from(number) * 0.7;
    #[allow(clippy::cast_possible_truncation, reason = "it is a test's number")]
    let part = |number: f64| number as f32;
    vec![part(angle.cos()), part(angle.sin())]
}

/// Not a test: the process that is killed. It says which versions are acknowledged.
#[test]
fn loading_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let search = EmbeddedSearch::new(Path::new(&folder));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (ws, collection) = (Workspace::default(), Collection::default());
        let first = std::env::var("TRELLIS_TEST_FIRST").unwrap().parse::<u32>().unwrap();
        for number in (first..).step_by(2) {
            search.put(&ws, &collection, vec![version(number), version(number + 1)]).await.unwrap();
            writeln!(std::io::stdout(), "\nput {}", number + 1).unwrap();
        }
    });
}

/// Loads until so many puts are acknowledged, and a moment longer; then kills. Returns the last acknowledged version.
fn load_and_kill(folder: &Path, first: u32, puts: usize) -> u32 {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["killed::loading_process", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .env("TRELLIS_TEST_FIRST", first.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let acknowledged = |line: String| line.strip_prefix("put ").and_then(|number| number.parse::<u32>().ok());
    let mut last = lines.by_ref().filter_map(acknowledged).nth(puts - 1).expect("the process loads");
    process.kill().unwrap();
    process.wait().unwrap();
    // What it still said before it died.
    last = lines.filter_map(acknowledged).last().unwrap_or(last);
    last
}

#[tokio::test]
async fn a_process_killed_while_it_loads_leaves_whole_documents() {
    let folder = TempDir::new().unwrap();
    let mut next = 0;
    for puts in [1, 4, 2, 7, 3, 5] {
        let last = load_and_kill(folder.path(), next, puts);
        check(folder.path(), last).await;
        next = last + 1;
    }
}

async fn check(folder: &Path, acknowledged: u32) {
    let search = EmbeddedSearch::new(folder);
    let (ws, collection) = (Workspace::default(), Collection::default());
    let documents = search.documents(&ws, &collection, None, 100).await.unwrap();
    let mut versions = BTreeMap::new();
    for listed in &documents {
        assert_eq!(listed.passages, 40);
        let id: u32 = listed.info.id[1..].parse().unwrap();
        // What was in hand at the kill may be there as well: both documents of it or none.
        let found = (0..=acknowledged + 2).rev().find(|number| version(*number).info.hash == listed.info.hash);
        let number = found.unwrap();
        assert_eq!(number % IDS, id);
        let query = SearchQuery { text: format!("version{number}"), vector: None, limit: 100 };
        let found = search.find(&ws, &collection, query).await.unwrap().passages;
        assert_eq!(found.iter().filter(|found| found.document.id == listed.info.id).count(), 40, "whole");
        let query = SearchQuery { text: String::new(), vector: Some(("m".to_owned(), vector(number))), limit: 100 };
        let near = search.find(&ws, &collection, query).await.unwrap();
        assert_eq!(near.compared, 40 * documents.len() as u64, "a vector for each passage and no other");
        let own = near.passages.iter().filter(|found| found.document.id == listed.info.id).count();
        assert_eq!(own, 40, "its own vectors, and not those of another version");
        versions.insert(id, number);
    }
    for number in acknowledged.saturating_sub(IDS - 1)..=acknowledged {
        assert!(versions[&(number % IDS)] >= number, "version {number} was acknowledged");
    }
    let newer: Vec<_> = versions.values().filter(|number| **number > acknowledged).collect();
    assert!(newer.is_empty() || newer.len() == 2, "documents of one call come together: {newer:?}");
}
