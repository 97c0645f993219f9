//! Several commits in one transaction: read what the rules look at, apply them one by one, write what they say.

use crate::database::Database;
use crate::error::{damaged, failed, first_cause};
use crate::heads::{Heads, Place};
use crate::reading::hash;
use crate::sequencer::number_of;
use crate::turns::TurnColumns;
use deadpool_postgres::Transaction;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use tokio_postgres::types::ToSql;
use trellis_domain::record::Name;
use trellis_domain::run::RunSummary;
use trellis_domain::{ConversationId, Hash, PatternName, RunId, SessionId, Timestamp, Workspace};
use trellis_orchestrator::leaf::LeafKind;
use trellis_orchestrator::ledger::{Prepared, SessionHead, Stored, prepare};
use trellis_orchestrator::ports::{Commit, Committed, JournalError, Outcome, TurnKey};

type RunPlace = (Workspace, RunId);

/// What is stored of all that the commits touch, and what those before have made of it.
#[derive(Debug, Default)]
struct Snapshot {
    heads: HashMap<Place, SessionHead>,
    runs: HashMap<RunPlace, RunSummary>,
    turns: HashSet<TurnKey>,
}

/// The part of one commit.
struct Seen<'a> {
    snapshot: &'a Snapshot,
    workspace: &'a Workspace,
    run: &'a RunId,
    seed: &'a mut dyn FnMut() -> [u8; 32],
}

impl Stored for Seen<'_> {
    type Error = Infallible;

    fn session(&mut self, session: &SessionId) -> Result<SessionHead, Infallible> {
        let place = (self.workspace.clone(), session.clone());
        Ok(self.snapshot.heads.get(&place).cloned().unwrap_or_default())
    }

    fn run(&mut self) -> Result<Option<RunSummary>, Infallible> {
        Ok(self.snapshot.runs.get(&(self.workspace.clone(), self.run.clone())).cloned())
    }

    fn is_open(&mut self, turn: &TurnKey) -> Result<bool, Infallible> {
        Ok(self.snapshot.turns.contains(turn))
    }

    fn seed(&mut self) -> [u8; 32] {
        (self.seed)()
    }
}

/// What came of the commits, in their order. Nothing counts before the transaction is committed, and neither does what
/// is to be remembered then.
pub(crate) struct Written {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) heads: HashMap<Place, SessionHead>,
    /// By which it is seen whether the transaction was committed, if it writes any record.
    pub(crate) mark: Option<Mark>,
}

/// A record that only one transaction wrote: its bytes hold salts of this process.
pub(crate) struct Mark {
    /// What the transaction holds until its end.
    lock: i64,
    workspace: Workspace,
    run: RunId,
    seq: i64,
    stored: Vec<u8>,
}

impl Mark {
    /// Whether the record is there. Whoever asks waits until the transaction that wrote it has ended, either way.
    ///
    /// The number of a transaction would not do: what a server that crashed had not written to its disk, it forgets, and gives
    /// the same numbers to others.
    pub(crate) async fn is_there(&self, transaction: &Transaction<'_>) -> Result<bool, JournalError> {
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&self.lock]).await.map_err(failed)?;
        let look = "SELECT FROM records WHERE workspace = $1 AND run = $2 AND seq = $3 AND stored = $4";
        let place: [&(dyn ToSql + Sync); 4] = [&self.workspace.as_str(), &self.run.as_str(), &self.seq, &self.stored];
        let found = transaction.query_opt(look, &place).await.map_err(failed)?;
        Ok(found.is_some())
    }
}

