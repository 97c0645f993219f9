//! The handling of one wake-up: survives what a turn does, and waits where its calls have to.

use crate::claims::{Claims, Lease};
use crate::driver::{Handled, Ticket, Waiting};
use crate::given_up::{INTERNAL, SET_ASIDE};
use crate::orchestrator::{Orchestrator, Ports, TurnError};
use crate::permits::Permit;
use crate::ports::{Claim, Claiming, Delivery, Disposition, OpenTurn, QueueError};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// How the workers are asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Finish what is in hand, take nothing new.
    Drain,
    /// Let go at once; turns in hand stay open and are not counted as failed.
    Abandon,
}

/// Handles one delivery.
pub(crate) struct Worker {
    pub(crate) orchestrator: Arc<Orchestrator>,
    pub(crate) failure: watch::Sender<Option<String>>,
    pub(crate) stop: watch::Receiver<Option<Stop>>,
    pub(crate) claim_life: Duration,
}

/// What becomes of a wake-up.
#[derive(Debug)]
enum WakeUpOutcome {
    /// There is nothing more to do for it. If the turn is still open and nobody has it, the next sweep wakes it again.
    Acknowledge,
    Retry(Duration),
}

/// How long a turn is left alone that could not be handled now.
const RETRY: Duration = Duration::from_secs(2);
/// The same for one that only another version of this program can handle.
const LEFT: Duration = Duration::from_mins(1);

/// So often a turn may have been cut short, where claims expire, before it is suspected of stopping processes.
const SUSPICIOUS: u32 = 3;

/// Whether a turn that was claimed may begin.
enum Standing {
    MayBegin,
    /// Another one is tried.
    HasToWait,
    SetAside {
        crashes: u32,
    },
}

impl Worker {
    /// The place is given up as soon as a call has to wait for its turn: turns that wait for a model hold only their
    /// id, and keep nobody from being served. How many there are afterwards is bounded by the model's capacity.
    ///
    /// The delivery is boxed: thousands of these wait at once, and each would hold a second place for giving it back.
    pub(crate) async fn serve(&self, delivery: Box<Delivery>, place: OwnedSemaphorePermit) {
        let queue = &self.orchestrator.ports.queue;
        let served = match self.serve_claimed(&delivery, place).await {
            WakeUpOutcome::Acknowledge => queue.acknowledge(&delivery).await,
            WakeUpOutcome::Retry(delay) => queue.give_back(*delivery, delay).await,
        };
        match served {
            Ok(()) => {}
            // Thousands of these follow one lost connection, and nothing is wrong with them.
            Err(error @ QueueError::Stale) => tracing::debug!(%error, "a wake-up could not be settled"),
            Err(error) => tracing::warn!(%error, "a wake-up could not be settled; it may come again"),
        }
    }

    /// Claims the turn, handles it, and gives it back.
    async fn serve_claimed(&self, delivery: &Delivery, place: OwnedSemaphorePermit) -> WakeUpOutcome {
        let (journal, turn) = (&self.orchestrator.ports.journal, &delivery.turn);
        let held = Claims::new_claim(&self.orchestrator.claims, &turn.key);
        let asked = self.orchestrator.ports.world.now();
        let served = match journal.claim(&held.claim, self.claim_life).await {
            Ok(Claiming::Closed | Claiming::Held) => return WakeUpOutcome::Acknowledge,
            Ok(Claiming::Claimed { begun, expires }) => {
                let lease = Arc::new(Lease::default());
                if expires {
                    lease.extend(asked, self.claim_life);
                }
                match self.standing(turn, begun, expires) {
                    Standing::MayBegin => {
                        let work = self.attend(turn, place, begun, &lease);
                        let renew_every =
                            expires.then_some(self.claim_life / 3).into_iter().chain(delivery.renew_every).min();
                        let attended = match renew_every {
                            None => work.await,
                            Some(every) => {
                                Box::pin(self.while_renewing(delivery, &held.claim, &lease, every, work)).await
                            }
                        };
                        match attended {
                            Ok(()) => WakeUpOutcome::Acknowledge,
                            // Boxed, because it is rare and thousands of turns would carry the memory for it.
                            Err(error) => Box::pin(self.give_up(turn, &error)).await,
                        }
                    }
                    Standing::HasToWait => WakeUpOutcome::Retry(RETRY),
                    Standing::SetAside { crashes } => match Box::pin(self.fail_for(turn, crashes)).await {
                        Ok(()) => WakeUpOutcome::Acknowledge,
                        Err(error) => Box::pin(self.give_up(turn, &error)).await,
                    },
                }
            }
            Err(error) => Box::pin(self.give_up(turn, &error.into())).await,
        };
        self.orchestrator.suspects.settle(&turn.key);
        // One that is still open is in nobody's hand any more.
        if let Err(error) = journal.give_back(&held.claim).await {
            tracing::warn!(%error, "a turn could not be given back");
        }
        served
    }

    /// Where claims expire, no process knows what another one has died of. A turn that was in hand too often is begun only
    /// when no other such turn has begun here just now, and is given up if that does not help either.
    fn standing(&self, turn: &OpenTurn, begun: u32, expires: bool) -> Standing {
        let Orchestrator { ports, suspects, options, .. } = &*self.orchestrator;
        let crashes = begun.saturating_sub(1);
        if !expires || crashes < SUSPICIOUS {
            Standing::MayBegin
        } else if crashes >= SUSPICIOUS.saturating_add(options.max_deliveries) {
            Standing::SetAside { crashes }
        } else if suspects.begin_alone(&turn.key, ports.world.now()) {
            tracing::warn!(session = %turn.key.session, turn = %turn.key.name, crashes, "a turn that was cut short often is tried");
            Standing::MayBegin
        } else {
            Standing::HasToWait
        }
    }

