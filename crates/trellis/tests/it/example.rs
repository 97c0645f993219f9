//! The example of the README: an answer from loaded documents, in the rehearsal, down to the passage.

use crate::{json, ok};
use std::path::Path;
use tempfile::TempDir;

#[test]
fn an_answer_rests_on_a_passage_of_the_example() {
    let folder = TempDir::new().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lighthouses");
    let tool = format!("@{}", example.join("tool.json").display());
    ok(folder.path(), &["load", example.to_str().unwrap(), "--collection", "lighthouses"]);
    ok(folder.path(), &["tools", "add", "lighthouses", &tool]);
    let run = json(folder.path(), &["ask", "Who built the tower on the Bell Rock?"]);
    let answer = run["answer"].as_str().unwrap();
    assert!(answer.starts_with("Robert Stevenson built the tower there between 1807 and 1810"), "{answer}");
    assert!(answer.contains("[1] (p1)") && answer.contains("Lighthouses › Bell Rock (lines "), "{answer}");
    let shown = ok(folder.path(), &["run", "show", "last"]);
    assert!(shown.contains("Bell Rock"), "{shown}");
    ok(folder.path(), &["verify", "last"]);
    let tables = ok(folder.path(), &["tables", "list"]);
    assert!(tables.contains("lighthouses"), "{tables}");
}
