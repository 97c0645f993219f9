//! A world whose time is tokio's clock: paused in a test, it jumps to whatever is waited for next.
#![expect(clippy::disallowed_methods, reason = "this is the port that others use instead")]

use crate::ports::{BoxFuture, World};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use trellis_domain::Timestamp;

/// Begins at the same time in every process, and its ids are numbers: what happens in it can happen again.
#[derive(Debug)]
pub struct VirtualWorld {
    began: tokio::time::Instant,
    /// By how much its clock was put forward or back, in microseconds.
    jumped: AtomicI64,
    ids: AtomicU64,
}

/// 2026-01-01.
const BEGINNING: i64 = 1_767_225_600_000_000;

impl VirtualWorld {
    #[expect(clippy::new_without_default, reason = "it begins when it is made")]
    pub fn new() -> Self {
        Self { began: tokio::time::Instant::now(), jumped: AtomicI64::new(0), ids: AtomicU64::new(0) }
    }

    /// The clock is put forward or back. What is waited for is not.
    pub fn jump_ms(&self, by: i64) {
        self.jumped.fetch_add(by.saturating_mul(1_000), Ordering::SeqCst);
    }

    /// How much time has passed since it began, whatever its clock says.
    pub fn passed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl World for VirtualWorld {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.passed().as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(BEGINNING + passed + self.jumped.load(Ordering::SeqCst))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn fresh_id(&self) -> String {
        format!("id-{}", self.ids.fetch_add(1, Ordering::SeqCst))
    }
}
