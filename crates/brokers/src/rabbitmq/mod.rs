//! RabbitMQ.
//!
//! Two connections: one that publishes, because RabbitMQ stops reading from those when it is short of memory or disk, and one
//! that consumes and acknowledges. Both are opened anew by ourselves when they are lost, with all that lies at the broker.

pub(crate) mod connection;
mod consumer;
mod lanes;
pub(crate) mod link;
mod publisher;
mod queue;
mod stream;

use crate::bus::{Bus, Setting};
use crate::tasks::Tasks;
use link::{Link, Use};
use std::sync::Arc;

/// Gives why it did not work.
pub(crate) async fn connect(setting: &Setting) -> Result<Bus, String> {
    let tasks = Arc::new(Tasks::default());
    let publishing = Link::open(setting, Use::Publishing, &tasks).await?;
    let consuming = Link::open(setting, Use::Consuming, &tasks).await?;
    let queue = queue::RabbitQueue::new(setting, publishing.clone(), consuming.clone(), Arc::clone(&tasks));
    let stream = stream::RabbitStream::new(setting, publishing, consuming, tasks).await?;
    Ok(Bus { queue: Arc::new(queue), stream: Arc::new(stream) })
}
