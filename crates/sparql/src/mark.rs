//! The mark: how far the view at the endpoint follows the store, and which process takes runs in.
//!
//! It is one triple in a graph of its own. Whoever writes it says what he believes is there, so that of several only one
//! succeeds; whether it was he is seen by reading it again.

use crate::client::Client;
use crate::error::RemoteError;
use crate::terms::write_string;
use serde::{Deserialize, Serialize};
use trellis_domain::Hash;
use trellis_domain::rdf::Term;

const SAYS: &str = "urn:trellis:view:says";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// All runs that ended up to here are in the view.
    pub(crate) place: u64,
    /// What the store's history up to there is known by. None at its beginning.
    pub(crate) identity: Option<Hash>,
    pub(crate) projection: u32,
    /// How often the view was begun. What is read while this changes belongs to two views.
    pub(crate) generation: u64,
    /// Graphs of the view before are still being removed.
    pub(crate) clearing: bool,
    /// The process that takes runs in.
    pub(crate) holder: String,
    /// Counts its signs of life.
    pub(crate) beat: u64,
}

/// What was found in the place of the mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    One(Mark),
    /// Something that nobody here writes.
    Broken,
}

pub(crate) async fn read(client: &Client, graph: &str) -> Result<Found, RemoteError> {
    let query = format!("SELECT ?o WHERE {{ GRAPH <{graph}> {{ <{graph}> <{SAYS}> ?o }} }} LIMIT 2");
    let mut rows = client.select(&query, ["o"]).await?;
    Ok(match (rows.pop(), rows.is_empty()) {
        (None, _) => Found::Nothing,
        (Some([Some(Term::Literal { value, .. })]), true) => {
            serde_json::from_str(&value).map_or(Found::Broken, Found::One)
        }
        (Some(_), _) => Found::Broken,
    })
}

/// Puts a mark in the place of another one. False if that is not there any more.
pub(crate) async fn swap(client: &Client, graph: &str, old: &Found, new: &Mark) -> Result<bool, RemoteError> {
    client.update(swap_statement(graph, old, new)).await?;
    Ok(read(client, graph).await? == Found::One(new.clone()))
}

fn swap_statement(graph: &str, old: &Found, new: &Mark) -> String {
    let said = |mark: &Mark| {
        let mut text = String::new();
        write_string(&mut text, &serde_json::to_string(mark).expect("a mark is plain JSON"));
        format!("GRAPH <{graph}> {{ <{graph}> <{SAYS}> {text} }}")
    };
    let new = said(new);
    match old {
        Found::One(old) => {
            let old = said(old);
            format!("DELETE {{ {old} }} INSERT {{ {new} }} WHERE {{ {old} }}")
        }
        Found::Nothing => {
            format!("INSERT {{ {new} }} WHERE {{ FILTER NOT EXISTS {{ GRAPH <{graph}> {{ ?s ?p ?o }} }} }}")
        }
        Found::Broken => format!("DROP SILENT GRAPH <{graph}> ; INSERT DATA {{ {new} }}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_replaces_only_the_one_that_was_seen() {
        let mark = |beat| Mark {
            place: 3,
            identity: None,
            projection: 4,
            generation: 1,
            clearing: false,
            holder: "a\"b".into(),
            beat,
        };
        let text = |beat| {
            format!(
                "GRAPH <urn:m> {{ <urn:m> <urn:trellis:view:says> \"{{\\\"place\\\":3,\\\"identity\\\":null,\
                 \\\"projection\\\":4,\\\"generation\\\":1,\\\"clearing\\\":false,\\\"holder\\\":\\\"a\\\\\\\"b\\\",\
                 \\\"beat\\\":{beat}}}\" }}"
            )
        };
        let statement = swap_statement("urn:m", &Found::One(mark(1)), &mark(2));
        let (old, new) = (text(1), text(2));
        assert_eq!(statement, format!("DELETE {{ {old} }} INSERT {{ {new} }} WHERE {{ {old} }}"));
        let first = swap_statement("urn:m", &Found::Nothing, &mark(2));
        assert!(first.starts_with(&format!("INSERT {{ {new} }} WHERE {{ FILTER NOT EXISTS")), "{first}");
    }
}
