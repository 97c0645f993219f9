//! A journal whose process dies.

use super::layer::Layer;
use crate::ports::{BoxFuture, Commit, Journal, JournalError, Outcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Dies after some commits.
#[derive(Debug)]
pub(super) struct Dying {
    journal: Arc<dyn Journal>,
    left: AtomicUsize,
}

impl Dying {
    pub(super) fn after(commits: usize, journal: Arc<dyn Journal>) -> Self {
        Self { journal, left: AtomicUsize::new(commits) }
    }
}

fn dead<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, JournalError>> {
    Box::pin(std::future::ready(Err(JournalError::Closed)))
}

impl Layer for Dying {
    fn journal(&self) -> &dyn Journal {
        &*self.journal
    }

    fn pass<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        call: BoxFuture<'a, Result<T, JournalError>>,
    ) -> BoxFuture<'a, Result<T, JournalError>> {
        // The claims of a process that is dead are nobody's.
        if self.left.load(Ordering::SeqCst) == 0 && name != "give_back" { dead() } else { call }
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, JournalError>> {
        let used = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if used.is_ok() { self.journal.commit(commit) } else { dead() }
    }
}
