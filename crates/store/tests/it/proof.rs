//! Somebody with write access changes rows behind our back, with the engine's own tools and so with valid checksums. Whatever
//! it is, both the check of the folder and the audit of the run find it.

use crate::damage::{bench, fill};
use crate::open;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::merkle::{self, Frontier};
use trellis_domain::message::AgentRequest;
use trellis_domain::record::{Lines, Record};
use trellis_domain::{Caller, Hash, RunId, Timestamp, Workspace};
use trellis_orchestrator::audit::Audit;
use trellis_orchestrator::checkpoint::{Checkpoint, Signature};
use trellis_orchestrator::evidence::{Erasure, Evidence, ProvenErasure};
use trellis_orchestrator::ports::{Config, Journal, Log, LogError};
use trellis_store::{ErasureRequest, Store};

type Row = (Vec<u8>, Vec<u8>);

/// What becomes of a row.
enum Fate {
    Kept,
    Removed,
    Changed(Vec<u8>),
}

/// Changes the rows of a table; a row without value is removed.
fn tamper(path: &Path, table: &str, change: impl Fn(&Row) -> Fate) -> usize {
    let database = fjall::Database::builder(path.join("journal")).open().unwrap();
    let table = database.keyspace(table, fjall::KeyspaceCreateOptions::default).unwrap();
    let rows: Vec<Row> =
        table.iter().map(|row| row.into_inner().unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    let mut changed = 0;
    for row in rows {
        match change(&row) {
            Fate::Kept => continue,
            Fate::Removed => table.remove(row.0).unwrap(),
            Fate::Changed(value) => table.insert(row.0, value).unwrap(),
        }
        changed += 1;
    }
    database.persist(fjall::PersistMode::SyncAll).unwrap();
    changed
}

async fn evidence(store: &Store, run: &RunId) -> Evidence {
    store.log.evidence(&Workspace::default(), run, usize::MAX).await.unwrap().unwrap()
}

async fn faults(store: &Store, run: &RunId) -> Vec<String> {
    Audit::of(&evidence(store, run).await).0.faults
}

/// Makes one change, and says what the check of the folder and the audit of the run say to it.
async fn found(table: &str, change: impl Fn(&Row) -> Fate) -> (Vec<String>, Vec<String>) {
    let folder = TempDir::new().unwrap();
    let runs = fill(folder.path(), 2).await;
    {
        let store = open(folder.path()).unwrap();
        assert_eq!((store.check().faults, faults(&store, &runs[0]).await), (Vec::new(), Vec::new()));
    }
    let run = runs[0].to_string();
    let changed = tamper(folder.path(), table, |row| {
        let own = String::from_utf8_lossy(&row.0).contains(&run) || String::from_utf8_lossy(&row.1).contains(&run);
        if own || table == "blobs" { change(row) } else { Fate::Kept }
    });
    assert!(changed > 0, "nothing was changed in {table}");
    let store = open(folder.path()).unwrap();
    (store.check().faults, faults(&store, &runs[0]).await)
}

fn changed(value: Option<Vec<u8>>) -> Fate {
    value.map_or(Fate::Kept, Fate::Changed)
}

fn removed_if(goes: bool) -> Fate {
    if goes { Fate::Removed } else { Fate::Kept }
}

fn replaced(row: &Row, from: &str, to: &str) -> Option<Vec<u8>> {
    let text = String::from_utf8(row.1.clone()).ok()?;
    text.contains(from).then(|| text.replace(from, to).into_bytes())
}

/// Changes a record and makes its own hash fit again, as somebody would who knows how records are written.
fn resealed(row: &Row, from: &str, to: &str) -> Option<Vec<u8>> {
    let lines = Lines::of(&row.1).ok()?;
    let body = String::from_utf8(lines.body.to_vec()).ok()?;
    if !body.contains(from) {
        return None;
    }
    let body = body.replace(from, to);
    let old = Record::header_of(&row.1).ok()?.content.to_string();
    let header = String::from_utf8(lines.header.to_vec()).ok()?.replace(&old, &Hash::of(&body).to_string());
    Some([header.as_bytes(), body.as_bytes(), lines.texts?].join(&b'\n'))
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_changed_behind_our_back_is_found_twice() {
    let mut missed = Vec::new();
    macro_rules! must_find {
        ($what:literal, $table:literal, $change:expr) => {
            let (folder, run) = found($table, $change).await;
            if folder.is_empty() || run.is_empty() {
                missed.push(format!("{}: folder says {folder:?}, run says {run:?}", $what));
            }
        };
    }
    must_find!("a forged answer", "records", |row| changed(replaced(row, "It is so.", "It is no.")));
    must_find!("a forged end, resealed", "records", |row| changed(resealed(row, "final-answer", "plan-partial")));
    must_find!("a number in a header", "records", |row| changed(replaced(row, "\"attempt\":1", "\"attempt\":2")));
    must_find!("emptied parents", "records", |row| {
        let emptied = || {
            let text = String::from_utf8(row.1.clone()).ok()?;
            let (before, rest) = text.split_once("\"parents\":[\"")?;
            let after = rest.split_once(']')?.1;
            Some(format!("{before}\"parents\":[]{after}").into_bytes())
        };
        changed(emptied())
    });
    must_find!("a result marked late", "records", |row| {
        changed(replaced(row, "\"name\":\"i1/observation\"", "\"late\":true,\"name\":\"i1/observation\""))
    });
    must_find!("a deleted record", "records", |row| {
        removed_if(replaced(row, "\"name\":\"i1/observation\"", "").is_some())
    });
    must_find!("the last event", "index", |row| { removed_if(row.0[0] == b'e' && row.0.ends_with(&[0, 0, 10])) });
    must_find!("the line of the run", "index", |row| {
        if row.0[0] == b'h' { changed(replaced(row, "\"answered\"", "\"failed\"")) } else { Fate::Kept }
    });
    must_find!("the configuration snapshot", "blobs", |row| {
        let mut value = row.1.clone();
        value[0] ^= 1;
        Fate::Changed(value)
    });
    assert_eq!(missed, [] as [String; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_folder_lists_is_checked_too() {
    for (what, prefix) in [("the list of runs", b'l'), ("finished runs", b'f'), ("the tally", b'y'), ("leaves", b'm')] {
        let folder = TempDir::new().unwrap();
        fill(folder.path(), 2).await;
        let gone = tamper(folder.path(), "index", |row| {
            removed_if(row.0[0] == prefix && row.0 != [b'm', 0, 0, 0, 0, 0, 0, 0, 0])
        });
        if gone == 0 {
            assert_eq!(prefix, b'y', "only a folder without documents has no tally");
            continue;
        }
        match open(folder.path()) {
            Err(error) => assert!(error.to_string().contains("damaged"), "{what}: {error}"),
            Ok(store) => assert!(store.check().wrong > 0, "{what}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_checkpoint_proves_that_nothing_was_changed_or_shows_that_something_was() {
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 2).await;
    let backup = TempDir::new().unwrap();
    copy(folder.path(), backup.path());
    let store = open(folder.path()).unwrap();
    let early = store.log.checkpoint().await.unwrap();
    drop(store);
    fill(folder.path(), 1).await;
    let store = open(folder.path()).unwrap();
    let late = store.log.checkpoint().await.unwrap();
    for kept in [&early, &late] {
        let verdict = store.log.against(kept).await.unwrap();
        assert_eq!(verdict.faults, [] as [&str; 0]);
    }
    drop(store);
    // An older copy of the whole folder is consistent in itself.
    let store = open(backup.path()).unwrap();
    assert_eq!(store.check().wrong, 0);
    assert_eq!(store.log.against(&early).await.unwrap().faults, [] as [&str; 0]);
    let faults = store.log.against(&late).await.unwrap().faults;
    assert!(faults[0].contains("entries are missing"), "{faults:?}");
    drop(store);
    // And one that went on differently is another log.
    fill(backup.path(), 3).await;
    let store = open(backup.path()).unwrap();
    let faults = store.log.against(&late).await.unwrap().faults;
    assert!(faults[0].contains("the log was rewritten"), "{faults:?}");
    assert!(store.log.against("no checkpoint").await.is_err());
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Whether bytes occur in any file below a folder.
fn occurs(folder: &Path, needle: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return occurs(&path, needle);
        }
        std::fs::read(path).unwrap().windows(needle.len()).any(|window| window == needle)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_text_is_gone_from_every_file_and_everything_still_verifies() {
    // Nothing that is compressed or written in another way: it is found wherever it is.
    let secret = "k7Qz9XvW3mLp0RtYb2NcAe5U";
    let folder = TempDir::new().unwrap();
    let (run, other, checkpoint) = {
        let store = open(folder.path()).unwrap();
        let bench = bench(&store).await;
        let question = format!("What of {secret}? {}", "and so on ".repeat(3000));
        let request = AgentRequest { question, ..AgentRequest::default() };
        let run = bench.request(1, request, SomeLimits::default()).await;
        let other = bench.ask(2, SomeLimits::default()).await;
        bench.finish(&[run.clone(), other.clone()], 1).await;
        store.graph.catch_up().unwrap();
        let checkpoint = store.log.checkpoint().await.unwrap();
        drop(bench);
        (run, other, checkpoint)
    };
    assert!(occurs(folder.path(), secret.as_bytes()));
    {
        let store = open(folder.path()).unwrap();
        let wish = ErasureRequest {
            workspace: Workspace::default(),
            run: run.clone(),
            containing: vec![secret.to_owned()],
            by: "ada".to_owned(),
            reason: "asked to".to_owned(),
            time: Timestamp::from_micros(5),
        };
        let erased = store.journal.erase(wish.clone()).await.unwrap();
        assert!(erased.texts >= 1 && erased.entry.is_some(), "{erased:?}");
        assert_eq!(store.journal.erase(wish).await.unwrap().texts, 0, "it is gone already");
        assert_eq!(store.log.erasures().await.unwrap(), 1, "whoever has looked before looks again");
        store.graph.renew(&Workspace::default(), &run).unwrap();
        store.shed().unwrap();
    }
    let store = open(folder.path()).unwrap();
    assert_eq!(store.check().faults, [] as [&str; 0]);
    let evidence = evidence(&store, &run).await;
    let (audit, records) = Audit::of(&evidence);
    assert_eq!(audit.faults, [] as [&str; 0]);
    assert_eq!(audit.replay.gaps, ["texts of it were erased"]);
    assert_eq!(records[0].body.as_accepted().unwrap().question.text(), "[erased]");
    assert_eq!(evidence.erasures[0].erasure.reason, "asked to");
    assert_eq!(faults(&store, &other).await, [] as [&str; 0]);
    assert_eq!(store.log.against(&checkpoint).await.unwrap().faults, [] as [&str; 0]);
    let summary = store.journal.run(&Workspace::default(), &run).await.unwrap().unwrap();
    assert_eq!(summary.question, "[erased]");
    drop(store);
    assert!(!occurs(folder.path(), secret.as_bytes()), "it lies in a file");
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_is_gathered_only_as_far_as_there_is_room_for_it() {
    let folder = TempDir::new().unwrap();
    let run = fill(folder.path(), 1).await.remove(0);
    let store = open(folder.path()).unwrap();
    let records: usize = evidence(&store, &run).await.entries.iter().map(|entry| entry.proven.len()).sum();
    // What records name, such as configurations, counts as well.
    for most in [records / 2, records + 1] {
        let refused = store.log.evidence(&Workspace::default(), &run, most).await.unwrap_err();
        assert!(matches!(refused, LogError::TooLarge(told) if told == most), "{refused}");
    }
    assert!(store.log.evidence(&Workspace::default(), &run, 100 * records).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_that_was_changed_on_the_way_is_not_believed() {
    let folder = TempDir::new().unwrap();
    let run = fill(folder.path(), 1).await.remove(0);
    let store = open(folder.path()).unwrap();
    let whole = evidence(&store, &run).await;
    let told = |change: &dyn Fn(&mut Evidence)| {
        let mut changed = whole.clone();
        change(&mut changed);
        // It travels as JSON.
        let text = serde_json::to_string(&changed).unwrap();
        Audit::of(&serde_json::from_str(&text).unwrap()).0.faults
    };
    assert_eq!(told(&|_| ()), [] as [&str; 0]);
    assert!(
        !told(&|evidence| evidence.entries[1].proven = evidence.entries[1].proven.replace("react", "other")).is_empty()
    );
    assert!(!told(&|evidence| evidence.entries[2].leaf += 1).is_empty());
    assert!(!told(&|evidence| evidence.entries[2].proof.truncate(1)).is_empty());
    assert!(!told(&|evidence| drop(evidence.entries.remove(3))).is_empty());
    assert!(!told(&|evidence| evidence.entries[0].texts = Some("[]".to_owned())).is_empty());
    assert!(!told(&|evidence| evidence.checkpoint = "nothing".to_owned()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_the_configuration_do_not_leave_with_the_evidence() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    let bench = bench(&store).await;
    let value = r#"{"url": "https://a.example/mcp", "auth-token": "k7Qz9XvW3mLp0R"}"#.to_owned();
    let item = StoredItem { kind: "mcp".to_owned(), key: "far".to_owned(), value };
    store.config.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
    let run = bench.ask(1, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let evidence = evidence(&store, &run).await;
    let text = serde_json::to_string(&evidence).unwrap();
    assert!(!text.contains("k7Qz9XvW3mLp0R"), "{text}");
    let (audit, records) = Audit::of(&serde_json::from_str(&text).unwrap());
    assert_eq!((audit.faults, audit.replay.gaps), (Vec::new(), Vec::new()));
    assert_eq!(audit.redacted, [records[0].header.config]);
    // What is in it still counts.
    let mut other = evidence.clone();
    other.redacted[0].text = other.redacted[0].text.replace("search", "find");
    assert!(!Audit::of(&other).0.faults.is_empty());
    other.redacted.clear();
    assert!(Audit::of(&other).0.faults[0].contains("is not there"));
}

/// A log of its own over these entries, as whoever writes the folder could make it.
fn forged(evidence: &Evidence, erasure: Option<Erasure>) -> Evidence {
    let mut forged = evidence.clone();
    let mut inputs: Vec<_> =
        forged.entries.iter().map(|entry| [b"record\n".as_slice(), entry.proven.as_bytes()].concat()).collect();
    let told = erasure.map(|erasure| {
        let input = [b"erasure\nkey\n".as_slice(), &serde_json::to_vec(&erasure).unwrap()].concat();
        inputs.push(input.clone());
        (erasure, BASE64.encode(input))
    });
    let mut frontier = Frontier::default();
    let mut nodes = HashMap::new();
    for (leaf, input) in (0_u64..).zip(&inputs) {
        for (level, node) in (0_u8..).zip(frontier.append(merkle::leaf([input.as_slice()]))) {
            nodes.insert((level, leaf >> level), node);
        }
    }
    let size = inputs.len() as u64;
    let prove = |leaf| merkle::inclusion(leaf, size, |level, index| Ok::<_, ()>(nodes[&(level, index)])).unwrap();
    for (leaf, entry) in (0_u64..).zip(&mut forged.entries) {
        (entry.leaf, entry.proof) = (leaf, prove(leaf));
    }
    forged.erasures.extend(told.map(|(erasure, input)| {
        let (leaf, proof) = (size - 1, prove(size - 1));
        ProvenErasure { leaf, proof, input, erasure }
    }));
    let checkpoint = Checkpoint { origin: "forged".to_owned(), size, root: frontier.root() };
    forged.checkpoint = checkpoint.note(&Signature { name: "forged".to_owned(), key: [0; 4], bytes: vec![0; 64] });
    forged
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_looked_at_closely_whatever_it_says_of_itself() {
    let folder = TempDir::new().unwrap();
    let run = fill(folder.path(), 1).await.remove(0);
    let store = open(folder.path()).unwrap();
    let genuine = evidence(&store, &run).await;
    assert_eq!(Audit::of(&forged(&genuine, None)).0.faults, [] as [&str; 0]);
    // An erasure that has erased nothing would keep the run from being replayed.
    let names = Erasure { texts: vec![("x/session".to_owned(), vec![Hash::of("x")])], ..Erasure::default() };
    let replaces = Erasure { replaced: vec![("x/session".to_owned(), Hash::of("x"))], ..Erasure::default() };
    for invented in [Erasure::default(), names, replaces] {
        let faults = Audit::of(&forged(&genuine, Some(Erasure { by: "eve".to_owned(), ..invented }))).0.faults;
        assert_eq!(faults, ["the erasure by eve has erased nothing"]);
    }
    // And so would an older format.
    let mut older = genuine.clone();
    for entry in &mut older.entries {
        entry.proven = entry.proven.replacen("\"format\":4", "\"format\":3", 1);
    }
    let faults = Audit::of(&forged(&older, None)).0.faults;
    assert!(faults.iter().filter(|fault| fault.contains("says what only later ones can")).count() > 2, "{faults:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_missing_old_or_unreadable_is_damage() {
    let folder = TempDir::new().unwrap();
    fill(folder.path(), 2).await;
    let head = folder.path().join("log-head");
    let old = std::fs::read(&head).unwrap();
    fill(folder.path(), 3).await;
    let new = std::fs::read(&head).unwrap();
    let refused = |what: &str| {
        let error = open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is damaged") && error.contains(what), "{error}");
    };
    std::fs::write(&head, old).unwrap();
    refused("older than the journal");
    std::fs::write(&head, "").unwrap();
    refused("cannot be read");
    std::fs::remove_file(&head).unwrap();
    refused("missing");
    std::fs::write(&head, &new).unwrap();
    std::fs::remove_file(folder.path().join("format")).unwrap();
    refused("`format` is missing");
    std::fs::write(folder.path().join("format"), "2\n").unwrap();
    let table = folder.path().join("journal/keyspaces/3/current");
    let pointer = std::fs::read(&table).unwrap();
    std::fs::remove_file(&table).unwrap();
    refused("current is missing");
    std::fs::write(&table, pointer).unwrap();
    assert_eq!(open(folder.path()).unwrap().check().wrong, 0);
    std::fs::rename(folder.path().join("journal"), folder.path().join("elsewhere")).unwrap();
    refused("journal is missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_any_number_of_sessions_in_one_group() {
    // More sessions than the committer keeps in mind, all touched before anything of it is on disk.
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).unwrap();
    let journal = Arc::clone(&store.journal) as Arc<dyn Journal>;
    trellis_orchestrator::contract::journal::many_sessions_at_once(journal).await;
    assert_eq!(store.check().faults, [] as [&str; 0]);
}
