//! Whatever is put where, nothing is found from elsewhere.

use proptest::prelude::*;
use std::collections::BTreeSet;
use tempfile::TempDir;
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::contract::search::{document, with_vectors};
use trellis_orchestrator::memory::MemorySearch;
use trellis_orchestrator::ports::{Search, SearchQuery};
use trellis_search::EmbeddedSearch;

#[derive(Debug, Clone)]
enum Step {
    Put { place: (u8, u8), id: u8, words: Vec<u8> },
    Remove { place: (u8, u8), id: u8 },
    RemoveCollection { place: (u8, u8) },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0..2_u8, 0..2_u8);
    let step = prop_oneof![
        6 => (place(), 0..4_u8, prop::collection::vec(0..6_u8, 1..4)).prop_map(|(place, id, words)| Step::Put { place, id, words }),
        2 => (place(), 0..4_u8).prop_map(|(place, id)| Step::Remove { place, id }),
        1 => place().prop_map(|place| Step::RemoveCollection { place }),
    ];
    prop::collection::vec(step, 1..8)
}

fn names((workspace, collection): (u8, u8)) -> (Workspace, Collection) {
    (Workspace::new(&format!("w{workspace}")).unwrap(), Collection::new(&format!("c{collection}")).unwrap())
}

async fn take(search: &dyn Search, step: &Step) {
    match step {
        Step::Put { place, id, words } => {
            let (ws, collection) = names(*place);
            let texts: Vec<String> = words.iter().map(|word| format!("word{word} of {}", place.0)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let vectors: Vec<Vec<f32>> = words.iter().map(|word| vec![1.0, f32::from(*word)]).collect();
            let vectors: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
            let id = format!("{}-{}-{id}", place.0, place.1);
            let document = with_vectors(document(&id, &texts), "m", &vectors);
            search.put(&ws, &collection, vec![document]).await.unwrap();
        }
        Step::Remove { place, id } => {
            let (ws, collection) = names(*place);
            search.remove(&ws, &collection, &format!("{}-{}-{id}", place.0, place.1)).await.unwrap();
        }
        Step::RemoveCollection { place } => {
            let (ws, collection) = names(*place);
            search.remove_collection(&ws, &collection).await.unwrap();
        }
    }
}

/// The passages that are found in a place, and how many vectors were looked at for it.
async fn look(search: &dyn Search, place: (u8, u8), word: u8) -> (BTreeSet<(String, u64)>, u64) {
    let (ws, collection) = names(place);
    let vector = Some(("m".to_owned(), vec![1.0, f32::from(word)]));
    let query = SearchQuery { text: format!("word{word}"), vector, limit: 100 };
    let found = search.find(&ws, &collection, query).await.unwrap();
    let prefix = format!("{}-{}-", place.0, place.1);
    for passage in &found.passages {
        assert!(passage.document.id.starts_with(&prefix), "{} was found in {prefix}", passage.document.id);
    }
    (found.passages.into_iter().map(|found| (found.document.id, found.number)).collect(), found.compared)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_found_from_elsewhere_and_both_indexes_agree(steps in steps()) {
        let folder = TempDir::new().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (embedded, memory) = (EmbeddedSearch::new(folder.path()), MemorySearch::default());
            for step in &steps {
                take(&embedded, step).await;
                take(&memory, step).await;
            }
            let reopened = EmbeddedSearch::new(&folder.path().join("."));
            drop(embedded);
            for place in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                for word in 0..6 {
                    assert_eq!(look(&reopened, place, word).await, look(&memory, place, word).await);
                }
                let (ws, collection) = names(place);
                assert_eq!(
                    reopened.documents(&ws, &collection, None, 100).await.unwrap(),
                    memory.documents(&ws, &collection, None, 100).await.unwrap()
                );
            }
        });
    }
}
