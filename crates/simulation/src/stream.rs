//! The stream between processes: it loses, doubles, delays and reorders, and sometimes says that it has lost something.

use crate::breakage::Breakage;
use crate::fault_source::FaultSource;
use crate::process_life::ProcessLife;
use crate::recorder::Recorder;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;
use trellis_orchestrator::ports::{BoxFuture, Heard, Stream, StreamListener, StreamMessage, StreamNotice};

/// Who listens, in all processes.
#[derive(Debug)]
pub(crate) struct Wire {
    state: Mutex<State>,
    fault_source: Arc<FaultSource>,
    recorder: Arc<Recorder>,
    breakage: Option<Breakage>,
}

#[derive(Debug, Default)]
struct State {
    listeners: BTreeMap<u64, Arc<Inbox>>,
    next: u64,
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// What is on its way to one listener, by when it arrives.
#[derive(Debug, Default)]
struct Inbox {
    messages: Mutex<BTreeMap<(Instant, u64), Heard>>,
    changed: Notify,
    /// How many bytes of each message are on their way, for the mistake that counts only them.
    counted: Mutex<BTreeMap<Arc<str>, usize>>,
}

impl Inbox {
    fn mistaken(&self, mut message: StreamMessage) -> StreamMessage {
        if let StreamNotice::Text(chunk) = &mut message.notice {
            let mut counted = self.counted.lock();
            let before = counted.entry(Arc::clone(&chunk.message_id)).or_default();
            chunk.offset = *before;
            *before += chunk.text.len();
        }
        message
    }
}

impl Wire {
    pub(crate) fn new(fault_source: Arc<FaultSource>, recorder: Arc<Recorder>, breakage: Option<Breakage>) -> Self {
        Self { state: Mutex::default(), fault_source, recorder, breakage }
    }

    fn publish(&self, message: &StreamMessage) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let inboxes: Vec<_> = state.listeners.values().cloned().collect();
        for inbox in inboxes {
            let copies = self.fault_source.copies_of_notice();
            if copies.is_empty() {
                self.recorder.count("messages between processes that were lost");
            }
            for (is_whole, delay) in copies {
                let message = || match self.breakage {
                    Some(Breakage::TextPlacedAsItArrives) => inbox.mistaken(message.clone()),
                    Some(_) | None => message.clone(),
                };
                let received = if is_whole { Heard::Message(message()) } else { Heard::Missed };
                inbox.messages.lock().insert((now + delay, state.number()), received);
            }
            inbox.changed.notify_one();
        }
    }
}

/// One process's way into it.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) wire: Arc<Wire>,
    pub(crate) life: Arc<ProcessLife>,
}

impl Stream for Line {
    fn publish(&self, message: StreamMessage) {
        if !self.life.is_dead() {
            self.wire.publish(&message);
        }
    }

    fn listen(&self) -> Box<dyn StreamListener> {
        let mut state = self.wire.state.lock();
        let (number, inbox) = (state.number(), Arc::new(Inbox::default()));
        state.listeners.insert(number, Arc::clone(&inbox));
        Box::new(Listener { wire: Arc::clone(&self.wire), life: Arc::clone(&self.life), number, inbox })
    }
}

#[derive(Debug)]
struct Listener {
    wire: Arc<Wire>,
    life: Arc<ProcessLife>,
    number: u64,
    inbox: Arc<Inbox>,
}

impl Listener {
    /// What has arrived, or when something will.
    fn arrived(&self) -> Result<Heard, Option<Instant>> {
        let mut messages = self.inbox.messages.lock();
        let Some(first) = messages.first_entry() else { return Err(None) };
        let due = first.key().0;
        if due <= Instant::now() { Ok(first.remove()) } else { Err(Some(due)) }
    }
}

impl StreamListener for Listener {
    fn next(&mut self) -> BoxFuture<'_, Heard> {
        Box::pin(async {
            loop {
                self.life.stand().await;
                let changed = self.inbox.changed.notified();
                match self.arrived() {
                    Ok(received) => return received,
                    Err(None) => changed.await,
                    Err(Some(due)) => tokio::select! {
                        biased;
                        () = changed => {}
                        () = tokio::time::sleep_until(due) => {}
                    },
                }
            }
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.wire.state.lock().listeners.remove(&self.number);
    }
}