/// Applies commits. All of them see those before.
pub(crate) async fn write(
    database: &Database,
    transaction: &Transaction<'_>,
    commits: Vec<Commit>,
    known: &mut Heads,
    seed: &mut (dyn FnMut() -> [u8; 32] + Send),
) -> Result<Written, JournalError> {
    let locks = commits.iter().map(|commit| lock_of(database, &commit.scope.workspace, &commit.run)).collect();
    let mut snapshot = read(transaction, locks, &commits, known).await?;
    let (mut rows, mut outcomes) = (Rows::default(), Vec::with_capacity(commits.len()));
    for commit in commits {
        let (workspace, run) = (commit.scope.workspace.clone(), commit.run.clone());
        let mut look = Seen { snapshot: &snapshot, workspace: &workspace, run: &run, seed };
        let Ok(prepared) = prepare(commit, &mut look);
        outcomes.push(match prepared {
            None => Outcome::Conflict,
            Some(prepared) => Outcome::Committed(rows.take(&mut snapshot, workspace, prepared)),
        });
    }
    rows.write(transaction).await?;
    Ok(Written { outcomes, heads: snapshot.heads, mark: rows.mark(database) })
}

/// What whoever changes a run has to hold.
pub(crate) fn lock_of(database: &Database, workspace: &Workspace, run: &RunId) -> i64 {
    database.lock_of(&format!("run\0{workspace}\0{run}"))
}

/// Everything that the commits may look at. One round trip: the statements go out together and run one after the other.
async fn read(
    transaction: &Transaction<'_>,
    locks: BTreeSet<i64>,
    commits: &[Commit],
    known: &mut Heads,
) -> Result<Snapshot, JournalError> {
    let locks: Vec<i64> = locks.into_iter().collect();
    let runs: BTreeSet<_> = commits.iter().map(|commit| (&commit.scope.workspace, &commit.run)).collect();
    let (run_spaces, run_ids) = columns(runs.iter().map(|(workspace, run)| (workspace.as_str(), run.as_str())));
    let mut places: Vec<(Place, SessionHead)> =
        sessions(commits).into_iter().map(|place| (place.clone(), known.take(&place))).collect();
    let versions: Vec<i64> = places.iter().map(|(_, head)| head.version.cast_signed()).collect();
    let (spaces, ids) = columns(places.iter().map(|((workspace, session), _)| (workspace.as_str(), session.as_str())));
    let closed: Vec<_> = commits.iter().flat_map(closes).collect();
    let turns = TurnColumns::of(&closed);
    // Sorted, so that two processes never wait for each other.
    let lock = "SELECT pg_advisory_xact_lock(key) FROM (SELECT unnest($1::int8[]) AS key ORDER BY 1) AS keys";
    let of_runs =
        "SELECT summary FROM runs JOIN unnest($1::text[], $2::text[]) AS w (workspace, run) USING (workspace, run)";
    let of_sessions = "SELECT w.at, r.name, r.version, r.content \
        FROM unnest($1::text[], $2::text[], $3::int8[]) WITH ORDINALITY AS w (workspace, session, known, at) \
        JOIN records r ON r.workspace = w.workspace AND r.session = w.session AND r.version > w.known \
        ORDER BY w.at, r.version";
    let of_turns = "SELECT w.at FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) \
        WITH ORDINALITY AS w (workspace, flow, run, session, name, at) JOIN turns USING (workspace, flow, run, session, name)";
    let statements = futures_util::future::try_join4(
        transaction.prepare_cached(lock),
        transaction.prepare_cached(of_runs),
        transaction.prepare_cached(of_sessions),
        transaction.prepare_cached(of_turns),
    );
    let (lock, of_runs, of_sessions, of_turns) = statements.await.map_err(failed)?;
    let run_columns: [&(dyn ToSql + Sync); 2] = [&run_spaces, &run_ids];
    let session_columns: [&(dyn ToSql + Sync); 3] = [&spaces, &ids, &versions];
    let lock_columns: [&(dyn ToSql + Sync); 1] = [&locks];
    let turn_columns = turns.columns();
    let (_, runs, heads, turns) = futures_util::future::try_join4(
        transaction.query(&lock, &lock_columns),
        transaction.query(&of_runs, &run_columns),
        transaction.query(&of_sessions, &session_columns),
        transaction.query(&of_turns, &turn_columns),
    )
    .await
    .map_err(failed)?;
    for row in heads {
        let (at, name, version): (i64, &str, i64) = (row.get(0), row.get(1), row.get(2));
        let content = hash(row.get(3))?;
        let place = usize::try_from(at - 1).ok().and_then(|at| places.get_mut(at));
        let (_, head) = place.ok_or_else(|| damaged("a record of no session was found"))?;
        head.add_record(Name::new(name.to_owned()), version.cast_unsigned(), content);
    }
    let summary = |row: &tokio_postgres::Row| serde_json::from_slice::<RunSummary>(row.get(0)).map_err(damaged);
    let runs = runs.iter().map(summary).collect::<Result<Vec<_>, _>>()?;
    let open = turns.iter().filter_map(|row| closed.get(usize::try_from(row.get::<_, i64>(0) - 1).ok()?).cloned());
    Ok(Snapshot {
        turns: open.collect(),
        heads: places.into_iter().collect(),
        runs: runs.into_iter().map(|run| ((run.workspace.clone(), run.run.clone()), run)).collect(),
    })
}

