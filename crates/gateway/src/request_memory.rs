//! How much of what callers send is held at a time, by all of them together.

use crate::bounds;
use crate::error::{Code, ServiceError};
use axum::body::{Body, Bytes};
use futures_util::StreamExt;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a body may make no progress.
const STALLED: Duration = Duration::from_secs(30);

/// Memory for large requests. What somebody sends is in memory until it is answered, and in more than one form.
#[derive(Debug, Clone)]
pub(crate) struct RequestMemory(Arc<Semaphore>);

/// What a request takes of it, until this is dropped. Small ones take nothing.
#[derive(Debug, Default)]
pub(crate) struct Place {
    bytes: usize,
    taken: Option<OwnedSemaphorePermit>,
}

/// The place of a body that was received whole. Whoever needs the body no longer and goes on for a while gives it back.
#[derive(Debug, Clone)]
pub(crate) struct BodyPlace(Arc<Mutex<Option<Place>>>);

impl BodyPlace {
    pub(crate) fn new(place: Place) -> Self {
        Self(Arc::new(Mutex::new(Some(place))))
    }

    pub(crate) fn give_back(&self) {
        drop(self.0.lock().take());
    }
}

/// There is none left. Nobody waits for it: somebody else's model may take very long.
#[derive(Debug)]
pub(crate) struct Full;

impl Full {
    pub(crate) const MESSAGE: &str = "the server holds as much as it can of large requests; ask again in a moment";
}

impl RequestMemory {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(bounds::HELD)))
    }

    /// Makes the place of the only request of a connection larger.
    pub(crate) fn extend(&self, place: &mut Place, bytes: usize) -> Result<(), Full> {
        self.extend_beyond(bounds::SMALL, place, bytes)
    }

    /// Makes a place larger that takes nothing up to some size.
    pub(crate) fn extend_beyond(&self, small: usize, place: &mut Place, bytes: usize) -> Result<(), Full> {
        place.bytes += bytes;
        let taken = place.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if place.bytes <= small {
            return Ok(());
        }
        let missing = u32::try_from(place.bytes - taken).map_err(|_| Full)?;
        let more = Arc::clone(&self.0).try_acquire_many_owned(missing).map_err(|_| Full)?;
        match &mut place.taken {
            Some(taken) => taken.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.0.available_permits()
    }

    /// The whole body, and its place.
    pub(crate) async fn receive(&self, body: Body, announced: Option<u64>) -> Result<(Bytes, Place), ServiceError> {
        if announced.is_some_and(|bytes| bytes > bounds::BODY as u64) {
            return Err(too_large());
        }
        let (mut stream, mut whole, mut place) = (body.into_data_stream(), Vec::new(), Place::default());
        loop {
            let chunk = match timeout(STALLED, stream.next()).await {
                Ok(Some(Ok(chunk))) => chunk,
                Ok(None) => return Ok((whole.into(), place)),
                Ok(Some(Err(error))) => {
                    return Err(ServiceError::request(format!("the body cannot be read: {error}")));
                }
                Err(_) => {
                    let stalled = format!("nothing of the body came for {} s", STALLED.as_secs());
                    return Err(ServiceError::new(Code::TimedOut, stalled));
                }
            };
            if whole.len() + chunk.len() > bounds::BODY {
                return Err(too_large());
            }
            let full = |_| ServiceError::gateway(Full::MESSAGE).retry_after(1);
            self.extend(&mut place, chunk.len()).map_err(full)?;
            // Growing to twice the size would set aside far more than was taken.
            if whole.capacity() - whole.len() < chunk.len() {
                whole.reserve_exact(chunk.len().max(whole.len() / 4));
            }
            whole.extend_from_slice(&chunk);
        }
    }
}

fn too_large() -> ServiceError {
    let most = bounds::BODY >> 20;
    let reason = format!("the body is larger than {most} MiB; upload large documents in pieces");
    ServiceError::new(Code::TooLarge, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_requests_share_the_room_and_give_it_back() {
        let memory = RequestMemory::new();
        let place = |bytes| {
            let mut place = Place::default();
            memory.extend(&mut place, bytes).map(|()| place)
        };
        let all: Vec<_> = (0..bounds::HELD / bounds::BODY).map(|_| place(bounds::BODY).unwrap()).collect();
        assert!(place(bounds::SMALL + 1).is_err(), "there is no room for a large one");
        assert!(place(bounds::SMALL).is_ok(), "a small one needs none");
        drop(all);
        let mut growing = place(bounds::SMALL).unwrap();
        memory.extend(&mut growing, bounds::HELD - bounds::SMALL).unwrap();
        assert!(memory.extend(&mut growing, 1).is_err());
        drop(growing);
        assert_eq!(memory.0.available_permits(), bounds::HELD);
    }
}
