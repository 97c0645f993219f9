//! The embedded search index keeps its contract, and survives what happens to processes and files.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod apart;
mod killed;
mod reopened;

use parking_lot::Mutex;
use std::sync::Arc;
use tempfile::TempDir;
use trellis_orchestrator::contract::search;
use trellis_orchestrator::ports::Search;
use trellis_search::EmbeddedSearch;

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_search_index_keeps_its_contract() {
    let folders = Mutex::new(Vec::new());
    search::suite(async || {
        let folder = TempDir::new().unwrap();
        let search = EmbeddedSearch::new(&folder.path().join("search"));
        folders.lock().push(folder);
        Arc::new(search) as Arc<dyn Search>
    })
    .await;
}
