//! One time for all processes of a deployment: that of the database's server. Deadlines and limits of runs are written by
//! one process and judged by another, so a machine whose clock is wrong would end what others have just begun.

use crate::database::Database;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use trellis_domain::Timestamp;
use trellis_orchestrator::ports::{BoxFuture, JournalError, World};

/// Clocks that agree as well as this are left alone, so that time does not jump with every look at the server.
const AGREED: Duration = Duration::from_secs(1);
/// How often the server's clock is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// A look that takes longer says too little.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// The world of this process, by the clock of the database.
#[derive(Debug)]
pub struct DatabaseWorld {
    own: Arc<dyn World>,
    /// By how many microseconds the server's clock is ahead of ours, if they disagree.
    ahead: AtomicI64,
}

impl DatabaseWorld {
    /// Looks at the server's clock now, and again for as long as this is used.
    pub async fn open(database: &Database, own: Arc<dyn World>) -> Result<Arc<Self>, JournalError> {
        let world = Arc::new(Self { own, ahead: AtomicI64::new(0) });
        world.look(database).await?;
        let (used, database) = (Arc::downgrade(&world), database.clone());
        tokio::spawn(async move {
            while let Some(world) = used.upgrade() {
                let own = Arc::clone(&world.own);
                // Without it, the last look counts.
                if let Err(error) = world.look(&database).await {
                    tracing::debug!(%error, "the clock of the database cannot be read");
                }
                drop(world);
                own.sleep(LOOK_EVERY).await;
            }
        });
        Ok(world)
    }

    async fn look(&self, database: &Database) -> Result<(), JournalError> {
        let before = self.own.now();
        let query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";
        let rows = database.query(query, &[]).await?;
        let taken = self.own.now().as_micros() - before.as_micros();
        let Some(server) = rows.first().map(|row| row.get::<_, i64>(0)) else { return Ok(()) };
        if taken < 0 || taken > micros(LONGEST_LOOK) {
            return Ok(());
        }
        let ahead = server - (before.as_micros() + taken / 2);
        let known = self.ahead.load(Ordering::Relaxed);
        if (ahead - known).abs() <= micros(AGREED) {
            return Ok(());
        }
        let seconds = Duration::from_micros(ahead.unsigned_abs()).as_secs();
        let side = if ahead > 0 { "behind" } else { "ahead of" };
        tracing::warn!("the clock of this machine is {seconds} s {side} that of the database, which counts");
        self.ahead.store(ahead, Ordering::Relaxed);
        Ok(())
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl World for DatabaseWorld {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.own.now().as_micros().saturating_add(self.ahead.load(Ordering::Relaxed)))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.own.sleep(duration)
    }

    fn fresh_id(&self) -> String {
        self.own.fresh_id()
    }
}
