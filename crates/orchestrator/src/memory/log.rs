//! A log without entries, for stores that prove nothing.

use crate::checkpoint::{Checkpoint, Signature};
use crate::evidence::Evidence;
use crate::ports::{BoxFuture, JournalError, Log, LogEntry, LogError, Verdict};
use trellis_domain::{Hash, RunId, Workspace};

#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyLog;

impl EmptyLog {
    fn note() -> String {
        let checkpoint = Checkpoint { origin: "memory".to_owned(), size: 0, root: Hash::of([]) };
        checkpoint.note(&Signature { name: "memory".to_owned(), key: [0; 4], bytes: vec![0; 64] })
    }
}

impl Log for EmptyLog {
    fn public_key(&self) -> String {
        "memory+00000000+".to_owned()
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<String, JournalError>> {
        Box::pin(std::future::ready(Ok(Self::note())))
    }

    fn evidence<'a>(
        &'a self,
        _workspace: &'a Workspace,
        _run: &'a RunId,
        _most: usize,
    ) -> BoxFuture<'a, Result<Option<Evidence>, LogError>> {
        Box::pin(std::future::ready(Ok(Some(Evidence { checkpoint: Self::note(), ..Evidence::default() }))))
    }

    fn entries(&self, _from: u64, _limit: usize) -> BoxFuture<'_, Result<Vec<LogEntry>, JournalError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn against<'a>(&'a self, checkpoint: &'a str) -> BoxFuture<'a, Result<Verdict, LogError>> {
        let verdict = Checkpoint::parse(checkpoint).map(|(checkpoint, _)| {
            let missing = (checkpoint.size > 0).then(|| "this store keeps no log".to_owned());
            Verdict { covered: checkpoint.size, faults: missing.into_iter().collect(), ..Verdict::default() }
        });
        Box::pin(std::future::ready(verdict.map_err(Into::into)))
    }
}
