//! Tables: which there are, what they say, and removing them.

use super::knowledge::loaders;
use crate::cli::{Global, Output, TablesCommand};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{note, print_json, print_line, table};
use serde_json::{Value, json};
use std::io::Read;
use trellis_domain::{Collection, counted};
use trellis_orchestrator::ports::LoadedTable;

/// Bytes of a query from standard input; a longer one is refused anyway.
const LONGEST: u64 = 64 << 10;

pub(crate) async fn run(global: &Global, command: &TablesCommand) -> Result<Exit, Failure> {
    let named = |name: &str| Collection::new(name).map_err(|error| Failure::usage(error.to_string()));
    match command {
        TablesCommand::List => list(&Desk::look(global, "tables list")?, global).await,
        TablesCommand::Query { query, collection } => {
            let (collection, query) = (named(collection)?, read(query)?);
            ask(&Desk::look(global, "tables query")?, global, &collection, query).await
        }
        TablesCommand::Remove { table, collection } => {
            let collection = named(collection)?;
            let rows = Desk::change(global, "tables remove")?.remove_table(&collection, table).await?;
            if global.output == Output::Json {
                print_json(&json!({"collection": collection, "table": table, "rows": rows}).to_string())?;
            } else {
                print_line(&format!("removed {table} with {} from {collection}", counted(rows, "row")))?;
            }
            Ok(Exit::Ok)
        }
    }
}

fn read(query: &str) -> Result<String, Failure> {
    if query != "-" {
        return Ok(query.to_owned());
    }
    let mut text = String::new();
    std::io::stdin().take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

async fn list(desk: &Desk, global: &Global) -> Result<Exit, Failure> {
    let tables = desk.tables().await?;
    if global.output == Output::Json {
        print_json(&json!({ "tables": tables }).to_string())?;
        return Ok(Exit::Ok);
    }
    if tables.is_empty() {
        note("no rows are loaded; `trellis load FILE.csv` does it");
        return Ok(Exit::Ok);
    }
    let header = ["collection", "table", "rows", "unfinished", "loaded by"].map(str::to_owned);
    let row = |found: &LoadedTable| {
        let (rows, unfinished) = (found.rows.to_string(), found.unfinished.len().to_string());
        vec![found.collection.to_string(), found.table.clone(), rows, unfinished, loaders(&found.loaded_by)]
    };
    table(&header, &tables.iter().map(row).collect::<Vec<_>>())?;
    for found in tables.iter().filter(|found| !found.unfinished.is_empty()) {
        let sources = found.unfinished.join(", ");
        note(&format!("{}: only a part of these may be there, load them again: {sources}", found.table));
    }
    Ok(Exit::Ok)
}

async fn ask(desk: &Desk, global: &Global, collection: &Collection, query: String) -> Result<Exit, Failure> {
    let answer = desk.query_tables(collection, query).await?;
    let messages = |value: &Value| {
        let errors = value.as_array().into_iter().flatten();
        errors.filter_map(|error| error["message"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    // A service says in its reply what is wrong with the request, GraphQL in the answer what is wrong with the query.
    let refused = answer["error"]["message"].as_str().map(str::to_owned);
    let errors = messages(&answer["errors"]);
    if let Some(message) = refused.or_else(|| (!errors.is_empty()).then(|| errors.join("\n"))) {
        return Err(Failure::usage(message));
    }
    for cut in answer["cut"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        note(&format!("{cut}: there are more rows than are given at once"));
    }
    let data = &answer["data"];
    let text = if global.output == Output::Json { data.to_string() } else { format!("{data:#}") };
    print_json(&text)?;
    Ok(Exit::Ok)
}
