//! How soon passages are found among many, by words and by vectors.

use anyhow::Result;
use std::time::{Duration, Instant};
use trellis_domain::{Collection, Hash, Workspace};
use trellis_orchestrator::ports::{DocumentInfo, Passage, PassageVectors, Place, Search, SearchDocument, SearchQuery};
use trellis_search::EmbeddedSearch;

/// Passages in all, or as many as `TRELLIS_BENCH_PASSAGES` says.
const PASSAGES: usize = 100_000;
const OF_A_DOCUMENT: usize = 50;
const DIMENSIONS: usize = 384;
/// Different words, of which a passage has some.
const WORDS: u64 = 20_000;
const QUESTIONS: u64 = 200;
const MODEL: &str = "bench";

/// Numbers that look drawn and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Few words are frequent and many are rare, as in texts.
    fn word(&mut self) -> String {
        let (one, other) = (self.next() % WORDS, self.next() % WORDS);
        format!("word{}", one * other / WORDS)
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| (self.next() % 2001) as f32 - 1000.0).collect()
    }
}

pub(crate) async fn run() -> Result<()> {
    let passages = std::env::var("TRELLIS_BENCH_PASSAGES").ok().and_then(|number| number.parse().ok());
    let passages: usize = passages.unwrap_or(PASSAGES);
    let folder = tempfile::tempdir()?;
    let search = EmbeddedSearch::new(folder.path());
    let (workspace, collection) = (Workspace::default(), Collection::default());
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let began = Instant::now();
    let documents: Vec<usize> = (0..passages.div_ceil(OF_A_DOCUMENT)).collect();
    for batch in documents.chunks(64) {
        let batch = batch.iter().map(|number| document(*number, &mut numbers)).collect();
        search.put(&workspace, &collection, batch).await?;
    }
    let loaded = began.elapsed();
    println!(
        "documents     {passages} passages of {DIMENSIONS} dimensions loaded in {:.1} s ({:.0} a second)",
        loaded.as_secs_f64(),
        passages as f64 / loaded.as_secs_f64(),
    );
    for (name, has_words, has_vector) in [("words", true, false), ("vectors", false, true), ("both", true, true)] {
        let mut times = Vec::new();
        for _ in 0..QUESTIONS {
            let text = if has_words { numbers.text(8) } else { String::new() };
            let vector = has_vector.then(|| (MODEL.to_owned(), numbers.vector()));
            let began = Instant::now();
            let found = search.find(&workspace, &collection, SearchQuery { text, vector, limit: 10 }).await?;
            times.push(began.elapsed());
            anyhow::ensure!(!found.passages.is_empty(), "nothing was found");
        }
        times.sort_unstable();
        let at = |share: usize| ms(times[times.len() * share / 100]);
        println!("documents     found by {name}: p50 {:.2} ms, p95 {:.2} ms, p99 {:.2} ms", at(50), at(95), at(99));
    }
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn document(number: usize, numbers: &mut Numbers) -> SearchDocument {
    let id = format!("document-{number}");
    let passages: Vec<Passage> = (0..OF_A_DOCUMENT)
        .map(|n| Passage {
            text: numbers.text(180),
            place: Place { headings: vec![format!("Part {n}")], bytes: 0..1, lines: (1, 2) },
        })
        .collect();
    let vectors = passages.iter().map(|_| numbers.vector()).collect();
    SearchDocument {
        info: DocumentInfo { title: id.clone(), text: id.clone(), hash: Hash::of(&id), id },
        passages,
        vectors: Some(PassageVectors { model: MODEL.to_owned(), vectors }),
    }
}
