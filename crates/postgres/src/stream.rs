//! What processes tell each other, through a table that is kept for a minute. A hint of the server says that there is
//! something; it is looked for without one, too.

use crate::database::Database;
use crate::error::failed;
use crate::notices::TOLD;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use trellis_orchestrator::ports::{BoxFuture, Heard, JournalError, Stream, StreamListener, StreamMessage};

/// Messages that wait to be written, and that wait for a listener. What is more is lost, and said to be.
const WAITING: usize = 4_096;
/// Messages, and bytes of them, that are written as one row.
const TOGETHER: usize = 512;
const TOGETHER_BYTES: usize = 1 << 20;
/// Rows that are read at once.
const PAGE: i64 = 64;
/// Without a hint, it is looked for this often.
const LOOK: Duration = Duration::from_millis(500);
/// After trouble.
const LATER: Duration = Duration::from_secs(1);
/// So many rows are written before old ones are removed.
const SWEEP: u32 = 256;

/// One row.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Told {
    messages: Vec<StreamMessage>,
    /// Others were lost before these.
    #[serde(default)]
    missed: bool,
}

/// The way to all other processes that share a database.
#[derive(Debug)]
pub struct PostgresStream {
    outgoing: mpsc::Sender<StreamMessage>,
    lost: Arc<AtomicBool>,
    heard: broadcast::Sender<Heard>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for PostgresStream {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl PostgresStream {
    /// Begins to listen. What is told from when this returns is heard.
    pub async fn open(database: &Database) -> Result<Self, JournalError> {
        let (outgoing, waiting) = mpsc::channel(WAITING);
        let (heard, lost) = (broadcast::Sender::new(WAITING), Arc::new(AtomicBool::new(false)));
        let telling = Telling { database: database.clone(), lost: Arc::clone(&lost) };
        let hearing = Hearing { newest: newest(database).await?, database: database.clone(), heard: heard.clone() };
        let tasks = [tokio::spawn(telling.run(waiting)), tokio::spawn(hearing.run())];
        Ok(Self { outgoing, lost, heard, tasks })
    }
}

impl Stream for PostgresStream {
    fn publish(&self, message: StreamMessage) {
        if self.outgoing.try_send(message).is_err() {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    fn listen(&self) -> Box<dyn StreamListener> {
        Box::new(Listener(self.heard.subscribe()))
    }
}

/// Writes what this process tells.
struct Telling {
    database: Database,
    lost: Arc<AtomicBool>,
}

impl Telling {
    async fn run(self, mut waiting: mpsc::Receiver<StreamMessage>) {
        let (mut taken, mut rows) = (Vec::new(), 0);
        while waiting.recv_many(&mut taken, TOGETHER).await > 0 {
            for row in self.rows(std::mem::take(&mut taken)) {
                if let Err(error) = self.database.within(self.write(&row)).await {
                    tracing::debug!(%error, "other processes could not be told");
                    self.lost.store(true, Ordering::Relaxed);
                    tokio::time::sleep(LATER).await;
                }
                rows = (rows + 1) % SWEEP;
                if rows == 1 {
                    let old = "DELETE FROM told WHERE at < clock_timestamp() - interval '1 minute'";
                    drop(self.database.execute(old, &[]).await);
                }
            }
        }
    }

    /// Messages as rows of bounded size.
    fn rows(&self, messages: Vec<StreamMessage>) -> Vec<Told> {
        let (mut rows, mut bytes) =
            (vec![Told { missed: self.lost.swap(false, Ordering::Relaxed), ..Told::default() }], 0);
        for message in messages {
            let size = serde_json::to_vec(&message).map_or(0, |json| json.len());
            if bytes + size > TOGETHER_BYTES && bytes > 0 {
                rows.push(Told::default());
                bytes = 0;
            }
            bytes += size;
            if let Some(row) = rows.last_mut() {
                row.messages.push(message);
            }
        }
        rows
    }

    /// One row after the other, whoever writes it: a reader that has seen a number never finds a smaller one later. Nobody
    /// waits for the disk.
    async fn write(&self, told: &Told) -> Result<(), JournalError> {
        let messages = serde_json::to_vec(told).expect("messages are always JSON");
        let mut lease = self.database.casual().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        let lock = self.database.lock_of("told");
        let begin = "SELECT pg_advisory_xact_lock($1)";
        let insert = "INSERT INTO told (messages) VALUES ($1)";
        let (begin, insert, hint) = tokio::try_join!(
            transaction.prepare_cached(begin),
            transaction.prepare_cached(insert),
            transaction.prepare_cached("SELECT pg_notify($1, $2)"),
        )
        .map_err(failed)?;
        let channel = &self.database.notices().channel;
        transaction.query(&begin, &[&lock]).await.map_err(failed)?;
        transaction.execute(&insert, &[&messages]).await.map_err(failed)?;
        transaction.query(&hint, &[channel, &TOLD]).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        lease.release();
        Ok(())
    }
}

/// The number of the newest row.
async fn newest(database: &Database) -> Result<i64, JournalError> {
    let row = database.find("SELECT coalesce(max(id), 0) FROM told", &[]).await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

/// Reads what was told, for all listeners of this process.
struct Hearing {
    database: Database,
    newest: i64,
    heard: broadcast::Sender<Heard>,
}

impl Hearing {
    async fn run(mut self) {
        let notices = self.database.notices().clone();
        let (mut told, mut connected) = (notices.told.listen(), notices.connected.listen());
        // Connected before, so that the next time something may have been lost.
        let mut again = connected.is_late();
        loop {
            if connected.has_changed()
                && let Ok(newest) = newest(&self.database).await
            {
                connected.mark_unchanged();
                // A server that has crashed has lost the table, and counts anew.
                if again || newest < self.newest {
                    self.newest = newest;
                    self.say(Heard::Missed);
                }
                again = true;
            }
            match self.read().await {
                Ok(PAGE..) => {}
                Ok(_) => drop(tokio::time::timeout(LOOK, told.changed()).await),
                Err(error) => {
                    tracing::debug!(%error, "what other processes tell cannot be read");
                    again = true;
                    tokio::time::sleep(LATER).await;
                }
            }
        }
    }

    async fn read(&mut self) -> Result<i64, JournalError> {
        let query = "SELECT id, messages FROM told WHERE id > $1 ORDER BY id LIMIT $2";
        let rows = self.database.query(query, &[&self.newest, &PAGE]).await?;
        for row in &rows {
            let id: i64 = row.get(0);
            // What lies between was removed before it was read, or never written.
            if id != self.newest + 1 {
                self.say(Heard::Missed);
            }
            self.newest = id;
            // What a newer program says in other words is missed.
            let told = serde_json::from_slice::<Told>(row.get(1)).unwrap_or(Told { missed: true, ..Told::default() });
            if told.missed {
                self.say(Heard::Missed);
            }
            told.messages.into_iter().for_each(|message| self.say(Heard::Message(message)));
        }
        Ok(i64::try_from(rows.len()).unwrap_or(PAGE))
    }

    fn say(&self, heard: Heard) {
        // Nobody listens: nobody misses it.
        drop(self.heard.send(heard));
    }
}

#[derive(Debug)]
struct Listener(broadcast::Receiver<Heard>);

impl StreamListener for Listener {
    fn next(&mut self) -> BoxFuture<'_, Heard> {
        Box::pin(async {
            match self.0.recv().await {
                Ok(heard) => heard,
                Err(broadcast::error::RecvError::Lagged(_)) => Heard::Missed,
                // Nobody is left who could say anything.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        })
    }
}
