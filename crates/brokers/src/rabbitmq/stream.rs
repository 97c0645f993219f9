//! The port `Stream` over RabbitMQ: a fanout exchange, and a bounded queue for each process that goes with its connection.

use super::connection::{OpenConnection, described};
use super::lanes::arguments;
use super::link::Link;
use crate::back_off::BackOff;
use crate::bus::Setting;
use crate::notices::{Inbox, Outbox};
use crate::tasks::Tasks;
use futures_util::StreamExt as _;
use lapin::options::{BasicConsumeOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Consumer};
use std::sync::Arc;
use trellis_orchestrator::ports::{Stream, StreamListener, StreamMessage};

#[derive(Debug)]
pub(crate) struct RabbitStream {
    outbox: Arc<Outbox>,
    inbox: Arc<Inbox>,
    _tasks: Arc<Tasks>,
}

/// So much waits at the broker for one process. The oldest go first.
const WAITING: u32 = 10_000;
const WAITING_BYTES: u32 = 32 * 1024 * 1024;

impl RabbitStream {
    pub(crate) async fn new(
        setting: &Setting,
        publishing: Link,
        consuming: Link,
        tasks: Arc<Tasks>,
    ) -> Result<Self, String> {
        let own = setting.world.fresh_id();
        let (outbox, inbox) = (Arc::new(Outbox::new(own.clone())), Arc::new(Inbox::new(own)));
        let open = consuming.now().ok_or("the connection is lost")?;
        let first = subscribe(setting, &open).await?;
        let hearing = Hearing { setting: setting.clone(), link: consuming, inbox: Arc::clone(&inbox) };
        tasks.spawn(hearing.run(open, first));
        let (telling, setting) = (Arc::clone(&outbox), setting.clone());
        tasks.spawn(async move { tell(&setting, publishing, &telling).await });
        Ok(Self { outbox, inbox, _tasks: tasks })
    }
}

/// A queue of this connection's own, bound to the exchange, and what comes out of it.
async fn subscribe(setting: &Setting, open: &OpenConnection) -> Result<Consumer, String> {
    let bounds = arguments([
        ("x-max-length", AMQPValue::LongUInt(WAITING)),
        ("x-max-length-bytes", AMQPValue::LongUInt(WAITING_BYTES)),
    ]);
    let subscribing = async {
        let channel: Channel = open.create_channel().await?;
        let failed = |error: lapin::Error| described(&error);
        let own = QueueDeclareOptions { exclusive: true, auto_delete: true, ..QueueDeclareOptions::default() };
        let queue = channel.queue_declare("".into(), own, bounds).await.map_err(failed)?;
        let (name, exchange) = (queue.name().clone(), setting.names.notices().into());
        let bound =
            channel.queue_bind(name.clone(), exchange, "".into(), QueueBindOptions::default(), FieldTable::default());
        bound.await.map_err(failed)?;
        let options = BasicConsumeOptions { no_ack: true, exclusive: true, ..BasicConsumeOptions::default() };
        let consumer = channel.basic_consume(name, "".into(), options, FieldTable::default()).await;
        consumer.map_err(failed)
    };
    let subscribed: Option<Result<Consumer, String>> = setting.in_time(subscribing).await;
    subscribed.unwrap_or_else(|| Err("notices were not subscribed in time".to_owned()))
}

struct Hearing {
    setting: Setting,
    link: Link,
    inbox: Arc<Inbox>,
}

impl Hearing {
    async fn run(mut self, mut open: Arc<OpenConnection>, first: Consumer) {
        let timing = self.setting.options.timing;
        let mut back_off = BackOff::new(timing.retry_first, timing.retry_longest);
        let mut consumer: Result<Consumer, String> = Ok(first);
        loop {
            match consumer {
                Ok(consumer) => {
                    back_off.succeeded();
                    self.hear_all(&open, consumer).await;
                    open.give_up("RabbitMQ has ended a consumer");
                }
                Err(reason) => open.give_up(&reason),
            }
            self.link.replaced(&open).await;
            drop(open);
            back_off.wait(&*self.setting.world).await;
            open = self.link.connected().await;
            consumer = subscribe(&self.setting, &open).await;
            self.inbox.missed();
        }
    }

    async fn hear_all(&mut self, open: &Arc<OpenConnection>, mut consumer: Consumer) {
        loop {
            let next = tokio::select! {
                biased;
                next = consumer.next() => next,
                () = self.link.replaced(open) => return,
            };
            let Some(Ok(delivery)) = next else { return };
            self.inbox.receive(&delivery.data);
        }
    }
}

/// Publishes what waits, one after the other, whenever there is a connection.
async fn tell(setting: &Setting, mut link: Link, outbox: &Outbox) {
    loop {
        let bytes = outbox.next().await;
        let open = link.connected().await;
        let (exchange, options) = (setting.names.notices().into(), BasicPublishOptions::default());
        let published =
            open.unconfirmed.basic_publish(exchange, "".into(), options, &bytes, BasicProperties::default());
        tokio::select! {
            biased;
            // One that is lost leaves a gap, which listeners notice.
            published = published => if let Err(error) = published {
                open.give_up(&described(&error));
            },
            () = link.replaced(&open) => {}
        }
    }
}

impl Stream for RabbitStream {
    fn publish(&self, message: StreamMessage) {
        self.outbox.put(&message);
    }

    fn listen(&self) -> Box<dyn StreamListener> {
        self.inbox.listen()
    }
}
