//! What was acknowledged is there for the next process; what is not ours or damaged is named.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::contract::search::{document, found, put, with_vectors};
use trellis_orchestrator::ports::{Search, SearchError, SearchQuery};
use trellis_search::{EmbeddedSearch, check};

/// The folder of the only collection.
fn collection_folder(root: &Path) -> PathBuf {
    let only = |folder: &Path| fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    only(&only(root))
}

fn by_vector(vector: &[f32]) -> SearchQuery {
    SearchQuery { text: String::new(), vector: Some(("m".to_owned(), vector.to_vec())), limit: 10 }
}

#[tokio::test]
async fn documents_are_there_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let (ws, collection) = (Workspace::default(), Collection::default());
    {
        let search = EmbeddedSearch::new(folder.path());
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is made before it is needed");
        put(&search, vec![with_vectors(document("d", &["some words"]), "m", &[&[1.0, 0.0]])]).await;
        put(&search, vec![with_vectors(document("e", &["more words"]), "m", &[&[0.0, 1.0]])]).await;
    }
    let search = EmbeddedSearch::new(folder.path());
    assert_eq!(found(&search, "some").await, [("d".to_owned(), 0)]);
    let near = search.find(&ws, &collection, by_vector(&[0.0, 1.0])).await.unwrap();
    assert_eq!((near.passages[0].document.id.as_str(), near.compared), ("e", 2));
    put(&search, vec![document("f", &["even more words"])]).await;
    assert_eq!(found(&search, "even").await, [("f".to_owned(), 0)]);
}

#[tokio::test]
async fn more_collections_than_are_kept_open_work() {
    let folder = TempDir::new().unwrap();
    let search = EmbeddedSearch::new(folder.path());
    let ws = Workspace::default();
    let names: Vec<_> = (0..20).map(|n| Collection::new(&format!("c{n}")).unwrap()).collect();
    for round in 0..2 {
        for name in &names {
            let text = format!("round {round} of {name}");
            search.put(&ws, name, vec![document(&format!("d{round}"), &[&text])]).await.unwrap();
        }
    }
    for name in &names {
        let query = SearchQuery { text: "round".to_owned(), vector: None, limit: 10 };
        assert_eq!(search.find(&ws, name, query).await.unwrap().passages.len(), 2);
    }
}

#[tokio::test]
async fn damage_is_named_and_other_collections_work() {
    let folder = TempDir::new().unwrap();
    let (ws, collection) = (Workspace::default(), Collection::default());
    put(&EmbeddedSearch::new(folder.path()), vec![with_vectors(document("d", &["text"]), "m", &[&[1.0, 0.0]])]).await;
    let damaged = collection_folder(folder.path());
    let vectors = fs::read_dir(&damaged).unwrap().map(|entry| entry.unwrap().path());
    let vectors = vectors.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("vectors-"));
    for path in vectors.collect::<Vec<_>>() {
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(1).unwrap();
    }
    let search = EmbeddedSearch::new(folder.path());
    assert_eq!(found(&search, "text").await, [("d".to_owned(), 0)], "words need no vectors");
    let error = search.find(&ws, &collection, by_vector(&[1.0, 0.0])).await.unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");

    fs::write(damaged.join("meta.json"), "{").unwrap();
    let search = EmbeddedSearch::new(folder.path());
    let query = SearchQuery { text: "text".to_owned(), vector: None, limit: 10 };
    let error = search.find(&ws, &collection, query.clone()).await.unwrap_err();
    assert!(matches!(error, SearchError::Index { .. }), "{error}");
    let other = Collection::new("other").unwrap();
    search.put(&ws, &other, vec![document("d", &["text"])]).await.unwrap();
    assert_eq!(search.find(&ws, &other, query).await.unwrap().passages.len(), 1);
}

