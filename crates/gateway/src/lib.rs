//! The gateway: HTTP, WebSocket and server-sent events in front of the loop.
//!
//! Two surfaces share one set of services. The stock TrustGraph clients speak to `/api/v1/socket` and
//! `/api/v1/…` in their own dialect; programs of our users speak to `/api/v1/runs`. The gateway owns how things
//! are said. It decides nothing and stores nothing: the loop and the ports behind it do. A client that goes
//! away stops nothing but its own stream.

mod access;
mod api;
mod bounds;
mod call;
mod capacity;
mod docs;
mod documents;
mod error;
mod frames;
mod guests;
mod health;
mod inside;
mod json;
mod knocks;
mod line;
mod members;
mod outbox;
mod peer;
mod rest;
mod room;
mod server;
mod services;
mod socket;
mod unread;

pub use access::{Access, Identity, Reach, Token};
pub use inside::Gateway;
pub use server::{Server, router};

use std::sync::Arc;
use tokio::sync::watch;
use trellis_domain::Workspace;
use trellis_orchestrator::Orchestrator;
use trellis_orchestrator::ports::{BoxFuture, ConfigError, Graph, Library, Log};

/// Gives a new workspace what it starts with.
pub trait Founder: Send + Sync + std::fmt::Debug {
    fn found<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(), ConfigError>>;
}

/// What a gateway is connected to.
#[derive(Debug)]
pub struct Wiring {
    pub orchestrator: Arc<Orchestrator>,
    pub library: Arc<dyn Library>,
    pub graph: Arc<dyn Graph>,
    pub log: Arc<dyn Log>,
    pub access: Access,
    pub founder: Arc<dyn Founder>,
    /// Nobody but this machine can reach the server: other names for it are a trick.
    pub loopback_only: bool,
    pub phase: watch::Receiver<Phase>,
    pub calls: Calls,
}

/// Calls of models that belong to no run, so that nobody but a server that stops waits for them.
#[derive(Debug, Default)]
pub struct Calls(watch::Sender<usize>);

impl Calls {
    pub(crate) fn begin(&self) -> InFlight<'_> {
        self.0.send_modify(|calls| *calls += 1);
        InFlight(self)
    }

    /// Waits until none is in flight.
    pub async fn finished(&self) {
        // The sender is here, so that there is no error.
        drop(self.0.subscribe().wait_for(|calls| *calls == 0).await);
    }
}

/// A call, until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlight<'c>(&'c Calls);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|calls| *calls -= 1);
    }
}

/// How far a server is on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Serving,
    /// No question is taken. What is being answered is heard to its end.
    Draining,
    /// Whoever still listens is told that the run goes on when the server is back.
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn calls_are_waited_for() {
        let calls = Calls::default();
        assert!(calls.finished().now_or_never().is_some(), "there are none");
        let (one, two) = (calls.begin(), calls.begin());
        drop(one);
        assert!(calls.finished().now_or_never().is_none(), "one is left");
        drop(two);
        assert!(calls.finished().now_or_never().is_some());
    }
}
