//! A journal in front of another one. A layer changes some calls and passes the others on.

use crate::ports::{
    BoxFuture, Claim, Claiming, Commit, Journal, JournalError, OpenTurn, Outcome, RunFilter, RunPage, Service,
    SessionLog, SetAside, TurnKey,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};

pub type JournalFuture<'a, T> = BoxFuture<'a, Result<T, JournalError>>;

/// What lies between a caller and a journal.
pub trait Layer: Send + Sync + std::fmt::Debug {
    fn journal(&self) -> &dyn Journal;

    /// Every call goes through here by its name, and nothing of it has happened yet: it can wait, fail or never return.
    fn pass<'a, T: Send + 'a>(&'a self, name: &'static str, call: JournalFuture<'a, T>) -> JournalFuture<'a, T> {
        let _ = name;
        call
    }

    /// A commit is asked for, whatever becomes of it.
    fn asked_to_commit(&self, commit: &Commit) {
        let _ = commit;
    }

    fn commit(&self, commit: Commit) -> JournalFuture<'_, Outcome> {
        self.journal().commit(commit)
    }

    fn load<'a>(&'a self, workspace: &'a Workspace, session: &'a SessionId) -> JournalFuture<'a, Option<SessionLog>> {
        self.journal().load(workspace, session)
    }

    fn end<'a>(&'a self, workspace: &'a Workspace, session: &'a SessionId) -> JournalFuture<'a, Option<Arc<Record>>> {
        self.journal().end(workspace, session)
    }

    fn claim<'a>(&'a self, claim: &'a Claim, life: Duration) -> JournalFuture<'a, Claiming> {
        self.journal().claim(claim, life)
    }

    fn renew<'a>(&'a self, claim: &'a Claim, life: Duration) -> JournalFuture<'a, bool> {
        self.journal().renew(claim, life)
    }

    fn due_turns<'a>(
        &'a self,
        until: Timestamp,
        after: Option<&'a TurnKey>,
        limit: usize,
    ) -> JournalFuture<'a, Vec<OpenTurn>> {
        self.journal().due_turns(until, after, limit)
    }
}

/// A journal behind a layer.
#[derive(Debug)]
pub struct Layered<L>(pub L);