/// The sessions whose records the rules look at.
fn sessions(commits: &[Commit]) -> BTreeSet<Place> {
    let of = |commit: &Commit| {
        let records = commit.records.iter().flat_map(|record| {
            let causes = record.causes.iter().map(|cause| cause.session_seen_from(&record.session).clone());
            causes.chain([record.session.clone()]).collect::<Vec<_>>()
        });
        let others = commit.seen_of_others.iter().map(|(session, _)| session.clone());
        let workspace = commit.scope.workspace.clone();
        let all: BTreeSet<_> = records.chain(others).chain([commit.session.clone()]).collect();
        all.into_iter().map(move |session| (workspace.clone(), session))
    };
    commits.iter().flat_map(of).collect()
}

fn closes(commit: &Commit) -> impl Iterator<Item = TurnKey> {
    commit.close.iter().map(|name| TurnKey {
        scope: commit.scope.clone(),
        run: commit.run.clone(),
        session: commit.session.clone(),
        name: name.clone(),
    })
}

fn columns<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> (Vec<&'a str>, Vec<&'a str>) {
    rows.unzip()
}

/// What the commits write.
#[derive(Default)]
struct Rows {
    prepared: Vec<(Workspace, Prepared)>,
}

impl Rows {
    /// Notes what a commit writes, in the snapshot as well: the next one sees it.
    fn take(&mut self, snapshot: &mut Snapshot, workspace: Workspace, prepared: Prepared) -> Committed {
        let records = prepared.records.iter().map(|prepared| std::sync::Arc::clone(&prepared.record)).collect();
        let heads = prepared.heads.iter().map(|(session, head)| ((workspace.clone(), session.clone()), head.clone()));
        snapshot.heads.extend(heads);
        snapshot.runs.insert((workspace.clone(), prepared.summary.run.clone()), prepared.summary.clone());
        prepared.closed.iter().for_each(|turn| {
            snapshot.turns.remove(turn);
        });
        snapshot.turns.extend(prepared.opened.iter().map(|turn| turn.key.clone()));
        let committed = Committed { version: prepared.version, records, opened: prepared.opened.clone() };
        self.prepared.push((workspace, prepared));
        committed
    }

    fn mark(mut self, database: &Database) -> Option<Mark> {
        let (workspace, mut prepared) = self.prepared.drain(..).rfind(|(_, prepared)| !prepared.records.is_empty())?;
        let record = prepared.records.pop()?;
        let header = &record.record.header;
        Some(Mark {
            lock: lock_of(database, &workspace, &header.run),
            run: header.run.clone(),
            seq: header.seq.cast_signed(),
            stored: record.bytes,
            workspace,
        })
    }

    async fn write(&self, transaction: &Transaction<'_>) -> Result<(), JournalError> {
        if self.prepared.is_empty() {
            return Ok(());
        }
        // All of them are heard: the one that failed may not be the first that is looked at.
        let (records, texts, runs, turns) = futures_util::future::join4(
            self.write_records(transaction),
            self.write_texts(transaction),
            self.write_runs(transaction),
            self.write_turns(transaction),
        )
        .await;
        first_cause([records.err(), texts.err(), runs.err(), turns.err()])
    }

