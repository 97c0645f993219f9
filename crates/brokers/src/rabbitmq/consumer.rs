//! Wake-ups as they come from RabbitMQ.

use super::connection::{OpenConnection, described};
use super::link::Link;
use super::publisher::Publisher;
use crate::back_off::BackOff;
use crate::bus::Setting;
use crate::held::Held;
use crate::wake_up::WakeUp;
use futures_util::stream::{self, Stream, StreamExt as _};
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, BasicRejectOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Acker, Channel};
use std::sync::Arc;
use trellis_orchestrator::ports::Role;

/// Takes wake-ups of one role for as long as it is polled.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) setting: Setting,
    pub(crate) role: Role,
    pub(crate) link: Link,
    pub(crate) held: Arc<Held<Acker>>,
    pub(crate) publisher: Arc<Publisher>,
}

impl Consumer {
    pub(crate) async fn run(mut self) {
        let timing = self.setting.options.timing;
        let mut back_off = BackOff::new(timing.retry_first, timing.retry_longest);
        loop {
            let open = self.link.connected().await;
            match self.consume(&open).await {
                Ok(deliveries) => {
                    back_off.succeeded();
                    let ended = self.take_all(&open, deliveries).await;
                    open.give_up(&ended);
                }
                Err(reason) => open.give_up(&reason),
            }
            self.held.lose_connection();
            self.link.replaced(&open).await;
            drop(open);
            back_off.wait(&*self.setting.world).await;
        }
    }

    /// A consumer for each lane. Each of them ends with None.
    async fn consume(
        &self,
        open: &OpenConnection,
    ) -> Result<impl Stream<Item = Option<lapin::Result<Delivery>>> + use<>, String> {
        let begun = self.setting.in_time(async {
            let channel: Channel = open.create_channel().await?;
            let failed = |error: lapin::Error| described(&error);
            // For each consumer of the channel.
            let prefetch = self.setting.options.prefetch;
            channel.basic_qos(prefetch, BasicQosOptions::default()).await.map_err(failed)?;
            let mut consumers = Vec::new();
            for lane in self.setting.names.lanes(self.role) {
                let (queue, options) = (self.setting.names.queue(lane), BasicConsumeOptions::default());
                let consumer = channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await;
                consumers.push(consumer.map_err(failed)?.map(Some).chain(stream::iter([None])));
            }
            Ok::<_, String>(stream::select_all(consumers))
        });
        begun.await.unwrap_or_else(|| Err("no consumer was started in time".to_owned()))
    }

    /// Gives why it has ended.
    async fn take_all(
        &mut self,
        open: &Arc<OpenConnection>,
        deliveries: impl Stream<Item = Option<lapin::Result<Delivery>>>,
    ) -> String {
        let mut deliveries = std::pin::pin!(deliveries);
        let mut link = self.link.clone();
        loop {
            let next = tokio::select! {
                biased;
                next = deliveries.next() => next,
                () = link.replaced(open) => return "the connection is lost".to_owned(),
            };
            match next {
                Some(Some(Ok(delivery))) => self.put(delivery).await,
                Some(Some(Err(error))) => return described(&error),
                Some(None) | None => return "RabbitMQ has ended a consumer".to_owned(),
            }
        }
    }

    async fn put(&self, delivery: Delivery) {
        match WakeUp::read(&delivery.data) {
            Ok(WakeUp { turn, handed_out }) => {
                self.publisher.has_come(&turn);
                let count = handed_out.saturating_add(redeliveries(&delivery)).saturating_add(1);
                if let Some(merged) = self.held.put(turn, count, delivery.acker).await {
                    drop(merged.ack(BasicAckOptions::default()).await);
                }
            }
            Err(reason) => {
                let aside = self.setting.names.set_aside();
                tracing::warn!(%reason, queue = %delivery.routing_key, "a message is no wake-up; it is moved to {aside}");
                drop(delivery.acker.reject(BasicRejectOptions { requeue: false }).await);
            }
        }
    }
}

/// How often this message was handed out before. Classic queues only tell whether it was.
fn redeliveries(delivery: &Delivery) -> u32 {
    let headers = delivery.properties.headers().as_ref().map(FieldTable::inner);
    let counted = headers.and_then(|headers| headers.get("x-delivery-count"));
    // As RabbitMQ writes it.
    let counted = if let Some(AMQPValue::LongLongInt(count)) = counted { u32::try_from(*count).ok() } else { None };
    counted.unwrap_or(u32::from(delivery.redelivered))
}

/// Tells RabbitMQ that a message is done.
pub(crate) async fn acknowledge(setting: &Setting, acker: &Acker) -> Result<bool, String> {
    let acknowledged = setting.in_time(acker.ack(BasicAckOptions::default())).await;
    acknowledged.ok_or("it was not sent in time".to_owned())?.map_err(|error| described(&error))
}

/// Has RabbitMQ hand out a message again at once.
pub(crate) async fn requeue(setting: &Setting, acker: &Acker) {
    let options = BasicNackOptions { multiple: false, requeue: true };
    drop(setting.in_time(acker.nack(options)).await);
}
