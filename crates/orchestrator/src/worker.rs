//! The handling of one wake-up: survives what a turn does, and waits where its calls have to.

use crate::driver::{Handled, Orchestrator, Ticket, TurnError, Waiting};
use crate::ports::{BoxFuture, ConfigError, Delivery, OpenTurn};
use crate::workers::Stop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Handles one delivery.
pub(crate) struct Worker {
    pub(crate) orchestrator: Arc<Orchestrator>,
    pub(crate) failure: watch::Sender<Option<String>>,
    pub(crate) stop: watch::Receiver<Option<Stop>>,
}

impl Worker {
    /// The place is given up as soon as a call has to wait for its turn: turns that wait for a model hold only their
    /// id, and keep nobody from being served. How many there are afterwards is bounded by the model's room.
    pub(crate) async fn serve(&self, delivery: &Delivery, place: OwnedSemaphorePermit) {
        match self.attend(&delivery.turn, place).await {
            Ok(()) => self.orchestrator.ports.queue.acknowledge(delivery).await,
            // Boxed, because it is rare and thousands of turns would carry the room for it.
            Err(error) => Box::pin(self.give_up(&delivery.turn, &error)).await,
        }
        self.orchestrator.suspects.settle(&delivery.turn.key);
        // One that is still open is in nobody's hand any more.
        if let Err(error) = self.orchestrator.ports.journal.release(&delivery.turn.key).await {
            tracing::warn!(%error, "a turn could not be given back");
        }
    }

    async fn attend(&self, turn: &OpenTurn, place: OwnedSemaphorePermit) -> Result<(), TurnError> {
        let mut place = Some(place);
        let mut ticket = Ticket::default();
        while let Handled::Waits(waiting) = self.handle_safely(turn, ticket).await? {
            place.take();
            // Boxed, like the handling: of both, a turn has only one at a time.
            match Box::pin(self.wait(turn, waiting)).await? {
                Some(go_on) => ticket = go_on,
                None => break,
            }
        }
        Ok(())
    }

    /// A turn could not be handled. It stays open, unless trying again makes no sense.
    pub(crate) async fn give_up(&self, turn: &OpenTurn, error: &TurnError) {
        let settled = self.orchestrator.give_up_unreadable(turn, error).await;
        let error = match &settled {
            Ok(true) => return,
            Ok(false) => error,
            Err(error) => error,
        };
        tracing::error!(session = %turn.key.session, turn = %turn.key.name, %error, "the turn stays open");
        if error.stops_everything() {
            self.failure.send_replace(Some(error.to_string()));
        }
    }

    /// None if the process stops meanwhile: nothing was begun, so the turn is given back.
    async fn wait(&self, turn: &OpenTurn, waiting: Waiting) -> Result<Option<Ticket>, TurnError> {
        let (mut stop, mut failure) = (self.stop.clone(), self.failure.subscribe());
        tokio::select! {
            ticket = self.orchestrator.wait(&turn.key, waiting) => ticket.map(Some),
            _ = stop.wait_for(Option::is_some) => Ok(None),
            _ = failure.wait_for(Option::is_some) => Ok(None),
        }
    }

    /// A panic ends one run, not the process.
    async fn handle_safely(&self, turn: &OpenTurn, ticket: Ticket) -> Result<Handled, TurnError> {
        let reason = match CatchPanic(Box::pin(self.orchestrator.attend(turn, ticket))).await {
            Some(Err(TurnError::Config(error @ (ConfigError::Invalid(_) | ConfigError::NoSnapshot(_))))) => {
                error.to_string()
            }
            Some(result) => return result,
            None => "an internal error ended this run; the log says more".to_owned(),
        };
        Box::pin(self.orchestrator.fail(turn, &reason)).await.map(|()| Handled::Done)
    }
}

/// The output of a future, or None if it panicked. What it held is dropped with it.
struct CatchPanic<'a, T>(BoxFuture<'a, T>);

impl<T> Future for CatchPanic<'_, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let future = &mut self.0;
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    }
}
