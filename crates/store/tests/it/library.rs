//! Documents in the data folder: their contract, and what happens to them when a process dies.

use crate::{holder, open};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use trellis_domain::{Hash, Workspace};
use trellis_orchestrator::contract::library::{self, Clock, content, named};
use trellis_orchestrator::library::{UPLOAD_AGE_MS, add};
use trellis_orchestrator::ports::{Journal, Library, LibraryError, Listing, World};
use trellis_store::Store;

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_library_keeps_its_contract() {
    let stores: Mutex<Vec<(TempDir, Store)>> = Mutex::default();
    library::suite(async |world| {
        let folder = TempDir::new().unwrap();
        let store = Store::open(folder.path(), &holder(), world).unwrap();
        let place = (Arc::clone(&store.library) as Arc<dyn Library>, Arc::clone(&store.journal) as Arc<dyn Journal>);
        stores.lock().unwrap().push((folder, store));
        place
    })
    .await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Sizes around those of stored pieces, which are a mebibyte.
    #[test]
    fn any_content_in_any_pieces_comes_back_in_any_range(
        parts in prop::collection::vec((0_usize..3, 0_usize..600, any::<u8>()), 1..4),
        piece in prop_oneof![1_u64..5000, Just(1 << 20), (1_u64 << 20)..(3 << 20)],
        turn in any::<usize>(),
        range in (0..4_000_000_u64, 0..4_000_000_u64),
    ) {
        let mut bytes = Vec::new();
        for (megabytes, more, seed) in parts {
            let length = (megabytes << 19) + more;
            bytes.extend((0..length).map(|n| u8::try_from((n * 7 + usize::from(seed)) % 251).unwrap()));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let folder = TempDir::new().unwrap();
        let store = open(folder.path()).unwrap();
        runtime.block_on(library::any_pieces_come_back(&*store.library, "d", &bytes, piece, turn, range));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_and_open_uploads_outlive_the_process() {
    let (folder, ws) = (TempDir::new().unwrap(), Workspace::default());
    let upload = {
        let store = open(folder.path()).unwrap();
        add(&*store.library, &ws, named("d"), b"text").await.unwrap();
        let upload = store.library.begin(&ws, named("e"), 8, 4).await.unwrap();
        store.library.put_piece(&ws, &upload.id, 1, b"5678".to_vec()).await.unwrap()
    };
    let store = open(folder.path()).unwrap();
    let library = &*store.library;
    assert_eq!(library.uploads(&ws).await.unwrap(), std::slice::from_ref(&upload));
    let listed = library.list(&ws, &Listing::All).await.unwrap();
    assert_eq!(listed.iter().map(|document| document.metadata.id.as_str()).collect::<Vec<_>>(), ["d"]);
    assert_eq!(content(library, &listed[0]).await, b"text");
    library.put_piece(&ws, &upload.id, 0, b"1234".to_vec()).await.unwrap();
    let document = library.complete(&ws, &upload.id, Some(Hash::of("12345678"))).await.unwrap();
    assert_eq!(content(library, &document).await, b"12345678");
    assert_eq!(store.check().wrong, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_uploads_are_gone_when_the_folder_is_opened_again() {
    let (folder, ws) = (TempDir::new().unwrap(), Workspace::default());
    let clock: Arc<Clock> = Arc::default();
    let reopened = || Store::open(folder.path(), &holder(), Arc::clone(&clock) as Arc<dyn World>).unwrap();
    let upload = {
        let store = reopened();
        let upload = store.library.begin(&ws, named("d"), 1, 1).await.unwrap();
        store.library.put_piece(&ws, &upload.id, 0, b"x".to_vec()).await.unwrap()
    };
    clock.pass(UPLOAD_AGE_MS);
    drop(reopened());
    // Were it only hidden by its age, a clock put back would show it again.
    let store = Store::open(folder.path(), &holder(), Arc::new(Clock::default())).unwrap();
    assert!(store.library.upload(&ws, &upload.id).await.unwrap().is_none());
    assert!(matches!(store.library.abort(&ws, &upload.id).await, Err(LibraryError::NoUpload(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_from_before_the_library_keeps_opening() {
    let (folder, ws) = (TempDir::new().unwrap(), Workspace::default());
    {
        // As it was: the same database without the two tables.
        let journal = folder.path().join("journal");
        fs::write(folder.path().join("format"), "1\n").unwrap();
        let database = fjall::Database::builder(&journal).open().unwrap();
        for table in ["records", "index", "blobs", "config"] {
            database.keyspace(table, fjall::KeyspaceCreateOptions::default).unwrap();
        }
        database.persist(fjall::PersistMode::SyncAll).unwrap();
    }
    let store = open(folder.path()).unwrap();
    let document = add(&*store.library, &ws, named("d"), b"text").await.unwrap();
    assert_eq!(content(&*store.library, &document).await, b"text");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ends_within_a_piece_loses_no_more_than_that_piece() {
    let ws = Workspace::default();
    let piece = |seed: u8| vec![seed; 4 << 20];
    for yields in [0, 1, 3, 10, 40] {
        let folder = TempDir::new().unwrap();
        let store = open(folder.path()).unwrap();
        let upload = store.library.begin(&ws, named("d"), 8 << 20, 4 << 20).await.unwrap().id;
        store.library.put_piece(&ws, &upload, 0, piece(1)).await.unwrap();
        let (library, of, id) = (Arc::clone(&store.library), ws.clone(), upload.clone());
        let sending = tokio::spawn(async move { library.put_piece(&of, &id, 1, piece(2)).await });
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        drop(store);
        let acknowledged = sending.await.unwrap().is_ok();
        let store = open(folder.path()).unwrap();
        let status = store.library.upload(&ws, &upload).await.unwrap().unwrap();
        assert!(status.received.contains(&0), "what was acknowledged is there");
        assert!(!acknowledged || status.received.contains(&1));
        assert!(store.library.find(&ws, "d").await.unwrap().is_none(), "half a document is not seen");
        store.library.put_piece(&ws, &upload, 1, piece(2)).await.unwrap();
        let document = store.library.complete(&ws, &upload, None).await.unwrap();
        assert_eq!(content(&*store.library, &document).await, [piece(1), piece(2)].concat());
    }
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wherever_the_log_breaks_off_a_piece_is_the_old_one_or_the_new_one_or_missing() {
    let (folder, ws) = (TempDir::new().unwrap(), Workspace::default());
    let piece = |seed: u8| vec![seed; 2 << 20];
    let store = open(folder.path()).unwrap();
    let upload = store.library.begin(&ws, named("d"), 2 << 20, 2 << 20).await.unwrap().id;
    // A folder that is closed has nothing of that size in its log: it is copied while it is open.
    store.library.put_piece(&ws, &upload, 0, piece(1)).await.unwrap();
    let before = used(folder.path());
    store.library.put_piece(&ws, &upload, 0, piece(2)).await.unwrap();
    let (mut seen, after) = (Vec::new(), used(folder.path()));
    for step in 0..=8 {
        let broken = TempDir::new().unwrap();
        copy(folder.path(), broken.path());
        let cut = before + (after - before) * step / 8;
        let log = fs::File::options().write(true).open(crate::damage::log(broken.path())).unwrap();
        log.set_len(cut as u64).unwrap();
        acknowledge_no_more_than_there_is(broken.path());
        let store = open(broken.path()).unwrap();
        let status = store.library.upload(&ws, &upload).await.unwrap().expect("it was begun for good");
        if status.received.is_empty() {
            seen.push(0);
            store.library.put_piece(&ws, &upload, 0, piece(3)).await.unwrap();
        }
        let document = store.library.complete(&ws, &upload, None).await.unwrap();
        let bytes = content(&*store.library, &document).await;
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "never a mixture");
        seen.push(bytes[0]);
    }
    assert!(seen.contains(&0), "half a piece does not count");
    assert_eq!((seen.first(), seen.last()), (Some(&1), Some(&2)), "from nothing lost to nothing missing");
}

/// As if the power had failed before the rest was acknowledged: the head names the newest group that is whole.
fn acknowledge_no_more_than_there_is(folder: &Path) {
    let looked_at = TempDir::new().unwrap();
    copy(&folder.join("journal"), looked_at.path());
    let database = fjall::Database::builder(looked_at.path()).open().unwrap();
    let index = database.keyspace("index", fjall::KeyspaceCreateOptions::default).unwrap();
    let group = index.get(b"g").unwrap().unwrap();
    let head = fs::read(folder.join("log-head")).unwrap();
    let mut slot = [&*group, &head[8..48]].concat();
    slot.extend_from_slice(Hash::of(&slot).as_bytes());
    fs::write(folder.join("log-head"), [slot.clone(), slot].concat()).unwrap();
}

fn used(folder: &Path) -> usize {
    crate::damage::used(&crate::damage::log(folder))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_document_is_noticed() {
    let (folder, ws) = (TempDir::new().unwrap(), Workspace::default());
    drop(open(folder.path()).unwrap());
    let before = used_or_nothing(folder.path());
    let store = open(folder.path()).unwrap();
    add(&*store.library, &ws, named("d"), b"text").await.unwrap();
    drop(store);
    let log = crate::damage::log(folder.path());
    fs::File::options().write(true).open(log).unwrap().set_len(before as u64).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, trellis_store::OpenError::Damaged { .. }), "{error}");
}

fn used_or_nothing(folder: &Path) -> usize {
    let bytes = fs::read(crate::damage::log(folder)).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_uploads_of_one_document_at_once_leave_exactly_one() {
    let (folder, ws) = (TempDir::new().unwrap(), Workspace::default());
    let store = open(folder.path()).unwrap();
    let adding: Vec<_> = (0..8_u8)
        .map(|n| {
            let (library, ws) = (Arc::clone(&store.library), ws.clone());
            tokio::spawn(async move { add(&*library, &ws, named("d"), &vec![n; 3 << 20]).await })
        })
        .collect();
    let mut added = Vec::new();
    for adding in adding {
        match adding.await.unwrap() {
            Ok(document) => added.push(document),
            Err(error) => assert!(matches!(error, LibraryError::Exists(_)), "{error}"),
        }
    }
    assert_eq!(added.len(), 1);
    let bytes = content(&*store.library, &added[0]).await;
    assert_eq!(Hash::of(&bytes), added[0].sha256);
    assert!(store.library.uploads(&ws).await.unwrap().is_empty(), "the others were given up");
}
