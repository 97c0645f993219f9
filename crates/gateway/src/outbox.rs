//! Where the replies of one request on a socket go.

use crate::bounds;
use crate::error::{Gone, ServiceError};
use crate::unread::{Held, Unread};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The way to a socket's writer.
#[derive(Debug, Clone)]
pub(crate) struct Replies {
    to: mpsc::Sender<Reply>,
    /// This socket's own share, so that no peer alone can keep others waiting, and that of all.
    own: Arc<Semaphore>,
    unread: Unread,
    /// Whoever makes a reply has one: for a peer that does not read nothing more is made.
    floor: Arc<Semaphore>,
}

/// A message that is not sent yet, and the place that it takes until it is. Short ones take none.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    _own: Option<OwnedSemaphorePermit>,
    _held: Option<Held>,
}

/// The right to make a reply. What it needs is set aside already.
#[derive(Debug)]
pub(crate) struct Floor<'o> {
    outbox: &'o Outbox,
    _one: Option<OwnedSemaphorePermit>,
}

impl Drop for Floor<'_> {
    fn drop(&mut self) {
        drop(self.outbox.set_aside.lock().take());
    }
}

impl Replies {
    pub(crate) fn new(unread: Unread) -> (Self, mpsc::Receiver<Reply>) {
        let (to, unsent) = mpsc::channel(bounds::UNREAD);
        let (own, floor) = (Arc::new(Semaphore::new(bounds::UNREAD_BYTES)), Arc::new(Semaphore::new(bounds::FLOORS)));
        (Self { to, own, unread, floor }, unsent)
    }

    /// Waits until nothing is sent any more, because the connection is broken.
    pub(crate) async fn broken(&self) {
        self.to.closed().await;
    }

    /// Waits for a peer that does not read. What is set aside for the message may be more than it needs.
    pub(crate) async fn send(&self, text: String, set_aside: Option<Held>) -> Result<(), Gone> {
        let length = text.len().min(bounds::UNREAD_BYTES);
        let Some(bytes) = u32::try_from(length).ok().filter(|_| length > bounds::SHORT) else {
            return self.to.send(Reply { text, _own: None, _held: None }).await.map_err(|_| Gone);
        };
        let own = Arc::clone(&self.own).acquire_many_owned(bytes).await.map_err(|_| Gone)?;
        let held = match set_aside {
            Some(mut held) => {
                held.shrink_to(length);
                held
            }
            None => self.unread.take(length).await,
        };
        self.to.send(Reply { text, _own: Some(own), _held: Some(held) }).await.map_err(|_| Gone)
    }
}

/// Replies of one request, each in its envelope. A slow reader makes the writer wait, never the server grow.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// As the client wrote it; none if the request had none.
    id: Option<Value>,
    to: Replies,
    scratch: Mutex<Vec<u8>>,
    /// For the next reply.
    set_aside: Mutex<Option<Held>>,
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

/// Whether a reply with texts of so many bytes does not fit into a frame. Most are far from it, and then nothing has to be
/// written to know it.
pub(crate) fn is_too_long<T: Serialize>(texts: usize, reply: impl FnOnce() -> T) -> bool {
    const ENVELOPE: usize = 1 << 10;
    if texts <= bounds::PIECE {
        return false;
    }
    let mut written = Counted(0);
    serde_json::to_writer(&mut written, &reply()).expect("replies are always JSON");
    written.0 + ENVELOPE > bounds::FRAME
}

/// Keeps nothing of what is written but its length.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Outbox {
    pub(crate) fn new(id: Option<Value>, to: Replies) -> Self {
        Self { id, to, scratch: Mutex::default(), set_aside: Mutex::default() }
    }

    /// Waits until a reply can be made and held: first until the peer has read enough of the others.
    pub(crate) async fn floor(&self) -> Floor<'_> {
        // The semaphore is never closed.
        let one = Arc::clone(&self.to.floor).acquire_owned().await.ok();
        let held = self.to.unread.take(bounds::FRAME).await;
        *self.set_aside.lock() = Some(held);
        Floor { outbox: self, _one: one }
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
    pub(crate) async fn failed(&self, reply: &impl Serialize, error: &ServiceError) -> Result<(), Gone> {
        self.send(Some(reply), Some(error.object()), true).await
    }

    /// The request was refused. In the envelope, where every kind of call of the stock client looks.
    pub(crate) async fn refuse(&self, error: &ServiceError) -> Result<(), Gone> {
        self.send(None::<&Value>, Some(error.object()), true).await
    }

    /// Written into a place that is kept, because growing to the size of each frame costs as much as writing it.
    fn written(&self, envelope: &Envelope<'_, impl Serialize>) -> String {
        let mut scratch = self.scratch.lock();
        scratch.clear();
        serde_json::to_writer(&mut *scratch, envelope).expect("replies are always JSON");
        std::str::from_utf8(&scratch).expect("JSON is text").to_owned()
    }

    async fn send(&self, response: Option<&impl Serialize>, error: Option<Value>, complete: bool) -> Result<(), Gone> {
        let envelope = Envelope { id: self.id.as_ref(), response, error, complete };
        let mut text = self.written(&envelope);
        let too_large = text.len() > bounds::FRAME;
        if too_large {
            let error = ServiceError::gateway(TOO_LARGE).object();
            let envelope =
                Envelope { id: self.id.as_ref(), response: None::<&Value>, error: Some(error), complete: true };
            text = self.written(&envelope);
        }
        let set_aside = self.set_aside.lock().take();
        self.to.send(text, set_aside).await?;
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
        let (replies, mut unsent) = Replies::new(Unread::new());
        let long = || "x".repeat(bounds::FRAME);
        for _ in 0..bounds::UNREAD_BYTES / bounds::FRAME {
            replies.send(long(), None).now_or_never().expect("there is room").unwrap();
        }
        assert!(replies.send(long(), None).now_or_never().is_none(), "it waits");
        replies.send("short".to_owned(), None).now_or_never().expect("a short one needs no room").unwrap();
        drop(unsent.recv().await);
        replies.send(long(), None).now_or_never().expect("there is room again").unwrap();
    }

    #[tokio::test]
    async fn for_a_peer_that_does_not_read_few_replies_are_made_at_a_time() {
        let (replies, mut unsent) = Replies::new(Unread::new());
        let outbox = || Outbox::new(None, replies.clone());
        let long = "x".repeat(bounds::FRAME / 2);
        let all: Vec<_> = (0..=bounds::FLOORS).map(|_| outbox()).collect();
        let (first, others) = all.split_first().unwrap();
        let floor = first.floor().now_or_never().expect("nobody has it");
        let (last, others) = others.split_last().unwrap();
        let held: Vec<_> = others.iter().map(|outbox| outbox.floor().now_or_never().unwrap()).collect();
        assert!(last.floor().now_or_never().is_none());
        first.last(&long).await.unwrap();
        drop(floor);
        drop(last.floor().now_or_never().expect("one is free again"));
        drop(held);
        let unread = replies.unread.clone();
        assert!(unread.try_take(bounds::UNREAD_IN_ALL).is_none(), "what is not read takes room");
        drop(unsent.recv().await);
        assert!(unread.try_take(bounds::UNREAD_IN_ALL).is_some(), "and nothing else does");
    }
}
