//! The library in memory keeps its contract.

use proptest::prelude::*;
use std::sync::Arc;
use trellis_orchestrator::contract::library;
use trellis_orchestrator::memory::{MemoryJournal, MemoryLibrary};
use trellis_orchestrator::ports::{Journal, RealWorld, World};

fn fresh(world: Arc<dyn World>) -> library::LibraryStore {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    (Arc::new(MemoryLibrary::new(Arc::clone(&journal), world)), journal)
}

#[tokio::test]
async fn the_library_in_memory_keeps_its_contract() {
    library::suite(async |world| fresh(world)).await;
}

proptest! {
    #[test]
    fn any_content_in_any_pieces_comes_back_in_any_range(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        piece in 0..60_u64,
        turn in any::<usize>(),
        range in (0..220_u64, 0..220_u64),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (library, _) = fresh(Arc::new(RealWorld));
        runtime.block_on(library::any_pieces_come_back(&*library, "d", &bytes, piece, turn, range));
    }
}
