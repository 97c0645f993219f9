//! Turns that may be what stops the process: how they are tried, and which is set aside.
//!
//! The journal knows which turns were in hand at a crash and had brought nothing. They are suspects, and the longer the
//! more often that was so. They wait, without holding anything, while everybody else is served; of those that were
//! there most often, one half is tried at a time. If the process lives, they are innocent; if not, they were there once
//! more than the others, and the next process halves them again. So one among a thousand is found in about ten
//! restarts, and an innocent one that was only near is cleared as soon as it brings something.
//!
//! A process may also be killed from outside, again and again. So who was there more than once is not tried before the
//! process has lived for twice as long as the one before lived with them: one that dies meanwhile did not die of them, and
//! their count begins anew.

use crate::ports::{OpenTurn, TurnKey};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::Notify;
use trellis_domain::Timestamp;

/// What is done about suspects next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    /// These are handled, and the others go on waiting.
    Try(Vec<OpenTurn>),
    /// It was there too often, and the only one.
    SetAside(Box<OpenTurn>),
}

/// So many crashes at which no other suspect was in hand: with one, a crash that had another reason would decide.
const CLEARLY: u32 = 2;

/// Takes the next ones out of the suspects; none if there are no more.
pub(crate) fn next_trial(suspects: &mut Vec<OpenTurn>, most: u32) -> Option<Trial> {
    suspects.sort_by(|one, other| (other.cut.times, &one.key).cmp(&(one.cut.times, &other.key)));
    let worst = suspects.first()?.cut;
    if worst.times >= most && worst.alone >= CLEARLY {
        return Some(Trial::SetAside(Box::new(suspects.remove(0))));
    }
    let group = suspects.iter().take_while(|turn| turn.cut.times == worst.times).count();
    Some(Trial::Try(suspects.drain(..group.div_ceil(2)).collect()))
}

/// The suspects of this process, shared by its workers.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    state: Mutex<SuspectsState>,
    settled: Notify,
    /// Something came of any turn.
    pub(crate) progress: Notify,
}

#[derive(Debug, Default)]
struct SuspectsState {
    held: HashSet<TurnKey>,
    on_trial: HashSet<TurnKey>,
    /// The last one that had to be begun alone, and when.
    alone: Option<(TurnKey, Timestamp)>,
}

/// With one that the process has outlived for so long, others may begin: it did not die of that one at once.
const OUTLIVED: Duration = Duration::from_mins(2);

impl Suspects {
    /// Keeps a turn back; false if it was kept back before.
    pub(crate) fn hold(&self, turn: &TurnKey) -> bool {
        self.state.lock().held.insert(turn.clone())
    }

    pub(crate) fn holds(&self, turn: &TurnKey) -> bool {
        self.state.lock().held.contains(turn)
    }

    /// Lets turns go, to be tried.
    pub(crate) fn on_trial<'a>(&self, turns: impl IntoIterator<Item = &'a TurnKey>) {
        let mut state = self.state.lock();
        for turn in turns {
            state.held.remove(turn);
            state.on_trial.insert(turn.clone());
        }
    }

    /// Whether a turn may begin as the only one of those that are suspected.
    pub(crate) fn begin_alone(&self, turn: &TurnKey, now: Timestamp) -> bool {
        let mut state = self.state.lock();
        let outlived = u64::try_from(OUTLIVED.as_millis()).unwrap_or(u64::MAX);
        let busy = state.alone.as_ref().is_some_and(|(_, since)| now.ms_since(*since) < outlived);
        if !busy {
            state.alone = Some((turn.clone(), now));
        }
        !busy
    }

    /// Something came of a turn, or it is closed.
    pub(crate) fn settle(&self, turn: &TurnKey) {
        self.progress.notify_one();
        let mut state = self.state.lock();
        if state.alone.as_ref().is_some_and(|(alone, _)| alone == turn) {
            state.alone = None;
        }
        if state.on_trial.remove(turn) && state.on_trial.is_empty() {
            self.settled.notify_one();
        }
    }

    /// Waits until something has come of all that are tried.
    pub(crate) async fn all_settled(&self) {
        while !self.state.lock().on_trial.is_empty() {
            self.settled.notified().await;
        }
    }

    /// The trial is over, whatever came of it.
    pub(crate) fn over(&self) {
        self.state.lock().on_trial.clear();
    }
}

#[cfg(test)]
#[path = "suspects_tests.rs"]
mod tests;
