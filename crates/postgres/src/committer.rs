//! Commits that wait at the same time share a transaction, and so the wait for the disk.

use crate::batch::{self, Mark, Written};
use crate::database::Database;
use crate::error::failed;
use crate::heads::Heads;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};
use trellis_orchestrator::ledger::Salts;
use trellis_orchestrator::ports::{Commit, JournalError, Outcome};

/// Most commits in one transaction.
const TOGETHER: usize = 128;
/// Most commits that wait for a lane. Who comes later waits to be let in.
pub(crate) const WAITING: usize = 1_024;

type Answer = Result<Outcome, JournalError>;

/// A commit that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) commit: Commit,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// One lane. It has all commits of this process to its runs.
pub(crate) struct Committer {
    pub(crate) database: Database,
    pub(crate) salts: Salts,
    /// There is something for the log.
    pub(crate) written: Arc<Notify>,
}

impl Committer {
    /// Writes what comes, until nobody can ask any more.
    pub(crate) async fn run(mut self, mut waiting: mpsc::Receiver<Waiting>) {
        let (mut heads, mut taken) = (Heads::default(), Vec::new());
        while waiting.recv_many(&mut taken, TOGETHER).await > 0 {
            let (commits, answers): (Vec<_>, Vec<_>) = taken.drain(..).map(|it| (it.commit, it.answer)).unzip();
            let outcomes = Box::pin(self.write_all(commits, &mut heads)).await;
            self.written.notify_one();
            for (answer, outcome) in answers.into_iter().zip(outcomes) {
                // Whoever asked may have gone: then the commit is found in the journal.
                drop(answer.send(outcome));
            }
        }
    }

    /// A commit that cannot be written harms nobody else's.
    async fn write_all(&mut self, commits: Vec<Commit>, heads: &mut Heads) -> Vec<Answer> {
        let each = if commits.len() > 1 { commits.clone() } else { Vec::new() };
        let count = commits.len();
        match Box::pin(self.write(commits, heads)).await {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
            Err(JournalError::Damaged(_)) if count > 1 => {
                let mut answers = Vec::with_capacity(count);
                for commit in each {
                    let alone = Box::pin(self.write(vec![commit], heads)).await;
                    answers.push(alone.map(|mut outcomes| outcomes.pop().unwrap_or(Outcome::Conflict)));
                }
                answers
            }
            Err(error) => std::iter::repeat_with(|| Err(error.clone())).take(count).collect(),
        }
    }

    async fn write(&mut self, commits: Vec<Commit>, heads: &mut Heads) -> Result<Vec<Outcome>, JournalError> {
        let database = self.database.clone();
        let mut lease = database.committer().await?;
        let transaction = database.within(async { lease.transaction().await.map_err(failed) }).await?;
        let salts = &mut self.salts;
        let mut seed = || salts.next_seed();
        let written = Box::pin(batch::write(&database, &transaction, commits, heads, &mut seed));
        let Written { outcomes, heads: newest, mark } = database.within(written).await?;
        let committed = database.within(async { transaction.commit().await.map_err(failed) }).await;
        match (committed, mark) {
            (Ok(()), _) => lease.release(),
            // Whoever repeats it finds out what became of it.
            (Err(error), None) => return Err(error),
            (Err(error), Some(mark)) => {
                // What was on its way when the connection went may have arrived.
                drop(lease);
                if !was_committed(&database, &mark, &error).await? {
                    return Err(error);
                }
            }
        }
        for (place, head) in newest {
            heads.put(place, head);
        }
        Ok(outcomes)
    }
}

/// For so long a transaction may be under way that nobody waits for any more.
const UNDER_WAY: Duration = Duration::from_secs(5);
/// So often it is asked for.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What became of a transaction whose end was not heard. The server may have to come back first. If nobody can say, the
/// error stands.
async fn was_committed(database: &Database, mark: &Mark, error: &JournalError) -> Result<bool, JournalError> {
    let looking = async {
        loop {
            match database.within(look_for(database, mark)).await {
                Ok(found) => return found,
                Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    };
    tokio::time::timeout(UNDER_WAY, looking).await.map_err(|_| error.clone())
}

async fn look_for(database: &Database, mark: &Mark) -> Result<bool, JournalError> {
    let mut lease = database.committer().await?;
    let transaction = lease.transaction().await.map_err(failed)?;
    let found = mark.is_there(&transaction).await?;
    transaction.rollback().await.map_err(failed)?;
    lease.release();
    Ok(found)
}
