//! Apache Pulsar.
//!
//! The client crate has the protocol; connections are ours. Its own client takes messages in advance that nobody here has a
//! place for, opens connections anew without telling, and does not say whether something was acknowledged.
//!
//! Two sessions: one that publishes, because a broker stops reading from those who publish too fast, and one that consumes and
//! acknowledges.

mod commands;
mod connection;
mod consumer;
mod frames;
mod link;
mod publisher;
mod queue;
mod session;
mod stream;
mod topics;

use crate::bus::{Bus, Setting};
use crate::tasks::Tasks;
use link::{Link, Use};
use std::sync::Arc;

/// Gives why it did not work.
pub(crate) async fn connect(setting: &Setting) -> Result<Bus, String> {
    let tasks = Arc::new(Tasks::default());
    let publishing = Link::open(setting, Use::Publishing, &tasks).await?;
    let consuming = Link::open(setting, Use::Consuming, &tasks).await?;
    let queue = queue::PulsarQueue::new(setting, publishing.clone(), consuming.clone(), Arc::clone(&tasks));
    let stream = stream::PulsarStream::new(setting, publishing, consuming, tasks).await?;
    Ok(Bus { queue: Arc::new(queue), stream: Arc::new(stream) })
}
