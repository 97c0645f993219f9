//! The search index in memory keeps the contract.

use std::sync::Arc;
use trellis_orchestrator::contract::search;
use trellis_orchestrator::memory::MemorySearch;

#[tokio::test]
async fn the_search_index_in_memory_keeps_its_contract() {
    search::suite(async || Arc::new(MemorySearch::default()) as _).await;
}
