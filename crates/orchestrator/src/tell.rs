//! Telling a run something while it is under way: a record in every session that can still hear it.

use crate::fan_in::unjoined;
use crate::handling::{Handling, causes_of};
use crate::orchestrator::{Orchestrator, TurnError};
use crate::ports::{BoxFuture, Commit, JournalError, Outcome, TurnKey};
use crate::step::Decided;
use trellis_domain::record::{Body, Name};
use trellis_domain::run::RunState;
use trellis_domain::told::Told;
use trellis_domain::{Caller, RunId, SessionId, Workspace};
use trellis_patterns::Session;

/// Why a message is not taken.
#[derive(Debug, thiserror::Error)]
pub enum TellError {
    #[error("there is no run `{0}`")]
    Unknown(RunId),
    #[error("the run has ended ({0}); ask a new question to go on")]
    Ended(RunState),
    #[error("the message is empty; write what the run is to know")]
    Empty,
    #[error("the message has {bytes} bytes; at most {limit} are allowed")]
    TooLong { bytes: usize, limit: usize },
    #[error("the run was told {0} messages already, which is the limit; cancel it, or wait for its answer")]
    TooMany(u32),
    #[error("the run goes on too fast for a message to be recorded; try again")]
    TooBusy,
    #[error(transparent)]
    Turn(#[from] TurnError),
}

impl From<JournalError> for TellError {
    fn from(error: JournalError) -> Self {
        Self::Turn(error.into())
    }
}

/// A message that was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Telling {
    /// The how manieth message to the run it is.
    pub number: u32,
    /// How many agents will hear it.
    pub agents: usize,
}

/// So often a message is written again because something else was recorded meanwhile.
const MOST_CONFLICTS: u32 = 100;

impl Orchestrator {
    /// See [`RunService::tell`](crate::RunService::tell).
    pub(crate) async fn tell(
        &self,
        workspace: &Workspace,
        run: &RunId,
        text: &str,
        by: &Caller,
    ) -> Result<Telling, TellError> {
        let (text, limit) = (text.trim(), Told::MOST_BYTES);
        if text.is_empty() {
            return Err(TellError::Empty);
        }
        if text.len() > limit {
            return Err(TellError::TooLong { bytes: text.len(), limit });
        }
        // A subagent's session is no run.
        let known = self.ports.journal.run(workspace, run).await?;
        known.ok_or_else(|| TellError::Unknown(run.clone()))?;
        let told = Told { text: text.into(), by: by.clone() };
        for _ in 0..MOST_CONFLICTS {
            let root = self.root(workspace, run).await?.ok_or_else(|| TellError::Unknown(run.clone()))?;
            if let Some(ended) = root.session.ended() {
                return Err(TellError::Ended(ended.reason.run_state()));
            }
            let number = root.session.told_count() + 1;
            if number > Told::MOST {
                return Err(TellError::TooMany(Told::MOST));
            }
            let mut message = Message { told: &told, records: Vec::new(), seen: Vec::new() };
            message.add(run, &root.session);
            self.tell_below(&root, &root.session, &mut message).await?;
            let now = self.ports.world.now();
            let agents = message.records.len();
            let records = message.records.into_iter().map(|decided| root.decided(decided, now)).collect();
            let commit = Commit { seen_of_others: message.seen, ..root.commit(records, Vec::new(), Vec::new()) };
            // A conflict means that something happened meanwhile: look again.
            if let Outcome::Committed(committed) = self.ports.journal.commit(commit).await? {
                self.after_commit(workspace, run, &committed).await;
                return Ok(Telling { number, agents });
            }
        }
        Err(TellError::TooBusy)
    }

    /// Adds the agents that this session waits for, and those that they wait for. One that cannot be read cannot hear.
    fn tell_below<'a>(
        &'a self,
        root: &'a Handling,
        session: &'a Session,
        message: &'a mut Message<'_>,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            for (_, goal) in unjoined(session) {
                let key = TurnKey { session: goal.session.clone(), ..root.key.clone() };
                let below = match self.load_without_settings(&key).await {
                    Ok(Some(below)) if below.ended().is_none() && below.told_count() < Told::MOST => below,
                    Ok(_) => continue,
                    Err(TurnError::Journal(error)) if error.is_unreadable() => continue,
                    Err(error) => return Err(error),
                };
                message.add(&goal.session, &below);
                self.tell_below(root, &below, message).await?;
            }
            Ok(())
        })
    }
}

/// One message, and its records in all sessions that hear it.
struct Message<'t> {
    told: &'t Told,
    records: Vec<Decided>,
    /// The versions of the sessions that it is told to: none of them has ended by then.
    seen: Vec<(SessionId, u64)>,
}

impl Message<'_> {
    fn add(&mut self, id: &SessionId, session: &Session) {
        let name = Name::told(session.told_count() + 1);
        let causes = causes_of(session, &name);
        self.records.push(Decided { session: id.clone(), name, causes, body: Body::Told(self.told.clone()) });
        self.seen.push((id.clone(), session.seen()));
    }
}
