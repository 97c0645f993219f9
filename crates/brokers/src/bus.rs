//! From an address to the ports.

use crate::address::{AddressError, BrokerAddress, BrokerKind};
use crate::names::Names;
#[cfg(feature = "pulsar")]
use crate::pulsar;
use crate::{nats, rabbitmq};
use std::sync::Arc;
use std::time::Duration;
use trellis_orchestrator::ports::{Queue, Stream, World};

/// What processes of a deployment share through a broker.
#[derive(Debug, Clone)]
pub struct Bus {
    pub queue: Arc<dyn Queue>,
    pub stream: Arc<dyn Stream>,
}

/// How a broker is used. All processes of a deployment need the same `deployment`, `lanes` and `queue_kind`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusOptions {
    /// Queues and subjects begin with this name, so that several deployments can share a broker.
    pub deployment: String,
    /// How many queues the wake-ups of a role are spread over, by workspace.
    pub lanes: u16,
    /// How many wake-ups of one lane a process holds at most, those that are being handled included.
    pub prefetch: u16,
    /// How many wake-ups a broker keeps: of a lane in RabbitMQ and Pulsar, of all in NATS. More are refused, and found by a sweep.
    pub longest_queue: u32,
    /// RabbitMQ only.
    pub queue_kind: QueueKind,
    /// RabbitMQ with quorum queues only: a message that was handed out so often without being settled is set aside.
    pub delivery_limit: u32,
    /// NATS only: how many servers of a cluster keep each wake-up.
    pub replicas: usize,
    pub timing: Timing,
}

/// The kinds of queues of RabbitMQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// On one node.
    Classic,
    /// On several nodes of a cluster; serves as long as most of them do.
    Quorum,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long connecting may take, and every single answer of the broker.
    pub answer: Duration,
    /// RabbitMQ and the client tell each other so often that they are there.
    pub heartbeat: Duration,
    /// How long RabbitMQ may take no messages, because it is short of memory or disk, before the connection is given up.
    pub blocked_at_most: Duration,
    /// RabbitMQ closes channels on which a message was not settled for 30 minutes, and Pulsar sends no more than was asked for.
    /// One that is held longer than this is acknowledged; its turn is still in the journal.
    pub held_at_most: Duration,
    /// NATS hands out again what was neither settled nor renewed for so long.
    pub acknowledged_within: Duration,
    /// How long a broker that cannot be reached is left alone: at first, and at most.
    pub retry_first: Duration,
    pub retry_longest: Duration,
}

impl Default for BusOptions {
    fn default() -> Self {
        Self {
            deployment: "trellis".to_owned(),
            lanes: 8,
            prefetch: 1_024,
            longest_queue: 100_000,
            queue_kind: QueueKind::Classic,
            delivery_limit: 1_000,
            replicas: 1,
            timing: Timing::default(),
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(10),
            heartbeat: Duration::from_mins(1),
            blocked_at_most: Duration::from_mins(5),
            held_at_most: Duration::from_mins(10),
            acknowledged_within: Duration::from_mins(1),
            retry_first: Duration::from_millis(250),
            retry_longest: Duration::from_secs(30),
        }
    }
}

/// Why there is no bus. No password is in it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BusError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("{address} cannot be used: {reason}")]
    Unusable { address: String, reason: String },
}

/// What all brokers work with.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) address: BrokerAddress,
    pub(crate) options: BusOptions,
    pub(crate) names: Names,
    pub(crate) world: Arc<dyn World>,
}

/// Connects to a broker and makes there what is missing. A broker that is lost afterwards is looked for until it is back; one
/// that cannot be reached now is an error, because its address may be wrong.
pub async fn connect(address: &str, options: &BusOptions, world: Arc<dyn World>) -> Result<Bus, BusError> {
    let address = BrokerAddress::parse(address)?;
    let names = Names::new(&options.deployment, options.lanes);
    let setting = Setting { address, options: options.clone(), names, world };
    // Boxed: it is done once, and is large for whoever waits for it.
    let connected = match setting.address.kind() {
        BrokerKind::RabbitMq => Box::pin(rabbitmq::connect(&setting)).await,
        BrokerKind::Nats => Box::pin(nats::connect(&setting)).await,
        #[cfg(feature = "pulsar")]
        BrokerKind::Pulsar => Box::pin(pulsar::connect(&setting)).await,
        #[cfg(not(feature = "pulsar"))]
        BrokerKind::Pulsar => return Err(AddressError::NotBuilt.into()),
    };
    connected.map_err(|reason| BusError::Unusable { address: setting.address.to_string(), reason })
}

impl Setting {
    /// The answer to a request, if it comes in time.
    pub(crate) async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            answer = answer => Some(answer),
            () = self.world.sleep(self.options.timing.answer) => None,
        }
    }
}
