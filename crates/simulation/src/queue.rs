//! A broker that loses, doubles, delays and reorders, and hands out again what nobody acknowledges.

use crate::fault_source::FaultSource;
use crate::process_life::ProcessLife;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};
use trellis_orchestrator::memory::VirtualWorld;
use trellis_orchestrator::ports::{BoxFuture, Delivery, OpenTurn, Queue, QueueError, Receipt, Role, World};

/// The messages, as all processes share them.
#[derive(Debug)]
pub(crate) struct Broker {
    state: Mutex<BrokerState>,
    changed: Notify,
    fault_source: Arc<FaultSource>,
}

#[derive(Debug, Default)]
struct BrokerState {
    messages: BTreeMap<u64, QueuedMessage>,
    next: u64,
}

#[derive(Debug)]
struct QueuedMessage {
    turn: OpenTurn,
    count: u32,
    /// Not handed out before: it is on its way, or somebody has it.
    hidden_until: Instant,
}

/// Who neither acknowledges nor renews within this time is thought to be dead.
const VISIBILITY: Duration = Duration::from_secs(20);

impl Broker {
    pub(crate) fn new(fault_source: Arc<FaultSource>) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), fault_source }
    }

    fn put(&self, turn: &OpenTurn, count: u32, hidden_for: Duration) {
        let mut state = self.state.lock();
        state.next += 1;
        let number = state.next;
        let message = QueuedMessage { turn: turn.clone(), count, hidden_until: Instant::now() + hidden_for };
        state.messages.insert(number, message);
        drop(state);
        self.changed.notify_waiters();
    }

    /// One of those that can be handed out, any of them; or when to look again.
    fn pick(&self, role: Role) -> Result<Delivery, Option<Instant>> {
        let now = Instant::now();
        let mut state = self.state.lock();
        let mine = state.messages.iter().filter(|(_, message)| Role::of(&message.turn) == role);
        let (ready, hidden): (Vec<_>, Vec<_>) = mine.partition(|(_, message)| message.hidden_until <= now);
        let Some(number) = (!ready.is_empty()).then(|| *self.fault_source.chance().pick(&ready).0) else {
            return Err(hidden.iter().map(|(_, message)| message.hidden_until).min());
        };
        let message = state.messages.get_mut(&number).expect("it was just found");
        message.hidden_until = now + VISIBILITY;
        message.count += 1;
        let receipt = Receipt(number.to_be_bytes().into());
        let (turn, count) = (message.turn.clone(), message.count);
        Ok(Delivery { turn, receipt, count, renew_every: Some(VISIBILITY / 3) })
    }

    async fn take(&self, role: Role) -> Delivery {
        loop {
            let changed = self.changed.notified();
            match self.pick(role) {
                Ok(delivery) => return delivery,
                Err(None) => changed.await,
                Err(Some(until)) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = tokio::time::sleep_until(until) => {}
                },
            }
        }
    }

    fn with(&self, receipt: &Receipt, change: impl FnOnce(&mut BrokerState, u64)) {
        if let Ok(number) = <[u8; 8]>::try_from(&*receipt.0) {
            change(&mut self.state.lock(), u64::from_be_bytes(number));
        }
        self.changed.notify_waiters();
    }
}

/// One process's connection to the broker.
#[derive(Debug)]
pub(crate) struct BrokerConnection {
    pub(crate) broker: Arc<Broker>,
    pub(crate) life: Arc<ProcessLife>,
    pub(crate) world: Arc<VirtualWorld>,
}

impl BrokerConnection {
    async fn call<T>(&self, call: impl Future<Output = T>) -> Result<T, QueueError> {
        self.life.pass().await;
        if self.broker.fault_source.strikes(|faults| faults.queue_fails) {
            return Err(QueueError::Unavailable("simulated".to_owned()));
        }
        let result = call.await;
        self.life.pass().await;
        Ok(result)
    }
}

impl Queue for BrokerConnection {
    fn publish(&self, turn: OpenTurn) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(self.call(async move {
            let fault_source = &self.broker.fault_source;
            if fault_source.strikes(|faults| faults.wake_up_lost) {
                return;
            }
            let copies = if fault_source.strikes(|faults| faults.wake_up_doubled) { 2 } else { 1 };
            // A turn that is not due yet is the journal's business: a broker may not know delays.
            if turn.due.is_some_and(|due| due > self.world.now()) {
                return;
            }
            for _ in 0..copies {
                self.broker.put(&turn, 0, fault_source.takes(|faults| faults.wake_up_delayed_ms));
            }
        }))
    }

    fn take(&self, role: Role) -> BoxFuture<'_, Result<Delivery, QueueError>> {
        Box::pin(self.call(self.broker.take(role)))
    }

    fn acknowledge<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(self.call(async {
            self.broker.with(&delivery.receipt, |state, number| drop(state.messages.remove(&number)));
        }))
    }

    fn renew<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(self.call(async {
            self.broker.with(&delivery.receipt, |state, number| {
                if let Some(message) = state.messages.get_mut(&number) {
                    message.hidden_until = Instant::now() + VISIBILITY;
                }
            });
        }))
    }

    fn give_back(&self, delivery: Delivery, delay: Duration) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(self.call(async move {
            self.broker.with(&delivery.receipt, |state, number| {
                if let Some(message) = state.messages.get_mut(&number) {
                    message.hidden_until = Instant::now() + delay;
                }
            });
        }))
    }
}
