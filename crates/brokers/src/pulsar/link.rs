//! A session that is opened anew whenever it is lost.

use super::session::{Running, Session};
use super::topics::{self, LaneProducer, Producer};
use crate::back_off::BackOff;
use crate::bus::Setting;
use crate::names::Lane;
use crate::tasks::Tasks;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Publishing,
    Consuming,
}

/// A session with what it is used for.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) session: Session,
    /// Of one that publishes: where.
    pub(crate) producers: Option<(HashMap<Lane, LaneProducer>, Producer)>,
}

/// The session that there is now, if any.
#[derive(Debug, Clone)]
pub(crate) struct Link(watch::Receiver<Option<Arc<Open>>>);

/// A session that lasted so long did not fail at once.
const STABLE: Duration = Duration::from_secs(10);

impl Link {
    /// Opens a session and keeps it open. If the first attempt fails, there is none.
    pub(crate) async fn open(setting: &Setting, purpose: Use, tasks: &Tasks) -> Result<Self, String> {
        let (first, running) = attempt(setting, purpose).await?;
        let (sender, receiver) = watch::channel(Some(first));
        let setting = setting.clone();
        tasks.spawn(async move { keep_open(&setting, purpose, running, &sender).await });
        Ok(Self(receiver))
    }

    pub(crate) fn now(&self) -> Option<Arc<Open>> {
        self.0.borrow().clone()
    }

    /// Waits until there is one.
    pub(crate) async fn connected(&mut self) -> Arc<Open> {
        loop {
            if let Some(open) = self.0.borrow_and_update().clone() {
                return open;
            }
            if self.0.changed().await.is_err() {
                // The bus is being dropped, and its tasks with it.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until this one is not the one any more.
    pub(crate) async fn replaced(&mut self, open: &Arc<Open>) {
        let other = |now: &Option<Arc<Open>>| !now.as_ref().is_some_and(|now| Arc::ptr_eq(now, open));
        if self.0.wait_for(other).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn keep_open(setting: &Setting, purpose: Use, mut running: Running, sender: &watch::Sender<Option<Arc<Open>>>) {
    let timing = setting.options.timing;
    let mut back_off = BackOff::new(timing.retry_first, timing.retry_longest);
    loop {
        let since = setting.world.now();
        let reason = running.lost().await;
        // Others of its connections end with it.
        drop(running);
        sender.send_replace(None);
        tracing::warn!(address = %setting.address, reason, "the {} is lost", purpose.name());
        if u128::from(setting.world.now().ms_since(since)) >= STABLE.as_millis() {
            back_off.succeeded();
        }
        let (open, again) = loop {
            back_off.wait(&*setting.world).await;
            match attempt(setting, purpose).await {
                Ok(opened) => break opened,
                // Said once above; an operator who wants to know more asks for it.
                Err(reason) => tracing::debug!(address = %setting.address, reason, "Pulsar cannot be reached"),
            }
        };
        tracing::info!(address = %setting.address, "the {} is back", purpose.name());
        running = again;
        sender.send_replace(Some(open));
    }
}

async fn attempt(setting: &Setting, purpose: Use) -> Result<(Arc<Open>, Running), String> {
    let (session, mut running) = Session::open(setting).await?;
    let prepared = async {
        match purpose {
            Use::Publishing => topics::produce_all(setting, &session).await.map(Some),
            Use::Consuming => Ok(None),
        }
    };
    let producers = tokio::select! {
        biased;
        reason = running.lost() => return Err(reason),
        producers = prepared => producers?,
    };
    Ok((Arc::new(Open { session, producers }), running))
}

impl Use {
    fn name(self) -> &'static str {
        match self {
            Self::Publishing => "connection to Pulsar that publishes",
            Self::Consuming => "connection to Pulsar that consumes",
        }
    }
}
