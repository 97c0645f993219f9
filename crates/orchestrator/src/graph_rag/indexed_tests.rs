use super::*;
use crate::memory::{MemoryKnowledge, MemorySearch};
use crate::ports::{FoundPassages, IndexedDocument, Search, SearchDocument, SearchFuture, SearchQuery};
use std::sync::atomic::{AtomicBool, Ordering};
use trellis_domain::Collection;
use trellis_domain::rdf::Term;

/// An index that can be told to fail.
#[derive(Debug, Default)]
struct Unreliable {
    index: MemorySearch,
    fails: AtomicBool,
}

impl Search for Unreliable {
    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        documents: Vec<SearchDocument>,
    ) -> SearchFuture<'a, ()> {
        if self.fails.load(Ordering::Relaxed) {
            let why = "the disk is full".to_owned();
            return Box::pin(std::future::ready(Err(SearchError::Index { doing: "written", why })));
        }
        self.index.put(workspace, collection, documents)
    }

    fn remove<'a>(&'a self, workspace: &'a Workspace, at: &'a Collection, id: &'a str) -> SearchFuture<'a, bool> {
        self.index.remove(workspace, at, id)
    }

    fn remove_collection<'a>(&'a self, workspace: &'a Workspace, collection: &'a Collection) -> SearchFuture<'a, ()> {
        self.index.remove_collection(workspace, collection)
    }

    fn find<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        query: SearchQuery,
    ) -> SearchFuture<'a, FoundPassages> {
        self.index.find(workspace, collection, query)
    }

    fn document<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        id: &'a str,
    ) -> SearchFuture<'a, Option<IndexedDocument>> {
        self.index.document(workspace, collection, id)
    }

    fn documents<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        after: Option<&'a str>,
        limit: usize,
    ) -> SearchFuture<'a, Vec<IndexedDocument>> {
        self.index.documents(workspace, collection, after, limit)
    }
}

fn place() -> KnowledgePlace {
    KnowledgePlace { workspace: Workspace::default(), collection: Collection::default() }
}

fn quads(named: impl IntoIterator<Item = String>) -> Vec<Quad> {
    let quad = |name: String| Quad {
        s: Term::iri(format!("http://ex.org/{name}")),
        p: Term::iri("http://ex.org/is"),
        o: Term::literal("there"),
        g: None,
    };
    named.into_iter().map(quad).collect()
}

fn indexed() -> (IndexedKnowledge, Arc<Unreliable>) {
    let search = Arc::new(Unreliable::default());
    let names = EntityNames { search: Arc::clone(&search) as _, embedder: None };
    (IndexedKnowledge::new(Arc::new(MemoryKnowledge::default()), names), search)
}

async fn finds(knowledge: &IndexedKnowledge, name: &str) -> bool {
    let found = knowledge.names.find(&place(), &[name.to_owned()], 5).await.unwrap();
    found.entities.iter().any(|entity| entity.iri.ends_with(name))
}

/// How many sources are whole.
async fn finished(knowledge: &IndexedKnowledge) -> u64 {
    knowledge.collections(&Workspace::default()).await.unwrap()[0].sources
}

#[tokio::test]
async fn names_that_could_not_be_written_are_written_with_the_next_attempt() {
    let (knowledge, search) = indexed();
    search.fails.store(true, Ordering::Relaxed);
    let many = quads((0..9_000).map(|number| format!("thing{number}")));
    assert!(knowledge.add(&place(), "file", many).await.is_err());
    assert!(knowledge.finish(&place(), "file").await.is_err());
    assert_eq!(finished(&knowledge).await, 0);
    search.fails.store(false, Ordering::Relaxed);
    knowledge.finish(&place(), "file").await.unwrap();
    assert!(finds(&knowledge, "thing8999").await && finds(&knowledge, "thing0").await);
    assert_eq!(finished(&knowledge).await, 1);
}

#[tokio::test]
async fn names_of_one_source_that_are_lost_concern_nobody_else_and_keep_it_from_being_finished() {
    let (knowledge, search) = indexed();
    knowledge.add(&place(), "first", quads(["Alpha".to_owned()])).await.unwrap();
    search.fails.store(true, Ordering::Relaxed);
    for number in 0..40 {
        let source = format!("other{number}");
        knowledge.add(&place(), &source, quads([format!("Beta{number}")])).await.unwrap();
    }
    search.fails.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        let error = knowledge.finish(&place(), "first").await.unwrap_err().to_string();
        assert!(error.contains("`first` is not whole") && error.contains("load it again"), "{error}");
    }
    assert_eq!(finished(&knowledge).await, 0);
    knowledge.finish(&place(), "other39").await.unwrap();
    assert!(finds(&knowledge, "Beta39").await && !finds(&knowledge, "Alpha").await);
    knowledge.add(&place(), "first", quads(["Alpha".to_owned()])).await.unwrap();
    knowledge.finish(&place(), "first").await.unwrap();
    assert!(finds(&knowledge, "Alpha").await);
}

#[tokio::test]
async fn names_of_a_caller_who_leaves_are_not_lost() {
    let (knowledge, _) = indexed();
    let key = SourceKey { place: place(), source: "file".to_owned() };
    let names = names_in(&quads(["Alpha".to_owned()]));
    knowledge.open.lock().collect(&key, names);
    let due = knowledge.open.lock().rest(&key).unwrap();
    // Made, and never looked at again.
    drop(Writing { open: &knowledge.open, unwritten: due });
    knowledge.finish(&place(), "file").await.unwrap();
    assert!(finds(&knowledge, "Alpha").await);
}

#[tokio::test]
async fn names_leave_with_the_last_graph_that_has_them() {
    let (knowledge, _) = indexed();
    let graph = |document: &str| format!("urn:trellis:document:{document}/passage/0");
    let said = |document: &str, name: &str| {
        quads([name.to_owned()]).into_iter().map(|quad| Quad { g: Some(graph(document)), ..quad }).collect::<Vec<_>>()
    };
    for (document, names) in [("a", ["Ada", "Bob"]), ("b", ["Ada", "Eve"])] {
        for name in names {
            knowledge.add(&place(), document, said(document, name)).await.unwrap();
        }
        knowledge.finish(&place(), document).await.unwrap();
    }
    knowledge.remove_graphs(&place(), "a", &[graph("a")]).await.unwrap();
    assert!(finds(&knowledge, "Ada").await && finds(&knowledge, "Eve").await, "another document speaks of them");
    assert!(!finds(&knowledge, "Bob").await, "nobody speaks of it any more");
    // What waits to be written is not written for a source that has left.
    knowledge.add(&place(), "c", said("c", "Kim")).await.unwrap();
    knowledge.remove_graphs(&place(), "c", &[graph("c")]).await.unwrap();
    knowledge.finish(&place(), "c").await.unwrap();
    assert!(!finds(&knowledge, "Kim").await);
    knowledge.remove_graphs(&place(), "b", &[graph("b")]).await.unwrap();
    assert!(!finds(&knowledge, "Ada").await);
}
