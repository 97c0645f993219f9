//! Templates that anybody may write who may change prompts; `torture` has those that grow without end.

use crate::{fails, ok};
use tempfile::TempDir;

#[test]
fn a_template_that_is_nested_too_deep_is_refused_when_it_is_written() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["ask", "One?"]);
    let nested = format!("{{{{ {}1{} }}}}", "(".repeat(20_000), ")".repeat(20_000));
    let prompt = serde_json::json!({ "prompt": nested }).to_string();
    let (_, message) = fails(data.path(), &["config", "put", "prompt", "template.agent-react", &prompt]);
    assert!(message.contains("nested more than 40 levels deep"), "{message}");
}
