//! Every stock command, run against the program: what works, what says that it is not here, and what has nothing to do
//! with this server. What came of it is a table for users, `docs/trustgraph-commands.md`.

mod cases;
mod files;
mod table;
mod verdict;

use acceptance::{McpServer, Output, Stage};
use cases::{CHAINS, Case};
use expect_test::expect_file;
use files::Files;
use futures_util::{StreamExt, stream};
use std::collections::BTreeSet;
use std::time::Duration;
use table::table;
use verdict::{Result, verdict};

/// How long a command may take on a loaded machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long one is watched that only ends when it is told to.
const GLANCE: Duration = Duration::from_secs(6);
/// Chains that run side by side.
const AT_ONCE: usize = 3;

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn every_command_does_what_the_table_says() {
    let mcp = McpServer::start().await;
    let stage = Stage::with(&[
        ("TRELLIS_EMBEDDING_MODEL", "openai/letters"),
        ("TRELLIS_TOOLS_HTTP_HOSTS", "127.0.0.1"),
        ("TRELLIS_TOOLS_HTTP_PRIVATE", "true"),
    ])
    .await;
    let files = Files::new();
    let known: BTreeSet<&str> = CHAINS.iter().flat_map(|chain| chain.iter()).map(|case| case.command).collect();
    let installed = stage.commands("tg-");
    let installed: BTreeSet<&str> = installed.iter().map(String::as_str).collect();
    assert_eq!(known, installed, "each command of the package has a case, and no other has");
    let places = Places { url: stage.url().to_owned(), mcp: mcp.url(), files: files.folder() };
    let results: Vec<Vec<Result>> =
        stream::iter(CHAINS.iter().map(|chain| run(&stage, &places, chain))).buffer_unordered(AT_ONCE).collect().await;
    let mut results: Vec<Result> = results.into_iter().flatten().collect();
    results.sort_by_key(|result| result.command);
    let bad: Vec<String> = results.iter().filter_map(Result::failure).collect();
    assert!(bad.is_empty(), "{} commands did what none may do:\n\n{}", bad.len(), bad.join("\n\n"));
    expect_file!["../../../../docs/trustgraph-commands.md"].assert_eq(&table(&results));
}

/// What stands for a name in braces among the arguments.
struct Places {
    url: String,
    mcp: String,
    files: String,
}

impl Places {
    fn fill(&self, argument: &str, before: &str) -> String {
        let session = before.split(['"', ' ', '|', '\n']).find(|word| word.starts_with("urn:trustgraph:agent:"));
        argument
            .replace("{url}", &self.url)
            .replace("{mcp}", &self.mcp)
            .replace("{files}", &self.files)
            .replace("{session}", session.unwrap_or_default())
    }
}

/// Commands of which each needs what the one before it has left.
async fn run(stage: &Stage, places: &Places, chain: &'static [Case]) -> Vec<Result> {
    let (mut results, mut before) = (Vec::new(), String::new());
    for case in chain {
        let arguments: Vec<String> = case.arguments.iter().map(|one| places.fill(one, &before)).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let patience = if case.ends { PATIENCE } else { GLANCE };
        let output: Option<Output> = stage.tg_within(case.command, &arguments, patience).await;
        before = output.as_ref().map(|output| output.stdout.clone()).unwrap_or_default();
        results.push(verdict(case, output));
    }
    results
}
