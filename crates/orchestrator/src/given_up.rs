//! Sessions that the process itself gives up, whatever their pattern had decided, and what is said of them. To try again what
//! cannot be read may help once or twice; then it is set aside with the reason.

use crate::orchestrator::{Orchestrator, TurnError};
use crate::ports::{ConfigError, JournalError, OpenTurn};
use trellis_domain::record::Ended;
use trellis_domain::run::{RunState, Termination};

/// Begins the reason if a turn stopped the process again and again, or if what it needs cannot be read.
pub(crate) const SET_ASIDE: &str = "set aside: ";
/// The reason if handling a turn panicked.
pub(crate) const INTERNAL: &str = "an internal error ended this run; the log says more";
/// The reason if another session has a name that is needed.
pub(crate) const ID_TAKEN: &str = "what follows cannot be recorded: an id is taken already";

/// Whether the process gave the session up.
pub(crate) fn was_given_up(ended: &Ended) -> bool {
    let said = |error: &String| error.starts_with(SET_ASIDE) || error == INTERNAL || error == ID_TAKEN;
    ended.reason == Termination::Error && ended.error.as_ref().is_some_and(said)
}

impl Orchestrator {
    /// A turn could not be handled. True if it is settled all the same: what cannot be read ends its own session, as far
    /// as that can be written down, and nothing else.
    pub(crate) async fn give_up_unreadable(&self, turn: &OpenTurn, error: &TurnError) -> Result<bool, TurnError> {
        let (TurnError::Journal(why) | TurnError::Config(ConfigError::Store(why))) = error else { return Ok(false) };
        match why {
            // The same bytes are found again and again.
            JournalError::Damaged(_) => {}
            // The disk may have had a bad moment.
            JournalError::Read(_) if self.unread.count(&turn.key) >= self.options.max_deliveries => {}
            JournalError::Read(_) | JournalError::Write(_) | JournalError::Unavailable(_) | JournalError::Closed => {
                return Ok(false);
            }
        }
        self.unread.forget(&turn.key);
        let reason = format!("{SET_ASIDE}what it needs cannot be read: {why}");
        match self.fail(turn, &reason).await {
            Err(TurnError::Journal(error)) if error.is_unreadable() => {}
            ended => return ended.map(|()| true),
        }
        let key = &turn.key;
        self.set_aside(&key.scope.workspace, &key.run, &key.session, reason, RunState::Failed).await?;
        Ok(true)
    }
}