    async fn fail_for(&self, turn: &OpenTurn, crashes: u32) -> Result<(), TurnError> {
        let reason = format!("{SET_ASIDE}handling this request was cut short {crashes} times");
        tracing::error!(session = %turn.key.session, turn = %turn.key.name, reason);
        self.orchestrator.fail(turn, &reason).await
    }

    /// Renews the claim and the delivery for as long as the work goes on. What is in flight when a claim is lost may
    /// still bring something; nothing new is begun then.
    async fn while_renewing<T>(
        &self,
        delivery: &Delivery,
        claim: &Claim,
        lease: &Lease,
        every: Duration,
        work: impl Future<Output = T>,
    ) -> T {
        let renewing = async {
            loop {
                self.orchestrator.ports.world.sleep(every).await;
                self.renew(delivery, claim, lease).await;
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            never = renewing => never,
        }
    }

    async fn renew(&self, delivery: &Delivery, claim: &Claim, lease: &Lease) {
        let Ports { journal, queue, world, .. } = &self.orchestrator.ports;
        let asked = world.now();
        match journal.renew(claim, self.claim_life).await {
            Ok(true) => lease.extend(asked, self.claim_life),
            Ok(false) => lease.lose(asked),
            Err(error) => tracing::warn!(%error, session = %claim.turn.session, "a claim could not be renewed"),
        }
        if delivery.renew_every.is_some()
            && let Err(error) = queue.renew(delivery).await
        {
            tracing::warn!(%error, "a wake-up could not be renewed; it may come again");
        }
        // Another process may have cancelled the run: whoever waits for one of its calls looks again.
        if journal.end(&claim.turn.scope.workspace, &claim.turn.run).await.is_ok_and(|end| end.is_some()) {
            self.orchestrator.cancels.send();
        }
    }

    async fn attend(
        &self,
        turn: &OpenTurn,
        place: OwnedSemaphorePermit,
        attempt: u32,
        lease: &Arc<Lease>,
    ) -> Result<(), TurnError> {
        let mut place = Some(place);
        let ticket = |permit| Ticket { attempt, lease: Arc::clone(lease), permit };
        let mut permit = Permit::default();
        while let Handled::Waits(waiting) = self.handle_safely(turn, ticket(permit)).await? {
            place.take();
            // Boxed, like the handling: of both, a turn has only one at a time.
            match Box::pin(self.wait(turn, waiting)).await? {
                Some(go_on) => permit = go_on,
                None => break,
            }
        }
        Ok(())
    }

    /// A turn could not be handled. It stays open, unless trying again makes no sense.
    async fn give_up(&self, turn: &OpenTurn, error: &TurnError) -> WakeUpOutcome {
        let settled = self.orchestrator.give_up_unreadable(turn, error).await;
        let error = match &settled {
            Ok(true) => return WakeUpOutcome::Acknowledge,
            Ok(false) => error,
            Err(error) => error,
        };
        tracing::error!(session = %turn.key.session, turn = %turn.key.name, %error, "the turn stays open");
        if error.disposition() == Disposition::Stop {
            self.failure.send_replace(Some(error.to_string()));
        }
        WakeUpOutcome::Retry(if matches!(error, TurnError::Newer(_)) { LEFT } else { RETRY })
    }

    /// Ends the session of a turn that has stopped the process again and again.
    pub(crate) async fn set_aside(&self, turn: &OpenTurn) {
        let journal = &self.orchestrator.ports.journal;
        let held = Claims::new_claim(&self.orchestrator.claims, &turn.key);
        let failed = match journal.claim(&held.claim, self.claim_life).await {
            Ok(Claiming::Held | Claiming::Closed) => return,
            Ok(Claiming::Claimed { .. }) => self.fail_for(turn, turn.cut.times).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = failed {
            self.give_up(turn, &error).await;
        }
        if let Err(error) = journal.give_back(&held.claim).await {
            tracing::warn!(%error, "a turn could not be given back");
        }
    }

    /// None if the process stops meanwhile: nothing was begun, so the turn is given back.
    async fn wait(&self, turn: &OpenTurn, waiting: Waiting) -> Result<Option<Permit>, TurnError> {
        let (mut stop, mut failure) = (self.stop.clone(), self.failure.subscribe());
        tokio::select! {
            biased;
            permit = self.orchestrator.wait(&turn.key, waiting) => permit.map(Some),
            _ = stop.wait_for(Option::is_some) => Ok(None),
            _ = failure.wait_for(Option::is_some) => Ok(None),
        }
    }

    /// A panic ends one run, not the process.
    async fn handle_safely(&self, turn: &OpenTurn, ticket: Ticket) -> Result<Handled, TurnError> {
        let attended = AssertUnwindSafe(Box::pin(self.orchestrator.attend(turn, ticket))).catch_unwind();
        let reason = match attended.await {
            Ok(Err(error)) if error.disposition() == Disposition::FailRun => error.to_string(),
            Ok(result) => return result,
            Err(_panic) => INTERNAL.to_owned(),
        };
        Box::pin(self.orchestrator.fail(turn, &reason)).await.map(|()| Handled::Done)
    }
}