/// A file that is made anew would say that nothing is like anything.
#[tokio::test]
async fn vectors_that_are_gone_are_named_and_not_made_anew() {
    for size in [None, Some(0), Some(7)] {
        let folder = TempDir::new().unwrap();
        let (ws, collection) = (Workspace::default(), Collection::default());
        let first = with_vectors(document("d", &["some", "words"]), "m", &[&[1.0, 0.0], &[0.0, 1.0]]);
        put(&EmbeddedSearch::new(folder.path()), vec![first]).await;
        let checked = check(folder.path());
        assert_eq!((checked.collections, checked.faults.len()), (1, 0), "{checked:?}");
        let inside = fs::read_dir(collection_folder(folder.path())).unwrap().map(|entry| entry.unwrap().path());
        let is_vectors =
            |path: &PathBuf| path.extension().is_none() && path.display().to_string().contains("/vectors-");
        let vectors = inside.filter(is_vectors).collect::<Vec<_>>();
        match size {
            None => fs::remove_file(&vectors[0]).unwrap(),
            Some(size) => fs::OpenOptions::new().write(true).open(&vectors[0]).unwrap().set_len(size).unwrap(),
        }
        let name = vectors[0].display().to_string();
        let checked = check(folder.path());
        assert!(matches!(checked.faults.as_slice(), [only] if only.contains(&name)), "{checked:?}");
        let search = EmbeddedSearch::new(folder.path());
        let more = with_vectors(document("e", &["more"]), "m", &[&[1.0, 0.0]]);
        let refused = search.put(&ws, &collection, vec![more]).await.unwrap_err().to_string();
        assert!(refused.contains(&name) && refused.contains("trellis doctor"), "{refused}");
        assert_eq!(fs::metadata(&vectors[0]).ok().map(|file| file.len()), size, "it is left as it is");
        put(&search, vec![document("f", &["without vectors"])]).await;
    }
}

#[tokio::test]
async fn the_folder_of_somebody_else_is_not_taken() {
    let folder = TempDir::new().unwrap();
    let search = EmbeddedSearch::new(folder.path());
    put(&search, vec![document("d", &["text"])]).await;
    drop(search);
    let names = collection_folder(folder.path()).join("collection.json");
    for wrong in
        [r#"{"format":1,"workspace":"default","collection":"x"}"#, r#"{"format":2,"workspace":"a","collection":"b"}"#]
    {
        fs::write(&names, wrong).unwrap();
        let search = EmbeddedSearch::new(folder.path());
        let listed = search.documents(&Workspace::default(), &Collection::default(), None, 10).await;
        assert!(matches!(listed, Err(SearchError::Index { .. })), "{listed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_do_not_disturb_each_other() {
    let folder = TempDir::new().unwrap();
    let search = EmbeddedSearch::new(folder.path());
    let tasks: Vec<_> = (0..12_u8)
        .map(|n| {
            let search = search.clone();
            tokio::spawn(async move {
                let (ws, collection) = (Workspace::default(), Collection::new(&format!("c{}", n % 3)).unwrap());
                for round in 0..4_u8 {
                    let angle = f32::from(n * 4 + round) / 20.0;
                    let one: &[f32] = &[angle.cos(), angle.sin()];
                    let own = with_vectors(document(&format!("d{n}"), &[&format!("words of {n}")]), "m", &[one]);
                    match (n, round) {
                        (0, 2) => search.remove_collection(&ws, &collection).await.unwrap(),
                        _ => search.put(&ws, &collection, vec![own]).await.unwrap(),
                    }
                    let found = search.find(&ws, &collection, by_vector(one)).await.unwrap();
                    assert_eq!(found.passages.len() as u64, found.compared.min(10));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for n in 0..3 {
        let collection = Collection::new(&format!("c{n}")).unwrap();
        let listed = search.documents(&Workspace::default(), &collection, None, 100).await.unwrap();
        assert!(listed.len() <= 4 && (n == 0 || listed.len() == 4), "{n}: {listed:?}");
    }
}
