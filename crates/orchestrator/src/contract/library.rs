//! The contract of the library.

use super::journal::{committed, end, first};
use crate::library::{LARGEST_DOCUMENT, MOST_UPLOADS, UPLOAD_AGE_MS, add};
use crate::ports::{
    BoxFuture, DocumentMetadata, Journal, Library, LibraryError, Listing, MetadataChanges, Processing, RealWorld,
    StoredDocument, World,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trellis_domain::rdf::{Term, Triple};
use trellis_domain::{Hash, Timestamp, Workspace};

/// A library and the journal of the runs whose texts it has.
pub type LibraryStore = (Arc<dyn Library>, Arc<dyn Journal>);

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct Clock(AtomicU64);

impl Clock {
    pub fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl World for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0).plus_ms(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn fresh_id(&self) -> String {
        RealWorld.fresh_id()
    }
}

pub async fn suite<F: Future<Output = LibraryStore>>(fresh: impl Fn(Arc<dyn World>) -> F) {
    let library = async || fresh(Arc::new(RealWorld)).await.0;
    a_document_comes_back_as_it_was_added(&*library().await).await;
    wrong_documents_are_refused(&*library().await).await;
    what_is_said_about_a_document_can_change(&*library().await).await;
    a_document_goes_with_all_that_was_taken_from_it(&*library().await).await;
    pieces_come_in_any_order_and_the_document_is_seen_when_complete(&*library().await).await;
    wrong_pieces_are_refused_and_nothing_is_lost(&*library().await).await;
    a_replaced_document_is_never_mixed_with_its_predecessor(&*library().await).await;
    processings_are_kept_and_listed(&*library().await).await;
    workspaces_are_apart(&*library().await).await;
    the_texts_of_runs_are_read_and_left_alone(fresh(Arc::new(RealWorld)).await).await;
    let clock = Arc::new(Clock::default());
    let (library, _) = fresh(Arc::clone(&clock) as _).await;
    abandoned_uploads_are_few_and_end_by_themselves(&*library, &clock).await;
}

/// A document without content yet.
pub fn named(id: &str) -> DocumentMetadata {
    DocumentMetadata {
        id: id.to_owned(),
        kind: "text/plain".to_owned(),
        document_type: "source".to_owned(),
        parent: None,
        time: Timestamp::from_micros(1_700_000_000_000_000),
        title: format!("Title of {id}"),
        comments: "a comment".to_owned(),
        metadata: vec![Triple { s: Term::iri(id), p: Term::iri("urn:p"), o: Term::literal("o") }],
        tags: vec!["a".to_owned(), "b".to_owned()],
    }
}

fn child(id: &str, parent: &str) -> DocumentMetadata {
    DocumentMetadata { parent: Some(parent.to_owned()), document_type: "page".to_owned(), ..named(id) }
}

/// All of a document's content.
pub async fn content(library: &dyn Library, document: &StoredDocument) -> Vec<u8> {
    library.read(&Workspace::default(), document, 0..u64::MAX).await.expect("the document is there")
}

async fn ids(library: &dyn Library, listing: Listing) -> Vec<String> {
    let listed = library.list(&Workspace::default(), &listing).await.expect("the store works");
    listed.into_iter().map(|document| document.metadata.id).collect()
}

async fn found(library: &dyn Library, id: &str) -> Option<StoredDocument> {
    library.find(&Workspace::default(), id).await.expect("the store works")
}

async fn a_document_comes_back_as_it_was_added(library: &dyn Library) {
    let ws = Workspace::default();
    for (id, size) in [("urn:d/empty", 0), ("small", 5), ("large", (2 << 20) + 77)] {
        let bytes: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).expect("below 251")).collect();
        let added = add(library, &ws, named(id), &bytes).await.expect("a good document");
        assert_eq!((added.size, added.sha256), (size, Hash::of(&bytes)));
        assert_eq!(added.metadata, named(id), "nothing that was said is lost");
        assert_eq!(found(library, id).await.as_ref(), Some(&added));
        assert_eq!(content(library, &added).await, bytes);
    }
    assert_eq!(ids(library, Listing::TopLevel).await, ["large", "small", "urn:d/empty"]);
    assert!(library.uploads(&ws).await.expect("the store works").is_empty(), "nothing is left over");
    assert!(found(library, "nothing").await.is_none());
}

