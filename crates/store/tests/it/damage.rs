//! Files are cut, flipped, taken and replaced. Nothing acknowledged may vanish without a word.

use crate::{holder, open};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::run::RunState;
use trellis_domain::{Caller, RunId, Surface, Workspace};
use trellis_orchestrator::contract::journal::{begun, claim_on};
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{Config, Journal, RunFilter, all_due_turns};
use trellis_store::{OpenError, Store};

pub(crate) async fn bench(store: &Store) -> Bench {
    let ports = (Arc::clone(&store.journal) as Arc<dyn Journal>, Arc::clone(&store.config) as Arc<dyn Config>);
    Bench::new(ports, ScriptedPrompter::replies(&SCRIPT)).await
}

/// Runs some sessions to their end and closes the folder.
pub(crate) async fn fill(path: &Path, sessions: usize) -> Vec<RunId> {
    let store = open(path).unwrap();
    let bench = bench(&store).await;
    let mut runs = Vec::new();
    for n in 0..sessions {
        runs.push(bench.ask(n, SomeLimits::default()).await);
    }
    bench.finish(&runs, 1).await;
    drop(bench);
    drop(store);
    runs
}

pub(crate) fn log(path: &Path) -> PathBuf {
    let entries = fs::read_dir(path.join("journal")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "jnl")).max().unwrap()
}

fn item(key: &str, text: &str) -> StoredItem {
    let value = serde_json::json!({"name": key, "description": text, "framing": ""}).to_string();
    StoredItem { kind: "agent-task-type".to_owned(), key: key.to_owned(), value }
}

/// The length of the log without the space allocated ahead.
pub(crate) fn used(log: &Path) -> usize {
    fs::read(log).unwrap().iter().rposition(|byte| *byte != 0).unwrap() + 1
}

pub(crate) fn flip(log: &Path, at: usize) {
    flip_bits(log, at, 0x40);
}

