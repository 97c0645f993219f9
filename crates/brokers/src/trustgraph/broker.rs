//! The deployment's RabbitMQ, with exchanges, queues and properties as the original has them.

use super::topic::{Class, Topic};
use crate::address::BrokerAddress;
use crate::back_off::BackOff;
use crate::bus::{BusOptions, Setting};
use crate::names::Names;
use crate::rabbitmq::connection::{OpenConnection, described};
use crate::rabbitmq::link::{Link, Use};
use crate::tasks::Tasks;
use futures_util::StreamExt as _;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
    ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Acker, BasicProperties, Channel, Confirmation, Consumer, ExchangeKind};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OnceCell, mpsc};
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
    publishing: Link,
    consuming: Link,
    /// What was declared over the connection that there is now.
    declared: Mutex<Declared>,
    tasks: Tasks,
}

#[derive(Debug, Default)]
struct Declared {
    connection: Weak<OpenConnection>,
    exchanges: BTreeSet<String>,
    channels: Arc<Channels>,
}

/// Where messages are published and confirmed. RabbitMQ confirms several messages of a channel at once, and the client then
/// gives what came back to any of them: what nobody has a queue for must not pass for sent in place of something else.
#[derive(Debug, Default)]
struct Channels {
    flow: OnceCell<Channel>,
    requests: OnceCell<Channel>,
    responses: OnceCell<Channel>,
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
    acker: Acker,
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

impl Taking {
    /// How many messages RabbitMQ hands out before it hears of the first. What is shared, others may take meanwhile.
    const fn ahead(&self) -> u16 {
        match self {
            Self::Everything => 2 * AT_ONCE,
            Self::Shared { .. } => 1,
        }
    }
}

/// So many messages are acknowledged at once: one by one, that takes as long as reading them.
const AT_ONCE: u16 = 32;
/// Fewer are acknowledged when no more have come for so long. RabbitMQ closes channels that let it wait for half an hour.
const NO_MORE: Duration = Duration::from_secs(5);

/// Messages that were taken and not acknowledged yet.
#[derive(Debug, Default)]
struct Unacknowledged {
    last: Option<Acker>,
    count: u16,
}

impl Unacknowledged {
    fn add(&mut self, received: &Received) {
        self.last = Some(received.acker.clone());
        self.count += 1;
    }

