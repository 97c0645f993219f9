//! Workers in the background of a command, and how they are left.

use crate::failure::{Exit, Failure};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use trellis_orchestrator::Orchestrator;
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};

/// Serves open turns until the command is done. However it ends, turns in hand are given back: a command that
/// is left early is no fault of the requests.
pub(crate) struct Serving {
    stop: watch::Sender<Option<Stop>>,
    failure: watch::Receiver<Option<String>>,
    task: JoinHandle<()>,
}

impl Serving {
    pub(crate) fn start(orchestrator: &Arc<Orchestrator>) -> Self {
        Self::start_as(orchestrator, WorkerOptions::default())
    }

    /// Only hears what other processes tell of the runs that are followed here.
    pub(crate) fn listen(orchestrator: &Arc<Orchestrator>) -> Self {
        let orchestrator = Arc::clone(orchestrator);
        let (stop, mut stopped) = watch::channel(None);
        let task = tokio::spawn(async move {
            tokio::select! {
                () = orchestrator.hear() => {}
                _ = stopped.changed() => {}
            }
        });
        Self { stop, failure: watch::channel(None).1, task }
    }

    /// The same with roles, and claims that others respect.
    pub(crate) fn start_as(orchestrator: &Arc<Orchestrator>, options: WorkerOptions) -> Self {
        let workers = Workers::new(Arc::clone(orchestrator), options);
        let failure = workers.failure();
        let (stop, stopped) = watch::channel(None);
        let task = tokio::spawn(async move { workers.run(stopped).await });
        Self { stop, failure, task }
    }

    /// Waits for the store to fail.
    pub(crate) async fn store_failure(&mut self) -> Failure {
        if self.failure.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        let reason = self.failure.borrow().clone().unwrap_or_default();
        Failure::new(Exit::DataFolder, reason)
    }

    /// Lets go at once.
    pub(crate) async fn abandon(self) -> Result<(), Failure> {
        self.stop.send_replace(Some(Stop::Abandon));
        self.task.await.map_err(Failure::unexpected)
    }

    /// Finishes calls in flight, those of workers and others, but only for so long: what is not finished then is let go.
    pub(crate) async fn drain_within(
        mut self,
        time_limit: Duration,
        interrupt: &mut Interrupt,
        others: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        self.stop.send_replace(Some(Stop::Drain));
        let finished = async {
            let result = (&mut self.task).await;
            others.await;
            result.map_err(Failure::unexpected)
        };
        tokio::select! {
            result = finished => return result,
            () = tokio::time::sleep(time_limit) => {}
            () = interrupt.received() => {}
        }
        if self.task.is_finished() { Ok(()) } else { self.abandon().await }
    }

    /// Finishes calls in flight and takes nothing new. A person who is in a hurry need not wait.
    pub(crate) async fn drain(self, interrupt: &mut Interrupt) -> Result<(), Failure> {
        self.drain_within(Duration::MAX, interrupt, std::future::ready(())).await
    }
}

/// Ctrl-C, or another polite request to stop. Heard from the moment it is made, not from when it is waited for.
pub(crate) struct Interrupt {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
}

impl Interrupt {
    #[cfg(unix)]
    pub(crate) fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let signals =
            [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
        Ok(Self { signals })
    }

    #[cfg(not(unix))]
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self {})
    }

    #[cfg(unix)]
    pub(crate) async fn received(&mut self) {
        let [interrupt, terminate, hang_up] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    }

    /// What was heard until now is no matter any more.
    #[cfg(unix)]
    pub(crate) fn forget(&mut self) {
        use futures_util::FutureExt;
        while self.received().now_or_never().is_some() {}
    }

    #[cfg(not(unix))]
    pub(crate) fn forget(&mut self) {}

    #[cfg(not(unix))]
    pub(crate) async fn received(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
