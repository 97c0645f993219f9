//! What the tests work with: any of the brokers, turns, and the log.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Once};
use std::time::Duration;
use trellis_brokers::{Bus, BusError, BusOptions, Timing, connect};
use trellis_domain::record::Name;
use trellis_domain::{Scope, SessionId, Workspace};
use trellis_orchestrator::ports::{Delivery, OpenTurn, Queue, QueueError, RealWorld, Role, TurnKey, World as _};
#[cfg(feature = "pulsar")]
use trellis_servers::Pulsar;
use trellis_servers::{Nats, RabbitMq, RabbitMqOptions};

#[derive(Debug, Clone)]
pub(crate) enum Server {
    RabbitMq(Arc<RabbitMq>),
    Nats(Arc<Nats>),
    #[cfg(feature = "pulsar")]
    Pulsar(Arc<Pulsar>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    RabbitMq,
    Nats,
    #[cfg(feature = "pulsar")]
    Pulsar,
}

impl Kind {
    pub(crate) fn shared(self) -> Server {
        match self {
            Self::RabbitMq => Server::RabbitMq(RabbitMq::shared()),
            Self::Nats => Server::Nats(Nats::shared()),
            #[cfg(feature = "pulsar")]
            Self::Pulsar => Server::Pulsar(Pulsar::shared()),
        }
    }

    /// A server that was just started answers within this time.
    pub(crate) fn seconds_to_answer(self) -> u64 {
        match self {
            Self::RabbitMq | Self::Nats => 1,
            // Java becomes faster with time.
            #[cfg(feature = "pulsar")]
            Self::Pulsar => 4,
        }
    }

    /// One that may be killed.
    pub(crate) fn own(self) -> Server {
        match self {
            Self::RabbitMq => Server::RabbitMq(Arc::new(RabbitMq::start(RabbitMqOptions::default()))),
            Self::Nats => Server::Nats(Arc::new(Nats::start())),
            #[cfg(feature = "pulsar")]
            Self::Pulsar => Server::Pulsar(Arc::new(Pulsar::start())),
        }
    }
}

impl Server {
    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::RabbitMq(server) => server.port(),
            Self::Nats(server) => server.port(),
            #[cfg(feature = "pulsar")]
            Self::Pulsar(server) => server.port(),
        }
    }

    pub(crate) fn address_at(&self, port: u16) -> String {
        match self {
            Self::RabbitMq(server) => server.address_at(port),
            Self::Nats(server) => server.address_at(port),
            #[cfg(feature = "pulsar")]
            Self::Pulsar(server) => server.address_at(port),
        }
    }

    pub(crate) fn process(&self) -> &trellis_servers::Server {
        match self {
            Self::RabbitMq(server) => server,
            Self::Nats(server) => server,
            #[cfg(feature = "pulsar")]
            Self::Pulsar(server) => server,
        }
    }

    pub(crate) async fn connect(&self, options: &BusOptions) -> Bus {
        self.connect_at(self.port(), options).await.unwrap()
    }

    pub(crate) async fn connect_at(&self, port: u16, options: &BusOptions) -> Result<Bus, BusError> {
        capture_log();
        let answer = match self {
            Self::RabbitMq(_) | Self::Nats(_) => options.timing.answer,
            // Each bus makes many topics at once, and Java is slow at first.
            #[cfg(feature = "pulsar")]
            Self::Pulsar(_) => options.timing.answer * 2,
        };
        let options = BusOptions { timing: Timing { answer, ..options.timing }, ..options.clone() };
        connect(&self.address_at(port), &options, Arc::new(RealWorld)).await
    }
}

/// A deployment of its own, and times that a test can wait for.
pub(crate) fn options() -> BusOptions {
    let timing = Timing {
        answer: Duration::from_secs(5),
        acknowledged_within: Duration::from_secs(3),
        retry_first: Duration::from_millis(50),
        retry_longest: Duration::from_millis(400),
        ..Timing::default()
    };
    // A dot has to be escaped.
    BusOptions { deployment: format!("t.{}", RealWorld.fresh_id()), timing, ..BusOptions::default() }
}

