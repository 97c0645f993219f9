//! The graph of what happened, by patterns and by SPARQL.

use acceptance::Stage;

const QUERY: &str = "https://trustgraph.ai/ns/query";
const RETRIEVAL: &str = "urn:graph:retrieval";

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn triples_are_found_by_pattern_in_every_format() {
    let stage = Stage::open().await;
    stage.tg("tg-invoke-agent", &["-q", "Who was Ada?"]).await.ok();
    let pattern = ["-p", QUERY, "-g", RETRIEVAL];
    let found = |format: &'static str| {
        let (stage, pattern) = (&stage, [&pattern[..], &["--format", format]].concat());
        async move { stage.tg("tg-query-graph", &pattern).await.ok() }
    };
    found("space").await.says(&["urn:trustgraph:agent:", QUERY, "\"Who was Ada?\""]);
    found("pipe").await.says(&["|https://trustgraph.ai/ns/query|\"Who was Ada?\""]);
    let triples = found("json").await.json();
    assert_eq!(triples.as_array().map(Vec::len), Some(1), "{triples}");
    assert_eq!(triples[0]["o"]["v"], "Who was Ada?");
    let session = triples[0]["s"]["i"].as_str().unwrap();
    // A session has more than one batch of two.
    let about = ["-s", session, "-g", RETRIEVAL, "-b", "2", "--format", "json"];
    let about = stage.tg("tg-query-graph", &about).await.ok().json();
    assert!(about.as_array().unwrap().len() > 4, "{about}");
    let limited = ["-s", session, "-g", RETRIEVAL, "-l", "3", "--format", "json"];
    assert_eq!(stage.tg("tg-query-graph", &limited).await.ok().json().as_array().unwrap().len(), 3);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_pattern_that_matches_nothing_gives_nothing() {
    let stage = Stage::open().await;
    assert_eq!(stage.tg("tg-query-graph", &["-s", "urn:nobody"]).await.ok().stdout, "");
    let found = stage.tg("tg-query-graph", &["-s", "urn:nobody", "--format", "json"]).await.ok().json();
    assert_eq!(found, serde_json::json!([]));
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn sparql_selects_asks_and_constructs() {
    let stage = Stage::open().await;
    stage.tg("tg-invoke-agent", &["-q", "Who was Ada?"]).await.ok();
    let sparql = |query: String| {
        let stage = &stage;
        async move { stage.tg("tg-invoke-sparql-query", &["-q", &query]).await }
    };
    let select = format!("SELECT ?s ?q ?none WHERE {{ ?s <{QUERY}> ?q OPTIONAL {{ ?s <urn:none> ?none }} }}");
    sparql(select.clone()).await.ok().says(&["s ", "| q", "none", "urn:trustgraph:agent:", "Who was Ada?"]);
    let rows = stage.tg("tg-invoke-sparql-query", &["-q", &select, "--format", "json"]).await.ok().json();
    assert_eq!(rows[0]["q"], "Who was Ada?");
    assert_eq!(rows[0]["none"], "");
    assert_eq!(sparql(format!("ASK {{ ?s <{QUERY}> ?q }}")).await.ok().stdout.trim(), "true");
    assert_eq!(sparql("ASK { ?s <urn:none> ?q }".to_owned()).await.ok().stdout.trim(), "false");
    let construct = format!("CONSTRUCT {{ ?s <urn:asked> ?q }} WHERE {{ ?s <{QUERY}> ?q }}");
    sparql(construct).await.ok().says(&["<urn:asked> \"Who was Ada?\" ."]);
    sparql("SELECT ?s WHERE { ?s <urn:none> ?q }".to_owned()).await.ok().says(&["No results."]);
    sparql("CONSTRUCT { ?s ?p ?o } WHERE { ?s <urn:none> ?o . ?s ?p ?o }".to_owned()).await.ok().says(&["No triples."]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn many_rows_arrive_in_batches() {
    let stage = Stage::open().await;
    stage.tg("tg-invoke-agent", &["-q", "Ask the team: who was Ada?"]).await.ok();
    let query = ["-q", "SELECT ?s ?p ?o WHERE { ?s ?p ?o }", "-b", "7", "--format", "json"];
    let rows = stage.tg("tg-invoke-sparql-query", &query).await.ok().json();
    assert!(rows.as_array().unwrap().len() > 100, "{}", rows.as_array().unwrap().len());
    let query = [&query[..], &["-l", "9"]].concat();
    let rows = stage.tg("tg-invoke-sparql-query", &query).await.ok().json();
    assert_eq!(rows.as_array().unwrap().len(), 9);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_query_that_cannot_be_read_is_told_in_words() {
    let stage = Stage::open().await;
    stage.tg("tg-invoke-sparql-query", &["-q", "SELECT ?s WHERE {"]).await.refused("Exception: ");
    stage.tg("tg-invoke-sparql-query", &["-q", "ASK { ?s ?p ?o }", "-f", "zz"]).await.refused("zz");
    stage.tg("tg-query-graph", &["-s", "urn:x", "-f", "zz"]).await.refused("zz");
}
