//! What lies at the broker: a queue for each lane, one for what was set aside, and an exchange for notices.

use super::connection::{OpenConnection, described};
use crate::bus::{QueueKind, Setting};
use crate::names::Lane;
use lapin::ExchangeKind;
use lapin::options::{ExchangeDeclareOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};

/// What was set aside is for people to look at; the newest of it is kept.
const SET_ASIDE: u32 = 10_000;

pub(crate) async fn declare(setting: &Setting, open: &OpenConnection) -> Result<(), String> {
    let (names, options) = (&setting.names, &setting.options);
    // A declaration that does not fit closes its channel.
    let channel = open.create_channel().await?;
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let aside = arguments([("x-max-length", AMQPValue::LongUInt(SET_ASIDE))]);
    let declared = channel.queue_declare(names.set_aside().into(), durable, aside).await;
    declared.map_err(|error| unfit(&names.set_aside(), &error))?;
    for lane in names.all_lanes() {
        let name = names.queue(lane);
        let declared = channel.queue_declare(name.as_str().into(), durable, lane_arguments(setting)).await;
        declared.map_err(|error| unfit(&name, &error))?;
    }
    let fanout = channel.exchange_declare(
        names.notices().into(),
        ExchangeKind::Fanout,
        ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() },
        FieldTable::default(),
    );
    fanout.await.map_err(|error| unfit(&names.notices(), &error))?;
    drop(channel.close(200, "declared".into()).await);
    tracing::debug!(lanes = options.lanes, "queues are declared");
    Ok(())
}

fn lane_arguments(setting: &Setting) -> FieldTable {
    let text = |text: &str| AMQPValue::LongString(text.into());
    let mut arguments = arguments([
        ("x-max-length", AMQPValue::LongUInt(setting.options.longest_queue)),
        // Rather the newest is refused, which the publisher notices, than the oldest dropped.
        ("x-overflow", text("reject-publish")),
        ("x-dead-letter-exchange", text("")),
        ("x-dead-letter-routing-key", text(&setting.names.set_aside())),
    ]);
    match setting.options.queue_kind {
        QueueKind::Classic => {}
        QueueKind::Quorum => {
            arguments.insert("x-queue-type".into(), text("quorum"));
            // RabbitMQ 4 has a limit of its own, which a turn may reach that is long.
            let limit = AMQPValue::LongUInt(setting.options.delivery_limit);
            arguments.insert("x-delivery-limit".into(), limit);
        }
    }
    arguments
}

pub(crate) fn arguments<const N: usize>(values: [(&str, AMQPValue); N]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in values {
        table.insert(name.into(), value);
    }
    table
}

/// How many messages of a lane wait. An error costs the channel.
pub(crate) async fn waiting(setting: &Setting, open: &OpenConnection, lane: Lane) -> Result<u32, String> {
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let name = setting.names.queue(lane);
    let declared = open.unconfirmed.queue_declare(name.into(), passive, FieldTable::default()).await;
    declared.map(|queue| queue.message_count()).map_err(|error| described(&error))
}

fn unfit(name: &str, error: &lapin::Error) -> String {
    let reason = described(error);
    let hint = if reason.contains("inequivalent arg") {
        "; it exists with other settings: delete it when it is empty, or choose another name for the deployment"
    } else {
        ""
    };
    format!("{name} cannot be declared: {reason}{hint}")
}
