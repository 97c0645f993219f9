//! The ports `Queue` and `Stream` over message brokers: RabbitMQ, NATS with JetStream and, with the feature `pulsar`, Apache
//! Pulsar; and [`trustgraph`], where others are at the broker already.
//!
//! A message is only a wake-up: the journal has the open turns. So a broker may lose or double what it is given; what is not
//! allowed is to wait for ever or to grow without bound. That decides every choice in here.

mod address;
mod back_off;
mod bus;
mod delays;
mod held;
mod names;
mod nats;
mod notices;
#[cfg(feature = "pulsar")]
mod pulsar;
mod rabbitmq;
mod sent;
mod tasks;
pub mod trustgraph;
mod wake_up;

pub use address::{AddressError, BrokerAddress, BrokerKind};
pub use bus::{Bus, BusError, BusOptions, QueueKind, Timing, connect};
