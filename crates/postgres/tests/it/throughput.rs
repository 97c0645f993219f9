//! How fast commits are. Figures are printed (`--nocapture`); what is asserted is only that all of it arrives.

use crate::process;
use crate::server::Server;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use trellis_domain::Workspace;
use trellis_domain::record::Name;
use trellis_orchestrator::contract;
use trellis_orchestrator::ports::{Commit, Journal, Log, NewRecord, Outcome};
use trellis_postgres::{PostgresJournal, PostgresLog};

const AT_ONCE: usize = 64;
const SESSIONS: usize = 600;
/// As a question with three tool calls has.
const COMMITS: usize = 9;

/// Whole sessions' worth of commits, one after the other in each, 64 sessions at once.
async fn sessions(journals: &[Arc<PostgresJournal>]) -> Duration {
    let (next, begun) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let mut writers = JoinSet::new();
    for writer in 0..AT_ONCE {
        let (journal, next) = (Arc::clone(&journals[writer % journals.len()]), Arc::clone(&next));
        writers.spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= SESSIONS {
                    return;
                }
                let first = contract::journal::first_of(&format!("s{n}"));
                let seen = contract::journal::observation(&first, &"a fact about something. ".repeat(60));
                for commit in 0..COMMITS {
                    let record = NewRecord { name: Name::new(format!("n{commit}")), ..seen.clone() };
                    let later = Commit { records: vec![record], close: vec![], open: vec![], ..first.clone() };
                    let commit = if commit == 0 { first.clone() } else { later };
                    assert!(matches!(journal.commit(commit).await.unwrap(), Outcome::Committed(_)));
                }
            }
        });
    }
    writers.join_all().await;
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_per_second_at_64_sessions() {
    for processes in [1, 3] {
        let server = Server::start();
        let mut journals = Vec::new();
        for _ in 0..processes {
            journals.push(process(&server, "t").await);
        }
        let took = sessions(&journals).await.as_secs_f64();
        let log = PostgresLog::open(&journals[0]).await.unwrap();
        let behind = log.behind().await.unwrap();
        let begun = Instant::now();
        log.checkpoint().await.unwrap();
        let commits = u32::try_from(SESSIONS * COMMITS).unwrap();
        println!(
            "{processes} processes: {:.0} commits per second, {:.0} sessions per second; log {behind} behind, caught up in {:?}",
            f64::from(commits) / took,
            f64::from(commits) / took / 9.0,
            begun.elapsed(),
        );
        let open = journals[0].open_runs().await.unwrap();
        assert_eq!(open, SESSIONS);
        let events =
            journals[0].events(&Workspace::default(), &trellis_domain::RunId::new("s1").unwrap(), 0, 100).await;
        assert_eq!(events.unwrap().len(), COMMITS + 1);
    }
}
