//! How much of what callers asked for waits to be read, by all of them together.

use crate::bounds;
use axum::body::{Body, Bytes};
use axum::response::Response;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a reply waits until others are read.
const PATIENCE: Duration = Duration::from_secs(15);

/// Room for replies. Whoever reads gives it back; whoever does not loses the connection, sooner if others wait.
#[derive(Debug, Clone)]
pub(crate) struct Unread(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    room: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// What a reply takes of the room, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held(OwnedSemaphorePermit);

impl Held {
    /// Gives back what turned out not to be needed.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.0.num_permits().saturating_sub(bytes);
        drop(self.0.split(surplus));
    }
}

/// A reply in memory, and its place. They go together, whoever holds the last piece of it.
struct Owned {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Unread {
    pub(crate) fn new() -> Self {
        let room = Arc::new(Semaphore::new(bounds::UNREAD_IN_ALL));
        Self(Arc::new(Shared { room, waiting: AtomicUsize::new(0) }))
    }

    /// Room for so many bytes; waits for it.
    pub(crate) async fn take(&self, bytes: usize) -> Held {
        if let Some(held) = self.try_take(bytes) {
            return held;
        }
        let _wanted = Wanted::new(&self.0.waiting);
        let room = Arc::clone(&self.0.room);
        Held(room.acquire_many_owned(permits(bytes)).await.expect("the room is never closed"))
    }

    pub(crate) fn try_take(&self, bytes: usize) -> Option<Held> {
        Arc::clone(&self.0.room).try_acquire_many_owned(permits(bytes)).ok().map(Held)
    }

    /// Whether somebody waits for room.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) > 0
    }

    /// A piece of a reply that takes room as long as it is in memory.
    pub(crate) fn hold(bytes: Bytes, held: Held) -> Bytes {
        Bytes::from_owner(Owned { bytes, _held: held })
    }

    /// The reply with its place, or none if there is no room for it. Streams take theirs piece by piece.
    pub(crate) async fn place(&self, response: Response, patient: bool) -> Option<Response> {
        use axum::body::HttpBody;
        let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok());
        let Some(size) = size.filter(|size| *size > bounds::SMALL) else { return Some(response) };
        let held =
            if patient { tokio::time::timeout(PATIENCE, self.take(size)).await.ok()? } else { self.try_take(size)? };
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.ok()?;
        Some(Response::from_parts(parts, Body::from(Self::hold(bytes, held))))
    }
}

/// As many permits as there are at most.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.min(bounds::UNREAD_IN_ALL)).unwrap_or(u32::MAX)
}

/// Counts who waits, also if they stop waiting.
struct Wanted<'w>(&'w AtomicUsize);

impl<'w> Wanted<'w> {
    fn new(waiting: &'w AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_reply_keeps_its_room_until_its_last_byte_is_gone() {
        let unread = Unread::new();
        let large = vec![b'x'; bounds::UNREAD_IN_ALL];
        let response = unread.place(large.into_response(), false).await.expect("there is room");
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let last = body.slice(body.len() - 1..);
        drop(body);
        assert!(unread.place(vec![b'x'; bounds::SMALL + 1].into_response(), false).await.is_none());
        assert!(
            unread.place(vec![b'x'; bounds::SMALL].into_response(), false).await.is_some(),
            "a small one needs none"
        );
        assert!(!unread.is_wanted());
        let mut waiting = Box::pin(unread.take(1));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(unread.is_wanted());
        drop(last);
        let mut held = waiting.await;
        assert!(!unread.is_wanted());
        held.shrink_to(0);
        assert!(unread.try_take(bounds::UNREAD_IN_ALL).is_some());
    }
}
