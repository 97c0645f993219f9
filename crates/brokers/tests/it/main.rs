//! All brokers, as real servers: the contracts of the ports, and what happens when connections and servers go.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]
#![cfg(unix)]

mod bounds;
mod contracts;
mod nats;
mod outages;
#[cfg(feature = "pulsar")]
mod pulsar;
mod rabbitmq;
mod scene;
mod sharing;
