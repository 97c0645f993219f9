//! The deployment's broker, with topics, queues and properties as the original has them.

mod rabbitmq;
mod refusals;

use super::topic::Topic;
use crate::address::BrokerAddress;
use crate::back_off::BackOff;
use crate::bus::{BusOptions, Setting};
use crate::names::Names;
use rabbitmq::RabbitMq;
use refusals::Refusals;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use trellis_orchestrator::ports::World;

/// The property that ties a response to its request.
const ID: &str = "id";
/// How often a message was handed on by somebody who could do nothing with it.
const HANDED_ON: &str = "x-trellis-handed-on";

/// How long somebody may be away who should have a queue.
const COMING_BACK: Duration = Duration::from_secs(30);
/// How often a message that nobody has a queue for is sent again.
const AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Broker {
    setting: Setting,
    rabbitmq: RabbitMq,
    refusals: Refusals,
}

/// A message on its way.
#[derive(Debug, Clone)]
pub(crate) struct Letter<'a> {
    /// Empty for those that nobody answers.
    pub(crate) id: &'a str,
    pub(crate) body: &'a str,
    pub(crate) handed_on: u32,
}

/// A message that came.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) id: Option<String>,
    pub(crate) handed_on: u32,
    pub(crate) body: Vec<u8>,
    handle: rabbitmq::Handle,
}

/// What whoever listens to a topic hears.
#[derive(Debug)]
pub(crate) enum Heard {
    /// From now on nothing is missed. There may have been messages before.
    Listening,
    Message(Received),
    /// Messages may be missed from now on.
    Lost,
}

/// How messages of a topic are taken.
#[derive(Debug, Clone)]
pub(crate) enum Taking {
    /// Everything that is published, while this listens. Acknowledged many at a time: nobody else gets what is not.
    Everything,
    /// Out of the queue that all with this name share. Whoever takes a message settles it.
    Shared { subscription: String },
}

/// It may be sent later.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unsent(pub(crate) String);

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Somebody has a queue for it.
    Queued,
    /// Nobody has.
    Unwanted,
    /// The broker does not take it, and was asked often enough. The log says why.
    Refused,
}

/// Why a broker does not have a message.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Failure {
    /// Nothing is wrong with the message.
    Later(String),
    /// It takes none for this topic from us.
    Refused(String),
    /// It would not take this one at any time.
    Unfit(String),
}

impl Broker {
    pub(crate) async fn connect(
        address: BrokerAddress,
        options: BusOptions,
        world: Arc<dyn World>,
    ) -> Result<Self, String> {
        // None of our own queues are declared in somebody else's deployment.
        let names = Names::new(&options.deployment, options.lanes);
        let setting = Setting { address, options, names, world };
        let rabbitmq = RabbitMq::connect(&setting).await?;
        Ok(Self { setting, rabbitmq, refusals: Refusals::default() })
    }

    pub(crate) fn world(&self) -> &Arc<dyn World> {
        &self.setting.world
    }

    /// Publishes a message, and waits until the broker has it. What it has refused several times it is not asked for a while.
    pub(crate) async fn publish(&self, topic: &Topic, letter: Letter<'_>) -> Result<Sent, Unsent> {
        let key = topic.to_string();
        if self.refusals.is_given_up(&key, self.world().now()) {
            return Ok(Sent::Refused);
        }
        match self.rabbitmq.publish(topic, letter).await {
            Ok(sent) => {
                self.refusals.forget(&key);
                Ok(sent)
            }
            Err(Failure::Later(reason)) => Err(Unsent(reason)),
            Err(Failure::Unfit(reason)) => {
                tracing::error!(%topic, reason, "the broker does not take a message; it is left out");
                Ok(Sent::Refused)
            }
            Err(Failure::Refused(reason)) => {
                let gives_up = self.refusals.note(&key, self.world().now());
                if gives_up {
                    let pause = refusals::PAUSE;
                    tracing::error!(%topic, reason, ?pause, "the broker takes no messages for a topic; they are left out");
                    return Ok(Sent::Refused);
                }
                Err(Unsent(reason))
            }
        }
    }

    /// The same, however long it takes.
    pub(crate) async fn publish_at_last(&self, topic: &Topic, letter: Letter<'_>) -> Sent {
        let timing = self.setting.options.timing;
        let mut back_off = BackOff::new(timing.retry_first, timing.retry_longest);
        loop {
            match self.publish(topic, letter.clone()).await {
                Ok(sent) => return sent,
                Err(Unsent(reason)) => tracing::debug!(%topic, reason, "a message could not be sent; it is sent again"),
            }
            back_off.wait(&**self.world()).await;
        }
    }

    /// The same to those who have a queue for it. If nobody has, they may be as far from the broker as we just were: the
    /// original's processes look for RabbitMQ every five seconds.
    pub(crate) async fn publish_to_somebody(&self, topic: &Topic, letter: Letter<'_>) -> Sent {
        let world = self.world();
        let until = world.now().plus_ms(u64::try_from(COMING_BACK.as_millis()).unwrap_or(u64::MAX));
        loop {
            let sent = self.publish_at_last(topic, letter.clone()).await;
            if sent != Sent::Unwanted || world.now() >= until {
                return sent;
            }
            world.sleep(AGAIN).await;
        }
    }

    /// Hears a topic until whoever listens has gone. What is not taken yet waits at the broker.
    pub(crate) fn listen(&self, topic: &Topic, taking: &Taking) -> mpsc::Receiver<Heard> {
        self.rabbitmq.listen(topic, taking)
    }

    /// Somebody may have removed what is listened to, and made it anew.
    pub(crate) fn listen_again(&self) {
        self.rabbitmq.bind_again();
    }
}

impl Received {
    /// It is done. If the broker does not hear it, the message comes again.
    pub(crate) async fn acknowledge(&self) {
        self.handle.acknowledge().await;
    }

    /// Somebody else may take it.
    pub(crate) async fn give_back(&self) {
        self.handle.give_back().await;
    }
}
