//! The search index keeps its contract, also between processes, when calls are cut off, and after a server that crashed.

use crate::fresh;
use crate::server::Server;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::contract::search::{self, document, found, put, with_vectors};
use trellis_orchestrator::memory::MemorySearch;
use trellis_orchestrator::ports::{FoundPassages, Search, SearchDocument, SearchQuery};
use trellis_postgres::PostgresSearch;

/// The index of a new process.
async fn index(server: &Server, schema: &str) -> PostgresSearch {
    PostgresSearch::of_documents(server.database(schema).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_search_index_keeps_its_contract() {
    let server = Server::start();
    search::suite(async || Arc::new(index(&server, &fresh()).await) as Arc<dyn Search>).await;
}

async fn ask(search: &dyn Search, query: SearchQuery) -> FoundPassages {
    search.find(&Workspace::default(), &Collection::default(), query).await.unwrap()
}

fn keys(found: &FoundPassages) -> Vec<(&str, u64)> {
    found.passages.iter().map(|found| (found.document.id.as_str(), found.number)).collect()
}

/// Numbers that look like chance and are the same every time.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    /// A word as they occur in texts: a few are everywhere, most are rare.
    fn word(&mut self) -> String {
        let below = 2_u64.pow(u32::try_from(self.next(11)).unwrap() + 1);
        format!("w{}x", self.next(below))
    }

    fn text(&mut self, most: u64) -> String {
        let words: Vec<_> = (0..=self.next(most)).map(|_| self.word()).collect();
        words.join(" ")
    }
}

/// Common words are not read everywhere; what is found is the same as if they were, in the order of the index in memory.
#[tokio::test(flavor = "multi_thread")]
async fn passages_are_ranked_as_if_all_words_were_read() {
    let server = Server::start();
    let (search, model) = (index(&server, "t").await, MemorySearch::default());
    let mut chance = Chance(7);
    let mut documents = Vec::new();
    for n in 0..20 {
        let texts: Vec<_> = (0..60).map(|_| chance.text(30)).collect();
        let mut document = document(&format!("d{n}"), &texts.iter().map(String::as_str).collect::<Vec<_>>());
        document.info.title.clear();
        document.passages.iter_mut().for_each(|passage| passage.place.headings.clear());
        documents.push(document);
    }
    put(&search, documents.clone()).await;
    put(&model, documents).await;
    for _ in 0..12 {
        let query = SearchQuery { text: chance.text(12), vector: None, limit: 25 };
        let expected = ask(&model, query.clone()).await;
        for limit in [1, 3, 25] {
            let found = ask(&search, SearchQuery { limit, ..query.clone() }).await;
            let expected: Vec<_> = keys(&expected).into_iter().take(limit).collect();
            assert_eq!(keys(&found), expected, "{limit} for {}", query.text);
        }
    }
}

/// Of very many vectors those with like signs are compared. What is nearest is found all the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_nearest_of_many_vectors_is_found() {
    const VECTORS: usize = 12_000;
    const NUMBERS: usize = 32;
    let server = Server::start();
    let search = index(&server, "t").await;
    let mut chance = Chance(9);
    let mut vector = || -> Vec<f32> {
        (0..NUMBERS).map(|_| f32::from(u16::try_from(chance.next(2_001)).unwrap()) / 1_000.0 - 1.0).collect()
    };
    let vectors: Vec<_> = (0..VECTORS).map(|_| vector()).collect();
    for (n, some) in vectors.chunks(4_000).enumerate() {
        let texts = vec!["text"; some.len()];
        let some: Vec<_> = some.iter().map(Vec::as_slice).collect();
        put(&search, vec![with_vectors(document(&format!("d{n}"), &texts), "m", &some)]).await;
    }
    let mut found_at_its_place = 0;
    for (n, wanted) in vectors.iter().enumerate().step_by(1_201) {
        let query = SearchQuery { text: String::new(), vector: Some(("m".to_owned(), wanted.clone())), limit: 3 };
        let answer = ask(&search, query).await;
        assert_eq!(answer.compared, VECTORS as u64);
        found_at_its_place += usize::from(keys(&answer)[0] == (format!("d{}", n / 4_000).as_str(), (n % 4_000) as u64));
    }
    assert_eq!(found_at_its_place, 10);
    search.remove(&Workspace::default(), &Collection::default(), "d0").await.unwrap();
    let query = SearchQuery { text: String::new(), vector: Some(("m".to_owned(), vectors[0].clone())), limit: 3 };
    assert_eq!(ask(&search, query).await.compared, 8_000);
}

