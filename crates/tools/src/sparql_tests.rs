use super::*;
use crate::knowledge::tests::{call, tool, tools};
use serde_json::json;
use trellis_domain::Workspace;
use trellis_domain::config::Settings;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::ToolRunner;

const PLAIN: &str = r#"{"type": "sparql-query", "name": "graph"}"#;

fn rows(count: usize, truncated: bool) -> Answer {
    let row = |n: usize| vec![Some(Term::iri(format!("urn:{n}"))), Some(Term::literal("a\n b")), None];
    let variables = ["s", "label", "none"].map(str::to_owned).to_vec();
    Answer::Rows { variables, rows: (0..count).map(row).collect(), truncated }
}

#[test]
fn rows_stand_under_their_variables() {
    assert_eq!(in_words(&rows(1, false)), "?s | ?label | ?none\n<urn:0> | a b | ");
    assert_eq!(in_words(&rows(0, false)), "No rows.");
    assert!(in_words(&rows(2, true)).ends_with("There are more than these 2 rows. Narrow the query."));
    assert_eq!(
        (in_words(&Answer::Truth(true)), in_words(&Answer::Constructed(Vec::new()))),
        ("Yes.".into(), "No triples.".into())
    );
}

#[test]
fn an_answer_has_an_end() {
    let text = in_words(&rows(20_000, false));
    assert!(text.len() < LONGEST + 200 && text.ends_with("Ask for less."), "{}", text.len());
    let long = Answer::Rows {
        variables: vec!["x".into()],
        rows: vec![vec![Some(Term::literal("ä".repeat(9_000)))]],
        truncated: false,
    };
    assert!(in_words(&long).chars().count() < 600);
}

#[tokio::test]
async fn what_is_wrong_is_told_to_the_model() {
    let tools = tools("default", std::sync::Arc::new(ScriptedPrompter::replies(&[]))).await;
    let missing = tools.call(call(tool(PLAIN), &json!({}))).await.unwrap_err();
    assert!(missing.reason.contains("`query` is missing"), "{missing}");
    let refused = tools.call(call(tool(PLAIN), &json!({"query": "ASK {}"}))).await.unwrap_err();
    assert!(refused.reason.contains("SPARQL is not available"), "{refused}");
    let wrong = tool(r#"{"type": "sparql-query", "collection": "a\u0007b"}"#);
    assert!(tools.obstacle(&Workspace::default(), &wrong, &Settings::default()).is_some());
    assert_eq!((limit(&tool(PLAIN)), limit(&tool(r#"{"type": "sparql-query", "limit": 99999}"#))), (50, 1_000));
}