    async fn write_records(&self, transaction: &Transaction<'_>) -> Result<(), JournalError> {
        let all = || self.prepared.iter().flat_map(|(_, prepared)| &prepared.records);
        let header = || all().map(|prepared| &prepared.record.header);
        let workspaces: Vec<_> = header().map(|header| header.workspace.as_str()).collect();
        let sessions: Vec<_> = header().map(|header| header.session.as_str()).collect();
        let versions: Vec<_> = header().map(|header| header.version.cast_signed()).collect();
        let names: Vec<_> = header().map(|header| header.name.as_str()).collect();
        let runs: Vec<_> = header().map(|header| header.run.as_str()).collect();
        let seqs: Vec<_> = header().map(|header| header.seq.cast_signed()).collect();
        let contents: Vec<_> = header().map(|header| &header.content.as_bytes()[..]).collect();
        let stored: Vec<_> = all().map(|prepared| prepared.bytes.as_slice()).collect();
        // An array of arrays has to be a rectangle: hashes follow one another without anything in between.
        let texts = all().map(|prepared| prepared.blobs.iter().flat_map(|(hash, _)| *hash.as_bytes()).collect());
        let texts: Vec<Vec<u8>> = texts.collect();
        let hashes: Vec<_> = all().map(|prepared| LeafKind::Record.hash(b"", &prepared.bytes)).collect();
        let hashes: Vec<_> = hashes.iter().map(|hash| &hash.as_bytes()[..]).collect();
        let insert = "INSERT INTO records (workspace, run, seq, session, version, name, content, stored, texts) \
            SELECT * FROM unnest($1::text[], $2::text[], $3::int8[], $4::text[], $5::int8[], $6::text[], $7::bytea[], $8::bytea[], $9::bytea[])";
        let log = "INSERT INTO unsequenced (kind, workspace, run, seq, hash) \
            SELECT $5::int2, * FROM unnest($1::text[], $2::text[], $3::int8[], $4::bytea[])";
        let (insert, log) =
            tokio::try_join!(transaction.prepare_cached(insert), transaction.prepare_cached(log)).map_err(failed)?;
        let columns: [&(dyn ToSql + Sync); 9] =
            [&workspaces, &runs, &seqs, &sessions, &versions, &names, &contents, &stored, &texts];
        let kind = number_of(LeafKind::Record);
        let leaves: [&(dyn ToSql + Sync); 5] = [&workspaces, &runs, &seqs, &hashes, &kind];
        let (inserted, noted) =
            tokio::join!(transaction.execute(&insert, &columns), transaction.execute(&log, &leaves));
        first_cause([inserted.err().map(failed), noted.err().map(failed)])
    }

