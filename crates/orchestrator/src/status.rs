//! How a deployment is: who works, what waits for whom, and until when. Read from the journal, so that it is the same
//! whatever carries the wake-ups.

use crate::orchestrator::Orchestrator;
use crate::ports::{BoxFuture, Journal, JournalError, OpenTurn, Presence, Process, Role, TurnInHand, TurnKey};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trellis_domain::Timestamp;
use trellis_domain::record::Core;
use utoipa::ToSchema;

/// How the processes of a deployment are getting on
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// Those that have the store open, oldest first
    pub processes: Vec<StatusProcess>,
    /// Runs without an end
    pub open_runs: u64,
    /// What could be worked on now and is in nobody's hand
    pub waiting: StatusWaiting,
    /// What is worked on, up to 1000 turns
    pub in_hand: Vec<StatusTurn>,
    /// Teams that are waited for, each until its deadline
    pub fan_ins: Vec<StatusTurn>,
    /// Questions that people have not answered, each until it expires
    pub questions: Vec<StatusTurn>,
    /// Other turns that are to begin later
    pub later: u64,
    /// True if there are more open turns than were counted
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// A process
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusProcess {
    /// The command that it was started with, such as `serve` or `worker`
    pub command: String,
    /// Its number, and the machine that it is on
    pub id: String,
    #[schema(format = DateTime)]
    pub since: String,
}

/// Turns that wait, by who takes them
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusWaiting {
    pub agents: u64,
    pub aggregators: u64,
}

/// A turn
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusTurn {
    pub workspace: String,
    pub run_id: String,
    pub session_id: String,
    /// Its name within the session, such as `i3`
    pub turn: String,
    /// When somebody else takes it, when its time is over, or when its question expires
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub until: Option<String>,
}

impl StatusTurn {
    fn new(key: &TurnKey, until: Option<Timestamp>) -> Self {
        Self {
            workspace: key.scope.workspace.as_str().to_owned(),
            run_id: key.run.as_str().to_owned(),
            session_id: key.session.as_str().to_owned(),
            turn: key.name.as_str().to_owned(),
            until: until.map(|until| until.to_string()),
        }
    }
}

/// How many open turns are looked at.
const MOST_TURNS: usize = 20_000;
const PAGE: usize = 1_000;
/// How many of a kind are listed.
const LISTED: usize = 1_000;

impl Status {
    /// As it is now.
    pub async fn of(journal: &dyn Journal, presence: &dyn Presence, now: Timestamp) -> Result<Self, JournalError> {
        let processes = presence.processes().await?.into_iter().map(|process| StatusProcess {
            command: process.command,
            id: process.id,
            since: process.since.to_string(),
        });
        let in_hand = presence.in_hand(LISTED).await?;
        let mut status = Self {
            processes: processes.collect(),
            open_runs: journal.open_runs().await? as u64,
            in_hand: in_hand.iter().map(|held| StatusTurn::new(&held.turn, held.until)).collect(),
            ..Self::default()
        };
        let (mut after, mut seen) = (None, 0);
        loop {
            let page = journal.due_turns(Timestamp::from_micros(i64::MAX), after.as_ref(), PAGE).await?;
            for turn in &page {
                status.count(turn, now);
            }
            seen += page.len();
            after = page.last().map(|turn| turn.key.clone());
            status.more = page.len() == PAGE && seen >= MOST_TURNS;
            if page.len() < PAGE || status.more {
                return Ok(status);
            }
        }
    }

    fn count(&mut self, turn: &OpenTurn, now: Timestamp) {
        let Some(due) = turn.due.filter(|due| *due > now) else {
            match Role::of(turn) {
                Role::Agent => self.waiting.agents += 1,
                Role::Aggregator => self.waiting.aggregators += 1,
            }
            return;
        };
        let list = match turn.key.name.core() {
            Some(Core::Deadline(_)) => &mut self.fan_ins,
            Some(Core::ParkExpiry(_)) => &mut self.questions,
            Some(_) | None => {
                self.later += 1;
                return;
            }
        };
        if list.len() < LISTED {
            list.push(StatusTurn::new(&turn.key, Some(due)));
        }
    }
}

/// No process works on a store.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl Presence for Nobody {
    fn processes(&self) -> BoxFuture<'_, Result<Vec<Process>, JournalError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn in_hand(&self, _: usize) -> BoxFuture<'_, Result<Vec<TurnInHand>, JournalError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// The only process that works on a store.
#[derive(Debug)]
pub struct Alone {
    orchestrator: Arc<Orchestrator>,
    process: Process,
}

impl Alone {
    /// With what this loop has in hand.
    pub fn new(orchestrator: &Arc<Orchestrator>, process: Process) -> Self {
        Self { orchestrator: Arc::clone(orchestrator), process }
    }
}

impl Presence for Alone {
    fn processes(&self) -> BoxFuture<'_, Result<Vec<Process>, JournalError>> {
        Box::pin(std::future::ready(Ok(vec![self.process.clone()])))
    }

    fn in_hand(&self, limit: usize) -> BoxFuture<'_, Result<Vec<TurnInHand>, JournalError>> {
        let claims = [Role::Agent, Role::Aggregator].map(|role| self.orchestrator.claims.of_role(role)).concat();
        let mut turns: Vec<_> = claims.into_iter().map(|claim| claim.turn).collect();
        turns.sort();
        turns.truncate(limit);
        let held = turns.into_iter().map(|turn| TurnInHand { turn, until: None }).collect();
        Box::pin(std::future::ready(Ok(held)))
    }
}
