//! Workers: take wake-ups and have turns handled.

use crate::orchestrator::{Orchestrator, TurnError};
use crate::ports::{Claim, Delivery, Disposition, OpenTurn, Role, TurnKey};
pub use crate::worker::Stop;
use crate::worker::Worker;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use trellis_domain::{RunId, Timestamp, Workspace};

#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Turns handled at once; a turn that waits for its place holds only its id.
    pub concurrency: usize,
    /// How often open turns without a wake-up are looked for.
    pub sweep_every: Duration,
    /// What this process does; the aggregator can also run alone.
    pub roles: Vec<Role>,
    /// How long a claim on a turn lasts unless it is renewed, where claims expire: after a crash, nobody takes the turn
    /// before.
    pub claim_life: Duration,
    /// Only this run is worked on; what others have left open stays as it is, for whoever goes on with them.
    pub only: Option<(Workspace, RunId)>,
}

impl WorkerOptions {
    /// Whether a turn is of a run that is worked on.
    pub(crate) fn is_wanted(&self, turn: &TurnKey) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|(workspace, run)| turn.run == *run && turn.scope.workspace == *workspace)
    }
}

impl Default for WorkerOptions {
    fn default() -> Self {
        let roles = vec![Role::Agent, Role::Aggregator];
        Self {
            concurrency: 1024,
            sweep_every: Duration::from_secs(5),
            roles,
            claim_life: Duration::from_secs(30),
            only: None,
        }
    }
}

/// Runs the loop in a task group that stopping waits for.
#[derive(Debug)]
pub struct Workers {
    pub(crate) orchestrator: Arc<Orchestrator>,
    pub(crate) options: WorkerOptions,
    /// Set once the store has failed: nothing new is taken.
    pub(crate) failure: watch::Sender<Option<String>>,
}

impl Workers {
    pub fn new(orchestrator: Arc<Orchestrator>, options: WorkerOptions) -> Self {
        Self { orchestrator, options, failure: watch::Sender::new(None) }
    }

    /// Becomes `Some` when the store fails for good.
    pub fn failure(&self) -> watch::Receiver<Option<String>> {
        self.failure.subscribe()
    }

    /// Serves until asked to stop.
    pub async fn run(&self, stop: watch::Receiver<Option<Stop>>) {
        self.sign_of_life().await;
        let suspects = self.hold_suspects().await;
        // At the start also those that are not due yet: their order lives in the queue.
        self.sweep(Timestamp::from_micros(i64::MAX)).await;
        let of = |role: Role| {
            let stop = stop.clone();
            // Boxed, because it is made once and would otherwise be carried around whole.
            Box::pin(async move {
                if self.options.roles.contains(&role) {
                    self.serve(role, stop).await;
                }
            })
        };
        let serving = async {
            tokio::join!(
                of(Role::Agent),
                of(Role::Aggregator),
                self.sweep_until(stop.clone()),
                Box::pin(self.try_suspects(suspects, stop.clone()))
            )
        };
        tokio::select! {
            biased;
            () = Box::pin(self.orchestrator.hear()) => {}
            _ = serving => {}
        }
        self.sign_of_life().await;
    }

    /// Says that the store is served: time in which nobody says so is nobody's run time.
    pub(crate) async fn sign_of_life(&self) {
        let ports = &self.orchestrator.ports;
        if let Err(error) = ports.journal.sign_of_life(ports.world.now()).await {
            tracing::error!(%error, "that the store is served could not be written down");
        }
    }

    pub(crate) fn worker(&self, stop: watch::Receiver<Option<Stop>>) -> Worker {
        let (orchestrator, failure) = (Arc::clone(&self.orchestrator), self.failure.clone());
        Worker { orchestrator, failure, stop, claim_life: self.options.claim_life }
    }