    async fn write_texts(&self, transaction: &Transaction<'_>) -> Result<(), JournalError> {
        let of = |(workspace, prepared): &'_ (Workspace, Prepared)| {
            let blobs = prepared.records.iter().flat_map(|prepared| &prepared.blobs);
            let blobs = blobs.map(|(hash, text)| ((workspace.as_str().to_owned(), *hash), std::sync::Arc::clone(text)));
            blobs.collect::<Vec<_>>()
        };
        let texts: HashMap<(String, Hash), _> = self.prepared.iter().flat_map(of).collect();
        if texts.is_empty() {
            return Ok(());
        }
        let workspaces: Vec<_> = texts.keys().map(|(workspace, _)| workspace.as_str()).collect();
        let hashes: Vec<_> = texts.keys().map(|(_, hash)| &hash.as_bytes()[..]).collect();
        let texts: Vec<_> = texts.values().map(|text| text.as_bytes()).collect();
        let insert = "INSERT INTO texts (workspace, hash, text) \
            SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[]) ORDER BY 1, 2 ON CONFLICT DO NOTHING";
        let insert = transaction.prepare_cached(insert).await.map_err(failed)?;
        let columns: [&(dyn ToSql + Sync); 3] = [&workspaces, &hashes, &texts];
        transaction.execute(&insert, &columns).await.map(drop).map_err(failed)
    }

    async fn write_runs(&self, transaction: &Transaction<'_>) -> Result<(), JournalError> {
        // Only the newest of each.
        let newest: HashMap<_, _> = self
            .prepared
            .iter()
            .map(|(workspace, prepared)| ((workspace.as_str(), prepared.summary.run.as_str()), &prepared.summary))
            .collect();
        let all = || newest.values();
        let workspaces: Vec<_> = all().map(|run| run.workspace.as_str()).collect();
        let runs: Vec<_> = all().map(|run| run.run.as_str()).collect();
        let started: Vec<_> = all().map(|run| run.started.as_micros()).collect();
        let states: Vec<_> = all().map(|run| run.state.as_str()).collect();
        let ended: Vec<_> = all().map(|run| run.state.is_end()).collect();
        let patterns: Vec<_> = all().map(|run| run.pattern.as_ref().map(PatternName::as_str)).collect();
        let conversations: Vec<_> = all().map(|run| run.conversation.as_ref().map(ConversationId::as_str)).collect();
        let searched: Vec<_> = all().map(|run| searched(&run.question)).collect();
        let summaries: Vec<_> = all().map(|run| serde_json::to_vec(run).expect("summaries are always JSON")).collect();
        let insert = "INSERT INTO runs (workspace, run, started, state, has_ended, pattern, conversation, searched, summary) \
            SELECT * FROM unnest($1::text[], $2::text[], $3::int8[], $4::text[], $5::bool[], $6::text[], $7::text[], $8::text[], $9::bytea[]) \
            ON CONFLICT (workspace, run) DO UPDATE SET state = excluded.state, has_ended = excluded.has_ended, \
            pattern = excluded.pattern, summary = excluded.summary";
        let insert = transaction.prepare_cached(insert).await.map_err(failed)?;
        let columns: [&(dyn ToSql + Sync); 9] =
            [&workspaces, &runs, &started, &states, &ended, &patterns, &conversations, &searched, &summaries];
        transaction.execute(&insert, &columns).await.map(drop).map_err(failed)
    }

    /// A turn that one commit opens and a later one closes is in neither statement.
    async fn write_turns(&self, transaction: &Transaction<'_>) -> Result<(), JournalError> {
        let (mut opened, mut closed) = (Vec::new(), Vec::new());
        for (_, prepared) in &self.prepared {
            for turn in &prepared.closed {
                let before = opened.len();
                opened.retain(|open: &&trellis_orchestrator::ports::OpenTurn| open.key != *turn);
                if opened.len() == before {
                    closed.push(turn);
                }
            }
            opened.extend(&prepared.opened);
        }
        if !closed.is_empty() {
            let columns = TurnColumns::of(closed);
            let delete = "DELETE FROM turns USING unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) \
                AS w (workspace, flow, run, session, name) WHERE turns.workspace = w.workspace AND turns.flow = w.flow \
                AND turns.run = w.run AND turns.session = w.session AND turns.name = w.name";
            let delete = transaction.prepare_cached(delete).await.map_err(failed)?;
            transaction.execute(&delete, &columns.columns()).await.map_err(failed)?;
        }
        if opened.is_empty() {
            return Ok(());
        }
        let keys = TurnColumns::of(opened.iter().map(|turn| &turn.key));
        let due: Vec<_> = opened.iter().map(|turn| turn.due.map(Timestamp::as_micros)).collect();
        let roots: Vec<_> = opened.iter().map(|turn| turn.root).collect();
        let insert = "INSERT INTO turns (workspace, flow, run, session, name, due, is_root) \
            SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int8[], $7::bool[]) \
            ON CONFLICT DO NOTHING";
        let insert = transaction.prepare_cached(insert).await.map_err(failed)?;
        let [one, two, three, four, five] = keys.columns();
        let columns: [&(dyn ToSql + Sync); 7] = [one, two, three, four, five, &due, &roots];
        transaction.execute(&insert, &columns).await.map(drop).map_err(failed)
    }
}

/// A question as it is searched. A database takes no zero bytes in texts.
pub(crate) fn searched(question: &str) -> String {
    question.to_lowercase().replace('\0', " ")
}
