use super::*;
use crate::memory::{MemoryJournal, MemoryKnowledge, MemoryLibrary, MemorySearch};
use crate::ports::{BoxFuture, FoundPassages, Listing, Place, RealWorld, SearchFuture, SearchQuery};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Reads a line as a passage. Files that begin with `!` are broken, those with `<` have to be converted.
#[derive(Debug)]
struct Lines;

impl DocumentReader for Lines {
    fn read<'a>(&'a self, _: &'a str, content: Vec<u8>) -> BoxFuture<'a, Result<ReadDocument, ReadError>> {
        let text = String::from_utf8(content).unwrap();
        if text.starts_with('!') {
            return Box::pin(std::future::ready(Err(ReadError::Unreadable("it is broken".to_owned()))));
        }
        let extracted = text.strip_prefix('<').map(str::to_owned);
        let read_text = extracted.clone().unwrap_or(text);
        let passages = read_text.lines().zip(1..).map(|(line, number)| Passage {
            text: line.to_owned(),
            place: Place { headings: vec![], bytes: 0..line.len() as u64, lines: (number, number) },
        });
        let read = ReadDocument { title: None, passages: passages.collect(), extracted };
        Box::pin(std::future::ready(Ok(read)))
    }

    fn version(&self) -> &'static str {
        "1"
    }
}

/// Texts about the sea go one way, all others another.
#[derive(Debug, Default)]
struct Sea {
    texts: AtomicUsize,
    is_down: AtomicBool,
}

impl Embedder for Sea {
    fn model(&self) -> &'static str {
        "test/sea"
    }

    fn embed(&self, texts: Vec<String>, _: TextRole) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        let vector = |text: &String| {
            let wet = ["sea", "ship", "ocean"].iter().any(|word| text.contains(word));
            if wet { vec![1.0, 0.0] } else { vec![0.0, 1.0] }
        };
        let failed = EmbedError::Permanent { reason: "it is down".to_owned() };
        let vectors =
            if self.is_down.load(Ordering::Relaxed) { Err(failed) } else { Ok(texts.iter().map(vector).collect()) };
        Box::pin(std::future::ready(vectors))
    }
}

pub(in crate::documents) fn loader(embedder: Option<Arc<dyn Embedder>>) -> Loader {
    let world: Arc<dyn World> = Arc::new(RealWorld);
    let library = MemoryLibrary::new(Arc::new(MemoryJournal::default()), Arc::clone(&world));
    let search = Arc::new(MemorySearch::default());
    let knowledge = Arc::new(MemoryKnowledge::default());
    Loader::new(Arc::new(library), search, Arc::new(Lines), embedder, knowledge, world)
}

pub(in crate::documents) fn file(id: &str, content: &str) -> NewDocument {
    NewDocument { id: id.into(), title: None, kind: "text/plain".into(), content: content.into() }
}

pub(in crate::documents) async fn load(loader: &Loader, document: NewDocument) -> Loaded {
    loader.load(&Workspace::default(), &Collection::default(), document).await.unwrap()
}

pub(in crate::documents) async fn content(loader: &Loader, id: &str) -> String {
    let ws = Workspace::default();
    let document = loader.library.find(&ws, id).await.unwrap().unwrap();
    String::from_utf8(loader.library.read(&ws, &document, 0..u64::MAX).await.unwrap()).unwrap()
}

pub(in crate::documents) async fn found(loader: &Loader, question: &str) -> (Vec<String>, Option<String>) {
    let found = loader.retriever().find(&Workspace::default(), &Collection::default(), question, 5).await.unwrap();
    (found.passages.into_iter().map(|found| found.passage.text).collect(), found.words_only)
}

#[tokio::test]
async fn a_loaded_document_is_found_and_its_source_can_be_opened() {
    let loader = loader(None);
    let document = load(&loader, file("a.txt", "one fish\ntwo birds")).await;
    assert_eq!((document.outcome, document.passages, document.title.as_str()), (Outcome::Added, 2, "a.txt"));
    assert_eq!(content(&loader, &document.text).await, "one fish\ntwo birds");
    let (passages, words_only) = found(&loader, "bird").await;
    assert_eq!(passages, ["two birds"]);
    assert_eq!(words_only.as_deref(), Some("no embedding model is configured"));
}

#[tokio::test]
async fn loading_again_changes_nothing_and_a_changed_document_is_replaced() {
    let sea = Arc::new(Sea::default());
    let loader = loader(Some(Arc::clone(&sea) as _));
    let first = load(&loader, file("a.txt", "one fish\ntwo birds")).await;
    let again = load(&loader, file("a.txt", "one fish\ntwo birds")).await;
    assert_eq!(again, Loaded { outcome: Outcome::Unchanged, ..first.clone() });
    assert_eq!(sea.texts.load(Ordering::Relaxed), 2, "no vectors are made twice");
    let changed = load(&loader, file("a.txt", "three fish")).await;
    assert_eq!(changed.outcome, Outcome::Replaced);
    assert_eq!(found(&loader, "fish").await.0, ["three fish"]);
    assert_eq!(content(&loader, &first.text).await, "one fish\ntwo birds", "what runs have cited can still be opened");
    let renamed = load(&loader, NewDocument { title: Some("Fish".into()), ..file("a.txt", "three fish") }).await;
    assert_eq!((renamed.outcome, renamed.title.as_str()), (Outcome::Replaced, "Fish"));
}

