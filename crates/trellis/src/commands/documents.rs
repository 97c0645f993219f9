//! Documents that are searched: removing them.

use crate::cli::{DocumentsCommand, Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{print_json, print_line};
use reqwest::Url;
use serde_json::json;
use trellis_domain::{Collection, counted};

pub(crate) async fn run(global: &Global, command: &DocumentsCommand) -> Result<Exit, Failure> {
    let DocumentsCommand::Remove { id, collection } = command;
    let collection = Collection::new(collection).map_err(|error| Failure::usage(error.to_string()))?;
    let desk = Desk::change(global, "documents remove")?;
    let mut versions = desk.remove_document(&collection, id).await?;
    if versions.is_none()
        && let Some(address) = address_of_file(id)
    {
        versions = desk.remove_document(&collection, &address).await?;
    }
    let nothing = || {
        let message =
            format!("nothing is loaded as `{id}` in `{collection}`; give the path or the address that was loaded");
        Failure::new(Exit::NotFound, message)
    };
    let versions = versions.ok_or_else(nothing)?;
    if global.output == Output::Json {
        print_json(&json!({"collection": collection, "document": id, "versions": versions}).to_string())?;
    } else {
        print_line(&format!("removed {id} from {collection}, with {}", counted(versions, "version")))?;
    }
    Ok(Exit::Ok)
}

/// What a file is loaded as. It need not be there any more.
fn address_of_file(path: &str) -> Option<String> {
    Url::from_file_path(std::path::absolute(path).ok()?).ok().map(String::from)
}
