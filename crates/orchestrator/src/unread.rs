//! Turns whose records cannot be read. Trying again may help once or twice; then they are set aside with the reason.

use crate::driver::{Orchestrator, TurnError};
use crate::given_up::SET_ASIDE;
use crate::ports::{ConfigError, JournalError, OpenTurn, TurnKey};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use trellis_domain::run::RunState;

/// How often something of a turn could not be read.
#[derive(Debug, Default)]
pub(crate) struct Unread(Mutex<HashMap<TurnKey, u32>>);

impl Unread {
    fn count(&self, turn: &TurnKey) -> u32 {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(turn.clone()).or_default();
        *count += 1;
        *count
    }

    fn forget(&self, turn: &TurnKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(turn);
    }
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
