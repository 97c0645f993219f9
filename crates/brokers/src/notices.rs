//! What processes tell each other, whatever carries it: numbered by the sender, so that a listener notices what is missing.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::broadcast::{self, error::RecvError};
use trellis_orchestrator::ports::{BoxFuture, Heard, StreamListener, StreamMessage};

/// So much waits for the broker at most. The oldest go first.
const WAITING: usize = 2_048;
const WAITING_BYTES: usize = 16 * 1024 * 1024;
/// So many wait for one listener at most.
const UNHEARD: usize = 1_024;
/// So many other processes are kept in mind.
const SENDERS: usize = 4_096;

#[derive(Serialize)]
struct Told<'a> {
    sender: &'a str,
    number: u64,
    message: &'a StreamMessage,
}

#[derive(Deserialize)]
struct Received {
    sender: Arc<str>,
    number: u64,
    message: StreamMessage,
}

/// What this process tells others, as long as it is not on its way.
#[derive(Debug)]
pub(crate) struct Outbox {
    sender: String,
    state: Mutex<OutboxState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct OutboxState {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    number: u64,
}

impl Outbox {
    pub(crate) fn new(sender: String) -> Self {
        Self { sender, state: Mutex::default(), changed: Notify::new() }
    }

    /// Never waits. What was dropped leaves a gap in the numbers.
    pub(crate) fn put(&self, message: &StreamMessage) {
        {
            let mut state = self.state.lock();
            state.number += 1;
            let told = Told { sender: &self.sender, number: state.number, message };
            let Ok(bytes) = serde_json::to_vec(&told) else { return };
            state.bytes += bytes.len();
            state.waiting.push_back(bytes);
            while state.waiting.len() > WAITING || state.bytes > WAITING_BYTES {
                let Some(dropped) = state.waiting.pop_front() else { break };
                state.bytes -= dropped.len();
            }
        }
        self.changed.notify_one();
    }

    /// Waits for the next one.
    pub(crate) async fn next(&self) -> Vec<u8> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state.lock();
                if let Some(bytes) = state.waiting.pop_front() {
                    state.bytes -= bytes.len();
                    return bytes;
                }
            }
            changed.await;
        }
    }
}

/// What others tell, for all listeners of this process.
#[derive(Debug)]
pub(crate) struct Inbox {
    own: String,
    listeners: broadcast::Sender<Heard>,
    /// The last number of each sender.
    last: Mutex<HashMap<Arc<str>, u64>>,
}

impl Inbox {
    pub(crate) fn new(own: String) -> Self {
        Self { own, listeners: broadcast::Sender::new(UNHEARD), last: Mutex::default() }
    }

    /// Something has come. What is none of ours is dropped: it may be of a newer version.
    pub(crate) fn receive(&self, bytes: &[u8]) {
        let Ok(Received { sender, number, message }) = serde_json::from_slice(bytes) else {
            tracing::debug!(bytes = bytes.len(), "a notice cannot be read");
            return;
        };
        if *sender == *self.own {
            return;
        }
        if self.is_gap(sender, number) {
            self.missed();
        }
        // Nobody listens: nobody misses it.
        drop(self.listeners.send(Heard::Message(message)));
    }

    /// Something may have been lost.
    pub(crate) fn missed(&self) {
        drop(self.listeners.send(Heard::Missed));
    }

    fn is_gap(&self, sender: Arc<str>, number: u64) -> bool {
        let mut last = self.last.lock();
        if last.len() >= SENDERS && !last.contains_key(&sender) {
            last.clear();
        }
        // Whoever is heard for the first time may have said something before.
        let last = last.entry(sender).or_insert(0);
        let gap = number > last.saturating_add(1);
        *last = number.max(*last);
        gap
    }

    pub(crate) fn listen(&self) -> Box<dyn StreamListener> {
        Box::new(Listener(self.listeners.subscribe()))
    }
}

#[derive(Debug)]
struct Listener(broadcast::Receiver<Heard>);

impl StreamListener for Listener {
    fn next(&mut self) -> BoxFuture<'_, Heard> {
        Box::pin(async {
            match self.0.recv().await {
                Ok(heard) => heard,
                Err(RecvError::Lagged(_)) => Heard::Missed,
                // The bus is gone, and nobody is left who could say anything.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use trellis_domain::{SessionId, Workspace};
    use trellis_orchestrator::ports::StreamNotice;

    fn committed(seq: u64) -> StreamMessage {
        let notice = StreamNotice::Committed { run: SessionId::new("r").unwrap(), seq };
        StreamMessage { from: "one".into(), workspace: Workspace::default(), notice }
    }

    fn all_heard(listener: &mut dyn StreamListener) -> Vec<Heard> {
        std::iter::from_fn(|| listener.next().now_or_never()).collect()
    }

    #[test]
    fn what_is_lost_on_the_way_is_noticed() {
        let (outbox, inbox) = (Outbox::new("one".to_owned()), Inbox::new("two".to_owned()));
        let mut listener = inbox.listen();
        for seq in 1..=5 {
            outbox.put(&committed(seq));
        }
        let told: Vec<_> = std::iter::from_fn(|| outbox.next().now_or_never()).collect();
        for (index, bytes) in told.iter().enumerate() {
            if index != 2 {
                inbox.receive(bytes);
            }
        }
        let message = |seq| Heard::Message(committed(seq));
        assert_eq!(all_heard(&mut *listener), [message(1), message(2), Heard::Missed, message(4), message(5)]);
        // What comes late or twice is no gap.
        inbox.receive(&told[2]);
        inbox.receive(&told[4]);
        assert_eq!(all_heard(&mut *listener), [message(3), message(5)]);
    }

    #[test]
    fn ones_own_and_strange_messages_are_not_heard() {
        let (outbox, inbox) = (Outbox::new("one".to_owned()), Inbox::new("one".to_owned()));
        let mut listener = inbox.listen();
        outbox.put(&committed(1));
        inbox.receive(&outbox.next().now_or_never().unwrap());
        inbox.receive(b"\xff");
        inbox.receive(br#"{"sender":"x","number":1,"message":{"from":"x","workspace":"w","notice":{"type":"new"}}}"#);
        assert_eq!(all_heard(&mut *listener), []);
    }

    #[test]
    fn what_waits_is_bounded_and_the_newest_are_kept() {
        let (outbox, inbox) = (Outbox::new("one".to_owned()), Inbox::new("two".to_owned()));
        let mut listener = inbox.listen();
        let many = u64::try_from(WAITING).unwrap() + 10;
        for seq in 1..=many {
            outbox.put(&committed(seq));
        }
        let told: Vec<_> = std::iter::from_fn(|| outbox.next().now_or_never()).collect();
        assert_eq!(told.len(), WAITING);
        for bytes in &told[told.len() - 3..] {
            inbox.receive(bytes);
        }
        assert_eq!(all_heard(&mut *listener).last(), Some(&Heard::Message(committed(many))));
        for n in 0..3 * SENDERS {
            inbox.is_gap(format!("s{n}").into(), 1);
        }
        assert!(inbox.last.lock().len() <= SENDERS);
    }
}
