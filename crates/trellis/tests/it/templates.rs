//! Templates that anybody may write who may change prompts, against a server with little memory.

use crate::served::Served;
use crate::{fails, ok};
use tempfile::TempDir;

/// Each of these made a text, a list or a stack grow without end.
const GREEDY: [&str; 8] = [
    "{{ question | indent(100000000000000, true) }}",
    "{% set ns = namespace(x=question) %}{% for i in range(64) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{{ range(100000) | join('x' * 1000000) }}",
    "{{ ('x' * 1000000) | replace('x', 'x' * 1000000) }}",
    "{{ '%99999999999s' | format('a') }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "{{ [1] * 100000000 | length }}{{ range(100000) * 100000 }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
];

#[test]
fn no_template_ends_a_server_with_little_memory() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "One?"]);
    let server = Served::start(data.path());
    server.limit_memory(1_000_000_000);
    for template in GREEDY {
        let prompt = serde_json::json!({ "prompt": template }).to_string();
        ok(data.path(), &["config", "put", "prompt", "template.agent-react", &prompt]);
        let (code, message) = fails(data.path(), &["ask", "Two?", "--pattern", "react"]);
        assert_eq!(code, 10, "{template}: {message}");
    }
    let nested = format!("{{{{ {}1{} }}}}", "(".repeat(20_000), ")".repeat(20_000));
    let prompt = serde_json::json!({ "prompt": nested }).to_string();
    let (_, message) = fails(data.path(), &["config", "put", "prompt", "template.agent-react", &prompt]);
    assert!(message.contains("nested more than 40 levels deep"), "{message}");
    assert_eq!(server.json("GET", "/api/v1/runs?limit=1", "")["runs"].as_array().map(Vec::len), Some(1));
}
