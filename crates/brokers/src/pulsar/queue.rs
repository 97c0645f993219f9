//! The port `Queue` over Pulsar.

use super::consumer::{self, Consumer, PulsarMessage};
use super::link::Link;
use super::publisher::Publisher;
use crate::bus::Setting;
use crate::delays::{Delayed, Delays};
use crate::held::{Held, Settling, number};
use crate::tasks::Tasks;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use trellis_orchestrator::ports::{BoxFuture, Delivery, OpenTurn, Queue, QueueError, Role};

#[derive(Debug)]
pub(crate) struct PulsarQueue {
    shared: Arc<Shared>,
    consuming: Link,
    /// The roles that this process takes wake-ups of.
    consumed: Mutex<Vec<Role>>,
    tasks: Arc<Tasks>,
}

#[derive(Debug)]
struct Shared {
    setting: Setting,
    publisher: Arc<Publisher>,
    agents: Arc<Held<PulsarMessage>>,
    aggregators: Arc<Held<PulsarMessage>>,
    delays: Delays,
}

impl PulsarQueue {
    pub(crate) fn new(setting: &Setting, publishing: Link, consuming: Link, tasks: Arc<Tasks>) -> Self {
        let world = || Arc::clone(&setting.world);
        let shared = Arc::new(Shared {
            setting: setting.clone(),
            publisher: Arc::new(Publisher::new(setting, publishing)),
            agents: Arc::new(Held::new(world())),
            aggregators: Arc::new(Held::new(world())),
            delays: Delays::new(world()),
        });
        let (delayed, old) = (Arc::clone(&shared), Arc::clone(&shared));
        tasks.spawn(async move { delayed.publish_what_is_due().await });
        tasks.spawn(async move { old.settle_what_is_old().await });
        Self { shared, consuming, consumed: Mutex::default(), tasks }
    }

    /// Nothing is taken from the broker for a role that nobody here has.
    fn consume(&self, role: Role) {
        let mut roles = self.consumed.lock();
        if roles.contains(&role) {
            return;
        }
        roles.push(role);
        let consumer = Consumer {
            setting: self.shared.setting.clone(),
            role,
            link: self.consuming.clone(),
            held: Arc::clone(self.shared.held(role)),
            publisher: Arc::clone(&self.shared.publisher),
        };
        self.tasks.spawn(consumer.run());
    }
}

impl Shared {
    fn held(&self, role: Role) -> &Arc<Held<PulsarMessage>> {
        match role {
            Role::Agent => &self.agents,
            Role::Aggregator => &self.aggregators,
        }
    }

    async fn publish_what_is_due(&self) {
        loop {
            match self.delays.next().await {
                Delayed::Publish(turn) => {
                    if let Err(error) = self.publisher.publish(turn).await {
                        tracing::debug!(%error, "a turn that is due now is left to the sweep");
                    }
                }
                Delayed::GiveBack(role, number) => {
                    if let Err(error) = self.give_back_now(role, number).await {
                        tracing::debug!(%error, "a wake-up could not be given back");
                    }
                }
            }
        }
    }

    /// Its place is taken by a message at the end of the queue that knows how often it was handed out.
    async fn give_back_now(&self, role: Role, number: u64) -> Result<(), QueueError> {
        let held = self.held(role);
        let Some((turn, count)) = held.get(number) else {
            return if held.is_stale(number) { Err(QueueError::Stale) } else { Ok(()) };
        };
        let published = self.publisher.publish_again(turn, count).await;
        match (held.settle(number), published) {
            (Settling::Now(message), Ok(())) => consumer::acknowledge(&self.setting, &message).await,
            (Settling::Now(message), Err(error)) => {
                consumer::requeue(&message);
                Err(error)
            }
            (Settling::Stale, _) => Err(QueueError::Stale),
            (Settling::Done, published) => published,
        }
    }

    /// A turn may take hours, and somebody may have forgotten what he had. Neither is to take the places of others for ever.
    async fn settle_what_is_old(&self) {
        let longest = self.setting.options.timing.held_at_most;
        loop {
            self.setting.world.sleep(longest / 20).await;
            for held in [&self.agents, &self.aggregators] {
                for message in held.too_old(longest) {
                    drop(consumer::acknowledge(&self.setting, &message).await);
                }
            }
        }
    }
}

impl Queue for PulsarQueue {
    fn publish(&self, turn: OpenTurn) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            let Some(turn) = self.shared.delays.keep(turn) else { return Ok(()) };
            if self.shared.held(Role::of(&turn)).waits(&turn.key) {
                return Ok(());
            }
            self.shared.publisher.publish(turn).await
        })
    }

    fn take(&self, role: Role) -> BoxFuture<'_, Result<Delivery, QueueError>> {
        self.consume(role);
        Box::pin(async move { Ok(self.shared.held(role).take(role).await) })
    }

    fn acknowledge<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(async move {
            match self.shared.held(Role::of(&delivery.turn)).settle(number(&delivery.receipt)) {
                Settling::Now(message) => consumer::acknowledge(&self.shared.setting, &message).await,
                Settling::Done => Ok(()),
                Settling::Stale => Err(QueueError::Stale),
            }
        })
    }

    /// Pulsar waits for as long as the connection lives.
    fn renew<'a>(&'a self, _: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn give_back(&self, delivery: Delivery, delay: Duration) -> BoxFuture<'_, Result<(), QueueError>> {
        Box::pin(async move {
            let (role, number) = (Role::of(&delivery.turn), number(&delivery.receipt));
            if delay.is_zero() {
                return self.shared.give_back_now(role, number).await;
            }
            if self.shared.held(role).is_stale(number) {
                return Err(QueueError::Stale);
            }
            self.shared.delays.give_back_after(role, number, delay);
            Ok(())
        })
    }
}
