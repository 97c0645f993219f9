//! Facts while somebody else removes their document, while a process dies, and while the budget ends.

use super::tests::{Meanwhile, extracting, extraction, facts, homes, place, try_load};
use super::{FactsBudget, FactsBudgets, FactsSpending};
use crate::documents::load::tests::{file, found, loader};
use crate::documents::{Extraction, LoadError, Loader, NewDocument};
use crate::memory::MemoryConfig;
use crate::memory::scripted::{SILENT, ScriptedPrompter};
use crate::ports::{
    Added, BoxFuture, Config, FoundPassages, IndexedDocument, JournalError, Knowledge, KnowledgeError, KnowledgePlace,
    LoadedCollection, QuadPattern, RealWorld, Search, SearchDocument, SearchError, SearchFuture, SearchQuery,
};
use futures_util::FutureExt;
use futures_util::future::{Either, join, select};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trellis_domain::rdf::Quad;
use trellis_domain::{Caller, Collection, Workspace};

/// More than two batches.
fn people() -> NewDocument {
    let lines = (0..40).map(|n| format!("Person{n} lives in London")).collect::<Vec<_>>().join("\n");
    file("a.txt", &lines)
}

/// Nothing in memory waits for anything.
fn now<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("it does not wait")
}

async fn nothing_is_left(loader: &Loader) {
    let left = loader.knowledge.matching(&place(), &QuadPattern::default(), 10).await.unwrap();
    assert_eq!(left, []);
    assert_eq!(loader.knowledge.collections(&Workspace::default()).await.unwrap(), []);
}

fn remove_document(loader: &Loader) {
    now(loader.remove(&Workspace::default(), &Collection::default(), "a.txt")).unwrap().unwrap();
}

fn remove_collection(loader: &Loader) {
    now(loader.search.remove_collection(&Workspace::default(), &Collection::default())).unwrap();
    now(loader.knowledge.remove(&place())).unwrap();
}

fn load_another(loader: &Loader) {
    let changed = file("a.txt", "Eve lives in Bonn");
    let unasked = loader.clone().extracting(None);
    now(unasked.load(&Workspace::default(), &Collection::default(), changed)).unwrap();
}

#[tokio::test]
async fn who_removes_a_document_while_it_is_read_removes_its_facts() {
    for (what, happens) in [
        ("the document", remove_document as fn(&Loader)),
        ("the collection", remove_collection),
        ("a changed file", load_another),
    ] {
        // Within the first batch, behind it, and when the last passage is asked about.
        for at in [3, 20, 40] {
            let (loader, model) = extracting();
            let meanwhile = loader.clone();
            *model.meanwhile.lock() = Some((at, Box::new(move || happens(&meanwhile))));
            let failed = try_load(&loader, people()).await.unwrap_err();
            assert!(matches!(&failed, LoadError::Facts { .. }), "{what} at {at}: {failed}");
            nothing_is_left(&loader).await;
        }
    }
}

#[tokio::test]
async fn removed_knowledge_of_a_document_that_stays_is_asked_for_anew() {
    let (loader, model) = extracting();
    let knowledge = Arc::clone(&loader.knowledge);
    let happens = move || {
        now(knowledge.remove(&place())).unwrap().unwrap();
    };
    *model.meanwhile.lock() = Some((20, Box::new(happens)));
    let failed = try_load(&loader, people()).await.unwrap_err().to_string();
    assert!(failed.contains("removed meanwhile"), "{failed}");
    nothing_is_left(&loader).await;
    assert_eq!(facts(&loader, people()).await.asked, 40);
}

/// Knowledge of which somebody is in the way of one call.
struct Disturbed {
    knowledge: Arc<dyn Knowledge>,
    /// Before so many batches more are added.
    before_add: Mutex<Option<(usize, Meanwhile)>>,
    /// Removals end after so many graphs.
    removing: Mutex<Option<usize>>,
}

impl std::fmt::Debug for Disturbed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Disturbed")
    }
}

