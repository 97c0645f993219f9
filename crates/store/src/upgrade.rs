//! What a newer program adds to an older folder.

use crate::keys::{self, prefix};
use crate::tables::{Tables, read_failed, unreadable};
use fjall::PersistMode;
use trellis_domain::run::RunSummary;
use trellis_orchestrator::ports::JournalError;

/// Says that conversations have their lists. Shorter than any list's key.
const LISTED: &[u8] = &[prefix::CONVERSATION];

/// Conversations have lists of their own; a folder from before gets them once.
pub(crate) fn list_conversations(tables: &Tables) -> Result<(), JournalError> {
    let reader = tables.read();
    if reader.index(LISTED)?.is_some() {
        return Ok(());
    }
    let mut batch = tables.database.batch().durability(Some(PersistMode::SyncData));
    for row in reader.index_prefix(&[prefix::RUN]) {
        let value = row.value().map_err(read_failed)?;
        let run: RunSummary = serde_json::from_slice(&value).map_err(|error| unreadable(error.into()))?;
        if let Some(conversation) = &run.conversation {
            let list = keys::conversation(&run.workspace, conversation);
            batch.insert(&tables.index, keys::listed(&list, run.started, &run.run), Vec::new());
        }
    }
    batch.insert(&tables.index, LISTED, Vec::new());
    batch.commit().map_err(|error| JournalError::Write(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::{ConversationId, Workspace};

    #[test]
    fn an_older_folder_gets_the_lists_of_its_conversations_once() {
        let folder = tempfile::TempDir::new().unwrap();
        let tables = Tables::open(folder.path()).unwrap();
        let row = r#"{"workspace": "default", "run": "r", "state": "answered", "question": "why?", "pattern": "react",
            "task_type": "general", "conversation": "c", "started": 5, "ended": 6, "seq": 1, "usage": {}}"#;
        let run: RunSummary = serde_json::from_str(row).unwrap();
        tables.index.insert(keys::run(&run.workspace, &run.run), row).unwrap();
        list_conversations(&tables).unwrap();
        let list = keys::conversation(&Workspace::default(), &ConversationId::new("c").unwrap());
        let listed = keys::listed(&list, run.started, &run.run);
        assert!(tables.read().index(&listed).unwrap().is_some());
        tables.index.remove(listed.clone()).unwrap();
        list_conversations(&tables).unwrap();
        assert!(tables.read().index(&listed).unwrap().is_none(), "not looked for again");
    }
}
