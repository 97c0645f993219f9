//! Wake-ups on their way to JetStream.

use super::client::{described, is_connected};
use super::topology;
use crate::bus::Setting;
use crate::wake_up::WakeUp;
use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use std::sync::atomic::{AtomicU64, Ordering};
use trellis_orchestrator::ports::{OpenTurn, QueueError, Role};

#[derive(Debug)]
pub(crate) struct Publisher {
    setting: Setting,
    client: Client,
    context: Context,
    /// Tells messages of this process from all others.
    process: String,
    messages: AtomicU64,
}

/// A message whose confirmation did not come is sent once more under the same id.
const ATTEMPTS: u32 = 2;

impl Publisher {
    pub(crate) fn new(setting: &Setting, client: &Client, context: &Context) -> Self {
        let process = setting.world.fresh_id();
        let (client, context) = (client.clone(), context.clone());
        Self { setting: setting.clone(), client, context, process, messages: AtomicU64::new(0) }
    }

    pub(crate) async fn publish(&self, turn: OpenTurn) -> Result<(), QueueError> {
        let names = &self.setting.names;
        let subject = names.subject(names.lane(Role::of(&turn), &turn.key.scope.workspace), &turn.key);
        let id = format!("{}-{}", self.process, self.messages.fetch_add(1, Ordering::Relaxed));
        let payload = bytes::Bytes::from(WakeUp { turn, handed_out: 0 }.write());
        let mut failed = String::new();
        for _ in 0..ATTEMPTS {
            if !is_connected(&self.client) {
                let address = &self.setting.address;
                return Err(QueueError::Unavailable(format!("there is no connection to {address}")));
            }
            let message = PublishMessage::build().payload(payload.clone()).message_id(&id);
            let sent = async { self.context.send_publish(subject.clone(), message).await?.await };
            match self.setting.in_time(sent).await {
                Some(Ok(_)) => return Ok(()),
                Some(Err(error)) if waits_already(&error) => return Ok(()),
                Some(Err(error)) if error.kind() == PublishErrorKind::StreamNotFound => {
                    // Somebody has deleted it.
                    topology::make_stream(&self.setting, &self.context).await.map_err(QueueError::Unavailable)?;
                }
                Some(Err(error)) if error.kind() != PublishErrorKind::TimedOut => {
                    return Err(QueueError::Unavailable(described(&error)));
                }
                Some(Err(error)) => failed = described(&error),
                None => failed = format!("nothing was confirmed within {:?}", self.setting.options.timing.answer),
            }
        }
        Err(QueueError::Unavailable(failed))
    }
}

/// The stream has a wake-up for this turn.
fn waits_already(error: &PublishError) -> bool {
    described(error).contains("maximum messages per subject exceeded")
}