impl Disturbed {
    fn over(loader: &Loader) -> (Loader, Arc<Self>) {
        let knowledge = Arc::clone(&loader.knowledge);
        let disturbed = Arc::new(Self { knowledge, before_add: Mutex::default(), removing: Mutex::default() });
        let mut loader = loader.clone();
        loader.knowledge = Arc::clone(&disturbed) as _;
        (loader, disturbed)
    }
}

impl Knowledge for Disturbed {
    fn add<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        quads: Vec<Quad>,
    ) -> BoxFuture<'a, Result<Added, KnowledgeError>> {
        let due = {
            let mut before = self.before_add.lock();
            if let Some((left, _)) = &mut *before {
                *left = left.saturating_sub(1);
            }
            before.take_if(|(left, _)| *left == 0)
        };
        if let Some((_, happens)) = due {
            happens();
        }
        self.knowledge.add(place, source, quads)
    }

    fn finish<'a>(&'a self, place: &'a KnowledgePlace, source: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        self.knowledge.finish(place, source)
    }

    fn note_loader<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        self.knowledge.note_loader(place, source, caller)
    }

    fn save<'a>(&'a self, place: &'a KnowledgePlace, source: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        self.knowledge.save(place, source)
    }

    fn collections<'a>(
        &'a self,
        workspace: &'a Workspace,
    ) -> BoxFuture<'a, Result<Vec<LoadedCollection>, KnowledgeError>> {
        self.knowledge.collections(workspace)
    }

    fn remove<'a>(&'a self, place: &'a KnowledgePlace) -> BoxFuture<'a, Result<Option<u64>, KnowledgeError>> {
        self.knowledge.remove(place)
    }

    fn remove_graphs<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        graphs: &'a [String],
    ) -> BoxFuture<'a, Result<u64, KnowledgeError>> {
        Box::pin(async move {
            let Some(stops) = self.removing.lock().take() else {
                return self.knowledge.remove_graphs(place, source, graphs).await;
            };
            self.knowledge.remove_graphs(place, "nobody", &graphs[..stops.min(graphs.len())]).await?;
            Err(JournalError::Write("the process died".to_owned()).into())
        })
    }

    fn matching<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        pattern: &'a QuadPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Quad>, KnowledgeError>> {
        self.knowledge.matching(place, pattern, limit)
    }
}

/// What says how many passages there are is gone when their facts arrive.
#[tokio::test]
async fn facts_that_arrive_behind_a_removal_leave_again() {
    for add in 2..=8 {
        let (plain, _) = extracting();
        let (loader, disturbed) = Disturbed::over(&plain);
        let meanwhile = plain.clone();
        *disturbed.before_add.lock() = Some((add, Box::new(move || remove_document(&meanwhile))));
        let failed = try_load(&loader, people()).await.unwrap_err();
        assert!(matches!(&failed, LoadError::Facts { .. }), "before batch {add}: {failed}");
        assert!(disturbed.before_add.lock().is_none(), "it happened");
        nothing_is_left(&plain).await;
    }
}

/// A search index that cannot say whether a document is there, some times.
#[derive(Debug)]
struct Silent {
    search: Arc<dyn Search>,
    left: AtomicUsize,
}

impl Silent {
    fn over(loader: &Loader) -> (Loader, Arc<Self>) {
        let silent = Arc::new(Self { search: Arc::clone(&loader.search), left: AtomicUsize::new(0) });
        let mut loader = loader.clone();
        loader.search = Arc::clone(&silent) as _;
        (loader, silent)
    }
}