    /// Takes the turns of a role. Each role has places of its own: agents that wait for models must not keep a
    /// fan-in from its deadline.
    async fn serve(&self, role: Role, mut stop: watch::Receiver<Option<Stop>>) {
        let mut tasks = JoinSet::new();
        let places = Arc::new(Semaphore::new(self.options.concurrency));
        let mut failure = self.failure.subscribe();
        while stop.borrow().is_none() && failure.borrow().is_none() {
            tokio::select! {
                biased;
                _ = stop.changed() => {}
                _ = failure.changed() => {}
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
                (delivery, place) = self.next(role, &places) => {
                    let worker = self.worker(stop.clone());
                    let delivery = Box::new(delivery);
                    tasks.spawn(async move { worker.serve(delivery, place).await });
                }
            }
        }
        loop {
            if *stop.borrow_and_update() == Some(Stop::Abandon) || !self.is_awaited(role).await {
                self.abandon(role, &mut tasks).await;
            }
            tokio::select! {
                biased;
                finished = tasks.join_next() => if finished.is_none() { break },
                Ok(()) = stop.changed() => {}
            }
        }
    }

    /// Whether a turn in hand belongs to a run that has not ended. What others bring would be late in any case.
    async fn is_awaited(&self, role: Role) -> bool {
        for Claim { turn, .. } in self.orchestrator.claims.of_role(role) {
            let run = self.orchestrator.ports.journal.run(&turn.scope.workspace, &turn.run).await;
            if !run.is_ok_and(|run| run.is_some_and(|run| run.state.is_end())) {
                return true;
            }
        }
        false
    }

    async fn sweep_until(&self, mut stop: watch::Receiver<Option<Stop>>) {
        let mut failure = self.failure.subscribe();
        while stop.borrow().is_none() && failure.borrow().is_none() {
            tokio::select! {
                biased;
                _ = stop.changed() => {}
                _ = failure.changed() => {}
                () = self.orchestrator.ports.world.sleep(self.options.sweep_every) => {
                    self.sign_of_life().await;
                    self.sweep(self.orchestrator.ports.world.now()).await;
                }
            }
        }
    }

    /// A place first, then a wake-up: what waits for a place stays in the queue.
    async fn next(&self, role: Role, places: &Arc<Semaphore>) -> (Delivery, OwnedSemaphorePermit) {
        let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
        loop {
            match self.orchestrator.ports.queue.take(role).await {
                Ok(delivery) => return (delivery, place),
                Err(error) if error.disposition() == Disposition::Stop => {
                    self.failure.send_replace(Some(error.to_string()));
                    std::future::pending::<()>().await;
                }
                Err(error) => {
                    tracing::warn!(%error, "no wake-up could be taken; trying again");
                    self.orchestrator.ports.world.sleep(QUEUE_RETRY).await;
                }
            }
        }
    }

    async fn abandon(&self, role: Role, tasks: &mut JoinSet<()>) {
        let held = self.orchestrator.claims.of_role(role);
        tasks.shutdown().await;
        for claim in held {
            if let Err(error) = self.let_go(&claim).await {
                tracing::warn!(%error, "a turn could not be given back");
            }
        }
    }

    /// A turn whose session has ended is closed, any other is given back unharmed.
    async fn let_go(&self, claim: &Claim) -> Result<(), TurnError> {
        let closed = self.close_if_ended(&claim.turn).await;
        self.orchestrator.ports.journal.give_back(claim).await?;
        closed
    }

    async fn close_if_ended(&self, turn: &TurnKey) -> Result<(), TurnError> {
        let end = self.orchestrator.ports.journal.end(&turn.scope.workspace, &turn.session).await?;
        match end {
            Some(_) => self.orchestrator.handle(&OpenTurn::new(turn.clone(), None, false)).await,
            None => Ok(()),
        }
    }

    /// Wakes open turns that are due and that nobody handles: their wake-up may be lost.
    async fn sweep(&self, until: Timestamp) {
        const PAGE: usize = 1_000;
        let Orchestrator { ports, suspects, .. } = &*self.orchestrator;
        let mut after = None;
        loop {
            let page = match ports.journal.due_turns(until, after.as_ref(), PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::error!(%error, "open turns could not be listed");
                    return;
                }
            };
            let more = page.len() == PAGE;
            after = page.last().map(|turn| turn.key.clone());
            for turn in page {
                if self.options.is_wanted(&turn.key) && !suspects.holds(&turn.key) {
                    self.orchestrator.wake(turn).await;
                }
            }
            if !more {
                return;
            }
        }
    }
}

/// How long a queue is left alone that cannot be reached.
const QUEUE_RETRY: Duration = Duration::from_secs(1);