    async fn acknowledge(&mut self) {
        self.count = 0;
        if let Some(last) = self.last.take() {
            // If RabbitMQ does not hear it, the channel is gone, and with it the queue that nobody else has.
            drop(last.ack(BasicAckOptions { multiple: true }).await);
        }
    }
}

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
        let tasks = Tasks::default();
        let publishing = Link::open(&setting, Use::Asking, &tasks).await?;
        let consuming = Link::open(&setting, Use::Hearing, &tasks).await?;
        Ok(Self { setting, publishing, consuming, declared: Mutex::default(), tasks })
    }

    pub(crate) fn world(&self) -> &Arc<dyn World> {
        &self.setting.world
    }

    /// Publishes a message, and waits until RabbitMQ has it.
    pub(crate) async fn publish(&self, topic: &Topic, letter: Letter<'_>) -> Result<Sent, Unsent> {
        let open = self.publishing.now().ok_or_else(|| Unsent("there is no connection to RabbitMQ".to_owned()))?;
        if let Some(reason) = open.blocked() {
            return Err(Unsent(format!("RabbitMQ takes no messages: {reason}")));
        }
        let sent = self.setting.in_time(self.publish_over(&open, topic, letter)).await;
        sent.unwrap_or_else(|| {
            let reason = format!("nothing was confirmed within {:?}", self.setting.options.timing.answer);
            open.give_up(&reason);
            Err(Unsent(reason))
        })
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

    /// The same to those who have a queue for it. If nobody has, they may be as far from RabbitMQ as we just were: the
    /// original's processes look for it every five seconds.
    pub(crate) async fn publish_to_somebody(&self, topic: &Topic, letter: Letter<'_>) -> Sent {
        let world = self.world();
        let until = world.now().plus_ms(u64::try_from(COMING_BACK.as_millis()).unwrap_or(u64::MAX));
        loop {
            let sent = self.publish_at_last(topic, letter.clone()).await;
            if sent == Sent::Queued || world.now() >= until {
                return sent;
            }
            world.sleep(AGAIN).await;
        }
    }

    async fn publish_over(
        &self,
        open: &Arc<OpenConnection>,
        topic: &Topic,
        letter: Letter<'_>,
    ) -> Result<Sent, Unsent> {
        let failed = |error: lapin::Error| {
            open.give_up(&described(&error));
            Unsent(described(&error))
        };
        let exchange = topic.exchange();
        let channel = self.channel(open, topic.class).await.map_err(failed)?;
        if !self.declared_over(open).exchanges.contains(&exchange) {
            declare_exchange(&channel, &exchange).await.map_err(failed)?;
            self.declared_over(open).exchanges.insert(exchange.clone());
        }
        let mut headers = FieldTable::default();
        if !letter.id.is_empty() {
            headers.insert(ID.into(), AMQPValue::LongString(letter.id.into()));
        }
        if letter.handed_on > 0 {
            headers.insert(HANDED_ON.into(), AMQPValue::LongUInt(letter.handed_on));
        }
        let properties = BasicProperties::default()
            .with_content_type("application/json".into())
            .with_delivery_mode(if topic.is_durable() { 2 } else { 1 })
            .with_headers(headers);
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let body = letter.body.as_bytes();
        let published = channel.basic_publish(exchange.as_str().into(), "".into(), options, body, properties);
        match published.await.map_err(failed)?.await.map_err(failed)? {
            Confirmation::Ack(None) => Ok(Sent::Queued),
            // Of several messages that RabbitMQ confirms at once, the client gives what came back to any: it may be another's.
            Confirmation::Ack(Some(back)) if back.delivery.exchange.as_str() != exchange => Ok(Sent::Queued),
            Confirmation::Ack(Some(_)) => Ok(Sent::Unwanted),
            Confirmation::Nack(_) => Err(Unsent("RabbitMQ refused the message".to_owned())),
            Confirmation::NotRequested => Err(Unsent("nothing is confirmed".to_owned())),
        }
    }

    /// The channel for messages of a class, opened with the first of them.
    async fn channel(&self, open: &Arc<OpenConnection>, class: Class) -> lapin::Result<Channel> {
        let channels = Arc::clone(&self.declared_over(open).channels);
        let channel = match class {
            Class::Flow => &channels.flow,
            Class::Request => &channels.requests,
            Class::Response | Class::Notify => &channels.responses,
        };
        let opened = channel.get_or_try_init(|| async {
            let channel = open.new_channel().await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            Ok::<_, lapin::Error>(channel)
        });
        opened.await.cloned()
    }

    /// What was declared over this connection. With a new one, everything is declared again.
    fn declared_over(&self, open: &Arc<OpenConnection>) -> MutexGuard<'_, Declared> {
        let mut declared = self.declared.lock();
        if !std::ptr::eq(declared.connection.as_ptr(), Arc::as_ptr(open)) {
            *declared = Declared { connection: Arc::downgrade(open), ..Declared::default() };
        }
        declared
    }

    /// Hears a topic until whoever listens has gone. What is not taken yet waits at RabbitMQ.
    pub(crate) fn listen(self: &Arc<Self>, topic: &Topic, taking: &Taking) -> mpsc::Receiver<Heard> {
        // What comes at once is passed on at once.
        let (heard, receiver) = mpsc::channel(usize::from(taking.ahead()));
        let listening =
            Listening { setting: self.setting.clone(), topic: topic.clone(), taking: taking.clone(), heard };
        self.tasks.spawn(listening.run(self.consuming.clone()));
        receiver
    }
}

async fn declare_exchange(channel: &Channel, exchange: &str) -> lapin::Result<()> {
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(exchange.into(), ExchangeKind::Fanout, durable, FieldTable::default()).await
}

struct Listening {
    setting: Setting,
    topic: Topic,
    taking: Taking,
    heard: mpsc::Sender<Heard>,
}

/// Nobody listens any more.
struct Gone;