impl Search for Silent {
    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        documents: Vec<SearchDocument>,
    ) -> SearchFuture<'a, ()> {
        self.search.put(workspace, collection, documents)
    }

    fn remove<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        document: &'a str,
    ) -> SearchFuture<'a, bool> {
        self.search.remove(workspace, collection, document)
    }

    fn remove_all<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        documents: &'a [String],
    ) -> SearchFuture<'a, u64> {
        self.search.remove_all(workspace, collection, documents)
    }

    fn remove_collection<'a>(&'a self, workspace: &'a Workspace, collection: &'a Collection) -> SearchFuture<'a, ()> {
        self.search.remove_collection(workspace, collection)
    }

    fn find<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        query: SearchQuery,
    ) -> SearchFuture<'a, FoundPassages> {
        self.search.find(workspace, collection, query)
    }

    fn document<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        id: &'a str,
    ) -> SearchFuture<'a, Option<IndexedDocument>> {
        let less = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return Box::pin(std::future::ready(Err(SearchError::Busy)));
        }
        self.search.document(workspace, collection, id)
    }

    fn documents<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        after: Option<&'a str>,
        limit: usize,
    ) -> SearchFuture<'a, Vec<IndexedDocument>> {
        self.search.documents(workspace, collection, after, limit)
    }
}

/// The document is removed just before its facts are written, and nobody can tell afterwards that it was.
#[tokio::test]
async fn facts_leave_if_nobody_can_tell_whether_their_document_is_there() {
    for busy in [1, 3, 100] {
        let (plain, _) = extracting();
        let (silent_loader, silent) = Silent::over(&plain);
        let (loader, disturbed) = Disturbed::over(&silent_loader);
        let meanwhile = plain.clone();
        let happens = move || {
            remove_document(&meanwhile);
            silent.left.store(busy, Ordering::Relaxed);
        };
        *disturbed.before_add.lock() = Some((2, Box::new(happens)));
        let failed = try_load(&loader, people()).await.unwrap_err();
        assert!(matches!(&failed, LoadError::Facts { .. }), "busy {busy} times: {failed}");
        nothing_is_left(&plain).await;
    }
    // A document that is still there keeps them if it can be told in the end.
    let (plain, _) = extracting();
    let (silent_loader, silent) = Silent::over(&plain);
    let (loader, disturbed) = Disturbed::over(&silent_loader);
    *disturbed.before_add.lock() = Some((2, Box::new(move || silent.left.store(2, Ordering::Relaxed))));
    assert_eq!((facts(&loader, people()).await.asked, homes(&plain).await.len()), (40, 40));
}

/// As a process that dies leaves it: the document was removed while its first batch was on its way.
#[tokio::test]
async fn what_a_process_that_died_left_of_a_removed_document_is_swept_away() {
    let (loader, _) = extracting();
    let kept = try_load(&loader, file("b.txt", "Bob lives in Rome")).await.unwrap();
    let config = MemoryConfig::new(Arc::new(RealWorld));
    config.put(&Workspace::default(), Vec::new(), Caller::program()).await.unwrap();
    let gone = "urn:trellis:document:00000000000000000000000000000000";
    let begun = super::notes::begin(gone, 1);
    let fact = Quad { g: Some(super::names::passage(gone, 0)), ..begun.clone() };
    loader.knowledge.add(&place(), gone, vec![begun.clone(), fact.clone()]).await.unwrap();
    // The same from somebody else's file is theirs, and what is being loaded stays.
    let theirs = Quad { g: None, ..fact };
    loader.knowledge.add(&place(), "export.nq", vec![theirs]).await.unwrap();
    let unfinished = super::notes::begin(&kept.text, 7);
    loader.knowledge.add(&place(), &kept.text, vec![unfinished]).await.unwrap();
    assert_eq!(loader.forget_orphans(&config).await.unwrap(), 1);
    let left = loader.knowledge.matching(&place(), &QuadPattern::default(), 1000).await.unwrap();
    let of_gone: Vec<_> = left.iter().filter(|quad| quad.s == begun.s).collect();
    assert_eq!(of_gone.iter().map(|quad| &quad.g).collect::<Vec<_>>(), [&None]);
    assert_eq!(homes(&loader).await.len(), 1);
    assert_eq!(loader.forget_orphans(&config).await.unwrap(), 0);
}

