//! The contract of prompters: what is streamed is what is recorded.

use super::{id, scope};
use crate::ports::{CallLabels, PromptCall, Prompter, ReplySink};
use serde_json::{Map, Value};
use std::ops::ControlFlow;
use std::sync::Arc;
use trellis_domain::config::Settings;
use trellis_domain::record::Name;
use trellis_patterns::react::IterationNames;

/// Keeps what it hears, up to a limit.
struct CappedText {
    text: String,
    pieces: usize,
}

impl ReplySink for CappedText {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.text.push_str(text);
        self.pieces -= 1;
        if self.pieces == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn restart(&mut self) {
        self.text.clear();
    }
}

/// Checks a prompter with a text prompt that it knows.
pub async fn suite(prompter: &dyn Prompter, settings: Arc<Settings>, prompt: &str, variables: Map<String, Value>) {
    let call = || PromptCall {
        scope: scope("default"),
        settings: Arc::clone(&settings),
        id: prompt.to_owned(),
        variables: variables.clone(),
        labels: Some(CallLabels {
            run: id("r"),
            session: id("r"),
            step: Name::iteration(1),
            attempt: 1,
            task_type: None,
            model: None,
        }),
        ..PromptCall::default()
    };
    let mut all = CappedText { text: String::new(), pieces: usize::MAX };
    let reply = prompter.ask(call(), &mut all).await.expect("the prompt is known");
    assert!(!reply.raw.is_empty(), "a reply says something");
    assert_eq!(all.text, reply.raw, "what was streamed is the reply");
    assert_eq!(reply.prompt.id, prompt, "the record names the prompt");
    assert!(reply.prompt.sent.is_some(), "and what was sent, by its hash");
    assert!(reply.model.is_some(), "and who answered");

    let mut first = CappedText { text: String::new(), pieces: 1 };
    let reply = prompter.ask(call(), &mut first).await.expect("a reply that is cut is a reply");
    assert!(all.text.starts_with(&first.text), "the same call gives the same reply");
    assert!(reply.raw.starts_with(&first.text), "what was heard before the cut is part of the record");
}