impl Listening {
    async fn run(self, mut link: Link) {
        let timing = self.setting.options.timing;
        let mut back_off = BackOff::new(timing.retry_first, timing.retry_longest);
        loop {
            let open = tokio::select! {
                open = link.connected() => open,
                () = self.heard.closed() => return,
            };
            match self.setting.in_time(self.subscribe(&open)).await {
                Some(Ok((channel, consumer))) => {
                    back_off.succeeded();
                    if self.take_all(&open, &mut link, consumer).await.is_err() {
                        // What was handed out and not taken goes back with the channel.
                        drop(channel.close(200, "nobody listens any more".into()).await);
                        return;
                    }
                    if self.heard.send(Heard::Lost).await.is_err() {
                        return;
                    }
                }
                Some(Err(error)) => {
                    tracing::warn!(topic = %self.topic, error = described(&error), "a queue cannot be listened to");
                }
                None => open.give_up("no consumer was started in time"),
            }
            drop(open);
            back_off.wait(&*self.setting.world).await;
        }
    }

    async fn subscribe(&self, open: &OpenConnection) -> lapin::Result<(Channel, Consumer)> {
        let channel = open.new_channel().await?;
        let exchange = self.topic.exchange();
        declare_exchange(&channel, &exchange).await?;
        channel.basic_qos(self.taking.ahead(), BasicQosOptions::default()).await?;
        let (name, options) = match &self.taking {
            Taking::Everything => {
                (String::new(), QueueDeclareOptions { exclusive: true, auto_delete: true, ..Default::default() })
            }
            Taking::Shared { subscription } => {
                let durable = self.topic.is_durable();
                (self.topic.queue(subscription), QueueDeclareOptions { durable, ..Default::default() })
            }
        };
        let queue = channel.queue_declare(name.as_str().into(), options, FieldTable::default()).await?;
        let name = queue.name().clone();
        // The key means nothing to this kind of exchange; the original's library gives the queue's name.
        let bound = channel.queue_bind(
            name.clone(),
            exchange.as_str().into(),
            name.clone(),
            QueueBindOptions::default(),
            FieldTable::default(),
        );
        bound.await?;
        let consumer =
            channel.basic_consume(name, "".into(), BasicConsumeOptions::default(), FieldTable::default()).await?;
        Ok((channel, consumer))
    }

    async fn take_all(&self, open: &Arc<OpenConnection>, link: &mut Link, mut consumer: Consumer) -> Result<(), Gone> {
        self.heard.send(Heard::Listening).await.map_err(|_| Gone)?;
        let mut unacknowledged = Unacknowledged::default();
        loop {
            let next = tokio::select! {
                biased;
                next = consumer.next() => next,
                () = link.replaced(open) => return Ok(()),
                () = self.heard.closed() => return Err(Gone),
                () = self.setting.world.sleep(NO_MORE), if unacknowledged.count > 0 => {
                    unacknowledged.acknowledge().await;
                    continue;
                }
            };
            let Some(Ok(delivery)) = next else { return Ok(()) };
            let received = read(delivery);
            if matches!(self.taking, Taking::Everything) {
                unacknowledged.add(&received);
            }
            if unacknowledged.count >= AT_ONCE {
                unacknowledged.acknowledge().await;
            }
            self.heard.send(Heard::Message(received)).await.map_err(|_| Gone)?;
        }
    }
}

fn read(delivery: Delivery) -> Received {
    let headers = delivery.properties.headers().as_ref().map(FieldTable::inner);
    let header = |name: &str| headers.and_then(|headers| headers.get(name));
    let id = match header(ID) {
        Some(AMQPValue::LongString(id)) => Some(String::from_utf8_lossy(id.as_bytes()).into_owned()),
        Some(AMQPValue::ShortString(id)) => Some(id.to_string()),
        Some(_) | None => None,
    };
    let handed_on = if let Some(AMQPValue::LongUInt(count)) = header(HANDED_ON) { *count } else { 0 };
    Received { id, handed_on, body: delivery.data, acker: delivery.acker }
}

impl Received {
    /// It is done. If RabbitMQ does not hear it, the message comes again.
    pub(crate) async fn acknowledge(&self) {
        drop(self.acker.ack(BasicAckOptions::default()).await);
    }

    /// Somebody else may take it.
    pub(crate) async fn give_back(&self) {
        drop(self.acker.nack(BasicNackOptions { multiple: false, requeue: true }).await);
    }
}