/// Its facts are not taken for whole because some notes are left of it.
#[tokio::test]
async fn a_document_whose_removal_broke_off_is_asked_about_anew() {
    for stops in [0, 1, 20, 40, 41, 42, 43] {
        let (loader, model) = extracting();
        let (disturbed_loader, disturbed) = Disturbed::over(&loader);
        try_load(&loader, people()).await.unwrap();
        *disturbed.removing.lock() = Some(stops);
        let removed = disturbed_loader.remove(&Workspace::default(), &Collection::default(), "a.txt").await;
        assert!(removed.is_err(), "it broke off");
        model.asked();
        let again = facts(&loader, people()).await;
        assert_eq!((again.asked, homes(&loader).await.len()), (40, 40), "after {stops} graphs");
        remove_document(&loader);
        nothing_is_left(&loader).await;
    }
}

#[tokio::test]
async fn a_budget_that_is_used_up_leaves_passages_for_another_load() {
    let (loader, extraction, model) = extraction();
    let budget = |calls| FactsBudget { calls, tokens: u64::MAX };
    let within = |of_load, of_day, spending: &FactsSpending| {
        let budgets = FactsBudgets { of_load: budget(of_load), of_day: budget(of_day) };
        loader.clone().extracting(Some(extraction.clone().within(budgets, spending.clone())))
    };
    let spending = FactsSpending::default();
    let small = within(25, 60, &spending);
    let first = facts(&small, people()).await;
    assert_eq!((first.asked, first.unanswered, first.over_budget, model.asked().len()), (25, 15, 15, 25));
    let listed = loader.knowledge.collections(&Workspace::default()).await.unwrap();
    assert_eq!(listed[0].unfinished.len(), 1, "it is not whole");
    let outcome = QuadPattern {
        p: Some(trellis_domain::rdf::Term::iri(super::names::words::OVER_BUDGET)),
        ..QuadPattern::default()
    };
    let noted = loader.knowledge.matching(&place(), &outcome, 10).await.unwrap();
    assert_eq!(noted.iter().map(|quad| quad.o.text()).collect::<Vec<_>>(), ["15"]);
    let second = facts(&small, people()).await;
    assert_eq!((second.asked, second.over_budget, homes(&loader).await.len()), (15, 0, 40));
    assert!(loader.knowledge.matching(&place(), &outcome, 10).await.unwrap().is_empty(), "nothing is left open");
    let other = file("b.txt", &(0..30).map(|n| format!("Eve{n} lives in Bonn")).collect::<Vec<_>>().join("\n"));
    let third = facts(&small, other.clone()).await;
    assert_eq!((third.asked, third.over_budget), (20, 10), "the day of the workspace ends earlier");
    let fourth = facts(&small, other.clone()).await;
    assert_eq!((fourth.asked, fourth.over_budget), (0, 10));
    let tokens = FactsBudgets { of_load: FactsBudget { calls: 9, tokens: 0 }, of_day: budget(9) };
    let none = loader.clone().extracting(Some(extraction.within(tokens, FactsSpending::default())));
    assert_eq!(facts(&none, other).await.asked, 0);
}

/// Whoever waits has a whole document in memory, and the model may take hours for others.
#[tokio::test(start_paused = true)]
async fn a_third_document_of_a_workspace_is_found_and_told_to_come_again() {
    let prompter = ScriptedPrompter::new(|_| Err::<String, _>(SILENT.to_owned()));
    let extraction = Extraction::new(Arc::new(prompter), Arc::new(MemoryConfig::new(Arc::new(RealWorld))), "test/m");
    let loader = loader(None).extracting(Some(extraction));
    let load = |id: &'static str| try_load(&loader, file(id, "Ada lives in London"));
    let others = join(load("a.txt"), load("b.txt"));
    let Either::Right((third, _)) = select(Box::pin(others), Box::pin(load("c.txt"))).await else {
        panic!("nobody answers the others")
    };
    assert!(matches!(&third, Err(LoadError::FactsBusy)), "{third:?}");
    assert_eq!(found(&loader, "Ada").await.0.len(), 3, "all three can be searched");
}
