//! What this process has in hand. Who may handle a turn is the journal's word; here is what to give back.

use crate::ports::{Claim, ClaimId, Role, TurnKey};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trellis_domain::{Hash, RunId, Timestamp, Workspace};

/// The claims of this process, each with an id that nobody else has.
#[derive(Debug)]
pub(crate) struct Claims {
    process: u64,
    next: AtomicU64,
    held: Mutex<BTreeMap<ClaimId, TurnKey>>,
}

impl Claims {
    /// For a process that is told from others by this id.
    pub(crate) fn of(process: &str) -> Self {
        let hash = Hash::of(process);
        let process = hash.as_bytes().first_chunk().copied().map_or(0, u64::from_be_bytes);
        Self { process, next: AtomicU64::new(1), held: Mutex::default() }
    }

    /// A new claim on a turn, which the journal may grant. It counts as held until it is dropped.
    pub(crate) fn new_claim(claims: &Arc<Self>, turn: &TurnKey) -> HeldClaim {
        let id = ClaimId { process: claims.process, number: claims.next.fetch_add(1, Ordering::Relaxed) };
        claims.held.lock().insert(id, turn.clone());
        HeldClaim { claims: Arc::clone(claims), claim: Claim { turn: turn.clone(), id } }
    }

    /// Whether a turn of that run is in hand.
    pub(crate) fn hold(&self, workspace: &Workspace, run: &RunId) -> bool {
        self.held.lock().values().any(|turn| turn.run == *run && turn.scope.workspace == *workspace)
    }

    /// The claims on turns of a role.
    pub(crate) fn of_role(&self, role: Role) -> Vec<Claim> {
        let held = self.held.lock();
        let mine = held.iter().filter(|(_, turn)| Role::of_turn(&turn.name) == role);
        mine.map(|(id, turn)| Claim { turn: turn.clone(), id: *id }).collect()
    }
}

/// A claim as long as somebody works on its turn.
#[derive(Debug)]
pub(crate) struct HeldClaim {
    claims: Arc<Claims>,
    pub(crate) claim: Claim,
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        self.claims.held.lock().remove(&self.claim.id);
    }
}

/// How long a granted claim lasts, as far as this process knows. One whose renewal is late is not relied on.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// None: it does not expire.
    until: Mutex<Option<Timestamp>>,
}

impl Lease {
    /// The store was asked at that time, and has granted so much more.
    pub(crate) fn extend(&self, asked: Timestamp, life: Duration) {
        *self.until.lock() = Some(asked.plus_ms(u64::try_from(life.as_millis()).unwrap_or(u64::MAX)));
    }

    /// Somebody else may have the turn.
    pub(crate) fn lose(&self, now: Timestamp) {
        *self.until.lock() = Some(now);
    }

    pub(crate) fn holds(&self, now: Timestamp) -> bool {
        self.until.lock().is_none_or(|until| now < until)
    }
}
