//! What outlives a process that dies: which turns it had in hand, and which were set aside.
//!
//! A turn that is found on disk is written down when it is begun, and so is every other turn while anybody is suspected.
//! The row tells the session's version at that time: whoever is found with it again has brought nothing.

use crate::journal::{EmbeddedJournal, off_the_runtime};
use crate::keys;
use crate::request::{Request, TurnChanges};
use crate::state::{TrialStanding, Turn};
use crate::tables::{Tables, read_failed};
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry;
use trellis_domain::record::Name;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};
use trellis_orchestrator::ports::{Claim, Claiming, JournalError, SetAside, TurnKey};

/// A turn as it is found on disk.
pub(crate) fn found(tables: &Tables, key: &TurnKey, turn: Turn) -> Turn {
    let found = Turn { recovered: true, in_hand: None, trial: None, ..turn };
    let Some(begun_at) = turn.in_hand else {
        // A process that ended while it was kept back speaks for it, but it is not cleared before it was tried.
        let (cut, alone) = if turn.trial.is_some() { (1, 0) } else { (turn.cut, turn.alone) };
        return Turn { cut, alone, ..found };
    };
    // The process before this one died with it. Damage is no reason to refuse the folder, nor to think better of it.
    let newest = newest_version(tables, &key.scope.workspace, &key.session);
    if newest.is_ok_and(|newest| newest != begun_at) {
        return Turn { cut: 0, alone: 0, ..found };
    }
    Turn { cut: turn.cut + 1, alone: turn.alone + u32::from(turn.trial == Some(TrialStanding::Alone)), ..found }
}

/// The version of a session's last record. Reads only its key, so that damage to a record is no matter.
fn newest_version(tables: &Tables, workspace: &Workspace, session: &SessionId) -> Result<u64, JournalError> {
    let prefix = keys::session(workspace, session);
    let Some(last) = tables.records.prefix(&prefix).next_back() else { return Ok(0) };
    let key = last.key().map_err(read_failed)?;
    let version = key.get(prefix.len()..prefix.len() + 8).and_then(|bytes| bytes.try_into().ok());
    Ok(version.map_or(0, u64::from_be_bytes))
}

/// Why a turn was set aside.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Aside {
    pub(crate) reason: String,
    pub(crate) time: Timestamp,
}

/// A turn that was set aside, because what its session has recorded cannot be read.
#[derive(Debug)]
pub struct AsideTurn {
    pub workspace: Workspace,
    pub run: RunId,
    pub session: SessionId,
    pub turn: Name,
    pub reason: String,
    pub time: Timestamp,
}

/// All turns that were set aside.
pub(crate) fn all_aside(tables: &Tables) -> Result<Vec<AsideTurn>, JournalError> {
    let damaged = || JournalError::Damaged("a turn that was set aside cannot be read".to_owned());
    let rows = tables.read().index_prefix(&[keys::prefix::ASIDE]).map(|row| {
        let (key, value) = row.into_inner().map_err(read_failed)?;
        let TurnKey { scope, run, session, name } = keys::read_turn(&key).ok_or_else(damaged)?;
        let Aside { reason, time } = serde_json::from_slice(&value).map_err(|_| damaged())?;
        Ok(AsideTurn { workspace: scope.workspace, run, session, turn: name, reason, time })
    });
    rows.collect()
}

impl EmbeddedJournal {
    /// Claims a turn for as long as the process lives, and counts it as begun.
    pub(crate) async fn claim_turn(&self, claim: &Claim) -> Result<Claiming, JournalError> {
        if !self.shared.turns().contains_key(&claim.turn) {
            return Ok(Claiming::Closed);
        }
        match self.shared.claims().entry(claim.turn.clone()) {
            Entry::Occupied(held) if *held.get() != claim.id => return Ok(Claiming::Held),
            Entry::Occupied(_) => {}
            Entry::Vacant(free) => {
                free.insert(claim.id);
            }
        }
        let begun = self.begin_turn(&claim.turn).await;
        if !matches!(begun, Ok(Some(_))) {
            self.shared.claims().remove(&claim.turn);
        }
        Ok(begun?.map_or(Claiming::Closed, |begun| Claiming::Claimed { begun, expires: false }))
    }

