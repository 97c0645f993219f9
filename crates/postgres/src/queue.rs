//! The queue of wake-ups. They are in a table that may be lost with the server: the journal has the turns, and whoever
//! sweeps it publishes them again.
//!
//! Each wake-up gets a place when it is published: behind those of its own workspace, and level with the others, so that
//! a workspace with much to do does not keep others waiting. Continuations of a workspace come before its new runs.

use crate::database::{Database, Parameters};
use crate::notices::word_of;
use crate::turns::key_of;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::Row;
use trellis_domain::Timestamp;
use trellis_orchestrator::ports::{
    BoxFuture, Cut, Delivery, JournalError, OpenTurn, Queue, QueueError, Receipt, Role, Signal, TurnKey,
};

/// A wake-up that is not renewed for so long is handed out again.
const OUT: f64 = 60.0;
const RENEW_EVERY: Duration = Duration::from_secs(20);
/// Without a hint, the queue is looked at this often.
const LOOK: Duration = Duration::from_secs(1);
/// The shortest time between two looks, however soon something is due.
const SHORTEST: Duration = Duration::from_millis(1);
/// The shortest time between two hints to others.
const BETWEEN_HINTS: Duration = Duration::from_millis(5);

/// Wake-ups for all processes that share a database.
#[derive(Debug)]
pub struct PostgresQueue {
    lanes: [Arc<Lane>; 2],
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for PostgresQueue {
    /// What was taken and not handed out is taken by somebody else in time.
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

const fn number_of(role: Role) -> i16 {
    match role {
        Role::Agent => 0,
        Role::Aggregator => 1,
    }
}

/// As far as anybody has come: the first that waits, or nobody does.
const FRONT: &str = "coalesce((SELECT min(slot) FROM wakeups WHERE role = $1 AND out_until IS NULL AND slot IS NOT NULL), \
    (SELECT max(slot) FROM wakeup_lanes WHERE role = $1), 0)";

/// Behind one's own, and not before those who have come as far as anybody. New runs come behind continuations.
const PUBLISH: &str = "WITH lane AS ( \
        INSERT INTO wakeup_lanes AS l (role, is_root, workspace, slot) \
        VALUES ($1::int2, $8::bool, $2::text, 1 + greatest({FRONT}, \
            (SELECT slot FROM wakeup_lanes WHERE role = $1 AND NOT is_root AND workspace = $2))) \
        ON CONFLICT (role, is_root, workspace) DO UPDATE SET slot = greatest(l.slot + 1, excluded.slot) RETURNING slot), \
    due AS (SELECT coalesce(to_timestamp($7::int8 / 1000000.0), '-infinity') AS ready) \
    INSERT INTO wakeups (role, workspace, flow, run, session, name, due, is_root, begun, cut_times, cut_alone, slot, ready, count) \
    SELECT $1::int2, $2::text, $3::text, $4::text, $5::text, $6::text, $7::int8, $8::bool, $9::int4, $10::int4, $11::int4, \
        CASE WHEN due.ready <= clock_timestamp() THEN lane.slot END, due.ready, 0 FROM lane, due \
    ON CONFLICT (role, workspace, flow, run, session, name) WHERE out_until IS NULL DO NOTHING";

/// Those whose time has come stand in front.
const PROMOTE: &str = "UPDATE wakeups SET slot = {FRONT} WHERE id = ANY (ARRAY(SELECT id FROM wakeups \
    WHERE role = $1 AND out_until IS NULL AND slot IS NULL AND ready <= clock_timestamp() \
    ORDER BY ready LIMIT 100 FOR UPDATE SKIP LOCKED))";

/// What was handed out and forgotten comes first: it has waited longest.
const TAKE_OVER: &str = "role = $1 AND out_until <= clock_timestamp() ORDER BY out_until";
const TAKE: &str = "role = $1 AND out_until IS NULL AND slot IS NOT NULL ORDER BY slot, id";

/// How many are taken at a time: each time costs as much as many.
const BATCH: i64 = 16;

/// Hands out the first of these that nobody else is about to take.
fn take(which: &str) -> String {
    format!(
        "WITH taken AS (UPDATE wakeups SET out_until = clock_timestamp() + make_interval(secs => $2), count = count + 1 \
         WHERE id = ANY (ARRAY(SELECT id FROM wakeups WHERE {which} LIMIT $3 FOR UPDATE SKIP LOCKED)) RETURNING *) \
         SELECT workspace, flow, run, session, name, due, is_root, begun, cut_times, cut_alone, id, count \
         FROM taken ORDER BY slot, id"
    )
}

/// In how many seconds the next one is ready, or its holder's time is over.
const NEXT: &str = "SELECT extract(epoch FROM least( \
        (SELECT min(ready) FROM wakeups WHERE role = $1 AND out_until IS NULL AND slot IS NULL), \
        (SELECT min(out_until) FROM wakeups WHERE role = $1 AND out_until IS NOT NULL)) - clock_timestamp())::float8";

/// What is given back waits again, unless it was published meanwhile.
const GIVE_BACK: &str = "WITH gone AS (DELETE FROM wakeups WHERE id = $1 AND count = $2 AND out_until IS NOT NULL RETURNING *) \
    INSERT INTO wakeups (role, workspace, flow, run, session, name, due, is_root, begun, cut_times, cut_alone, slot, ready, count) \
    SELECT role, workspace, flow, run, session, name, due, is_root, begun, cut_times, cut_alone, \
        CASE WHEN $3::float8 <= 0 THEN slot END, clock_timestamp() + make_interval(secs => $3), count FROM gone \
    ON CONFLICT (role, workspace, flow, run, session, name) WHERE out_until IS NULL DO NOTHING";

/// Everything that is about one role.
#[derive(Debug)]
struct Lane {
    database: Database,
    role: Role,
    /// How many wait for a wake-up.
    wanted: AtomicUsize,
    /// Wake-ups that were taken for those who come first. Taking takes a moment, and those who wait may go meanwhile.
    taken: Mutex<VecDeque<Result<Delivery, QueueError>>>,
    changed: Signal,
    /// Other processes are to be told that there is something.
    hint: Notify,
}

/// Somebody waits, for as long as this lives.
struct Wanted<'a>(&'a Lane);

impl<'a> Wanted<'a> {
    fn by(lane: &'a Lane) -> Self {
        lane.wanted.fetch_add(1, Ordering::SeqCst);
        lane.changed.send();
        Self(lane)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.wanted.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Lane {
    fn new(database: &Database, role: Role) -> Self {
        let (wanted, taken, changed, hint) = Default::default();
        Self { database: database.clone(), role, wanted, taken, changed, hint }
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > 0
    }

    /// Takes wake-ups for those who wait.
    async fn serve(&self) {
        loop {
            let mut changed = self.changed.listen();
            while !self.is_wanted() {
                changed.changed().await;
            }
            let looked = self.look().await;
            let failed = looked.is_err();
            match looked {
                Ok(found) => self.taken.lock().extend(found.into_iter().map(Ok)),
                Err(error) => self.taken.lock().push_back(Err(unavailable(error))),
            }
            self.changed.send();
            while !self.taken.lock().is_empty() {
                let nobody = tokio::time::timeout(LOOK, changed.changed()).await.is_err() && !self.is_wanted();
                let left = if nobody { std::mem::take(&mut *self.taken.lock()) } else { VecDeque::new() };
                for delivery in left.into_iter().flatten() {
                    // Whoever wanted it has gone: somebody else may have it.
                    drop(self.give_back(&delivery.receipt, Duration::ZERO).await);
                }
            }
            if failed {
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    /// The next wake-ups. There are none if it is time to look again.
    async fn look(&self) -> Result<Vec<Delivery>, JournalError> {
        let mut hints = self.database.notices().wake_ups(self.role).listen();
        let role = number_of(self.role);
        self.database.change_casually(&PROMOTE.replace("{FRONT}", FRONT), &[&role]).await?;
        for which in [TAKE_OVER, TAKE] {
            let rows = self.database.change_casually(&take(which), &[&role, &OUT, &BATCH]).await?;
            if !rows.is_empty() {
                return rows.iter().map(delivery).collect();
            }
        }
        let row = self.database.find(NEXT, &[&role]).await?;
        let wait = row.and_then(|row| row.get::<_, Option<f64>>(0)).unwrap_or(f64::MAX);
        let wait = Duration::try_from_secs_f64(wait.max(0.0)).unwrap_or(LOOK).clamp(SHORTEST, LOOK);
        drop(tokio::time::timeout(wait, hints.changed()).await);
        Ok(Vec::new())
    }

    async fn take(&self) -> Result<Delivery, QueueError> {
        let _wanted = Wanted::by(self);
        let mut changed = self.changed.listen();
        loop {
            if let Some(taken) = self.taken.lock().pop_front() {
                self.changed.send();
                return taken;
            }
            changed.changed().await;
        }
    }

    async fn give_back(&self, receipt: &Receipt, delay: Duration) -> Result<(), JournalError> {
        let (id, count) = numbers(receipt);
        self.database.change_casually(GIVE_BACK, &[&id, &count, &delay.as_secs_f64()]).await?;
        self.tell();
        Ok(())
    }

    /// Whoever waits in this process looks at once; others get a hint.
    fn tell(&self) {
        self.database.notices().wake_ups(self.role).send();
        self.hint.notify_one();
    }

    /// Hints are told together: the server takes them one after the other.
    async fn hint(&self) {
        loop {
            self.hint.notified().await;
            let channel = &self.database.notices().channel;
            drop(self.database.change_casually("SELECT pg_notify($1, $2)", &[channel, &word_of(self.role)]).await);
            tokio::time::sleep(BETWEEN_HINTS).await;
        }
    }
}

impl PostgresQueue {
    /// Begins to serve, in tasks of the runtime that this is called in.
    pub fn new(database: &Database) -> Self {
        let lanes = [Role::Agent, Role::Aggregator].map(|role| Arc::new(Lane::new(database, role)));
        let tasks = lanes.iter().flat_map(|lane| {
            let (serving, hinting) = (Arc::clone(lane), Arc::clone(lane));
            [tokio::spawn(async move { serving.serve().await }), tokio::spawn(async move { hinting.hint().await })]
        });
        let tasks = tasks.collect();
        Self { lanes, tasks }
    }

    fn lane(&self, role: Role) -> &Lane {
        match role {
            Role::Agent => &self.lanes[0],
            Role::Aggregator => &self.lanes[1],
        }
    }

    async fn publish_turn(&self, turn: OpenTurn) -> Result<(), JournalError> {
        let lane = self.lane(Role::of(&turn));
        let TurnKey { scope, run, session, name } = &turn.key;
        let due = turn.due.map(Timestamp::as_micros);
        let parameters: Parameters<'_> = &[
            &number_of(lane.role),
            &scope.workspace.as_str(),
            &scope.flow.as_str(),
            &run.as_str(),
            &session.as_str(),
            &name.as_str(),
            &due,
            &turn.root,
            &turn.begun.cast_signed(),
            &turn.cut.times.cast_signed(),
            &turn.cut.alone.cast_signed(),
        ];
        lane.database.change_casually(&PUBLISH.replace("{FRONT}", FRONT), parameters).await?;
        lane.tell();
        Ok(())
    }
}

fn delivery(row: &Row) -> Result<Delivery, JournalError> {
    let due = row.get::<_, Option<i64>>(5).map(Timestamp::from_micros);
    let count = |column| row.get::<_, i32>(column).cast_unsigned();
    let turn = OpenTurn {
        begun: count(7),
        cut: Cut { times: count(8), alone: count(9) },
        ..OpenTurn::new(key_of(row)?, due, row.get(6))
    };
    let receipt = [row.get::<_, i64>(10).to_be_bytes().as_slice(), &row.get::<_, i32>(11).to_be_bytes()].concat();
    Ok(Delivery { turn, receipt: Receipt(receipt.into()), count: count(11), renew_every: Some(RENEW_EVERY) })
}

/// The wake-up, and which hand-out of it: whoever was too late has no say any more.
fn numbers(receipt: &Receipt) -> (i64, i32) {
    let (id, count) =
        receipt.0.split_first_chunk::<8>().map_or((0, &[][..]), |(id, rest)| (i64::from_be_bytes(*id), rest));
    (id, count.first_chunk().copied().map_or(0, i32::from_be_bytes))
}

fn unavailable(error: JournalError) -> QueueError {
    QueueError::Unavailable(error.to_string())
}

impl Queue for PostgresQueue {
    fn publish(&self, turn: OpenTurn) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async { self.publish_turn(turn).await.map_err(unavailable) })
    }

    fn take(&self, role: Role) -> BoxFuture<'_, Result<Delivery, QueueError>> {
        Box::pin(self.lane(role).take())
    }

    fn acknowledge<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(async {
            let (id, count) = numbers(&delivery.receipt);
            let delete = "DELETE FROM wakeups WHERE id = $1 AND count = $2 AND out_until IS NOT NULL";
            let database = &self.lane(Role::of(&delivery.turn)).database;
            database.change_casually(delete, &[&id, &count]).await.map(drop).map_err(unavailable)
        })
    }

    fn renew<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(async {
            let (id, count) = numbers(&delivery.receipt);
            let renew = "UPDATE wakeups SET out_until = clock_timestamp() + make_interval(secs => $3) \
                WHERE id = $1 AND count = $2 AND out_until IS NOT NULL";
            let database = &self.lane(Role::of(&delivery.turn)).database;
            database.change_casually(renew, &[&id, &count, &OUT]).await.map(drop).map_err(unavailable)
        })
    }

    fn give_back(&self, delivery: Delivery, delay: Duration) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            self.lane(Role::of(&delivery.turn)).give_back(&delivery.receipt, delay).await.map_err(unavailable)
        })
    }
}
