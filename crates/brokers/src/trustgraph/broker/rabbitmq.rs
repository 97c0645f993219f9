//! RabbitMQ, with exchanges and queues as the original has them.

use super::{Failure, HANDED_ON, Heard, ID, Letter, Received, Sent, Taking};
use crate::back_off::BackOff;
use crate::bus::Setting;
use crate::rabbitmq::connection::{OpenConnection, described};
use crate::rabbitmq::link::{Link, Use};
use crate::tasks::Tasks;
use crate::trustgraph::topic::{Class, Topic};
use futures_util::StreamExt as _;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
    ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Acker, BasicProperties, Channel, Confirmation, Consumer, ErrorKind, ExchangeKind};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OnceCell, mpsc, watch};

#[derive(Debug)]
pub(super) struct RabbitMq {
    setting: Setting,
    publishing: Link,
    consuming: Link,
    /// What there is of the connection that there is now.
    over: Mutex<Over>,
    /// Changes when whoever listens is to bind once more.
    bind_again: watch::Sender<u64>,
    tasks: Tasks,
}

#[derive(Debug, Default)]
struct Over {
    connection: Weak<OpenConnection>,
    exchanges: HashMap<String, Arc<Exchange>>,
    channels: Channels,
}

/// An exchange that is published to.
#[derive(Debug, Default)]
struct Exchange {
    /// Set when it was seen. Publishing does not make one: without it nobody listens, and it may have been removed on purpose.
    found: OnceCell<()>,
    /// A channel was closed while something was on its way there: the next message has a channel of its own, so that it is
    /// known whose fault it was, and nobody else suffers for it.
    is_suspect: bool,
}

/// Where messages are published and confirmed. RabbitMQ confirms several messages of a channel at once, and the client then
/// gives what came back to any of them: what nobody has a queue for must not pass for sent in place of something else.
#[derive(Debug, Default)]
struct Channels {
    flow: Arc<OnceCell<Channel>>,
    requests: Arc<OnceCell<Channel>>,
    responses: Arc<OnceCell<Channel>>,
}

/// With this, a message is settled.
#[derive(Debug)]
pub(super) struct Handle(Acker);

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
/// So often whoever listens makes sure that its queue still gets what is published.
const BIND_EVERY: Duration = Duration::from_mins(1);

/// Messages that were taken and not acknowledged yet.
#[derive(Debug, Default)]
struct Unacknowledged {
    last: Option<Acker>,
    count: u16,
}

