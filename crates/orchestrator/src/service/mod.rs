//! Runs, for whoever asks for them, follows them or ends them: command line, gateway, tests.
//!
//! This is the only way to a run from outside. What it is made of (the journal, the hub, the executor of turns) stays
//! inside, so that a surface cannot get around the rules.

mod pages;
mod subscription;
mod view;

pub use pages::{PageError, RecordPage};
pub use subscription::RunSubscription;

use crate::accept::{AcceptError, Acceptance, Earlier, Question};
use crate::answer::{Answered, Answering, DecideError};
use crate::cancel::Cancelling;
use crate::hub::Hub;
use crate::library::RunDocuments;
use crate::orchestrator::{Orchestrator, TurnError};
use crate::ports::{Journal, JournalError, Presence, World, all_due_turns};
use crate::status::Status;
use crate::tell::{TellError, Telling};
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::ids::InvalidId;
use trellis_domain::record::Record;
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::{Caller, RequestId, RunId, Workspace};

/// The runs of a store. A cheap handle: clones share everything.
#[derive(Debug, Clone)]
pub struct RunService {
    journal: Arc<dyn Journal>,
    hub: Arc<Hub>,
    world: Arc<dyn World>,
    executor: Arc<Orchestrator>,
}

impl RunService {
    pub fn new(executor: &Arc<Orchestrator>) -> Self {
        let ports = &executor.ports;
        Self {
            journal: Arc::clone(&ports.journal),
            hub: Arc::clone(&ports.hub),
            world: Arc::clone(&ports.world),
            executor: Arc::clone(executor),
        }
    }

    /// An id for a request that brings none of its own.
    pub fn new_request_id(&self) -> Result<RequestId, InvalidId> {
        RequestId::new(&self.world.fresh_id())
    }

    /// Accepts a question, or attaches to the run that answers the same request already.
    ///
    /// A session id that the caller chose may serve for several questions: each gets a session beside it. A request
    /// id names one request only.
    pub async fn accept(&self, question: Question) -> Result<Acceptance, AcceptError> {
        self.accept_after(question, &Earlier::OfConversation).await
    }

    /// The same for a question that has something else before it than its conversation.
    pub async fn accept_after(&self, question: Question, earlier: &Earlier) -> Result<Acceptance, AcceptError> {
        self.executor.accept(question, earlier).await
    }

    /// Ends a run that has not ended, for somebody whom the record names. The end is durable when this returns.
    pub async fn cancel(&self, workspace: &Workspace, run: &RunId, by: &Caller) -> Result<Cancelling, TurnError> {
        self.executor.cancel(workspace, run, by).await
    }

    /// Answers a question that a run waits for. The decision is durable when this returns.
    pub async fn decide(
        &self,
        workspace: &Workspace,
        run: &RunId,
        answer: &Answering,
    ) -> Result<Answered, DecideError> {
        self.executor.decide(workspace, run, answer).await
    }

    /// Tells a run something while it is under way: what its models are asked next, they are asked knowing it. All agents that
    /// are at work hear it. An answer that was given before is not taken back.
    pub async fn tell(
        &self,
        workspace: &Workspace,
        run: &RunId,
        text: &str,
        by: &Caller,
    ) -> Result<Telling, TellError> {
        self.executor.tell(workspace, run, text, by).await
    }

    /// Follows a run from after that sequence number on.
    pub fn follow(&self, workspace: &Workspace, run: &RunId, after: u64) -> RunSubscription {
        RunSubscription::new(self.hub.subscribe(workspace, run, after), Arc::clone(&self.journal))
    }

    /// Where a run stands now. What a worker has in hand is running, even if nothing of it is recorded yet.
    pub async fn find(&self, workspace: &Workspace, run: &RunId) -> Result<Option<RunSummary>, JournalError> {
        let Some(mut found) = self.journal.run(workspace, run).await? else { return Ok(None) };
        if found.state == RunState::Queued && self.journal.in_hand(workspace).await?.contains(run) {
            found.state = RunState::Running;
        }
        Ok(Some(found))
    }

    /// The record of a run's end, if it has ended.
    pub async fn end(&self, workspace: &Workspace, run: &RunId) -> Result<Option<Arc<Record>>, JournalError> {
        self.journal.end(workspace, run).await
    }

    /// The texts that runs have thought, observed and answered.
    pub fn texts(&self) -> RunDocuments {
        RunDocuments::new(Arc::clone(&self.journal))
    }

    /// How many runs of all workspaces have no end.
    pub async fn count_open(&self) -> Result<usize, JournalError> {
        self.journal.open_runs().await
    }

    /// How those are getting on who work on the store.
    pub async fn status(&self, presence: &dyn Presence) -> Result<Status, JournalError> {
        Status::of(&*self.journal, presence, self.world.now()).await
    }

    /// Runs of all workspaces that have something left to do, now or later. A run that has ended may have left a turn
    /// behind, which whoever takes it closes: there is nothing to finish in it.
    pub async fn unfinished(&self) -> Result<BTreeSet<(Workspace, RunId)>, JournalError> {
        let turns = all_due_turns(&*self.journal, self.world.now().plus_ms(u64::MAX / 2000)).await?;
        let mut open: BTreeSet<_> = turns.into_iter().map(|turn| (turn.key.scope.workspace, turn.key.run)).collect();
        for (workspace, run) in open.clone() {
            // One that cannot be read counts: whoever goes on with it is told why.
            let summary = self.journal.run(&workspace, &run).await.ok().flatten();
            if summary.is_some_and(|summary| summary.state.is_end()) {
                open.remove(&(workspace, run));
            }
        }
        Ok(open)
    }
}
