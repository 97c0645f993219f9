//! Tables in memory keep the contract.

use std::sync::Arc;
use trellis_orchestrator::contract::tables;
use trellis_orchestrator::memory::MemoryTables;

#[tokio::test]
async fn tables_in_memory_keep_their_contract() {
    tables::suite(async || Arc::new(MemoryTables::default()) as _).await;
}