async fn wrong_documents_are_refused(library: &dyn Library) {
    let ws = Workspace::default();
    add(library, &ws, named("d"), b"first").await.expect("a good document");
    let refused = async |document: DocumentMetadata| add(library, &ws, document, b"second").await.expect_err("refused");
    assert!(matches!(refused(named("d")).await, LibraryError::Exists(id) if id == "d"));
    assert!(matches!(refused(DocumentMetadata { kind: String::new(), ..named("k") }).await, LibraryError::NoKind));
    for id in ["", "a\0b", "a\nb", &"i".repeat(1001)] {
        assert!(matches!(refused(named(id)).await, LibraryError::BadId { .. }), "{id:?}");
    }
    assert!(matches!(refused(child("c", "nobody")).await, LibraryError::NotFound(id) if id == "nobody"));
    let long = DocumentMetadata { comments: "c".repeat(300 << 10), ..named("l") };
    assert!(matches!(refused(long).await, LibraryError::TooLarge { .. }));
    let huge = library.begin(&ws, named("h"), LARGEST_DOCUMENT + 1, 1 << 20).await.expect_err("refused");
    assert!(matches!(huge, LibraryError::TooLarge { .. }));
    let document = found(library, "d").await.expect("it is still there");
    assert_eq!(content(library, &document).await, b"first", "the first one is untouched");
    assert_eq!(ids(library, Listing::All).await, ["d"]);
    assert!(library.uploads(&ws).await.expect("the store works").is_empty(), "nothing is left over");
}

async fn what_is_said_about_a_document_can_change(library: &dyn Library) {
    let ws = Workspace::default();
    let before = add(library, &ws, named("d"), b"text").await.expect("a good document");
    let changes =
        MetadataChanges { title: Some("new".to_owned()), tags: Some(Vec::new()), ..MetadataChanges::default() };
    let after = library.update(&ws, "d", changes).await.expect("it is there");
    let expected = DocumentMetadata { title: "new".to_owned(), tags: Vec::new(), ..before.metadata.clone() };
    assert_eq!(after, StoredDocument { metadata: expected, ..before }, "the rest stays");
    assert_eq!(found(library, "d").await.as_ref(), Some(&after));
    assert_eq!(content(library, &after).await, b"text");
    let unknown = library.update(&ws, "nothing", MetadataChanges::default()).await.expect_err("refused");
    assert!(matches!(unknown, LibraryError::NotFound(_)));
}

async fn a_document_goes_with_all_that_was_taken_from_it(library: &dyn Library) {
    let ws = Workspace::default();
    for document in [named("d"), named("e"), child("p1", "d"), child("p2", "d"), child("c", "p1"), child("x", "e")] {
        add(library, &ws, document, b"text").await.expect("a good document");
    }
    let answer = DocumentMetadata { document_type: "answer".to_owned(), ..named("answer") };
    add(library, &ws, answer, b"text").await.expect("a good document");
    assert_eq!(ids(library, Listing::TopLevel).await, ["d", "e"]);
    assert_eq!(ids(library, Listing::ChildrenOf("d".to_owned())).await, ["p1", "p2"]);
    assert_eq!(ids(library, Listing::All).await.len(), 7);
    library.remove(&ws, "d").await.expect("it is there");
    assert_eq!(ids(library, Listing::All).await, ["answer", "e", "x"], "children and their children are gone");
    assert!(ids(library, Listing::ChildrenOf("d".to_owned())).await.is_empty());
    assert!(matches!(library.remove(&ws, "d").await, Err(LibraryError::NotFound(_))));
    let again = add(library, &ws, named("d"), b"another").await.expect("the name is free again");
    assert_eq!(content(library, &again).await, b"another");
}

async fn pieces_come_in_any_order_and_the_document_is_seen_when_complete(library: &dyn Library) {
    let ws = Workspace::default();
    let upload = library.begin(&ws, named("d"), 10, 4).await.expect("a good document");
    assert_eq!((upload.piece, upload.pieces()), (4, 3));
    for (index, piece, received) in [(2, "ij", 2), (0, "xxxx", 6), (0, "abcd", 6)] {
        let now = library.put_piece(&ws, &upload.id, index, piece.into()).await.expect("a good piece");
        assert_eq!(now.received_bytes(), received, "the same piece again counts once");
    }
    assert!(found(library, "d").await.is_none() && ids(library, Listing::All).await.is_empty());
    let status = library.upload(&ws, &upload.id).await.expect("the store works").expect("it is open");
    assert_eq!((status.missing(), status.document.clone()), (vec![1], named("d")));
    assert_eq!(library.uploads(&ws).await.expect("the store works"), [status]);
    let early = library.complete(&ws, &upload.id, None).await.expect_err("a piece is missing");
    assert!(matches!(early, LibraryError::Incomplete(missing) if missing == [1]));
    library.put_piece(&ws, &upload.id, 1, b"efgh".to_vec()).await.expect("a good piece");
    let document = library.complete(&ws, &upload.id, None).await.expect("all is there");
    assert_eq!(document.sha256, Hash::of("abcdefghij"));
    assert_eq!(content(library, &document).await, b"abcdefghij");
    assert!(library.upload(&ws, &upload.id).await.expect("the store works").is_none());
    let over = library.put_piece(&ws, &upload.id, 0, b"abcd".to_vec()).await.expect_err("it is over");
    assert!(matches!(over, LibraryError::NoUpload(_)));
}

