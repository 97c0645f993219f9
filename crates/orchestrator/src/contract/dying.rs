//! A journal whose process dies, or whose disk has a bad moment.

use super::layer::Layer;
use crate::ports::{BoxFuture, Commit, Journal, JournalError, Outcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trellis_domain::record::Record;
use trellis_domain::{SessionId, Workspace};

/// Dies after some commits.
#[derive(Debug)]
pub(super) struct Dying {
    journal: Arc<dyn Journal>,
    left: AtomicUsize,
    /// Which of the ends that are looked for cannot be read at that moment, counted down; none at 0.
    unread: AtomicUsize,
}

impl Dying {
    pub(super) fn after(commits: usize, journal: Arc<dyn Journal>) -> Self {
        Self { journal, left: AtomicUsize::new(commits), unread: AtomicUsize::new(0) }
    }

    /// A journal that lives, and in which that end, counted from 1, cannot be read when it is looked for.
    pub(super) fn with_a_bad_moment(end: usize, journal: Arc<dyn Journal>) -> Self {
        Self { unread: AtomicUsize::new(end), ..Self::after(usize::MAX, journal) }
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

    fn end<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<Record>>, JournalError>> {
        Box::pin(async move {
            let end = self.journal.end(workspace, session).await?;
            let bad = || self.unread.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if end.is_some() && bad() == Ok(1) {
                return Err(JournalError::Read("the disk had a bad moment".to_owned()));
            }
            Ok(end)
        })
    }
}
