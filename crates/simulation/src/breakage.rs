//! Deliberate mistakes in the layer between the orchestrator and its ports, one for each rule that holds a promise. A
//! simulation that does not notice them proves nothing.

use crate::recorder::Recorder;
use std::collections::BTreeMap;
use std::sync::Arc;
use strum::VariantArray as _;
use trellis_domain::record::{Body, Cause, Core, FORMAT, Header, Name, Record};
use trellis_domain::sealed::seal;
use trellis_domain::{Hash, SessionId, Workspace};
use trellis_orchestrator::ports::{Commit, Committed, Journal, NewRecord, Outcome};

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString, strum::VariantArray)]
pub enum Breakage {
    /// A commit is not held against the version that it was decided from.
    NoSeenCheck,
    /// The journal does not tell which turns are open: only wake-ups do.
    TurnsOnlyInTheQueue,
    /// Some workers end a session under another key.
    TwoKeysForTheEnd,
    /// A subagent decides at its end whether it is the last, from what it saw when it was loaded.
    JoinDecidedByTheChild,
    /// A commit returns before it has happened.
    ActedOnBeforeItIsRecorded,
    /// Subagents get ids that nobody can compute.
    DrawnIds,
    /// Siblings with the same goal are taken for one.
    SiblingsKeyedByGoal,
    /// A worker tells the caller that the dialog is over when it tries to end the run.
    EndOfDialogByTheWorker,
    /// A commit that waits for its flush is not seen by the next: its names count as free.
    StaleHead,
    /// Claims run out while their turns are handled.
    ClaimsNotRenewed,
    /// That a call is about to be made is not recorded.
    IntentsNotRecorded,
    /// Text from another process is placed behind what has arrived, not behind what was written.
    TextPlacedAsItArrives,
}

impl Breakage {
    pub const ALL: &'static [Self] = Self::VARIANTS;
}

/// A commit with a mistake in it.
pub(crate) async fn mistaken(
    breakage: Breakage,
    process: usize,
    mut commit: Commit,
    journal: &dyn Journal,
    recorder: &Recorder,
) -> Commit {
    match breakage {
        Breakage::NoSeenCheck => {
            let workspace = commit.scope.workspace.clone();
            commit.seen = version(journal, &workspace, &commit.session).await.unwrap_or(commit.seen);
            for (session, seen) in &mut commit.seen_of_others {
                *seen = version(journal, &workspace, session).await.unwrap_or(*seen);
            }
        }
        Breakage::TwoKeysForTheEnd if process % 2 == 1 => {
            for record in commit.records.iter_mut().filter(|record| record.name == Name::end()) {
                record.name = Name::new("finish");
            }
        }
        Breakage::JoinDecidedByTheChild => {
            if !saw_all_others_end(process, &commit, journal, recorder).await {
                commit.open.retain(|turn| !matches!(turn.name.core(), Some(Core::Check { .. })));
            }
        }
        Breakage::IntentsNotRecorded => commit.records.retain(|record| record.name.as_intent().is_none()),
        Breakage::DrawnIds => draw_ids(&mut commit, recorder),
        Breakage::SiblingsKeyedByGoal => commit.records.iter_mut().for_each(merge_members),
        Breakage::TwoKeysForTheEnd
        | Breakage::TurnsOnlyInTheQueue
        | Breakage::ActedOnBeforeItIsRecorded
        | Breakage::EndOfDialogByTheWorker
        | Breakage::StaleHead
        | Breakage::ClaimsNotRenewed
        | Breakage::TextPlacedAsItArrives => {}
    }
    commit
}

async fn version(journal: &dyn Journal, workspace: &Workspace, session: &SessionId) -> Option<u64> {
    Some(journal.load(workspace, session).await.ok()??.version)
}

/// Whether the siblings of an ending session had ended when it was loaded.
async fn saw_all_others_end(process: usize, commit: &Commit, journal: &dyn Journal, recorder: &Recorder) -> bool {
    let workspace = &commit.scope.workspace;
    let Ok(Some(own)) = journal.load(workspace, &commit.session).await else { return true };
    let accepted = own.records.first().and_then(|record| record.body.as_accepted());
    let Some(parent) = accepted.and_then(|accepted| accepted.parent.clone()) else { return true };
    let Ok(Some(above)) = journal.load(workspace, &parent.session).await else { return true };
    let mut fan_outs = above.records.iter().filter_map(|record| record.body.as_fanned_out());
    let Some(fan_out) = fan_outs.find(|fan_out| fan_out.round == parent.round) else { return true };
    let seen = recorder.seen();
    let loaded_at = seen.loaded_at(process, workspace, &commit.session);
    let others = fan_out.goals.iter().filter(|goal| goal.session != commit.session);
    others.into_iter().all(|goal| {
        let end = (workspace.clone(), goal.session.clone(), Name::end());
        seen.recorded.get(&end).is_some_and(|recorded| recorded.order <= loaded_at)
    })
}

fn draw_ids(commit: &mut Commit, recorder: &Recorder) {
    let goals = commit.records.iter().filter_map(|record| record.body.as_fanned_out());
    let children: Vec<_> = goals.flat_map(|fan_out| fan_out.goals.iter().map(|goal| goal.session.clone())).collect();
    let drawn: BTreeMap<SessionId, SessionId> = children
        .into_iter()
        .filter_map(|child| Some((child, SessionId::new(&format!("drawn-{}", recorder.seen().draw())).ok()?)))
        .collect();
    let redrawn = |id: &mut SessionId| {
        if let Some(new) = drawn.get(id) {
            *id = new.clone();
        }
    };
    for record in &mut commit.records {
        redrawn(&mut record.session);
        if let Body::FannedOut(fan_out) = &mut record.body {
            fan_out.goals.iter_mut().for_each(|goal| redrawn(&mut goal.session));
        }
    }
    commit.open.iter_mut().for_each(|turn| redrawn(&mut turn.session));
}

fn merge_members(record: &mut NewRecord) {
    let Body::Joined(joined) = &mut record.body else { return };
    let mut first = BTreeMap::new();
    for member in &mut joined.members {
        let known = first.entry(member.goal.clone()).or_insert_with(|| member.clone()).clone();
        (member.reason, member.answer, member.error) = (known.reason, known.answer, known.error);
    }
}

/// What a committer would say if it had written this.
pub(crate) fn as_if_committed(commit: &Commit) -> Outcome {
    let version = commit.seen + 1;
    let record = |new: &NewRecord| {
        let header = Header {
            format: FORMAT,
            workspace: commit.scope.workspace.clone(),
            flow: commit.scope.flow.clone(),
            run: commit.run.clone(),
            session: new.session.clone(),
            name: new.name.clone(),
            seq: 0,
            version,
            causes: new.causes.iter().map(Cause::clone).collect(),
            parents: Vec::new(),
            content: Hash::of(&seal(&new.body, [0; 32]).body),
            config: new.config,
            attempt: new.attempt,
            late: false,
            trace: None,
            time: new.time,
        };
        Arc::new(Record { header, body: new.body.clone() })
    };
    Outcome::Committed(Committed { version, records: commit.records.iter().map(record).collect(), opened: Vec::new() })
}
