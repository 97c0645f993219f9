//! Providers as an operator describes them, and conversations with them.

use crate::ask::{patient, request};
use crate::tools::tools;
use serde_json::json;
use std::sync::Arc;
use trellis_domain::config::PromptReply;
use trellis_domain::parts::{ChatTurn, ReplyPart};
use trellis_models::{
    Choice, ChoiceError, ModelReply, ModelRequest, ModelSettings, Provider, ProviderSettings, choose,
};
use trellis_orchestrator::ports::{RealWorld, World};

/// What is called, and with what.
pub(crate) const FUNCTION: &str = "web_search";
pub(crate) const ARGUMENTS: &str = r#"{"thought":"Look it up.","question":"Why?"}"#;

/// A model with these settings of its provider and these variables.
pub(crate) fn connected_in(
    wish: &str,
    own: ProviderSettings,
    variables: &[(&str, &str)],
    world: Arc<dyn World>,
) -> Result<Arc<dyn Provider>, ChoiceError> {
    let provider = wish.split('/').next().unwrap_or_default().to_owned();
    let settings = ModelSettings { providers: [(provider, own)].into(), ..ModelSettings::default() };
    let variable = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let choices = choose(&[wish.to_owned()], &settings, &variable)?;
    let [Choice::Remote(choice)] = choices.as_slice() else { panic!("{choices:?}") };
    Ok(choice.clone().connect(patient(), world)?)
}

pub(crate) fn connected(wish: &str, own: ProviderSettings, variables: &[(&str, &str)]) -> Arc<dyn Provider> {
    connected_in(wish, own, variables, Arc::new(RealWorld)).unwrap()
}

/// The same question again, after what was called in this reply brought something.
pub(crate) fn gone_on_with(reply: &ModelReply) -> ModelRequest {
    let id = reply.parts.iter().find_map(|part| match part {
        ReplyPart::Call { id, .. } => id.clone(),
        ReplyPart::Thought { .. } | ReplyPart::Text { .. } | ReplyPart::Refusal { .. } => None,
    });
    let result =
        ChatTurn::ToolResult { call: id, function: FUNCTION.to_owned(), text: "Moss.".into(), is_error: false };
    let turns = vec![ChatTurn::Assistant { parts: reply.parts.clone() }, result];
    ModelRequest { turns, tools: Some(tools()), ..request(PromptReply::Text) }
}

/// The call that all of these make.
pub(crate) fn called(reply: &ModelReply) -> (&str, serde_json::Value) {
    let Some(ReplyPart::Call { function, arguments, .. }) = reply.parts.last() else { panic!("no call: {reply:?}") };
    (function, serde_json::from_str(arguments.text()).unwrap_or_else(|_| json!(arguments.text())))
}
