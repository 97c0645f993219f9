//! Tools that are nothing but a prompt to a model: `text-completion` and `prompt`.

use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use trellis_domain::config::{Settings, ToolItem, ToolKind};
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{
    ModelWish, PromptCall, PromptNeed, PromptReply, Prompter, ReplyContent, ReplySink, ToolCall, ToolError, ToolOutput,
};

/// The prompt behind tools of kind `text-completion`, and its only variable.
const QUESTION: &str = "question";
/// What the prompts of the sample tools begin with. Their data is invented, for a rehearsal without a model.
const SAMPLE: &str = "sample-";
const REHEARSAL: &str = "rehearsal";

#[derive(Debug)]
pub(crate) struct Prompts {
    prompter: Arc<dyn Prompter>,
}

impl Prompts {
    pub(crate) fn new(prompter: Arc<dyn Prompter>) -> Self {
        Self { prompter }
    }

    pub(crate) async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        if call.tool.kind == ToolKind::TextCompletion {
            let asked = expected_argument(&call.tool, &call.arguments, QUESTION)?;
            let variables = Map::from_iter([(QUESTION.to_owned(), json!(plain_text(asked)))]);
            return self.prompt(QUESTION.to_owned(), variables, call).await;
        }
        for argument in &call.tool.arguments {
            expected_argument(&call.tool, &call.arguments, &argument.name)?;
        }
        self.prompt(template(&call.tool).to_owned(), call.arguments.clone(), call).await
    }

    /// Invented data is nothing for a model that takes it for facts.
    pub(crate) fn obstacle(&self, tool: &ToolItem) -> Option<String> {
        let is_sample = tool.kind == ToolKind::Prompt && template(tool).starts_with(SAMPLE);
        let is_rehearsed = self.prompter.models().iter().all(|model| model == REHEARSAL);
        (is_sample && !is_rehearsed).then(|| "its sample data is for rehearsals; a real model is set".to_owned())
    }

    pub(crate) fn capacity(
        &self,
        tool: &ToolItem,
        settings: &Settings,
        wish: ModelWish<'_>,
    ) -> Option<Arc<CallCapacity>> {
        let id = if tool.kind == ToolKind::TextCompletion { QUESTION } else { template(tool) };
        self.prompter.capacity(PromptNeed { settings, id, wish })
    }

    async fn prompt(&self, id: String, variables: Map<String, Value>, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let ToolCall { scope, settings, labels, timeout, max_reply_bytes, permit, .. } = call;
        let timeout = Some(timeout);
        let call = PromptCall { scope, settings, id, variables, timeout, labels, permit, ..PromptCall::default() };
        let mut unheard = Unheard { bytes: 0, limit: max_reply_bytes };
        let id = call.id.clone();
        match self.prompter.ask(call, &mut unheard).await {
            Ok(reply) => output(&reply, unheard.is_cut() || reply.cut_short),
            Err(error) => {
                let reason = error.to_string();
                Err(ToolError { reason, calls: error.on_record(&id).into_iter().collect() })
            }
        }
    }
}

fn template(tool: &ToolItem) -> &str {
    tool.setting("template").unwrap_or_default()
}

/// What a tool's model writes is shown when it is complete, as the observation; more than the limit is cut off.
struct Unheard {
    bytes: u64,
    limit: u64,
}

impl Unheard {
    fn is_cut(&self) -> bool {
        self.bytes > self.limit
    }
}

impl ReplySink for Unheard {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.bytes += text.len() as u64;
        if self.is_cut() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn restart(&mut self) {
        self.bytes = 0;
    }
}

fn expected_argument<'a>(
    tool: &ToolItem,
    arguments: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a Value, ToolError> {
    arguments.get(name).filter(|value| !value.is_null()).ok_or_else(|| {
        let described = tool.arguments.iter().map(|argument| format!("`{}` ({})", argument.name, argument.kind));
        let expected = described.collect::<Vec<_>>().join(", ");
        ToolError::new(format!("the argument `{name}` is missing; `{}` expects {expected}", tool.name))
    })
}

fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Stands behind a text that is not whole, so that nobody takes it for whole.
pub(crate) const CUT: &str = "[cut off: the reply was longer than its model may write]";

fn output(reply: &PromptReply, cut: bool) -> Result<ToolOutput, ToolError> {
    let calls = vec![reply.on_record()];
    let text = match &reply.content {
        ReplyContent::Text if cut => format!("{}\n{CUT}", reply.raw.trim_end()),
        // Lines that were lost leave no trace in the others.
        ReplyContent::Object(_) | ReplyContent::List(_) | ReplyContent::Wrong { .. } if cut => {
            let reason = "the reply was cut off, because it was longer than its model may write".to_owned();
            return Err(ToolError { reason, calls });
        }
        ReplyContent::Text => reply.raw.clone(),
        ReplyContent::Object(value) => plain_text(value),
        ReplyContent::List(values) => json!(values).to_string(),
        ReplyContent::Wrong { reason } => {
            return Err(ToolError { reason: format!("the reply is not what the prompt asks for: {reason}"), calls });
        }
    };
    Ok(ToolOutput { text, calls, ..ToolOutput::default() })
}