pub(crate) fn flip_bits(file: &Path, at: usize, bits: u8) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= bits;
    fs::write(file, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_reopens_with_everything_that_was_committed() {
    let folder = TempDir::new().unwrap();
    let runs = fill(folder.path(), 5).await;
    let store = open(folder.path()).unwrap();
    let page = store.journal.runs(&Workspace::default(), &RunFilter::default(), None, 100).await.unwrap();
    assert_eq!(page.runs.len(), runs.len());
    assert!(page.runs.iter().all(|run| run.state == RunState::Answered));
    let checked = store.check();
    assert_eq!((checked.faults, checked.runs, checked.records), (Vec::new(), 5, 50));
    assert_eq!(store.journal.open_runs().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_run_goes_on_after_reopening_without_paying_twice() {
    let folder = TempDir::new().unwrap();
    let run = {
        let store = open(folder.path()).unwrap();
        bench(&store).await.ask(1, SomeLimits::default()).await
    };
    let store = open(folder.path()).unwrap();
    assert_eq!(store.journal.open_runs().await.unwrap(), 1);
    let bench = bench(&store).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    assert_eq!(bench.summary(&run).await.state, RunState::Answered);
    assert_eq!(bench.records(&run).await[2].header.attempt, 2, "an earlier process may have begun it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unacknowledged_torn_tail_is_dropped_and_the_rest_is_there() {
    for cut in [1, 7, 100, 1000] {
        let folder = TempDir::new().unwrap();
        fill(folder.path(), 3).await;
        // The tail was never acknowledged: the mark does not know it yet.
        let log = log(folder.path());
        let length = used(&log);
        let mut bytes = fs::read(&log).unwrap();
        let tail = bytes[..300].to_vec();
        bytes.resize(bytes.len().max(length + 300), 0);
        bytes[length..length + 300].copy_from_slice(&tail);
        bytes[length + 300 - cut.min(290)..length + 300].fill(0);
        fs::write(&log, bytes).unwrap();
        let store = open(folder.path()).unwrap();
        assert_eq!(store.check().faults, [] as [&str; 0]);
        let page = store.journal.runs(&Workspace::default(), &RunFilter::default(), None, 100).await.unwrap();
        assert_eq!(page.runs.len(), 3, "cut {cut}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_tail_with_a_wrong_checksum_is_cut_off_and_kept() {
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 2).await;
    let head = fs::read(folder.path().join("log-head")).unwrap();
    let before = used(&log(folder.path()));
    // One more commit that the head does not know: as if power failed before it was acknowledged.
    let store = open(folder.path()).unwrap();
    let by = Caller::new(None, Surface::CommandLine);
    store.config.put(&Workspace::default(), vec![item("late", &"x".repeat(2000))], by).await.unwrap();
    drop(store);
    fs::write(folder.path().join("log-head"), head).unwrap();
    let log = log(folder.path());
    flip(&log, used(&log).midpoint(before));
    let store = open(folder.path()).unwrap();
    let page = store.journal.runs(&Workspace::default(), &RunFilter::default(), None, 100).await.unwrap();
    assert_eq!(page.runs.iter().filter(|run| run.state == RunState::Answered).count(), 2);
    assert_eq!(store.kept_logs().len(), 1, "what was cut off is kept, and named");
    assert_eq!(store.check().faults, [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_was_copied_while_it_was_closed_has_everything() {
    let (folder, during) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(folder.path()).unwrap();
    let bench = bench(&store).await;
    let mut runs = Vec::new();
    for n in 0..100 {
        runs.push(bench.ask(n, SomeLimits::default()).await);
    }
    bench.finish(&runs, 1).await;
    // The copy has the journal from before its tables were written, and the lock from after that.
    crate::library::copy(folder.path(), during.path());
    drop(bench);
    drop(store);
    let lock = fs::read_to_string(folder.path().join("lock")).unwrap();
    assert!(lock.contains("shed"), "the log is long enough to go into tables: {lock}");
    fs::write(during.path().join("lock"), lock).unwrap();
    for folder in [folder, during] {
        let store = open(folder.path()).unwrap();
        let page = store.journal.runs(&Workspace::default(), &RunFilter::default(), None, 1000).await.unwrap();
        assert_eq!(page.runs.len(), 100);
        assert_eq!(store.check().faults, [] as [&str; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_was_cut_short_begins_anew() {
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 3).await;
    // A process died in the middle of a repair: the copy is whole, the log is not.
    let log = log(folder.path());
    let copy = folder.path().join("log-as-found");
    fs::create_dir(&copy).unwrap();
    fs::copy(&log, copy.join(log.file_name().unwrap())).unwrap();
    fs::OpenOptions::new().write(true).open(&log).unwrap().set_len((used(&log) / 2) as u64).unwrap();
    let store = open(folder.path()).unwrap();
    let page = store.journal.runs(&Workspace::default(), &RunFilter::default(), None, 100).await.unwrap();
    assert_eq!(page.runs.len(), 3);
    assert!(!copy.exists(), "the copy goes once all is well");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_view_is_derived_anew() {
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 2).await;
    fs::write(folder.path().join("view"), "not a database").unwrap();
    let store = open(folder.path()).unwrap();
    assert_eq!(store.graph.catch_up().unwrap(), 2);
}

#[test]
fn a_first_start_that_was_cut_short_does_not_spoil_the_folder() {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("journal.new")).unwrap();
    fs::write(folder.path().join("journal.new/0.jnl"), "").unwrap();
    fs::write(folder.path().join("format"), "").unwrap();
    assert_eq!(open(folder.path()).unwrap().check().wrong, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_stops_the_process_five_times_is_set_aside() {
    let folder = TempDir::new().unwrap();
    let run = {
        let store = open(folder.path()).unwrap();
        bench(&store).await.ask(1, SomeLimits::default()).await
    };
    for expected in 2..=6 {
        let store = open(folder.path()).unwrap();
        let turn = all_due_turns(&*store.journal, trellis_domain::Timestamp::from_micros(0)).await.unwrap().remove(0);
        // Begun, alone, and then the process is gone.
        store
            .journal
            .begin_trial(std::slice::from_ref(&turn.key), trellis_domain::Timestamp::from_micros(0))
            .await
            .unwrap();
        assert_eq!(begun(&*store.journal, &claim_on(&turn.key)).await, Some(expected));
    }
    let store = open(folder.path()).unwrap();
    let bench = bench(&store).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    assert_eq!(bench.summary(&run).await.state, RunState::Failed);
    assert!(bench.prompter.calls.all().is_empty(), "nothing was performed");
    let records = bench.records(&run).await;
    let trellis_domain::record::Body::Ended(ended) = &records.last().unwrap().body else { panic!() };
    assert_eq!(ended.error.as_deref(), Some("set aside: handling this request was cut short 5 times"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledged_tail_that_is_missing_is_noticed_and_the_log_is_kept() {
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 3).await;
    let log = log(folder.path());
    let cut = used(&log) - 500;
    fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(cut as u64).unwrap();
    let before = fs::read(&log).unwrap();
    for _ in 0..2 {
        let error = open(folder.path()).unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
        assert_eq!(fs::read(&log).unwrap(), before, "the log is left as it was found");
        assert!(error.to_string().contains("groups of commits that were on disk are missing"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_anywhere_in_the_log_is_noticed() {
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 4).await;
    let log = log(folder.path());
    let (whole, length) = (fs::read(&log).unwrap(), used(&log));
    let mut noticed = 0;
    for part in [1, 4, 7, 11] {
        flip(&log, length * part / 12);
        match open(folder.path()) {
            Err(OpenError::Damaged { .. }) => noticed += 1,
            Err(other) => panic!("{other}"),
            Ok(store) => panic!("byte {} of {length}: {:?}", length * part / 12, store.check()),
        }
        fs::write(&log, &whole).unwrap();
    }
    assert_eq!(noticed, 4);
    assert_eq!(open(folder.path()).unwrap().check().wrong, 0, "the undamaged log is as good as before");
}

/// The engine takes the number of parts from a file before it has checked it, and makes room for them: more than there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_claims_to_be_huge_is_damage() {
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 2).await;
    {
        let store = open(folder.path()).unwrap();
        store.shed().unwrap();
    }
    drop(open(folder.path()).unwrap());
    let mut claimed = 0;
    for file in crate::view::files(&folder.path().join("journal/keyspaces")) {
        let whole = fs::read(&file).unwrap();
        let Some(contents) = whole.windows(4).rposition(|window| window == b"TOC!") else { continue };
        flip_bits(&file, contents + 7, 0x80);
        match open(folder.path()) {
            Err(error @ OpenError::Damaged { .. }) => {
                assert!(error.to_string().contains(&*file.to_string_lossy()), "{error}");
                claimed += 1;
            }
            Err(other) => panic!("{other}"),
            // A version that does not count any more.
            Ok(store) => assert_eq!(store.check().wrong, 0),
        }
        fs::write(&file, whole).unwrap();
    }
    assert!(claimed > 7, "{claimed}");
}

#[test]
fn a_folder_in_use_names_its_holder() {
    let folder = TempDir::new().unwrap();
    let mut serving = holder();
    serving.url = Some("http://localhost:8888".into());
    serving.command = "trellis serve".into();
    let _store = Store::open(folder.path(), &serving, Arc::new(trellis_orchestrator::ports::RealWorld)).unwrap();
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("in use by `trellis serve`"), "{error}");
    assert!(error.contains("at http://localhost:8888"), "{error}");
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let folder = TempDir::new().unwrap();
    drop(open(folder.path()).unwrap());
    fs::write(folder.path().join("format"), "99\n").unwrap();
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("has format 99, this program knows up to 2; use a newer version"), "{error}");
    assert_eq!(fs::read_to_string(folder.path().join("format")).unwrap(), "99\n");
}

#[test]
fn a_folder_that_is_a_file_is_refused_with_a_reason() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = open(&file).unwrap_err().to_string();
    assert!(error.contains("choose a folder you can write to"), "{error}");
}

#[tokio::test]
async fn a_lock_that_names_nobody_is_waited_for_and_one_with_a_name_is_not() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    let refused = open(folder.path()).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { ref holder, .. } if holder.pid > 0), "{refused}");
    drop(store);
    // As a process that is being started has it, which let go of everything else.
    let inherited = fs::File::open(folder.path().join("lock")).unwrap();
    inherited.lock_shared().unwrap();
    let (told, waits) = std::sync::mpsc::channel();
    let path = folder.path().to_owned();
    let opened = std::thread::spawn(move || {
        told.send(()).unwrap();
        open(&path).map(drop)
    });
    waits.recv().unwrap();
    assert!(!opened.is_finished());
    drop(inherited);
    opened.join().unwrap().unwrap();
}
