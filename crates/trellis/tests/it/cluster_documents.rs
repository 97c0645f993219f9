//! Documents and knowledge in a database: what one process loads, another one answers from.

use crate::cluster::{Cluster, ask, state_of};
use crate::until;
use serde_json::Value;
use std::path::Path;

const QUESTION: &str = "Who built the tower on the Bell Rock?";
const PEOPLE: &str =
    r#"{"type": "knowledge-query", "description": "Ask the graph of lighthouses", "collection": "lighthouses"}"#;

#[test]
fn an_answer_rests_on_what_another_process_loaded() {
    let cluster = Cluster::new(None);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lighthouses");
    let tool = format!("@{}", example.join("tool.json").display());
    let example = example.to_str().unwrap();
    cluster.ok(&["load", example, "--collection", "lighthouses"]);
    let again = cluster.ok(&["load", example, "--collection", "lighthouses"]);
    assert!(again.contains("lighthouses"), "loading again changes nothing: {again}");
    cluster.ok(&["tools", "add", "lighthouses", &tool]);
    cluster.ok(&["tools", "add", "people", PEOPLE]);

    let gateway = cluster.gateway();
    let worker = cluster.worker();
    ask(&gateway, QUESTION, "bell-rock", "react");
    until("it is answered", || state_of(&gateway, "bell-rock") == "answered");
    let run: Value = serde_json::from_str(&cluster.ok(&["run", "answer", "bell-rock", "--output", "json"])).unwrap();
    let answer = run["answer"].as_str().unwrap();
    assert!(answer.starts_with("Robert Stevenson built the tower there between 1807 and 1810"), "{answer}");
    assert!(answer.contains("[1] (p1)") && answer.contains("Lighthouses › Bell Rock (lines "), "{answer}");
    cluster.ok(&["verify", "bell-rock"]);
    drop((worker, gateway));

    // Who is asked for is found by a name, and that in an index of names.
    let told = cluster.ok(&["tools", "test", "people", "question=Who designed the Bell Rock Lighthouse?"]);
    assert!(told.contains("Stevenson"), "{told}");
    let notes = Path::new(example).join("lighthouses.md");
    let removed = cluster.ok(&["documents", "remove", notes.to_str().unwrap(), "--collection", "lighthouses"]);
    assert!(removed.contains("with 1 version"), "{removed}");
    let gone = cluster.ok(&["tools", "test", "lighthouses", &format!("question={QUESTION}")]);
    assert!(gone.contains("has no documents"), "{gone}");
}