    async fn begin_turn(&self, key: &TurnKey) -> Result<Option<u32>, JournalError> {
        match self.shared.turns().get(key) {
            None => return Ok(None),
            Some(turn) if !turn.recovered && !self.shared.is_watchful() => return Ok(Some(1)),
            Some(_) => {}
        }
        let (tables, place) = (self.tables.clone(), (key.scope.workspace.clone(), key.session.clone()));
        let version = off_the_runtime(move || newest_version(&tables, &place.0, &place.1)).await?;
        let begun = {
            let mut turns = self.shared.turns();
            let Some(turn) = turns.get_mut(key) else { return Ok(None) };
            turn.begun += u32::from(turn.recovered);
            turn.in_hand = Some(version);
            turn.trial = turn.trial.filter(|trial| *trial == TrialStanding::Alone);
            // The beginning that was cut short, and those since.
            turn.begun + 1
        };
        self.write_turns(vec![key.clone()]).await?;
        Ok(Some(begun))
    }

    /// The claim goes first: whoever finds the turn without one may take it.
    pub(crate) async fn give_turn_back(&self, claim: &Claim) -> Result<(), JournalError> {
        if let Entry::Occupied(held) = self.shared.claims().entry(claim.turn.clone())
            && *held.get() == claim.id
        {
            held.remove();
        } else {
            return Ok(());
        }
        let key = &claim.turn;
        match self.shared.turns().get_mut(key) {
            Some(turn) if turn.in_hand.is_some() => {
                turn.in_hand = None;
                turn.begun = turn.begun.saturating_sub(1);
            }
            Some(_) | None => return Ok(()),
        }
        self.write_turns(vec![key.clone()]).await
    }

    pub(crate) async fn keep_turns_back(&self, keys: &[TurnKey]) -> Result<(), JournalError> {
        self.change_suspects(keys, |turn| turn.trial = Some(TrialStanding::KeptBack)).await
    }

    /// From now on counts how long this process lives: that is what the next one compares itself with.
    pub(crate) async fn try_turns(&self, keys: &[TurnKey], now: Timestamp) -> Result<(), JournalError> {
        let mut changes = TurnChanges::default();
        if let [alone] = keys
            && let Some(turn) = self.shared.turns().get_mut(alone)
        {
            turn.trial = Some(TrialStanding::Alone);
            changes.turns.push(alone.clone());
        }
        changes.rows.extend(self.shared.served().begin_trial(now).map(|(key, row)| (key, Some(row))));
        self.ask(|reply| Request::Turns(changes, reply)).await
    }

    pub(crate) async fn acquit_turns(&self, keys: &[TurnKey]) -> Result<(), JournalError> {
        self.change_suspects(keys, |turn| (turn.cut, turn.alone, turn.trial) = (0, 0, None)).await
    }

    async fn change_suspects(&self, keys: &[TurnKey], change: fn(&mut Turn)) -> Result<(), JournalError> {
        let changed = {
            let mut turns = self.shared.turns();
            let mut changed = Vec::new();
            for key in keys {
                if let Some(turn) = turns.get_mut(key).filter(|turn| turn.cut > 0) {
                    change(turn);
                    changed.push(key.clone());
                }
            }
            self.shared.watch(turns.values().any(|turn| turn.cut > 0));
            changed
        };
        if changed.is_empty() { Ok(()) } else { self.write_turns(changed).await }
    }

    async fn write_turns(&self, turns: Vec<TurnKey>) -> Result<(), JournalError> {
        self.ask(|reply| Request::Turns(TurnChanges { turns, rows: Vec::new() }, reply)).await
    }

    pub(crate) async fn set_turns_aside(&self, aside: SetAside) -> Result<(), JournalError> {
        self.ask(|reply| Request::SetAside(Box::new(aside), reply)).await
    }
}
