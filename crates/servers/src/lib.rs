//! Test only: brokers and databases of others, started on loopback for a test and stopped with it.
//!
//! `cargo xtask servers` gets the programs. Each server has a folder, ports and names of its own, so that any number of them
//! run side by side, also beside those of the machine.
#![cfg(unix)]

mod fuseki;
mod nats;
mod owned;
mod postgres;
mod programs;
mod proxy;
mod pulsar;
mod rabbitmq;

pub use fuseki::Fuseki;
pub use nats::Nats;
pub use owned::Server;
pub use postgres::{Postgres, postgres_program};
pub use proxy::Proxy;
pub use pulsar::Pulsar;
pub use rabbitmq::{RabbitMq, RabbitMqOptions};
