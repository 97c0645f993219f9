//! Templates over the rehearsal keep the contract of prompters.

use serde_json::json;
use std::sync::Arc;
use trellis_domain::config::{Settings, StoredItem};
use trellis_models::{Rehearsal, TemplatePrompter};
use trellis_orchestrator::contract::prompter;
use trellis_orchestrator::ports::RealWorld;

#[tokio::test]
async fn the_template_prompter_keeps_its_contract() {
    let template = r#"{"prompt": "Answer: {{ question }}"}"#;
    let item = StoredItem { kind: "prompt".into(), key: "template.question".into(), value: template.into() };
    let settings = Arc::new(Settings::take(1, [item]).0);
    let variables = json!({"question": "Why is moss green?"}).as_object().unwrap().clone();
    let rehearsal = TemplatePrompter::new(Arc::new(Rehearsal::instant()), Arc::new(RealWorld));
    prompter::suite(&rehearsal, settings, "question", variables).await;
}