async fn wrong_pieces_are_refused_and_nothing_is_lost(library: &dyn Library) {
    let ws = Workspace::default();
    let upload = library.begin(&ws, named("d"), 10, 4).await.expect("a good document");
    let put = async |index, piece: &str| library.put_piece(&ws, &upload.id, index, piece.into()).await;
    for (index, piece) in [(0, "abcd"), (1, "efgh"), (2, "ij")] {
        put(index, piece).await.expect("a good piece");
    }
    assert!(matches!(put(3, "").await, Err(LibraryError::NoSuchPiece { index: 3, last: 2 })));
    assert!(matches!(put(u64::MAX, "ab").await, Err(LibraryError::NoSuchPiece { .. })));
    for (index, piece) in [(0, "abc"), (1, "abcde"), (2, "ijkl")] {
        assert!(matches!(put(index, piece).await, Err(LibraryError::PieceLength { .. })), "{index}");
    }
    let other = Hash::of("something else");
    let wrong = library.complete(&ws, &upload.id, Some(other)).await.expect_err("not what was meant");
    assert!(matches!(wrong, LibraryError::WrongContent { expected, .. } if expected == other));
    assert!(found(library, "d").await.is_none());
    // Somebody else was quicker with this id: the upload stays until it is given up.
    add(library, &ws, named("d"), b"quick").await.expect("the name is free");
    let late = library.complete(&ws, &upload.id, None).await.expect_err("the name is taken");
    assert!(matches!(late, LibraryError::Exists(_)));
    library.remove(&ws, "d").await.expect("it is there");
    let document = library.complete(&ws, &upload.id, None).await.expect("nothing was lost");
    assert_eq!(content(library, &document).await, b"abcdefghij");

    let upload = library.begin(&ws, child("c", "d"), 1, 4).await.expect("a good document").id;
    library.put_piece(&ws, &upload, 0, b"c".to_vec()).await.expect("a good piece");
    library.remove(&ws, "d").await.expect("it is there");
    let orphan = library.complete(&ws, &upload, None).await.expect_err("its parent is gone");
    assert!(matches!(orphan, LibraryError::NotFound(id) if id == "d"));
    library.abort(&ws, &upload).await.expect("it is open");
    assert!(matches!(library.abort(&ws, &upload).await, Err(LibraryError::NoUpload(_))));
}

async fn a_replaced_document_is_never_mixed_with_its_predecessor(library: &dyn Library) {
    let ws = Workspace::default();
    let first = add(library, &ws, named("d"), b"first").await.expect("a good document");
    library.remove(&ws, "d").await.expect("it is there");
    assert!(matches!(library.read(&ws, &first, 0..2).await, Err(LibraryError::NotFound(_))));
    let second = add(library, &ws, named("d"), b"other").await.expect("a good document");
    assert!(matches!(library.read(&ws, &first, 2..5).await, Err(LibraryError::NotFound(_))));
    assert_eq!(library.read(&ws, &second, 2..5).await.expect("it is there"), b"her");
}

async fn processings_are_kept_and_listed(library: &dyn Library) {
    let ws = Workspace::default();
    add(library, &ws, named("d"), b"text").await.expect("a good document");
    let processing = |id: &str, document: &str| Processing {
        id: id.to_owned(),
        document: document.to_owned(),
        time: Timestamp::from_micros(5_000_000),
        flow: "default".to_owned(),
        collection: "default".to_owned(),
        tags: vec!["t".to_owned()],
    };
    library.add_processing(&ws, processing("p", "d")).await.expect("a good one");
    let twice = library.add_processing(&ws, processing("p", "d")).await.expect_err("it is there");
    assert!(matches!(twice, LibraryError::ProcessingExists(_)));
    let nothing = library.add_processing(&ws, processing("q", "nothing")).await.expect_err("no such document");
    assert!(matches!(nothing, LibraryError::NotFound(_)));
    assert_eq!(library.processings(&ws).await.expect("the store works"), [processing("p", "d")]);
    library.remove_processing(&ws, "p").await.expect("it is there");
    assert!(matches!(library.remove_processing(&ws, "p").await, Err(LibraryError::NoProcessing(_))));
    assert!(library.processings(&ws).await.expect("the store works").is_empty());
}

