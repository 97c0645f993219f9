//! The embedded engine keeps the contracts of its ports, and survives what happens to files.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may fail loudly")]

mod damage;
mod graph;

use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use trellis_orchestrator::contract::{config, journal, runs};
use trellis_orchestrator::ports::{Config, Journal, RealWorld};
use trellis_store::{Holder, OpenError, Store};

pub(crate) fn holder() -> Holder {
    Holder { pid: std::process::id(), command: "test".into(), url: None }
}

pub(crate) fn open(path: &Path) -> Result<Store, OpenError> {
    Store::open(path, &holder(), Arc::new(RealWorld))
}

/// Folders and stores that live as long as the test.
#[derive(Default)]
struct Stores(Mutex<Vec<(TempDir, Store)>>);

impl Stores {
    fn fresh(&self) -> runs::Store {
        let folder = TempDir::new().unwrap();
        let store = open(folder.path()).unwrap();
        let ports = (Arc::clone(&store.journal) as Arc<dyn Journal>, Arc::clone(&store.config) as Arc<dyn Config>);
        self.0.lock().unwrap().push((folder, store));
        ports
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_journal_keeps_the_commit_contract() {
    let stores = Stores::default();
    journal::suite(async || stores.fresh().0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_configuration_keeps_its_contract() {
    let stores = Stores::default();
    config::suite(async || stores.fresh().1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_on_the_embedded_engine_keep_the_promises() {
    let stores = Stores::default();
    runs::suite(async || stores.fresh()).await;
}