impl<L: Layer> Journal for Layered<L> {
    fn commit(&self, commit: Commit) -> JournalFuture<'_, Outcome> {
        self.0.asked_to_commit(&commit);
        self.0.pass("commit", Box::pin(async move { self.0.commit(commit).await }))
    }

    fn load<'a>(&'a self, workspace: &'a Workspace, session: &'a SessionId) -> JournalFuture<'a, Option<SessionLog>> {
        self.0.pass("load", Box::pin(async move { self.0.load(workspace, session).await }))
    }

    fn end<'a>(&'a self, workspace: &'a Workspace, session: &'a SessionId) -> JournalFuture<'a, Option<Arc<Record>>> {
        self.0.pass("end", Box::pin(async move { self.0.end(workspace, session).await }))
    }

    fn is_open<'a>(&'a self, turn: &'a TurnKey) -> JournalFuture<'a, bool> {
        self.0.pass("is_open", Box::pin(async move { self.0.journal().is_open(turn).await }))
    }

    fn claim<'a>(&'a self, claim: &'a Claim, life: Duration) -> JournalFuture<'a, Claiming> {
        self.0.pass("claim", Box::pin(async move { self.0.claim(claim, life).await }))
    }

    fn renew<'a>(&'a self, claim: &'a Claim, life: Duration) -> JournalFuture<'a, bool> {
        self.0.pass("renew", Box::pin(async move { self.0.renew(claim, life).await }))
    }

    fn give_back<'a>(&'a self, claim: &'a Claim) -> JournalFuture<'a, ()> {
        self.0.pass("give_back", Box::pin(async move { self.0.journal().give_back(claim).await }))
    }

    fn in_hand<'a>(&'a self, workspace: &'a Workspace) -> JournalFuture<'a, HashSet<RunId>> {
        self.0.pass("in_hand", Box::pin(async move { self.0.journal().in_hand(workspace).await }))
    }

    fn keep_back<'a>(&'a self, turns: &'a [TurnKey]) -> JournalFuture<'a, ()> {
        self.0.pass("keep_back", Box::pin(async move { self.0.journal().keep_back(turns).await }))
    }

    fn begin_trial<'a>(&'a self, turns: &'a [TurnKey], now: Timestamp) -> JournalFuture<'a, ()> {
        self.0.pass("begin_trial", Box::pin(async move { self.0.journal().begin_trial(turns, now).await }))
    }

    fn acquit<'a>(&'a self, turns: &'a [TurnKey]) -> JournalFuture<'a, ()> {
        self.0.pass("acquit", Box::pin(async move { self.0.journal().acquit(turns).await }))
    }

    fn set_aside(&self, aside: SetAside) -> JournalFuture<'_, ()> {
        self.0.pass("set_aside", Box::pin(async move { self.0.journal().set_aside(aside).await }))
    }

    fn sign_of_life(&self, now: Timestamp) -> JournalFuture<'_, ()> {
        self.0.pass("sign_of_life", Box::pin(async move { self.0.journal().sign_of_life(now).await }))
    }

    fn service(&self) -> Service {
        self.0.journal().service()
    }

    fn due_turns<'a>(
        &'a self,
        until: Timestamp,
        after: Option<&'a TurnKey>,
        limit: usize,
    ) -> JournalFuture<'a, Vec<OpenTurn>> {
        self.0.pass("due_turns", Box::pin(async move { self.0.due_turns(until, after, limit).await }))
    }

    fn turns_of<'a>(&'a self, workspace: &'a Workspace, run: &'a RunId) -> JournalFuture<'a, Vec<OpenTurn>> {
        self.0.pass("turns_of", Box::pin(async move { self.0.journal().turns_of(workspace, run).await }))
    }

    fn open_runs(&self) -> JournalFuture<'_, usize> {
        self.0.pass("open_runs", Box::pin(async move { self.0.journal().open_runs().await }))
    }

    fn run<'a>(&'a self, workspace: &'a Workspace, run: &'a RunId) -> JournalFuture<'a, Option<RunSummary>> {
        self.0.pass("run", Box::pin(async move { self.0.journal().run(workspace, run).await }))
    }

    fn runs<'a>(
        &'a self,
        workspace: &'a Workspace,
        filter: &'a RunFilter,
        cursor: Option<&'a str>,
        limit: usize,
    ) -> JournalFuture<'a, RunPage> {
        self.0.pass("runs", Box::pin(async move { self.0.journal().runs(workspace, filter, cursor, limit).await }))
    }

    fn with_prefix<'a>(
        &'a self,
        workspace: &'a Workspace,
        start: &'a str,
        limit: usize,
    ) -> JournalFuture<'a, Vec<RunId>> {
        self.0.pass("with_prefix", Box::pin(async move { self.0.journal().with_prefix(workspace, start, limit).await }))
    }

    /// Readers outlive the writer: what is committed can be read, whatever becomes of the process.
    fn events<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
        after: u64,
        limit: usize,
    ) -> JournalFuture<'a, Vec<Arc<Record>>> {
        self.0.journal().events(workspace, run, after, limit)
    }
}

/// Grants every claim, as if each one before had just expired: nothing but the rules of commits keeps two workers from
/// doing the same.
#[derive(Debug)]
pub struct WithoutClaims(pub Arc<dyn Journal>);

impl Layer for WithoutClaims {
    fn journal(&self) -> &dyn Journal {
        &*self.0
    }

    fn claim<'a>(&'a self, claim: &'a Claim, _: Duration) -> JournalFuture<'a, Claiming> {
        Box::pin(async move {
            let open = self.0.is_open(&claim.turn).await?;
            Ok(if open { Claiming::Claimed { begun: 1, expires: false } } else { Claiming::Closed })
        })
    }
}
