//! Whole runs over PostgreSQL keep the promises.

use crate::server::Server;
use crate::{fresh, ports};
use trellis_orchestrator::contract::runs::StorePorts;
use trellis_orchestrator::contract::{runs, teams, trouble};

#[tokio::test(flavor = "multi_thread")]
async fn runs_keep_the_promises() {
    let server = Server::start();
    runs::suite(async || ports(&server, &fresh()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stops_every_process_is_set_aside() {
    let server = Server::start();
    runs::a_turn_that_stops_every_process_is_set_aside(ports(&server, "t").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn teams_keep_the_promises() {
    let server = Server::start();
    teams::suite(async || ports(&server, &fresh()).await).await;
}

/// A database that every process opens anew.
struct Place<'a>(&'a Server, String);

impl trouble::Reopenable for Place<'_> {
    async fn open(&self) -> StorePorts {
        ports(self.0, &self.1).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_may_die_between_any_two_commits() {
    let server = Server::start();
    let (scene, pattern) = trouble::scenes().pop().unwrap();
    trouble::a_run_survives_a_restart_between_any_two_commits(|| Place(&server, fresh()), &scene, pattern).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn disorder_changes_nothing() {
    let server = Server::start();
    for (scene, pattern) in trouble::scenes() {
        trouble::disorder_changes_nothing(async || ports(&server, &fresh()).await, &scene, pattern, 104_729).await;
    }
}
