//! Exchanges and queues as everybody in a deployment declares them.

use anyhow::Result;
use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Consumer, ExchangeKind};

/// Everything that is sent there, without acknowledgements: in a queue of this name, or else in one that nobody else has.
pub(super) async fn subscribe(channel: &Channel, exchange: &str, queue: Option<&str>) -> Result<Consumer> {
    declare(channel, exchange).await?;
    let own = queue.is_none();
    let options = QueueDeclareOptions {
        exclusive: own,
        auto_delete: own,
        durable: exchange.starts_with("tg.flow."),
        ..QueueDeclareOptions::default()
    };
    let queue = channel.queue_declare(queue.unwrap_or("").into(), options, FieldTable::default()).await?;
    let name = queue.name().clone();
    let bind = QueueBindOptions::default();
    channel.queue_bind(name.clone(), exchange.into(), "".into(), bind, FieldTable::default()).await?;
    let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    Ok(channel.basic_consume(name, "".into(), options, FieldTable::default()).await?)
}

pub(super) async fn publish(channel: &Channel, exchange: &str, properties: BasicProperties, body: &[u8]) -> Result<()> {
    let options = BasicPublishOptions::default();
    // No confirmation was asked for, so nothing is waited for.
    channel.basic_publish(exchange.into(), "".into(), options, body, properties).await?.await?;
    Ok(())
}

pub(super) async fn declare(channel: &Channel, exchange: &str) -> Result<()> {
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(exchange.into(), ExchangeKind::Fanout, durable, FieldTable::default()).await?;
    Ok(())
}
