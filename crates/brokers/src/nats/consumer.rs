//! Wake-ups as they come from JetStream.

use super::client::{described, is_connected};
use super::topology;
use crate::back_off::BackOff;
use crate::bus::Setting;
use crate::held::Held;
use crate::names::Lane;
use crate::wake_up::WakeUp;
use async_nats::Client;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::message::{Acker, Message};
use async_nats::jetstream::{AckKind, Context};
use futures_util::StreamExt as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trellis_orchestrator::ports::Role;

/// A message that is held, and the place that it takes.
#[derive(Clone)]
pub(crate) struct NatsMessage {
    pub(crate) acker: Arc<Acker>,
    /// Of two messages with the same number, one is the other handed out again.
    sequence: u64,
    _place: Arc<OwnedSemaphorePermit>,
}

impl std::fmt::Debug for NatsMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NatsMessage").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

/// Takes the wake-ups of one lane for as long as it is polled.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) setting: Setting,
    pub(crate) lane: Lane,
    pub(crate) client: Client,
    pub(crate) context: Context,
    pub(crate) held: Arc<Held<NatsMessage>>,
}

/// So many are asked for at once, for so long. Without heartbeats of the server: after one of them, the client (0.51) does not
/// notice what comes next until the batch ends.
const BATCH: usize = 256;
const ASK_FOR: Duration = Duration::from_secs(20);
/// If nothing comes in this time, not even the end of the batch, the consumer is stalled.
const STALLED_AFTER: Duration = Duration::from_secs(30);
/// A server that was started again has forgotten what it was asked for. So often it is looked whether the connection is the same.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Consumer {
    pub(crate) async fn run(self) {
        let timing = self.setting.options.timing;
        let mut back_off = BackOff::new(timing.retry_first, timing.retry_longest);
        let places = Arc::new(Semaphore::new(usize::from(self.setting.options.prefetch)));
        loop {
            let ended = match self.make().await {
                Ok(consumer) => self.take_all(&consumer, &places, &mut back_off).await,
                Err(reason) => reason,
            };
            if is_connected(&self.client) {
                tracing::debug!(reason = ended, consumer = ?self.lane, "a consumer is made anew");
            }
            back_off.wait(&*self.setting.world).await;
        }
    }

    /// Which connection since the first it is.
    fn connection(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    /// Both are left as they are if they are there.
    async fn make(&self) -> Result<PullConsumer, String> {
        topology::make_stream(&self.setting, &self.context).await?;
        topology::make_consumer(&self.setting, &self.context, self.lane).await
    }

    /// Gives why it has ended.
    async fn take_all(&self, consumer: &PullConsumer, places: &Arc<Semaphore>, back_off: &mut BackOff) -> String {
        loop {
            let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
            let most = BATCH.min(places.available_permits() + 1);
            let connection = self.connection();
            let batch = consumer.batch().max_messages(most).expires(ASK_FOR).messages();
            let mut batch = match self.setting.in_time(batch).await {
                Some(Ok(batch)) => batch,
                Some(Err(error)) => return described(&error),
                None => return "no batch was begun in time".to_owned(),
            };
            let (mut first, mut silent) = (Some(place), Duration::ZERO);
            loop {
                let next = tokio::select! {
                    biased;
                    next = batch.next() => next,
                    () = self.setting.world.sleep(LOOK_EVERY) => {
                        silent += LOOK_EVERY;
                        if self.connection() != connection {
                            back_off.succeeded();
                            return "the connection is another one".to_owned();
                        }
                        if silent >= STALLED_AFTER {
                            return "it has stalled".to_owned();
                        }
                        continue;
                    }
                };
                match next {
                    None => break,
                    Some(Err(error)) => return described(&*error),
                    Some(Ok(message)) => {
                        silent = Duration::ZERO;
                        back_off.succeeded();
                        let place = first.take().or_else(|| Arc::clone(places).try_acquire_owned().ok());
                        let Some(place) = place else { return "more came than was asked for".to_owned() };
                        self.put(message, place).await;
                    }
                }
            }
        }
    }

    async fn put(&self, message: Message, place: OwnedSemaphorePermit) {
        let known =
            message.info().map(|info| (info.stream_sequence, u32::try_from(info.delivered).unwrap_or(u32::MAX)));
        let Ok((sequence, count)) = known else { return };
        let (message, acker) = message.split();
        let acker = Arc::new(acker);
        match WakeUp::read(&message.payload) {
            Ok(WakeUp { turn, handed_out }) => {
                let count = count.saturating_add(handed_out);
                let held = NatsMessage { acker, sequence, _place: Arc::new(place) };
                let replaced = self.held.put(turn, count, held).await;
                // The same message once more is settled with its newer receipt.
                if let Some(replaced) = replaced.filter(|replaced| replaced.sequence != sequence) {
                    drop(settle(&self.setting, &self.client, &replaced.acker, AckKind::Ack).await);
                }
            }
            Err(reason) => {
                tracing::warn!(%reason, subject = %message.subject, "a message is no wake-up; it is dropped");
                drop(settle(&self.setting, &self.client, &acker, AckKind::Term).await);
            }
        }
    }
}

/// Tells the server what becomes of a message.
pub(crate) async fn settle(setting: &Setting, client: &Client, acker: &Acker, kind: AckKind) -> Result<(), String> {
    if !is_connected(client) {
        return Err(format!("there is no connection to {}", setting.address));
    }
    let settled = setting.in_time(acker.ack_with(kind)).await;
    settled.ok_or("it was not sent in time".to_owned())?.map_err(|error| described(&*error))
}

/// Those that wait for a place are not to be handed out to somebody else meanwhile.
pub(crate) async fn keep_alive(setting: Setting, client: Client, held: Arc<Held<NatsMessage>>, role: Role) {
    let within = setting.options.timing.acknowledged_within;
    loop {
        setting.world.sleep(within / 3).await;
        held.forget_unrenewed(within * 2);
        for message in held.waiting() {
            if let Err(reason) = settle(&setting, &client, &message.acker, AckKind::Progress).await {
                tracing::debug!(reason, ?role, "wake-ups that wait could not be renewed");
                break;
            }
        }
    }
}
