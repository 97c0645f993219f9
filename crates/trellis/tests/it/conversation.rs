//! Runs that belong together know of each other.

use crate::{PARTNER, json, ok, run, stderr};
use tempfile::TempDir;

#[test]
fn the_second_question_of_a_conversation_knows_the_first() {
    let data = TempDir::new().unwrap();
    let first = run(data.path(), &["ask", "What is a trellis?", "--conversation", "c1", "--session", "first"]);
    assert!(!stderr(&first).contains("earlier"), "{}", stderr(&first));
    let second = run(data.path(), &["ask", "What else?", "--conversation", "c1", "--session", "second"]);
    assert!(stderr(&second).contains("· earlier  1 question of conversation c1"), "{}", stderr(&second));
    ok(data.path(), &["ask", "What else?", "--conversation", "c2", "--session", "elsewhere"]);
    ok(data.path(), &["ask", "What else?", "--conversation", "last", "--session", "there"]);

    let show = |run: &str| json(data.path(), &["run", "show", run]);
    for (run, conversation) in [("first", "c1"), ("second", "c1"), ("elsewhere", "c2"), ("there", "c2")] {
        let show = show(run);
        assert_eq!(show["conversation_id"], conversation, "{run}");
        assert_eq!(show["sessions"][0]["conversation"], conversation, "{run}");
    }
    // The same question under the same configuration: only what was said before makes its prompt longer.
    let asked = |run: &str| show(run)["sessions"][0]["steps"][1]["cost"]["in_token"].as_u64().unwrap();
    assert!(asked("second") > asked("elsewhere"), "{} and {}", asked("second"), asked("elsewhere"));
    assert_eq!(json(data.path(), &["runs", "--conversation", "c1"])["runs"].as_array().unwrap().len(), 2);
    for run in ["first", "second", "elsewhere", "there"] {
        ok(data.path(), &["verify", run]);
    }
}

#[test]
fn every_node_of_a_conversation_says_so_also_those_of_subagents() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", PARTNER, "--conversation", "c1", "--quiet"]);
    let count = |pattern: &str| {
        let query = format!("SELECT (COUNT(DISTINCT ?node) AS ?n) WHERE {{ ?node a ?class {pattern} }}");
        let rows = json(data.path(), &["sparql", &query]);
        rows["results"]["bindings"][0]["n"]["value"].as_str().unwrap().parse::<usize>().unwrap()
    };
    let all = count("");
    assert!(all > 50, "{all}");
    assert_eq!(count("; <urn:trellis:ns:conversationId> 'c1'"), all);
}