/// What comes may take a while on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn turn_of(workspace: &str, n: u32) -> OpenTurn {
    let id = SessionId::new(&format!("s{n}")).unwrap();
    let scope = Scope { workspace: Workspace::new(workspace).unwrap(), ..Scope::default() };
    OpenTurn::new(TurnKey { scope, run: id.clone(), session: id, name: Name::new("i1") }, None, false)
}

pub(crate) fn turn(n: u32) -> OpenTurn {
    turn_of("default", n)
}

/// One for aggregators.
pub(crate) fn check(n: u32) -> OpenTurn {
    let mut check = turn(n);
    check.key = TurnKey { name: Name::new("fanout/1/check/0"), ..check.key };
    assert_eq!(Role::of(&check), Role::Aggregator, "the test knows the names of turns");
    check
}

pub(crate) fn session(delivery: &Delivery) -> String {
    delivery.turn.key.session.to_string()
}

pub(crate) fn sessions(numbers: impl IntoIterator<Item = u32>) -> BTreeSet<String> {
    numbers.into_iter().map(|n| format!("s{n}")).collect()
}

pub(crate) async fn take(queue: &dyn Queue) -> Delivery {
    let taken = tokio::time::timeout(PATIENCE, queue.take(Role::Agent)).await;
    taken.expect("a wake-up comes").expect("the queue works")
}

/// Nothing comes.
pub(crate) async fn nothing(queue: &dyn Queue) {
    let taken = tokio::time::timeout(Duration::from_millis(500), queue.take(Role::Agent)).await;
    assert!(taken.is_err(), "{taken:?}");
}

/// Takes and acknowledges until each of these has come at least once.
pub(crate) async fn take_all(queue: &dyn Queue, mut missing: BTreeSet<String>) {
    let all = async {
        while !missing.is_empty() {
            let delivery = queue.take(Role::Agent).await.expect("the queue works");
            missing.remove(&session(&delivery));
            // A connection may be lost in between: then it comes again.
            drop(queue.acknowledge(&delivery).await);
        }
    };
    let done = tokio::time::timeout(PATIENCE, all).await;
    assert!(done.is_ok(), "{} have not come: {missing:?}", missing.len());
}

/// Publishes until the broker takes it.
pub(crate) async fn publish_at_last(queue: &dyn Queue, turn: OpenTurn) {
    let published = async {
        while let Err(error) = queue.publish(turn.clone()).await {
            assert!(matches!(error, QueueError::Unavailable(_)), "{error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, published).await.expect("the broker is there again");
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let so = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, so).await.is_ok(), "{what}");
}

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Captured;

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn capture_log() {
    static CAPTURING: Once = Once::new();
    CAPTURING.call_once(|| {
        let everything = tracing_subscriber::fmt()
            .with_env_filter("trellis_brokers=trace,lapin=error,async_nats=warn")
            .with_ansi(false)
            .with_writer(|| Captured)
            .finish();
        tracing::subscriber::set_global_default(everything).expect("nobody else captures");
    });
}

/// Everything that was logged in this process, by anybody.
pub(crate) fn whole_log() -> String {
    String::from_utf8_lossy(&LOG.lock()).into_owned()
}

/// What operators see of a connection to this port.
pub(crate) fn log_of(port: u16) -> Vec<String> {
    let (log, port) = (whole_log(), format!(":{port}"));
    let ours = |line: &&str| line.contains("trellis_brokers") && line.contains(&port);
    let seen = |line: &&str| [" INFO ", " WARN ", "ERROR "].iter().any(|level| line.contains(level));
    log.lines().filter(ours).filter(seen).map(str::to_owned).collect()
}

/// Makes a test of each broker out of a function.
macro_rules! for_all {
    ($($(#[$attribute:meta])* $name:ident),* $(,)?) => {
        mod on_rabbitmq {
            $($(#[$attribute])* #[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name($crate::scene::Kind::RabbitMq).await })*
        }
        mod on_nats {
            $($(#[$attribute])* #[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name($crate::scene::Kind::Nats).await })*
        }
        #[cfg(feature = "pulsar")]
        mod on_pulsar {
            $($(#[$attribute])* #[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name($crate::scene::Kind::Pulsar).await })*
        }
    };
}
pub(crate) use for_all;
