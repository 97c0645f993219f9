//! Signs of life, and what is written for them.

use crate::journal::EmbeddedJournal;
use crate::keys;
use crate::request::{Request, TurnChanges};
use crate::served::Sign;
use std::sync::Arc;
use trellis_domain::{RunId, Timestamp, Workspace};
use trellis_orchestrator::ports::{JournalError, TurnKey};

impl EmbeddedJournal {
    /// This process works on that run alone. While it does, the time of others does not go on: their deadlines are as far away
    /// as before when somebody goes on with them. If this run is interrupted, neither has its own time gone on.
    pub fn works_on_only(&self, workspace: &Workspace, run: &RunId) {
        let mut served = self.shared.served();
        let other = |key: &TurnKey| key.run != *run || key.scope.workspace != *workspace;
        served.others_wait = self.shared.turns().keys().any(other);
    }

    pub(crate) async fn note_sign_of_life(&self, now: Timestamp) -> Result<(), JournalError> {
        let changes = self.sign_of_life_at(now);
        match changes {
            Some(changes) => self.ask(|reply| Request::Turns(changes, reply)).await,
            None => Ok(()),
        }
    }

    /// What there is to write for it.
    fn sign_of_life_at(&self, now: Timestamp) -> Option<TurnChanges> {
        let mut served = self.shared.served();
        if served.here.is_some() {
            // If nobody waits, there is no time to be counted.
            let waits = !self.shared.turns().is_empty();
            let (key, row) = if waits { served.sign(now)? } else { return None };
            return Some(TurnChanges { rows: vec![(key, Some(row))], ..TurnChanges::default() });
        }
        let known = Arc::clone(&served.outages);
        let ended = served.begin(now);
        let forgotten = known.iter().filter(|known| served.outages.iter().all(|kept| kept != *known));
        let mut changes = TurnChanges::default();
        changes.rows.extend(forgotten.map(|outage| (keys::outage(outage.from), None)));
        changes.rows.extend(served.here.map(Sign::row).map(|(key, row)| (key, Some(row))));
        if let Some(outage) = ended {
            let to = outage.to.as_micros().to_be_bytes().to_vec();
            changes.rows.push((keys::outage(outage.from), Some(to)));
            // What was delayed when nobody served is delayed by so much longer.
            for (key, turn) in self.shared.turns().iter_mut() {
                if let Some(due) = turn.due.as_mut().filter(|due| **due > outage.from) {
                    *due = due.plus_ms(outage.ms());
                    changes.turns.push(key.clone());
                }
            }
        }
        Some(changes)
    }
}
