//! A connection that is opened anew whenever it is lost.

use super::connection::OpenConnection;
use super::lanes;
use crate::back_off::BackOff;
use crate::bus::Setting;
use crate::tasks::Tasks;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Publishing,
    Consuming,
    /// The same in a deployment of somebody else's, where queues of ours have no place.
    Asking,
    Hearing,
}

/// The connection that there is now, if any.
#[derive(Debug, Clone)]
pub(crate) struct Link(watch::Receiver<Option<Arc<OpenConnection>>>);

/// A connection that lasted so long did not fail at once.
const STABLE: Duration = Duration::from_secs(10);

impl Link {
    /// Opens a connection and keeps it open. If the first attempt fails, there is none.
    pub(crate) async fn open(setting: &Setting, purpose: Use, tasks: &Tasks) -> Result<Self, String> {
        let first = Arc::new(attempt(setting, purpose).await?);
        let (sender, receiver) = watch::channel(Some(Arc::clone(&first)));
        let setting = setting.clone();
        tasks.spawn(async move { keep_open(&setting, purpose, first, &sender).await });
        Ok(Self(receiver))
    }

    pub(crate) fn now(&self) -> Option<Arc<OpenConnection>> {
        self.0.borrow().clone()
    }

    /// Waits until there is one.
    pub(crate) async fn connected(&mut self) -> Arc<OpenConnection> {
        loop {
            if let Some(connection) = self.0.borrow_and_update().clone() {
                return connection;
            }
            if self.0.changed().await.is_err() {
                // The bus is being dropped, and its tasks with it.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until this one is not the one any more.
    pub(crate) async fn replaced(&mut self, connection: &Arc<OpenConnection>) {
        let other = |now: &Option<Arc<OpenConnection>>| !now.as_ref().is_some_and(|now| Arc::ptr_eq(now, connection));
        if self.0.wait_for(other).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn keep_open(
    setting: &Setting,
    purpose: Use,
    first: Arc<OpenConnection>,
    sender: &watch::Sender<Option<Arc<OpenConnection>>>,
) {
    let timing = setting.options.timing;
    let mut back_off = BackOff::new(timing.retry_first, timing.retry_longest);
    let mut connection = first;
    loop {
        let since = setting.world.now();
        let reason = connection.lost(setting, |error| purpose.outlives(error)).await;
        sender.send_replace(None);
        drop(connection);
        tracing::warn!(address = %setting.address, reason, "the {} is lost", purpose.name());
        if u128::from(setting.world.now().ms_since(since)) >= STABLE.as_millis() {
            back_off.succeeded();
        }
        connection = loop {
            back_off.wait(&*setting.world).await;
            match attempt(setting, purpose).await {
                Ok(open) => break Arc::new(open),
                // Said once above; an operator who wants to know more asks for it.
                Err(reason) => tracing::debug!(address = %setting.address, reason, "RabbitMQ cannot be reached"),
            }
        };
        tracing::info!(address = %setting.address, "the {} is back", purpose.name());
        sender.send_replace(Some(Arc::clone(&connection)));
    }
}

async fn attempt(setting: &Setting, purpose: Use) -> Result<OpenConnection, String> {
    let open = OpenConnection::open(setting, purpose.name()).await?;
    if matches!(purpose, Use::Asking | Use::Hearing) {
        return Ok(open);
    }
    let declared = setting.in_time(lanes::declare(setting, &open)).await;
    declared.unwrap_or_else(|| Err("its queues were not declared in time".to_owned()))?;
    Ok(open)
}

impl Use {
    /// In a deployment of somebody else's, each user of a connection has channels of its own and looks after them: what
    /// closes one of them is nothing to the others.
    fn outlives(self, error: &lapin::Error) -> bool {
        match self {
            Self::Publishing | Self::Consuming => false,
            Self::Asking | Self::Hearing => error.is_amqp_soft_error(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Publishing | Self::Asking => "connection to RabbitMQ that publishes",
            Self::Consuming | Self::Hearing => "connection to RabbitMQ that consumes",
        }
    }
}
