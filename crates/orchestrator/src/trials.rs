//! How suspects are tried: by halves, while everything else is served.

use crate::orchestrator::Orchestrator;
use crate::ports::{OpenTurn, Role, all_due_turns};
use crate::suspects::{Trial, next_trial};
use crate::worker::Stop;
use crate::workers::Workers;
use std::time::Duration;
use tokio::sync::watch;
use trellis_domain::Timestamp;

/// A process may have lived for so long since its last sign of life.
const SIGNS: Duration = Duration::from_secs(5);

/// Nobody waits longer than this, however long the process before has lived.
const LONGEST: Duration = Duration::from_mins(2);

/// How long one half is waited for before the next is tried, if nothing comes of it: a process that is stopped by it
/// lives about as long as the one before.
fn trial_timeout(before: Duration) -> Duration {
    before.saturating_add(SIGNS).saturating_mul(2).min(LONGEST)
}

/// How long a process lives before it tries anybody who was there more than once. What kills it from outside, at
/// intervals such as the last, does so before that.
fn without_them(before: Duration) -> Duration {
    before.saturating_mul(2).saturating_add(MARGIN).min(LONGEST)
}

/// While somebody is suspected there is a sign of life each second, and a process takes a moment to begin.
const OFTEN: Duration = Duration::from_secs(1);
const MARGIN: Duration = Duration::from_secs(3);

/// How long suspects wait for somebody else to bring something, if there is somebody else: a process that was killed
/// before it could do anything at all says nothing about them.
const FIRST: Duration = Duration::from_secs(1);

impl Workers {
    /// Keeps back the turns that may be what stops the process. Also says whether there are others to serve.
    pub(crate) async fn hold_suspects(&self) -> (Vec<OpenTurn>, bool) {
        let held = &self.orchestrator.suspects;
        let is_mine =
            |turn: &OpenTurn| self.options.roles.contains(&Role::of(turn)) && self.options.is_wanted(&turn.key);
        match all_due_turns(&*self.orchestrator.ports.journal, Timestamp::from_micros(i64::MAX)).await {
            Ok(turns) => {
                let mine = turns.into_iter().filter(is_mine);
                let (suspects, others): (Vec<_>, Vec<_>) = mine.partition(|turn| turn.cut.times > 0);
                let suspects: Vec<_> = suspects.into_iter().filter(|turn| held.hold(&turn.key)).collect();
                let keys: Vec<_> = suspects.iter().map(|turn| turn.key.clone()).collect();
                if let Err(error) = self.orchestrator.ports.journal.keep_back(&keys).await {
                    tracing::error!(%error, "that turns are kept back could not be written down");
                }
                (suspects, others.iter().any(|turn| turn.due.is_none()))
            }
            Err(error) => {
                tracing::error!(%error, "open turns could not be listed");
                (Vec::new(), false)
            }
        }
    }

    /// Tries suspects by halves, while everything else is served. Others come first, if there are any.
    pub(crate) async fn try_suspects(
        &self,
        (mut suspects, others): (Vec<OpenTurn>, bool),
        mut stop: watch::Receiver<Option<Stop>>,
    ) {
        let Orchestrator { ports, options, suspects: held, .. } = &*self.orchestrator;
        let before = Duration::from_millis(ports.journal.service().before_ms);
        let timeout = trial_timeout(before);
        let mut failure = self.failure.subscribe();
        let repeatedly = suspects.iter().any(|turn| turn.cut.times > 1);
        let wait = async {
            if repeatedly {
                ports.world.sleep(without_them(before)).await;
            } else if others {
                tokio::select! {
                    biased;
                    () = held.progress.notified() => {}
                    () = ports.world.sleep(FIRST) => {}
                }
            }
        };
        let mut wait = Some(Box::pin(wait));
        while let Some(trial) = next_trial(&mut suspects, options.max_deliveries) {
            let tried = match trial {
                Trial::SetAside(turn) => {
                    self.worker(stop.clone()).set_aside(&turn).await;
                    continue;
                }
                Trial::Try(tried) => tried,
            };
            if let Some(wait) = wait.take() {
                tokio::select! {
                    biased;
                    () = self.with_signs(wait) => {}
                    _ = stop.wait_for(Option::is_some) => return,
                    _ = failure.wait_for(Option::is_some) => return,
                }
            }
            tracing::warn!(tried = tried.len(), held = suspects.len(), "turns that were in hand at a crash are tried");
            let keys: Vec<_> = tried.iter().map(|turn| turn.key.clone()).collect();
            if let Err(error) = ports.journal.begin_trial(&keys, ports.world.now()).await {
                tracing::error!(%error, "that turns are tried could not be written down");
                return;
            }
            held.on_trial(&keys);
            for turn in tried {
                self.orchestrator.wake(turn).await;
            }
            tokio::select! {
                biased;
                () = self.with_signs(held.all_settled()) => {}
                () = ports.world.sleep(timeout) => {}
                _ = stop.wait_for(Option::is_some) => return,
                _ = failure.wait_for(Option::is_some) => return,
            }
            held.over();
            if let Err(error) = ports.journal.acquit(&keys).await {
                tracing::error!(%error, "that turns are innocent could not be written down");
                return;
            }
        }
    }

    /// Waits, and says each second that the process lives.
    async fn with_signs(&self, waited_for: impl Future<Output = ()>) {
        tokio::pin!(waited_for);
        loop {
            tokio::select! {
                biased;
                () = &mut waited_for => return,
                () = self.orchestrator.ports.world.sleep(OFTEN) => self.sign_of_life().await,
            }
        }
    }
}
