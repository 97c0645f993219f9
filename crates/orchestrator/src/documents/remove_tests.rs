use super::super::load::tests::{content, file, found, load, loader};
use super::*;
use trellis_domain::{Caller, Surface};

async fn remove(loader: &Loader, id: &str) -> Option<RemovedDocument> {
    loader.remove(&Workspace::default(), &Collection::default(), id).await.unwrap()
}

#[tokio::test]
async fn a_removed_document_is_neither_found_nor_kept_in_any_version() {
    let loader = loader(None);
    load(&loader, file("a.txt", "one fish")).await;
    load(&loader, file("a.txt", "two fish\nthree fish")).await;
    let other = load(&loader, file("b.txt", "four fish")).await;
    assert_eq!(remove(&loader, "a.txt").await, Some(RemovedDocument { passages: 2, versions: 2 }));
    assert_eq!(found(&loader, "fish").await.0, ["four fish"]);
    let kept = loader.library.list(&Workspace::default(), &Listing::All).await.unwrap();
    assert_eq!(kept.iter().map(|kept| kept.metadata.id.as_str()).collect::<Vec<_>>(), [other.text.as_str()]);
    assert_eq!(remove(&loader, "a.txt").await, None, "nothing is left to remove");
    let elsewhere = Collection::new("elsewhere").unwrap();
    assert_eq!(loader.remove(&Workspace::default(), &elsewhere, "b.txt").await.unwrap(), None);
    assert_eq!(content(&loader, &other.text).await, "four fish");
}

/// As a crash between the two leaves it.
#[tokio::test]
async fn what_is_left_of_a_removal_leaves_when_it_is_asked_for_again() {
    let loader = loader(None);
    load(&loader, file("a.html", "<one fish")).await;
    loader.search.remove(&Workspace::default(), &Collection::default(), "a.html").await.unwrap();
    assert_eq!(remove(&loader, "a.html").await, Some(RemovedDocument { passages: 0, versions: 1 }));
    assert!(
        loader.library.list(&Workspace::default(), &Listing::All).await.unwrap().is_empty(),
        "its text goes with it"
    );
}

#[tokio::test]
async fn a_version_that_leaves_the_library_is_not_found_and_its_successor_is() {
    let loader = loader(None);
    let first = load(&loader, file("a.txt", "one fish")).await;
    let second = load(&loader, file("a.txt", "two fish")).await;
    let ws = Workspace::default();
    loader.forget(&ws, &first.text).await.unwrap();
    assert_eq!(found(&loader, "fish").await.0, ["two fish"]);
    loader.forget(&ws, &second.text).await.unwrap();
    assert_eq!(found(&loader, "fish").await.0, [""; 0]);
    let page = load(&loader, file("b.html", "<three birds")).await;
    let source = page.text.strip_suffix("/text").unwrap();
    loader.forget(&ws, source).await.unwrap();
    loader.forget(&ws, "urn:nothing").await.unwrap();
    assert_eq!(found(&loader, "birds").await.0, [""; 0]);
}

#[tokio::test]
async fn who_loaded_a_document_and_when_is_on_record() {
    let loader = loader(None).by(Caller::new(Some("ada".to_owned()), Surface::CommandLine));
    let text = load(&loader, file("a.txt", "one fish")).await.text;
    let kept = loader.library.find(&Workspace::default(), &text).await.unwrap().unwrap().metadata;
    assert_eq!(kept.tags, ["collection:default", "searchable", "loaded-by:ada", "loaded-over:command-line"]);
    assert_eq!(kept.comments, "loaded as a.txt");
    assert!(kept.time.as_micros() > 0);
}
