//! Hints of the server that something is there. Whoever waits looks by himself now and then: a hint may be lost, and
//! then costs a delay.

use crate::encryption::Encryption;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{AsyncMessage, Connection, Socket};
use trellis_domain::Hash;
use trellis_orchestrator::ports::{Role, Signal};

/// What is hinted at, for everybody in this process.
#[derive(Debug, Clone)]
pub(crate) struct Notices {
    /// Where they are told, on the server.
    pub(crate) channel: String,
    /// Something was told to all processes.
    pub(crate) told: Signal,
    /// Connected anew: what was told meanwhile may be gone.
    pub(crate) connected: Signal,
    agents: Signal,
    aggregators: Signal,
}

impl Notices {
    pub(crate) fn new(schema: &str) -> Self {
        let channel = format!("trellis_{}", &Hash::of(schema).to_string()[..16]);
        let [told, connected, agents, aggregators] = std::array::from_fn(|_| Signal::default());
        Self { channel, told, connected, agents, aggregators }
    }

    /// A wake-up for this role is ready.
    pub(crate) fn wake_ups(&self, role: Role) -> &Signal {
        match role {
            Role::Agent => &self.agents,
            Role::Aggregator => &self.aggregators,
        }
    }

    fn take(&self, word: &str) {
        match word {
            TOLD => self.told.send(),
            AGENT => self.agents.send(),
            AGGREGATOR => self.aggregators.send(),
            // Of a newer program.
            _ => {}
        }
    }
}

/// What a hint says.
pub(crate) const TOLD: &str = "told";
const AGENT: &str = "agent";
const AGGREGATOR: &str = "aggregator";

pub(crate) const fn word_of(role: Role) -> &'static str {
    match role {
        Role::Agent => AGENT,
        Role::Aggregator => AGGREGATOR,
    }
}

/// Before the server is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// So often the server is asked whether it is still there: a connection that only listens would not notice.
const ASK: Duration = Duration::from_secs(20);

/// Listens for as long as it is wanted.
pub(crate) async fn listen(
    config: tokio_postgres::Config,
    encryption: Encryption,
    timeout: Duration,
    notices: Notices,
) {
    loop {
        match tokio::time::timeout(timeout, config.connect(encryption.0.clone())).await {
            Ok(Ok((client, connection))) => hear(client, connection, timeout, &notices).await,
            Ok(Err(error)) => tracing::debug!(%error, "no hints of the database; trying again"),
            Err(_) => tracing::debug!("the database does not answer; trying again"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn hear(
    client: tokio_postgres::Client,
    mut connection: Connection<Socket, impl AsyncRead + AsyncWrite + Unpin>,
    timeout: Duration,
    notices: &Notices,
) {
    let hearing = async {
        loop {
            match std::future::poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(notice))) => notices.take(notice.payload()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            }
        }
    };
    let asking = async {
        let listen = format!("LISTEN {}", notices.channel);
        let mut begun = false;
        // What takes longer has failed, and then all of it is begun anew.
        while let Ok(Ok(())) =
            tokio::time::timeout(timeout, client.batch_execute(if begun { "" } else { &listen })).await
        {
            if !begun {
                notices.connected.send();
                notices.told.send();
                notices.agents.send();
                notices.aggregators.send();
            }
            begun = true;
            tokio::time::sleep(ASK).await;
        }
    };
    tokio::select! {
        biased;
        () = hearing => {}
        () = asking => {}
    }
}
