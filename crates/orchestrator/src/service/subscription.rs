//! Following one run.

use crate::hub::{Item, Subscription};
use crate::ports::{Journal, JournalError};
use std::sync::Arc;
use trellis_domain::record::Record;
use trellis_domain::{RunId, Workspace};

/// One reader's place in a run's stream.
#[derive(Debug)]
pub struct RunSubscription {
    subscription: Subscription,
    journal: Arc<dyn Journal>,
}

impl RunSubscription {
    pub(super) fn new(subscription: Subscription, journal: Arc<dyn Journal>) -> Self {
        Self { subscription, journal }
    }

    /// The workspace and the run that is followed.
    pub fn place(&self) -> (&Workspace, &RunId) {
        self.subscription.place()
    }

    /// The next item; waits for it. Records come before text that was written after them.
    pub async fn next(&mut self) -> Result<Item, JournalError> {
        self.subscription.next(&*self.journal).await
    }

    /// The next item, if there is one by now.
    pub async fn look(&mut self) -> Result<Option<Item>, JournalError> {
        self.subscription.look(&*self.journal).await
    }

    /// Waits until there may be more than there was at the last look.
    pub async fn changed(&mut self) {
        self.subscription.changed().await;
    }

    /// The record of the run's end, if it has ended, whether or not this reader has come so far.
    pub async fn end(&self) -> Result<Option<Arc<Record>>, JournalError> {
        let (workspace, run) = self.place();
        self.journal.end(workspace, run).await
    }
}
