//! Work off the runtime that ends in time.

use crate::{CancelOnDrop, Cancellation};
use std::time::Duration;
use tokio::sync::Semaphore;
use trellis_orchestrator::ports::{GraphError, JournalError};

/// Looks into single runs at once. They have places of their own, so that no scan holds them up.
pub static LOOKS: Semaphore = Semaphore::const_new(4);
/// Readings of an index at once: each has a thread, and what it reads is in memory.
pub static SCANS: Semaphore = Semaphore::const_new(4);

/// Does blocking work for at most that long, the wait for a place included. Its place is free again once the work has
/// really ended.
pub async fn within_timeout<T: Send + 'static>(
    places: &'static Semaphore,
    time: Duration,
    work: impl FnOnce(Cancellation) -> Result<T, GraphError> + Send + 'static,
) -> Result<T, GraphError> {
    let cancellation = Cancellation::default();
    let _guard = CancelOnDrop(cancellation.clone());
    let done = async {
        let place = places.acquire().await.map_err(|_| JournalError::Closed)?;
        let work = move || {
            let _place = place;
            work(cancellation)
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| JournalError::Read(error.to_string()))?
    };
    tokio::time::timeout(time, done).await.unwrap_or(Err(GraphError::TimedOut(time)))
}
