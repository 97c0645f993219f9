//! Lists of runs: what a commit writes for them, and how they are read.
//!
//! A workspace has a list of all runs and one for each way of ending; a conversation has one, too. All are newest first.
//! The rows of the workspace's lists carry the question as it is searched, so that a search reads one row after the
//! other and only the runs that it finds. Runs that are open are few and known in memory.
//!
//! However rare what is looked for is, a page looks at a bounded number of rows and says where to go on.

use crate::keys;
use crate::state::Shared;
use crate::tables::{Reader, Tables, read_failed};
use std::collections::BTreeSet;
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::ports::{JournalError, RunFilter, RunPage, UnreadableRun};

/// Rows that one page looks at: some milliseconds.
const MOST_ROWS: usize = 20_000;
/// Runs that one page reads and that do not fit.
const MOST_IN_VAIN: usize = 1_000;

/// The rows of a run that has begun, or ended, with a commit.
pub(crate) fn rows(run: &RunSummary, began: bool, ended: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let conversation = run.conversation.as_ref().map(|id| keys::conversation(&run.workspace, id));
    let of_beginning = [(Some(keys::listed_in(&run.workspace)), searched(&run.question)), (conversation, Vec::new())];
    let of_end = ended.then(|| (Some(keys::ended_in(&run.workspace, run.state)), searched(&run.question)));
    let lists = of_beginning.into_iter().filter(|_| began).chain(of_end);
    lists.filter_map(|(list, value)| Some((keys::listed(&list?, run.started, &run.run), value))).collect()
}

/// A question as it is searched. Never empty: a row without it is of an older program.
fn searched(question: &str) -> Vec<u8> {
    format!("q{}", question.to_lowercase()).into_bytes()
}

/// What a page is made from.
struct Search<'a> {
    reader: &'a Reader<'a>,
    workspace: &'a Workspace,
    filter: &'a RunFilter,
    /// The text that is looked for, as rows have it.
    text: Option<String>,
    limit: usize,
    page: RunPage,
    rows: usize,
    in_vain: usize,
}

/// A page of runs, newest first.
pub(crate) fn page(
    tables: &Tables,
    shared: &Shared,
    workspace: &Workspace,
    filter: &RunFilter,
    cursor: Option<&str>,
    limit: usize,
) -> Result<RunPage, JournalError> {
    let reader = tables.read();
    let text = filter.search.as_ref().map(|text| text.to_lowercase());
    let page = RunPage::default();
    let mut search = Search { reader: &reader, workspace, filter, text, limit, page, rows: 0, in_vain: 0 };
    let from = match cursor.and_then(|run| RunId::new(run).ok()) {
        Some(run) => reader.run(workspace, &run)?,
        None => None,
    };
    let from =
        |list: &[u8]| from.as_ref().map_or_else(|| list.to_vec(), |run| keys::listed(list, run.started, &run.run));
    match (&filter.conversation, filter.state) {
        (Some(conversation), _) => {
            let list = keys::conversation(workspace, conversation);
            search.list(&list, from(&list))?;
        }
        (None, Some(state)) if state.is_end() => {
            let list = keys::ended_in(workspace, state);
            search.list(&list, from(&list))?;
        }
        (None, Some(_)) => {
            let list = keys::listed_in(workspace);
            search.open(shared, &list, &from(&list));
        }
        (None, None) => {
            let list = keys::listed_in(workspace);
            search.list(&list, from(&list))?;
        }
    }
    Ok(search.page)
}

impl Search<'_> {
    fn list(&mut self, list: &[u8], from: Vec<u8>) -> Result<(), JournalError> {
        let oldest = self.filter.since.map(|since| keys::listed_since(list, since));
        for row in self.reader.index_range(from..) {
            let (key, value) = row.into_inner().map_err(read_failed)?;
            if !key.starts_with(list) || oldest.as_ref().is_some_and(|oldest| key[..] > oldest[..]) {
                break;
            }
            let Some(run) = keys::listed_run(&key, list) else { continue };
            self.rows += 1;
            let tired = self.rows > MOST_ROWS || self.in_vain > MOST_IN_VAIN;
            let ruled_out = match (&self.text, value.split_first()) {
                (Some(text), Some((_, question))) => !contains(question, text),
                (Some(_), None) | (None, _) => false,
            };
            if ruled_out && !tired {
                continue;
            }
            if self.look(&run, tired) {
                break;
            }
        }
        Ok(())
    }

    /// Reads a run and takes it if it fits. True if the page ends before it.
    fn look(&mut self, run: &RunId, tired: bool) -> bool {
        let summary = match self.reader.run(self.workspace, run) {
            Ok(Some(summary)) => summary,
            Ok(None) => {
                self.name(run, "its entry in the index is missing".to_owned());
                return false;
            }
            Err(error) => {
                self.name(run, error.to_string());
                return false;
            }
        };
        let fits = self.filter.matches(&summary);
        if tired || (fits && self.page.runs.len() == self.limit) {
            self.page.next = Some(run.as_str().to_owned());
            return true;
        }
        if fits {
            self.page.runs.push(summary);
        } else {
            self.in_vain += 1;
        }
        false
    }

    fn name(&mut self, run: &RunId, reason: String) {
        self.page.unreadable.push(UnreadableRun { run: run.clone(), reason });
    }

    /// Runs without an end, which always have an open turn.
    fn open(&mut self, shared: &Shared, list: &[u8], from: &[u8]) {
        let open: BTreeSet<RunId> = {
            let turns = shared.turns();
            turns.keys().filter(|turn| turn.scope.workspace == *self.workspace).map(|turn| turn.run.clone()).collect()
        };
        let mut found = Vec::new();
        for run in open {
            match self.reader.run(self.workspace, &run) {
                Ok(Some(summary)) if self.filter.matches(&summary) => {
                    found.push((keys::listed(list, summary.started, &run), summary));
                }
                // Begun after this look at the tables.
                Ok(Some(_) | None) => {}
                Err(error) => self.name(&run, error.to_string()),
            }
        }
        found.retain(|(key, _)| key.as_slice() >= from);
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut found = found.into_iter().map(|(_, summary)| summary);
        self.page.runs.extend(found.by_ref().take(self.limit));
        self.page.next = found.next().map(|run| run.run.as_str().to_owned());
    }
}

fn contains(question: &[u8], text: &str) -> bool {
    std::str::from_utf8(question).is_ok_and(|question| question.contains(text))
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
