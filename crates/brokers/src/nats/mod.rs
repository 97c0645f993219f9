//! NATS with JetStream.
//!
//! The client opens its connection anew by itself. Wake-ups are messages of one stream, which refuses a second one for a turn
//! that waits already; notices are plain messages, which NATS forgets at once.

mod client;
mod consumer;
mod publisher;
mod queue;
mod stream;
mod topology;

use crate::bus::{Bus, Setting};
use crate::notices::{Inbox, Outbox};
use crate::tasks::Tasks;
use std::sync::Arc;

/// Gives why it did not work.
pub(crate) async fn connect(setting: &Setting) -> Result<Bus, String> {
    let own = setting.world.fresh_id();
    let (outbox, inbox) = (Arc::new(Outbox::new(own.clone())), Arc::new(Inbox::new(own)));
    let client = client::connect(setting, Arc::clone(&inbox)).await?;
    let tasks = Arc::new(Tasks::default());
    // Subscribing is not answered. The server does things in their order: when it has answered the queue, it has subscribed.
    let stream = stream::NatsStream::new(setting, client.clone(), outbox, inbox, Arc::clone(&tasks)).await?;
    let queue = queue::NatsQueue::new(setting, &client, tasks).await?;
    Ok(Bus { queue: Arc::new(queue), stream: Arc::new(stream) })
}