impl Unacknowledged {
    fn add(&mut self, received: &Received) {
        self.last = Some(received.handle.0.clone());
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

impl RabbitMq {
    pub(super) async fn connect(setting: &Setting) -> Result<Self, String> {
        let tasks = Tasks::default();
        let publishing = Link::open(setting, Use::Asking, &tasks).await?;
        let consuming = Link::open(setting, Use::Hearing, &tasks).await?;
        let (over, bind_again) = (Mutex::default(), watch::Sender::default());
        Ok(Self { setting: setting.clone(), publishing, consuming, over, bind_again, tasks })
    }

    pub(super) async fn publish(&self, topic: &Topic, letter: Letter<'_>) -> Result<Sent, Failure> {
        let later = |reason: &str| Failure::Later(reason.to_owned());
        let open = self.publishing.now().ok_or_else(|| later("there is no connection to RabbitMQ"))?;
        if let Some(reason) = open.blocked() {
            return Err(Failure::Later(format!("RabbitMQ takes no messages: {reason}")));
        }
        let sent = self.setting.in_time(self.publish_over(&open, topic, letter)).await;
        sent.unwrap_or_else(|| {
            let reason = format!("nothing was confirmed within {:?}", self.setting.options.timing.answer);
            open.give_up(&reason);
            Err(Failure::Later(reason))
        })
    }

    async fn publish_over(
        &self,
        open: &Arc<OpenConnection>,
        topic: &Topic,
        letter: Letter<'_>,
    ) -> Result<Sent, Failure> {
        let name = topic.exchange();
        let exchange = Arc::clone(self.over(open).exchanges.entry(name.clone()).or_default());
        match exchange.found.get_or_try_init(|| look(open, &name)).await {
            Ok(()) => {}
            Err(error) if is_missing(&error) => return Ok(Sent::Unwanted),
            Err(error) => return Err(failure(open, &error)),
        }
        if exchange.is_suspect {
            return self.publish_alone(open, topic, letter).await;
        }
        let published = async { publish_on(&self.channel(open, topic.class).await?, topic, letter).await };
        match published.await {
            Ok(confirmation) => sent(&confirmation, &name),
            Err(error) if is_of_channel(open, &error) => {
                // It may be somebody else's fault: that is seen with the next attempt.
                let suspect = Exchange { is_suspect: true, ..Exchange::default() };
                self.over(open).exchanges.insert(name, Arc::new(suspect));
                Err(Failure::Later(described(&error)))
            }
            Err(error) => Err(failure(open, &error)),
        }
    }

    async fn publish_alone(
        &self,
        open: &Arc<OpenConnection>,
        topic: &Topic,
        letter: Letter<'_>,
    ) -> Result<Sent, Failure> {
        let name = topic.exchange();
        let published = async { publish_on(&confirming(open).await?, topic, letter).await };
        match published.await {
            Ok(confirmation) => {
                let seen = Exchange { found: OnceCell::from(()), is_suspect: false };
                self.over(open).exchanges.insert(name.clone(), Arc::new(seen));
                sent(&confirmation, &name)
            }
            Err(error) if is_missing(&error) => Ok(Sent::Unwanted),
            Err(error) => Err(failure(open, &error)),
        }
    }

    /// The channel for messages of a class, opened with the first of them and whenever the one before was closed.
    async fn channel(&self, open: &Arc<OpenConnection>, class: Class) -> lapin::Result<Channel> {
        let channel = {
            let mut over = self.over(open);
            let channel = match class {
                Class::Flow => &mut over.channels.flow,
                Class::Request => &mut over.channels.requests,
                Class::Response | Class::Notify => &mut over.channels.responses,
            };
            if channel.get().is_some_and(|channel| !channel.status().connected()) {
                *channel = Arc::default();
            }
            Arc::clone(channel)
        };
        channel.get_or_try_init(|| confirming(open)).await.cloned()
    }

    /// What there is of this connection. With a new one, everything is looked for again.
    fn over(&self, open: &Arc<OpenConnection>) -> MutexGuard<'_, Over> {
        let mut over = self.over.lock();
        if !std::ptr::eq(over.connection.as_ptr(), Arc::as_ptr(open)) {
            *over = Over { connection: Arc::downgrade(open), ..Over::default() };
        }
        over
    }

    pub(super) fn listen(&self, topic: &Topic, taking: &Taking) -> mpsc::Receiver<Heard> {
        // What comes at once is passed on at once.
        let (heard, receiver) = mpsc::channel(usize::from(taking.ahead()));
        let (setting, topic, taking) = (self.setting.clone(), topic.clone(), taking.clone());
        let listening = Listening { setting, topic, taking, bind_again: self.bind_again.subscribe(), heard };
        self.tasks.spawn(listening.run(self.consuming.clone()));
        receiver
    }

    /// All that listen bind their queues once more.
    pub(super) fn bind_again(&self) {
        self.bind_again.send_modify(|times| *times = times.wrapping_add(1));
    }
}

async fn confirming(open: &OpenConnection) -> lapin::Result<Channel> {
    let channel = open.new_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    Ok(channel)
}

/// Whether an exchange is there, asked over a channel that is closed if it is not.
async fn look(open: &OpenConnection, exchange: &str) -> lapin::Result<()> {
    let channel = open.new_channel().await?;
    let passive = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(exchange.into(), ExchangeKind::Fanout, passive, FieldTable::default()).await
}

async fn publish_on(channel: &Channel, topic: &Topic, letter: Letter<'_>) -> lapin::Result<Confirmation> {
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
    let (exchange, body) = (topic.exchange(), letter.body.as_bytes());
    channel.basic_publish(exchange.as_str().into(), "".into(), options, body, properties).await?.await
}

fn sent(confirmation: &Confirmation, exchange: &str) -> Result<Sent, Failure> {
    match confirmation {
        Confirmation::Ack(None) => Ok(Sent::Queued),
        // Of several messages that RabbitMQ confirms at once, the client gives what came back to any: it may be another's.
        Confirmation::Ack(Some(back)) if back.delivery.exchange.as_str() != exchange => Ok(Sent::Queued),
        Confirmation::Ack(Some(_)) => Ok(Sent::Unwanted),
        Confirmation::Nack(_) => Err(Failure::Later("RabbitMQ refused the message".to_owned())),
        Confirmation::NotRequested => Err(Failure::Later("nothing is confirmed".to_owned())),
    }
}

/// What RabbitMQ has closed a channel for, if it has said so.
fn soft(error: &lapin::Error) -> Option<AMQPSoftError> {
    let ErrorKind::ProtocolError(error) = error.kind() else { return None };
    if let AMQPErrorKind::Soft(soft) = error.kind() { Some(soft.clone()) } else { None }
}

fn is_missing(error: &lapin::Error) -> bool {
    soft(error) == Some(AMQPSoftError::NOTFOUND)
}

/// Whether only a channel is lost by this.
fn is_of_channel(open: &OpenConnection, error: &lapin::Error) -> bool {
    soft(error).is_some() || (open.is_connected() && matches!(error.kind(), ErrorKind::InvalidChannelState(..)))
}

/// What an error over a channel means that nobody else uses. One of the connection ends it.
fn failure(open: &OpenConnection, error: &lapin::Error) -> Failure {
    let reason = described(error);
    match soft(error) {
        // What is larger than RabbitMQ takes.
        Some(AMQPSoftError::PRECONDITIONFAILED | AMQPSoftError::CONTENTTOOLARGE) => Failure::Unfit(reason),
        Some(_) => Failure::Refused(reason),
        None => {
            if !is_of_channel(open, error) {
                open.give_up(&reason);
            }
            Failure::Later(reason)
        }
    }
}

struct Listening {
    setting: Setting,
    topic: Topic,
    taking: Taking,
    bind_again: watch::Receiver<u64>,
    heard: mpsc::Sender<Heard>,
}

/// Nobody listens any more.
struct Gone;

impl Listening {
    async fn run(mut self, mut link: Link) {
        let timing = self.setting.options.timing;
        let mut back_off = BackOff::new(timing.retry_first, timing.retry_longest);
        loop {
            let open = tokio::select! {
                open = link.connected() => open,
                () = self.heard.closed() => return,
            };
            let subscribed = self.setting.in_time(self.subscribe(&open)).await;
            match subscribed {
                Some(Ok((channel, queue, consumer))) => {
                    back_off.succeeded();
                    if self.take_all(&open, &mut link, (&channel, &queue), consumer).await.is_err() {
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

    async fn subscribe(&self, open: &OpenConnection) -> lapin::Result<(Channel, ShortString, Consumer)> {
        let channel = open.new_channel().await?;
        self.declare(&channel).await?;
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
        self.bind(&channel, &name).await?;
        let consume = BasicConsumeOptions::default();
        let consumer = channel.basic_consume(name.clone(), "".into(), consume, FieldTable::default()).await?;
        Ok((channel, name, consumer))
    }

    /// A fanout exchange, durable for every class.
    async fn declare(&self, channel: &Channel) -> lapin::Result<()> {
        let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let exchange = self.topic.exchange();
        channel.exchange_declare(exchange.as_str().into(), ExchangeKind::Fanout, durable, FieldTable::default()).await
    }

    /// The key means nothing to this kind of exchange; the original's library gives the queue's name.
    async fn bind(&self, channel: &Channel, queue: &ShortString) -> lapin::Result<()> {
        let (exchange, options) = (self.topic.exchange(), QueueBindOptions::default());
        let key = queue.clone();
        channel.queue_bind(queue.clone(), exchange.as_str().into(), key, options, FieldTable::default()).await
    }

    async fn take_all(
        &mut self,
        open: &Arc<OpenConnection>,
        link: &mut Link,
        (channel, queue): (&Channel, &ShortString),
        mut consumer: Consumer,
    ) -> Result<(), Gone> {
        self.heard.send(Heard::Listening).await.map_err(|_| Gone)?;
        let mut unacknowledged = Unacknowledged::default();
        let mut look = self.setting.world.sleep(BIND_EVERY);
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
                () = either(self.bind_again.changed(), &mut look) => {
                    if !self.is_bound_again(open, channel, queue).await {
                        return Ok(());
                    }
                    look = self.setting.world.sleep(BIND_EVERY);
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

    /// Whoever stops a flow removes its exchanges, and with them what was bound to them. If that was done and undone before
    /// anybody could tell, the queue is still there and gets nothing.
    async fn is_bound_again(&self, open: &OpenConnection, channel: &Channel, queue: &ShortString) -> bool {
        let bound = async {
            self.declare(channel).await?;
            self.bind(channel, queue).await
        };
        match self.setting.in_time(bound).await {
            Some(Ok(())) => true,
            Some(Err(error)) => {
                tracing::warn!(topic = %self.topic, error = described(&error), "a queue cannot be bound again");
                false
            }
            None => {
                open.give_up("a queue was not bound in time");
                false
            }
        }
    }
}

/// Waits for what comes first.
async fn either<T>(first: impl Future<Output = T>, second: impl Future<Output = ()>) {
    tokio::select! {
        _ = first => {}
        () = second => {}
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
    Received { id, handed_on, body: delivery.data, handle: Handle(delivery.acker) }
}

impl Handle {
    pub(super) async fn acknowledge(&self) {
        drop(self.0.ack(BasicAckOptions::default()).await);
    }

    pub(super) async fn give_back(&self) {
        drop(self.0.nack(BasicNackOptions { multiple: false, requeue: true }).await);
    }
}
