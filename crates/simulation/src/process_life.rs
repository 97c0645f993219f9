//! The life of one process. Every call of a port goes through its life: there the process stands still, and there it dies.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct ProcessLife {
    calls: AtomicU64,
    dies_at: Option<u64>,
    dead: AtomicBool,
    death: Notify,
    stands_until: Mutex<Option<Instant>>,
}

impl ProcessLife {
    /// A new life, which ends at that call.
    pub(crate) fn new(dies_at: Option<u64>) -> Self {
        let (calls, dead, death) = (AtomicU64::new(0), AtomicBool::new(false), Notify::new());
        Self { calls, dies_at, dead, death, stands_until: Mutex::default() }
    }

    pub(crate) fn kill(&self) {
        self.dead.store(true, Ordering::SeqCst);
        self.death.notify_one();
    }

    pub(crate) fn pause(&self, time: Duration) {
        *self.stands_until.lock() = Some(Instant::now() + time);
    }

    pub(crate) async fn died(&self) {
        self.death.notified().await;
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Before and after each call. A process that is dead does not come back from here.
    pub(crate) async fn pass(&self) {
        if self.dies_at == Some(self.calls.fetch_add(1, Ordering::SeqCst)) {
            self.kill();
        }
        self.stand().await;
    }

    /// Where the process waits for something that is no call: it does nothing while it stands still, or any more.
    pub(crate) async fn stand(&self) {
        let until = *self.stands_until.lock();
        if let Some(until) = until.filter(|until| *until > Instant::now()) {
            tokio::time::sleep_until(until).await;
        }
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }
}
