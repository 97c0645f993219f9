//! What the committer is asked to write.

use tokio::sync::oneshot;
use trellis_domain::run::RunSummary;
use trellis_domain::{Hash, Workspace};
use trellis_orchestrator::ports::{Commit, JournalError, Outcome, SetAside, TurnKey};

/// One request, with where its answer goes once it is on disk.
pub(crate) enum Request {
    Commit(Box<Commit>, Reply<Outcome>),
    /// What is known of open turns has changed.
    Turns(TurnChanges, Reply<()>),
    SetAside(Box<SetAside>, Reply<()>),
    Config(Vec<ConfigWrite>, Reply<()>),
    Snapshot(Workspace, Hash, Vec<u8>, Reply<()>),
    Library(Vec<LibraryWrite>, Reply<()>),
    Erase(Erasing, Reply<u64>),
    Stop,
}

impl Request {
    /// The request, unless somebody relies on it being kept; who does is told why it is not.
    pub(crate) fn unless_kept(self, reason: &JournalError) -> Option<Self> {
        match self {
            Self::Commit(_, reply) => drop(reply.send(Err(reason.clone()))),
            Self::Turns(_, reply)
            | Self::SetAside(_, reply)
            | Self::Snapshot(_, _, _, reply)
            | Self::Library(_, reply) => drop(reply.send(Err(reason.clone()))),
            Self::Erase(_, reply) => drop(reply.send(Err(reason.clone()))),
            Self::Config(..) | Self::Stop => return Some(self),
        }
        None
    }
}

/// Makes the rows of an erasure, given the number of its entry in the log.
pub(crate) type Erasing = Box<dyn FnOnce(u64) -> Result<ErasedRows, JournalError> + Send>;

/// What is left after an erasure.
pub(crate) struct ErasedRows {
    pub(crate) records: Vec<(Vec<u8>, Vec<u8>)>,
    /// Texts stored apart that are to go.
    pub(crate) blobs: Vec<Vec<u8>>,
    pub(crate) run: RunSummary,
    /// What the log keeps of it.
    pub(crate) entry: Vec<u8>,
}

/// Open turns that are to be written as they are known to readers, and rows beside them.
#[derive(Default)]
pub(crate) struct TurnChanges {
    pub(crate) turns: Vec<TurnKey>,
    /// Of the index; without a value, the key is removed.
    pub(crate) rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, JournalError>>;

/// One change in the configuration's table. Logged ones are never written again.
pub(crate) struct ConfigWrite {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) logged: bool,
}

/// One change in a table of the library; without a value, the key is removed.
pub(crate) struct LibraryWrite {
    pub(crate) table: LibraryTable,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LibraryTable {
    Library,
    Content,
}