const TABLES: [&str; 9] =
    ["collections", "documents", "blocks", "passages", "words", "frequencies", "vectors", "spaces", "removed"];

async fn nothing_is_left(server: &Server) {
    let look = server.look().await;
    for table in TABLES {
        let left = look.query_one(&format!("SELECT count(*) FROM t.search_{table}"), &[]).await.unwrap();
        assert_eq!(left.get::<_, i64>(0), 0, "something is left in search_{table}");
    }
}

/// What is counted for a collection is what there is.
async fn numbers_add_up(server: &Server) {
    let look = server.look().await;
    let pairs = [
        ("place, word, sum(texts), sum(aboves) FROM t.search_words GROUP BY 1, 2", "* FROM t.search_frequencies"),
        ("place, space, count(*) FROM t.search_vectors GROUP BY 1, 2", "* FROM t.search_spaces"),
        (
            "place, sum(passages), sum(text_words), sum(above_words) FROM t.search_blocks GROUP BY 1",
            "place, passages, text_words, above_words FROM t.search_collections",
        ),
        ("place, block, count(*) FROM t.search_passages GROUP BY 1, 2", "place, block, passages FROM t.search_blocks"),
        ("DISTINCT place, document FROM t.search_blocks", "place, id FROM t.search_documents"),
    ];
    for (one, other) in pairs {
        for (left, right) in [(one, other), (other, one)] {
            let query = format!("SELECT count(*) FROM (SELECT {left} EXCEPT ALL SELECT {right}) AS differing");
            let differing: i64 = look.query_one(&query, &[]).await.unwrap().get(0);
            assert_eq!(differing, 0, "{query}");
        }
    }
}

/// A version of a document: each has another number of passages, and every passage says which.
fn version(n: usize, version: usize) -> SearchDocument {
    let text = format!("document{n}x version{version}x of {n}");
    let texts = vec![text.as_str(); 20 * version];
    let vectors = vec![&[1.0_f32, 0.5][..]; texts.len()];
    with_vectors(document(&format!("d{n}"), &texts), "m", &vectors)
}

/// Looks for a document: all of one version, or nothing.
async fn is_whole(search: &dyn Search, n: usize) -> Option<usize> {
    let query = SearchQuery { text: format!("document{n}x"), vector: None, limit: 100 };
    let found = ask(search, query).await;
    let texts: BTreeSet<_> = found.passages.iter().map(|found| found.passage.text.as_str()).collect();
    assert!(texts.len() <= 1, "parts of several versions: {texts:?}");
    let version: usize = texts.first()?.split("version").nth(1)?.split('x').next()?.parse().unwrap();
    assert_eq!(found.passages.len(), 20 * version, "a part of it");
    Some(version)
}

