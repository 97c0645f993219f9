//! Where the replies of one request on a socket go.

use crate::bounds;
use crate::error::{Gone, Refusal};
use serde::Serialize;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The way to a socket's writer.
#[derive(Debug, Clone)]
pub(crate) struct Replies {
    to: mpsc::Sender<Reply>,
    room: Arc<Semaphore>,
}

/// A message that is not sent yet, and the place that it takes until it is. Short ones take none.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    _place: Option<OwnedSemaphorePermit>,
}

impl Replies {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Reply>) {
        let (to, unsent) = mpsc::channel(bounds::UNREAD);
        (Self { to, room: Arc::new(Semaphore::new(bounds::UNREAD_BYTES)) }, unsent)
    }

    /// Waits for a peer that does not read.
    pub(crate) async fn send(&self, text: String) -> Result<(), Gone> {
        let taken = text.len().min(bounds::UNREAD_BYTES);
        let long = u32::try_from(taken).ok().filter(|_| text.len() > bounds::SMALL);
        let place = match long {
            Some(bytes) => Some(Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_| Gone)?),
            None => None,
        };
        self.to.send(Reply { text, _place: place }).await.map_err(|_| Gone)
    }
}

/// Replies of one request, each in its envelope. A slow reader makes the writer wait, never the server grow.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// As the client wrote it; none if the request had none.
    id: Option<Value>,
    to: Replies,
    scratch: Mutex<Vec<u8>>,
}

const TOO_LARGE: &str = "the reply is larger than 1 MiB, which stock clients cannot receive in one piece; ask for less, \
                         or for a stream in smaller batches";

#[derive(Serialize)]
struct Envelope<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    complete: bool,
}

impl Outbox {
    pub(crate) fn new(id: Option<Value>, to: Replies) -> Self {
        Self { id, to, scratch: Mutex::default() }
    }

    pub(crate) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// A reply; more will follow.
    pub(crate) async fn more(&self, reply: &impl Serialize) -> Result<(), Gone> {
        self.send(Some(reply), None, false).await
    }

    /// The last reply.
    pub(crate) async fn last(&self, reply: &impl Serialize) -> Result<(), Gone> {
        self.send(Some(reply), None, true).await
    }

    /// The last reply, which tells of a failure: in itself, and in the envelope for those who look only there.
    pub(crate) async fn failed(&self, reply: &impl Serialize, refusal: &Refusal) -> Result<(), Gone> {
        self.send(Some(reply), Some(refusal.object()), true).await
    }

    /// The request was refused. In the envelope, where every kind of call of the stock client looks.
    pub(crate) async fn refuse(&self, refusal: &Refusal) -> Result<(), Gone> {
        self.send(None::<&Value>, Some(refusal.object()), true).await
    }

    /// Written into a place that is kept, because growing to the size of each frame costs as much as writing it.
    fn written(&self, envelope: &Envelope<'_, impl Serialize>) -> String {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.clear();
        serde_json::to_writer(&mut *scratch, envelope).expect("replies are always JSON");
        std::str::from_utf8(&scratch).expect("JSON is text").to_owned()
    }

    async fn send(&self, response: Option<&impl Serialize>, error: Option<Value>, complete: bool) -> Result<(), Gone> {
        let envelope = Envelope { id: self.id.as_ref(), response, error, complete };
        let mut text = self.written(&envelope);
        let too_large = text.len() > bounds::FRAME;
        if too_large {
            let error = Refusal::gateway(TOO_LARGE).object();
            let envelope =
                Envelope { id: self.id.as_ref(), response: None::<&Value>, error: Some(error), complete: true };
            text = self.written(&envelope);
        }
        self.to.send(text).await?;
        // Nothing may follow the last reply.
        if too_large { Err(Gone) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    /// So many long messages wait as fit, whatever their number.
    #[tokio::test]
    async fn a_peer_that_does_not_read_holds_up_long_messages() {
        let (replies, mut unsent) = Replies::new();
        let long = || "x".repeat(bounds::FRAME);
        for _ in 0..bounds::UNREAD_BYTES / bounds::FRAME {
            replies.send(long()).now_or_never().expect("there is room").unwrap();
        }
        assert!(replies.send(long()).now_or_never().is_none(), "it waits");
        replies.send("short".to_owned()).now_or_never().expect("a short one needs no room").unwrap();
        drop(unsent.recv().await);
        replies.send(long()).now_or_never().expect("there is room again").unwrap();
    }
}
