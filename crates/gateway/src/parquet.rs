//! Parquet files that somebody sends: each is kept on disk and takes a process of its own for as long as it is loaded.

use crate::wiring::ParquetReader;
use std::io::Read;
use trellis_domain::Workspace;
use trellis_orchestrator::documents::{Entered, Gate};
use trellis_tabular::parquet::Unpacked;

/// Files that are read at once, in all and of one workspace.
const AT_ONCE: usize = 2;
const OF_ONE_WORKSPACE: usize = 1;

/// Whose turn it is to have a file read.
#[derive(Debug)]
pub(crate) struct Parquet {
    reader: ParquetReader,
    turns: Gate,
}

impl Parquet {
    pub(crate) fn new(reader: ParquetReader) -> Self {
        let turns = Gate::new(AT_ONCE, OF_ONE_WORKSPACE, reader.patience);
        Self { reader, turns }
    }

    /// None if it was not its turn in time. Nothing of the file is taken in before that.
    pub(crate) async fn turn(&self, workspace: &Workspace) -> Option<Entered> {
        self.turns.enter(workspace).await
    }

    pub(crate) fn unpacked(&self, file: Box<dyn Read + Send>) -> Unpacked {
        Unpacked::stream(self.reader.program.clone(), file, self.reader.folder.clone())
    }
}