/// Several processes load versions of the same documents while others search and one takes the collection away.
#[tokio::test(flavor = "multi_thread")]
async fn processes_load_the_same_documents_at_once() {
    const DOCUMENTS: usize = 12;
    let server = Server::start();
    let (ws, collection) = (Workspace::default(), Collection::default());
    let mut loading = JoinSet::new();
    for process in 0..4 {
        let search = index(&server, "t").await;
        loading.spawn(async move {
            for step in 0..8 {
                let some = (0..3).map(|n| version((step + 3 * process + n) % DOCUMENTS, 1 + (step + process) % 4));
                put(&search, some.collect()).await;
                if (process, step) == (2, 4) {
                    search.remove_collection(&Workspace::default(), &Collection::default()).await.unwrap();
                }
            }
        });
    }
    let (search, done) = (index(&server, "t").await, Arc::new(AtomicBool::new(false)));
    let searching = tokio::spawn({
        let (search, done) = (search.clone(), Arc::clone(&done));
        async move {
            let mut found = 0;
            while !done.load(Ordering::Relaxed) {
                for n in 0..DOCUMENTS {
                    found += usize::from(is_whole(&search, n).await.is_some());
                }
            }
            found
        }
    });
    loading.join_all().await;
    done.store(true, Ordering::Relaxed);
    assert!(searching.await.unwrap() > 0);
    numbers_add_up(&server).await;
    // What entities are called is another index.
    let names = search.of_entities();
    assert_eq!(found(&names, "document0x").await, []);
    put(&names, vec![document("d0", &["a name"])]).await;
    let listed = search.documents(&ws, &collection, None, 100).await.unwrap();
    let ids: Vec<_> = listed.into_iter().map(|listed| listed.info.id).collect();
    assert!(ids.len() > 6, "{ids:?}");
    assert_eq!(search.remove_all(&ws, &collection, &ids).await.unwrap(), ids.len() as u64);
    assert_eq!(found(&names, "name").await.len(), 1);
    names.remove_collection(&ws, &collection).await.unwrap();
    nothing_is_left(&server).await;
}

/// Calls that nobody waits for any more, as when a process dies, are done whole or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_cut_off_leave_nothing_half_done() {
    let server = Server::start();
    let search = index(&server, "t").await;
    let (ws, collection) = (Workspace::default(), Collection::default());
    put(&search, (0..4).map(|n| version(n, 1)).collect()).await;
    for n in 0..24 {
        let some = (0..4).map(|of| version(of, 1 + n % 4)).collect();
        let cut = tokio::time::timeout(Duration::from_millis(2 * n as u64), search.put(&ws, &collection, some));
        drop(cut.await);
        assert!(is_whole(&search, n % 4).await.is_some(), "the version before stays until there is another");
    }
    // Whatever the server still does for them ends before this does.
    put(&search, (0..4).map(|n| version(n, 2)).collect()).await;
    numbers_add_up(&server).await;
    // A process that died after it gave a collection up.
    let look = server.look().await;
    let give_up = "WITH gone AS (DELETE FROM t.search_collections RETURNING place) \
        INSERT INTO t.search_removed SELECT place FROM gone";
    look.batch_execute(give_up).await.unwrap();
    assert_eq!(search.documents(&ws, &collection, None, 9).await.unwrap(), []);
    put(&search, vec![version(0, 1)]).await;
    assert_eq!(is_whole(&search, 0).await, Some(1));
    for _ in 0..TABLES.len() {
        search.remove(&ws, &collection, "d0").await.unwrap();
    }
    nothing_is_left(&server).await;
}

/// What was acknowledged is there after a crash, and nothing is there in parts.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_may_crash_while_documents_are_loaded() {
    let mut server = Server::start();
    let search = index(&server, "t").await;
    let (ws, collection) = (Workspace::default(), Collection::default());
    let (loader, done) = (search.clone(), Arc::new(AtomicBool::new(false)));
    let loading = tokio::spawn({
        let done = Arc::clone(&done);
        async move {
            let (mut acknowledged, mut failures) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                let some = vec![version(acknowledged, 2), version(acknowledged + 1, 3)];
                if loader.put(&Workspace::default(), &Collection::default(), some).await.is_ok() {
                    acknowledged += 2;
                } else {
                    failures += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            (acknowledged, failures)
        }
    });
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        server.crash();
        server.run();
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    done.store(true, Ordering::Relaxed);
    let (acknowledged, failures) = loading.await.unwrap();
    assert!(acknowledged > 4 && failures > 0, "{acknowledged} documents, {failures} failures");
    for n in 0..acknowledged {
        assert_eq!(is_whole(&search, n).await, Some(2 + n % 2), "document {n} was acknowledged");
    }
    numbers_add_up(&server).await;
    search.remove_collection(&ws, &collection).await.unwrap();
    nothing_is_left(&server).await;
}
