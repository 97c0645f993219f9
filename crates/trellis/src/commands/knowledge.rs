//! What is loaded, by collection.

use crate::cli::{Global, KnowledgeCommand, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{note, print_json, print_line, table};
use serde_json::json;
use trellis_domain::{Collection, counted};
use trellis_orchestrator::ports::{LoadedBy, LoadedCollection};

pub(crate) async fn run(global: &Global, command: &KnowledgeCommand) -> Result<Exit, Failure> {
    match command {
        KnowledgeCommand::List => list(&Desk::look(global, "knowledge list")?, global).await,
        KnowledgeCommand::Remove { collection } => {
            let collection = Collection::new(collection).map_err(|error| Failure::usage(error.to_string()))?;
            remove(&Desk::change(global, "knowledge remove")?, global, &collection).await
        }
    }
}

async fn list(desk: &Desk, global: &Global) -> Result<Exit, Failure> {
    let loaded = desk.collections().await?;
    if global.output == Output::Json {
        print_json(&json!({ "collections": loaded }).to_string())?;
        return Ok(Exit::Ok);
    }
    if loaded.is_empty() {
        note("nothing is loaded; `trellis load FILE` does it");
        return Ok(Exit::Ok);
    }
    let header = ["collection", "quads", "sources", "unfinished", "loaded by"].map(str::to_owned);
    let row = |found: &LoadedCollection| {
        vec![
            found.collection.to_string(),
            found.quads.to_string(),
            found.sources.to_string(),
            found.unfinished.len().to_string(),
            loaders(&found.loaded_by),
        ]
    };
    table(&header, &loaded.iter().map(row).collect::<Vec<_>>())?;
    for found in loaded.iter().filter(|found| !found.unfinished.is_empty()) {
        let sources = found.unfinished.join(", ");
        note(&format!("{}: only a part of these may be there, load them again: {sources}", found.collection));
    }
    Ok(Exit::Ok)
}

/// Who loaded something, in a cell of a table.
pub(super) fn loaders(loaded_by: &[LoadedBy]) -> String {
    loaded_by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

async fn remove(desk: &Desk, global: &Global, collection: &Collection) -> Result<Exit, Failure> {
    let quads = desk.remove_knowledge(collection).await?;
    if global.output == Output::Json {
        print_json(&json!({ "collection": collection, "quads": quads }).to_string())?;
    } else {
        print_line(&format!("removed {} from {collection}", counted(quads, "quad")))?;
    }
    Ok(Exit::Ok)
}