async fn workspaces_are_apart(library: &dyn Library) {
    let (ws, other) = (Workspace::default(), Workspace::new("other").expect("a valid name"));
    let document = add(library, &ws, named("d"), b"text").await.expect("a good document");
    let upload = library.begin(&ws, named("e"), 1, 1).await.expect("a good document").id;
    assert!(library.find(&other, "d").await.expect("the store works").is_none());
    assert!(library.list(&other, &Listing::All).await.expect("the store works").is_empty());
    assert!(library.uploads(&other).await.expect("the store works").is_empty());
    assert!(library.read(&other, &document, 0..4).await.is_err());
    assert!(library.put_piece(&other, &upload, 0, b"x".to_vec()).await.is_err());
    assert!(library.remove(&other, "d").await.is_err());
    add(library, &other, named("d"), b"theirs").await.expect("the name is free there");
    assert_eq!(content(library, &document).await, b"text");
}

async fn the_texts_of_runs_are_read_and_left_alone((library, journal): LibraryStore) {
    let ws = Workspace::default();
    committed(&*journal, first("r")).await;
    committed(&*journal, end("r", 1)).await;
    let id = "urn:trustgraph:agent:r/answer";
    let document = found(&*library, id).await.expect("an answer is a document");
    assert_eq!((document.metadata.kind.as_str(), document.size), ("text/plain", 2));
    assert_eq!(document.metadata.time, Timestamp::from_micros(1_000_000), "when it was recorded");
    assert_eq!(content(&*library, &document).await, b"42");
    assert_eq!(library.read(&ws, &document, 1..2).await.expect("it is there"), b"2");
    assert!(ids(&*library, Listing::All).await.is_empty(), "not listed");
    assert!(matches!(add(&*library, &ws, named(id), b"43").await, Err(LibraryError::Exists(_))));
    assert!(matches!(library.remove(&ws, id).await, Err(LibraryError::Recorded(_))));
    assert!(matches!(library.update(&ws, id, MetadataChanges::default()).await, Err(LibraryError::Recorded(_))));
}

async fn abandoned_uploads_are_few_and_end_by_themselves(library: &dyn Library, clock: &Clock) {
    let ws = Workspace::default();
    let first = library.begin(&ws, named("0"), 1, 1).await.expect("a good document").id;
    library.put_piece(&ws, &first, 0, b"x".to_vec()).await.expect("a good piece");
    clock.pass(1000);
    for n in 1..MOST_UPLOADS {
        library.begin(&ws, named(&n.to_string()), 1, 1).await.expect("there is room");
    }
    let full = library.begin(&ws, named("more"), 1, 1).await.expect_err("there is no room");
    assert!(matches!(full, LibraryError::TooManyUploads(MOST_UPLOADS)));
    clock.pass(UPLOAD_AGE_MS - 1000);
    assert!(library.upload(&ws, &first).await.expect("the store works").is_none(), "it has ended by itself");
    assert!(matches!(library.complete(&ws, &first, None).await, Err(LibraryError::NoUpload(_))));
    assert_eq!(library.uploads(&ws).await.expect("the store works").len(), MOST_UPLOADS - 1);
    library.begin(&ws, named("more"), 1, 1).await.expect("there is room again");
}

/// Any content, split into any pieces that come in any order, is there byte for byte in any range.
pub async fn any_pieces_come_back(
    library: &dyn Library,
    id: &str,
    bytes: &[u8],
    piece: u64,
    turn: usize,
    range: (u64, u64),
) {
    let ws = Workspace::default();
    let upload = library.begin(&ws, named(id), bytes.len() as u64, piece).await.expect("a good document");
    let step = usize::try_from(upload.piece).expect("a piece fits into memory");
    let mut pieces: Vec<_> = (0..).zip(bytes.chunks(step)).collect();
    if !pieces.is_empty() {
        let middle = turn % pieces.len();
        pieces.rotate_left(middle);
    }
    for (index, piece) in pieces {
        library.put_piece(&ws, &upload.id, index, piece.to_vec()).await.expect("a good piece");
    }
    let document = library.complete(&ws, &upload.id, Some(Hash::of(bytes))).await.expect("all is there");
    assert_eq!(content(library, &document).await, bytes);
    let read = library.read(&ws, &document, range.0..range.1).await.expect("it is there");
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    assert_eq!(read, bytes[place(range.0)..place(range.1).max(place(range.0))]);
}