#[tokio::test]
async fn the_text_of_a_converted_document_is_kept_beside_it() {
    let loader = loader(None);
    let document = load(&loader, file("a.html", "<some text")).await;
    assert_eq!(content(&loader, &document.text).await, "some text");
    let text = loader.library.find(&Workspace::default(), &document.text).await.unwrap().unwrap();
    let source = text.metadata.parent.unwrap();
    assert_eq!(content(&loader, &source).await, "<some text");
    let all = loader.library.list(&Workspace::default(), &Listing::All).await.unwrap();
    assert_eq!(all.len(), 2);
}

#[tokio::test]
async fn meaning_finds_what_words_do_not_and_words_help_out() {
    let sea = Arc::new(Sea::default());
    let loader = loader(Some(Arc::clone(&sea) as _));
    load(&loader, file("a.txt", "a large ship\nsome hill")).await;
    assert_eq!(found(&loader, "ocean").await, (vec!["a large ship".to_owned(), "some hill".to_owned()], None));
    sea.is_down.store(true, Ordering::Relaxed);
    let (passages, words_only) = found(&loader, "hill").await;
    assert_eq!(passages, ["some hill"]);
    assert_eq!(words_only.as_deref(), Some("the embedding model failed: it is down"));
}

#[tokio::test]
async fn what_fails_leaves_nothing_behind_and_others_are_loaded() {
    let sea = Arc::new(Sea::default());
    let loader = loader(Some(Arc::clone(&sea) as _));
    let (ws, collection) = (Workspace::default(), Collection::default());
    sea.is_down.store(true, Ordering::Relaxed);
    let failed = loader.load(&ws, &collection, file("a.txt", "fish")).await.unwrap_err();
    assert_eq!(failed.to_string(), "no vectors could be made: it is down");
    assert!(loader.library.list(&ws, &Listing::All).await.unwrap().is_empty());
    sea.is_down.store(false, Ordering::Relaxed);
    let files = [file("a", "one"), file("b", "!two"), file("a", "three"), file("c", "four"), file("c", "four")];
    let results = loader.load_all(&ws, &collection, files).await;
    let outcomes: Vec<_> = results.into_iter().map(|result| result.map(|loaded| loaded.outcome).ok()).collect();
    let expected =
        [Some(Outcome::Added), None, Some(Outcome::Replaced), Some(Outcome::Added), Some(Outcome::Unchanged)];
    assert_eq!(outcomes, expected);
}

/// An index that refuses some documents.
#[derive(Debug, Default)]
struct Picky(MemorySearch);

impl Search for Picky {
    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        documents: Vec<SearchDocument>,
    ) -> SearchFuture<'a, ()> {
        if documents.iter().any(|document| document.passages.iter().any(|passage| passage.text.contains("unwanted"))) {
            return Box::pin(std::future::ready(Err(SearchError::Invalid("it is unwanted".to_owned()))));
        }
        self.0.put(workspace, collection, documents)
    }

    fn remove<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        id: &'a str,
    ) -> SearchFuture<'a, bool> {
        self.0.remove(workspace, collection, id)
    }

    fn remove_collection<'a>(&'a self, workspace: &'a Workspace, collection: &'a Collection) -> SearchFuture<'a, ()> {
        self.0.remove_collection(workspace, collection)
    }

    fn document<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        id: &'a str,
    ) -> SearchFuture<'a, Option<IndexedDocument>> {
        self.0.document(workspace, collection, id)
    }

    fn documents<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        after: Option<&'a str>,
        limit: usize,
    ) -> SearchFuture<'a, Vec<IndexedDocument>> {
        self.0.documents(workspace, collection, after, limit)
    }

    fn find<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        query: SearchQuery,
    ) -> SearchFuture<'a, FoundPassages> {
        self.0.find(workspace, collection, query)
    }
}

#[tokio::test]
async fn a_document_that_is_refused_keeps_no_others_out() {
    let mut loader = loader(None);
    loader.search = Arc::new(Picky::default());
    let files = (0..64).map(|n| file(&format!("{n}.txt"), if n == 30 { "unwanted fish" } else { "one fish" }));
    let results = loader.load_all(&Workspace::default(), &Collection::default(), files).await;
    let failed: Vec<_> = results.iter().zip(0..).filter(|(result, _)| result.is_err()).map(|(_, n)| n).collect();
    assert_eq!((failed, results.len()), (vec![30], 64));
}
