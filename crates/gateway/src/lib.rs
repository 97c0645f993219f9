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
mod docs;
mod documents;
mod error;
mod health;
mod members;
mod outbox;
mod peer;
mod rest;
mod room;
mod server;
mod services;
mod socket;

pub use access::{Access, Identity, Token};
pub use server::{Server, router};

use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinError;
use trellis_domain::Workspace;
use trellis_orchestrator::ports::{BoxFuture, ConfigError, Graph, JournalError, Library};
use trellis_orchestrator::{AcceptError, Acceptance, Item, Orchestrator, Question, Subscription};

/// Gives a new workspace what it starts with.
pub trait Founder: Send + Sync + std::fmt::Debug {
    fn found<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(), ConfigError>>;
}

/// What the gateway is connected to.
#[derive(Debug)]
pub struct Gateway {
    pub orchestrator: Arc<Orchestrator>,
    pub library: Arc<dyn Library>,
    pub graph: Arc<dyn Graph>,
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

impl Gateway {
    pub(crate) fn takes_questions(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.phase.borrow() == Phase::Closed
    }

    /// Who asks, where callers are told apart.
    pub(crate) fn caller<'i>(&self, identity: &'i Identity) -> Option<&'i str> {
        match self.access {
            Access::Open => None,
            Access::Tokens(_) => Some(&identity.user),
        }
    }

    /// Waits until the server closes.
    pub(crate) async fn closed(&self) {
        let mut phase = self.phase.clone();
        // An error means that whoever could close is gone, which is the same.
        drop(phase.wait_for(|phase| *phase == Phase::Closed).await);
    }

    /// The next item of a run that somebody follows. None if the server closes before the run's end: a run that has ended
    /// is heard to its end.
    pub(crate) async fn follow(&self, subscription: &mut Subscription) -> Option<Result<Item, JournalError>> {
        let journal = &*self.orchestrator.ports.journal;
        tokio::select! {
            biased;
            item = subscription.next(journal) => return Some(item),
            () = self.closed() => {}
        }
        let (workspace, run) = subscription.place();
        match journal.end(workspace, run).await {
            Ok(None) => None,
            Ok(Some(_)) => Some(subscription.next(journal).await),
            Err(error) => Some(Err(error)),
        }
    }

    /// Accepts a question, in a task of its own: a caller who leaves in the middle must not leave half an acceptance
    /// behind. The outer error is a fault of the program.
    pub(crate) async fn accept(&self, question: Question) -> Result<Result<Acceptance, AcceptError>, JoinError> {
        let orchestrator = Arc::clone(&self.orchestrator);
        tokio::spawn(async move { orchestrator.accept(question).await }).await
    }

    /// The workspace of that name, or the caller's own if there is no name; None if there is no such workspace.
    pub(crate) async fn workspace(&self, identity: &Identity, name: &str) -> Result<Option<Workspace>, ConfigError> {
        let named = if name.is_empty() { Ok(identity.workspace.clone()) } else { Workspace::new(name) };
        // What can be no name is the name of nothing.
        let Ok(workspace) = named else { return Ok(None) };
        Ok(self.has_workspace(&workspace).await?.then_some(workspace))
    }

    /// Whether the workspace exists: it has a configuration, be it only that of its making.
    pub(crate) async fn has_workspace(&self, workspace: &Workspace) -> Result<bool, ConfigError> {
        Ok(self.orchestrator.ports.config.version(workspace).await? > 0)
    }
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
