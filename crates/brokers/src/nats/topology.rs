//! What lies at the server: one stream with all wake-ups, and a consumer for each lane that all processes share.

use super::client::described;
use crate::bus::Setting;
use crate::names::{Lane, Names};
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{Context, ContextBuilder};
use std::time::Duration;

const STREAM_BYTES: i64 = 256 * 1024 * 1024;
/// Within this time, a message that was sent twice is stored once.
const DUPLICATES: Duration = Duration::from_mins(2);

pub(crate) fn context(setting: &Setting, client: &async_nats::Client) -> Context {
    let answer = setting.options.timing.answer;
    ContextBuilder::new()
        .timeout(answer)
        .ack_timeout(answer)
        .max_ack_inflight(256)
        .backpressure_on_inflight(true)
        .build(client.clone())
}

pub(crate) async fn make_stream(setting: &Setting, context: &Context) -> Result<(), String> {
    let options = &setting.options;
    let config = Config {
        name: setting.names.stream(),
        description: Some("wake-ups of Trellis; the journal has what they wake".to_owned()),
        subjects: vec![setting.names.subjects()],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        // Each turn has a subject of its own: a second wake-up for it is refused for as long as the first is there.
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        discard_new_per_subject: true,
        max_messages: i64::from(options.longest_queue),
        max_bytes: STREAM_BYTES,
        duplicate_window: DUPLICATES,
        num_replicas: options.replicas,
        ..Config::default()
    };
    let made = setting.in_time(context.create_or_update_stream(config)).await;
    let made = made.ok_or_else(|| format!("{} was not made in time", setting.names.stream()))?;
    made.map(drop).map_err(|error| format!("{} cannot be made: {}", setting.names.stream(), described(&error)))
}

pub(crate) async fn make_consumer(setting: &Setting, context: &Context, lane: Lane) -> Result<PullConsumer, String> {
    let name = Names::consumer(lane);
    let config = pull::Config {
        durable_name: Some(name.clone()),
        filter_subject: setting.names.lane_subjects(lane),
        ack_policy: AckPolicy::Explicit,
        ack_wait: setting.options.timing.acknowledged_within,
        // A turn may be long: nothing is dropped because it was handed out often.
        max_deliver: -1,
        max_ack_pending: i64::from(setting.options.longest_queue),
        ..pull::Config::default()
    };
    let made = setting.in_time(context.create_consumer_on_stream(config, setting.names.stream())).await;
    let made = made.ok_or_else(|| format!("consumer {name} was not made in time"))?;
    made.map_err(|error| format!("consumer {name} cannot be made: {}", described(&error)))
}
