//! The port `Stream` over core NATS.

use super::client::{described, is_connected};
use crate::bus::Setting;
use crate::notices::{Inbox, Outbox};
use crate::tasks::Tasks;
use async_nats::{Client, Subscriber};
use futures_util::StreamExt as _;
use std::sync::Arc;
use std::time::Duration;
use trellis_orchestrator::ports::{Stream, StreamListener, StreamMessage};

#[derive(Debug)]
pub(crate) struct NatsStream {
    outbox: Arc<Outbox>,
    inbox: Arc<Inbox>,
    _tasks: Arc<Tasks>,
}

/// How long what others are told waits for a connection before it is looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl NatsStream {
    pub(crate) async fn new(
        setting: &Setting,
        client: Client,
        outbox: Arc<Outbox>,
        inbox: Arc<Inbox>,
        tasks: Arc<Tasks>,
    ) -> Result<Self, String> {
        let notices = setting.in_time(client.subscribe(setting.names.notices())).await;
        let notices = notices.ok_or_else(|| "notices were not subscribed in time".to_owned())?;
        let notices = notices.map_err(|error| described(&error))?;
        tasks.spawn(hear(setting.clone(), client.clone(), notices, Arc::clone(&inbox)));
        tasks.spawn(tell(setting.clone(), client, Arc::clone(&outbox)));
        Ok(Self { outbox, inbox, _tasks: tasks })
    }
}

/// The client subscribes again by itself after a lost connection.
async fn hear(setting: Setting, client: Client, mut subscriber: Subscriber, inbox: Arc<Inbox>) {
    loop {
        while let Some(message) = subscriber.next().await {
            inbox.receive(&message.payload);
        }
        subscriber = loop {
            setting.world.sleep(setting.options.timing.retry_longest).await;
            if let Ok(again) = client.subscribe(setting.names.notices()).await {
                break again;
            }
        };
        inbox.missed();
    }
}

/// Publishes what waits, one after the other, whenever there is a connection.
async fn tell(setting: Setting, client: Client, outbox: Arc<Outbox>) {
    loop {
        while !is_connected(&client) {
            setting.world.sleep(LOOK_AGAIN).await;
        }
        let bytes = outbox.next().await;
        // One that is too large or comes to grief leaves a gap, which listeners notice.
        if bytes.len() <= client.max_payload()
            && let Err(error) = client.publish(setting.names.notices(), bytes.into()).await
        {
            tracing::debug!(reason = described(&error), "a notice is lost");
        }
    }
}

impl Stream for NatsStream {
    fn publish(&self, message: StreamMessage) {
        self.outbox.put(&message);
    }

    fn listen(&self) -> Box<dyn StreamListener> {
        self.inbox.listen()
    }
}
