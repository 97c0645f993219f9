//! The port `Queue` over JetStream.

use super::consumer::{self, Consumer, NatsMessage};
use super::publisher::Publisher;
use super::topology;
use crate::bus::Setting;
use crate::delays::{Delayed, Delays};
use crate::held::{Held, Settling, number};
use crate::tasks::Tasks;
use async_nats::Client;
use async_nats::jetstream::{AckKind, Context};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use trellis_orchestrator::ports::{BoxFuture, Delivery, OpenTurn, Queue, QueueError, Role};

#[derive(Debug)]
pub(crate) struct NatsQueue {
    setting: Setting,
    client: Client,
    context: Context,
    publisher: Arc<Publisher>,
    delays: Arc<Delays>,
    agents: Arc<Held<NatsMessage>>,
    aggregators: Arc<Held<NatsMessage>>,
    /// The roles that this process takes wake-ups of.
    consumed: Mutex<Vec<Role>>,
    tasks: Arc<Tasks>,
}

impl NatsQueue {
    pub(crate) async fn new(setting: &Setting, client: &Client, tasks: Arc<Tasks>) -> Result<Self, String> {
        let context = topology::context(setting, client);
        topology::make_stream(setting, &context).await?;
        let publisher = Arc::new(Publisher::new(setting, client, &context));
        let world = || Arc::clone(&setting.world);
        let delays = Arc::new(Delays::new(world()));
        tasks.spawn(publish_what_is_due(Arc::clone(&delays), Arc::clone(&publisher)));
        let (agents, aggregators) = (Arc::new(Held::new(world())), Arc::new(Held::new(world())));
        let (setting, client, consumed) = (setting.clone(), client.clone(), Mutex::default());
        Ok(Self { setting, client, context, publisher, delays, agents, aggregators, consumed, tasks })
    }

    fn held(&self, role: Role) -> &Arc<Held<NatsMessage>> {
        match role {
            Role::Agent => &self.agents,
            Role::Aggregator => &self.aggregators,
        }
    }

    /// Nothing is taken from the server for a role that nobody here has.
    fn consume(&self, role: Role) {
        let mut consumed = self.consumed.lock();
        if consumed.contains(&role) {
            return;
        }
        consumed.push(role);
        for lane in self.setting.names.lanes(role) {
            let (setting, client, context) = (self.setting.clone(), self.client.clone(), self.context.clone());
            let held = Arc::clone(self.held(role));
            self.tasks.spawn(Consumer { setting, lane, client, context, held }.run());
        }
        let (setting, client, held) = (self.setting.clone(), self.client.clone(), Arc::clone(self.held(role)));
        self.tasks.spawn(consumer::keep_alive(setting, client, held, role));
    }

    async fn settle(&self, settling: Settling<NatsMessage>, kind: AckKind) -> Result<(), QueueError> {
        match settling {
            Settling::Now(message) => {
                let settled = consumer::settle(&self.setting, &self.client, &message.acker, kind).await;
                settled.map_err(QueueError::Unavailable)
            }
            // It was not renewed in time, and is somebody else's by now.
            Settling::Done | Settling::Stale => Err(QueueError::Stale),
        }
    }
}

async fn publish_what_is_due(delays: Arc<Delays>, publisher: Arc<Publisher>) {
    loop {
        // What is given back waits at the server.
        let Delayed::Publish(turn) = delays.next().await else { continue };
        if let Err(error) = publisher.publish(turn).await {
            tracing::debug!(%error, "a turn that is due now is left to the sweep");
        }
    }
}

impl Queue for NatsQueue {
    fn publish(&self, turn: OpenTurn) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            let Some(turn) = self.delays.keep(turn) else { return Ok(()) };
            if self.held(Role::of(&turn)).waits(&turn.key) {
                return Ok(());
            }
            self.publisher.publish(turn).await
        })
    }

    fn take(&self, role: Role) -> BoxFuture<'_, Result<Delivery, QueueError>> {
        self.consume(role);
        Box::pin(async move {
            let delivery = self.held(role).take(role).await;
            Ok(Delivery { renew_every: Some(self.setting.options.timing.acknowledged_within / 3), ..delivery })
        })
    }

    fn acknowledge<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        let settling = self.held(Role::of(&delivery.turn)).settle(number(&delivery.receipt));
        Box::pin(self.settle(settling, AckKind::Ack))
    }

    fn renew<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        let held = self.held(Role::of(&delivery.turn)).renew(number(&delivery.receipt));
        Box::pin(async move {
            let message = held.ok_or(QueueError::Stale)?;
            let renewed = consumer::settle(&self.setting, &self.client, &message.acker, AckKind::Progress).await;
            renewed.map_err(QueueError::Unavailable)
        })
    }

    fn give_back(&self, delivery: Delivery, delay: Duration) -> BoxFuture<'_, Result<(), QueueError>> {
        let settling = self.held(Role::of(&delivery.turn)).settle(number(&delivery.receipt));
        let delay = (!delay.is_zero()).then_some(delay);
        Box::pin(self.settle(settling, AckKind::Nak(delay)))
    }
}
