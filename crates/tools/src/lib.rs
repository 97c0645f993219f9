//! Tools by kind. A tool that cannot be called says why, in words that the model can act on.
//!
//! Owns what a call of each kind does. Does not choose tools and does not record anything: the loop does.

use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use trellis_domain::config::{ToolItem, ToolKind};
use trellis_domain::usage::Usage;
use trellis_orchestrator::ports::{
    BoxFuture, PromptCall, PromptReply, Prompter, ReplyContent, ReplySink, ToolCall, ToolError, ToolOutput, ToolRunner,
};

/// The prompt behind tools of kind `text-completion`, and its only variable.
const QUESTION: &str = "question";

/// The tool kinds that need nothing but a model.
#[derive(Debug)]
pub struct Tools {
    prompter: Arc<dyn Prompter>,
}

impl Tools {
    pub fn new(prompter: Arc<dyn Prompter>) -> Self {
        Self { prompter }
    }

    async fn perform(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        match call.tool.kind {
            ToolKind::TextCompletion => {
                let asked = expected_argument(&call.tool, &call.arguments, QUESTION)?;
                let variables = Map::from_iter([(QUESTION.to_owned(), json!(plain_text(asked)))]);
                self.prompt(QUESTION.to_owned(), variables, call).await
            }
            ToolKind::Prompt => {
                for argument in &call.tool.arguments {
                    expected_argument(&call.tool, &call.arguments, &argument.name)?;
                }
                let (template, variables) = (call.tool.setting("template").unwrap_or_default(), &call.arguments);
                self.prompt(template.to_owned(), variables.clone(), call).await
            }
            ToolKind::KnowledgeQuery
            | ToolKind::McpTool
            | ToolKind::StructuredQuery
            | ToolKind::RowEmbeddingsQuery
            | ToolKind::ToolService => {
                let kind = call.tool.kind.as_str();
                Err(ToolError(format!("tools of type `{kind}` are not available in this version")))
            }
        }
    }

    async fn prompt(&self, id: String, variables: Map<String, Value>, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let ToolCall { scope, settings, labels, .. } = call;
        let call = PromptCall { scope, settings, id, variables, labels, ..PromptCall::default() };
        let mut unheard = Unheard::default();
        let reply = self.prompter.ask(call, &mut unheard).await.map_err(|error| ToolError(error.to_string()))?;
        let cut = unheard.bytes > LONGEST_REPLY || reply.cut_short;
        output(reply, cut)
    }
}

impl ToolRunner for Tools {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(self.perform(call))
    }
}

/// What a tool's model writes is shown when it is complete, as the observation; more than this is cut off.
const LONGEST_REPLY: usize = 1 << 20;

#[derive(Default)]
struct Unheard {
    bytes: usize,
}

impl ReplySink for Unheard {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.bytes += text.len();
        if self.bytes > LONGEST_REPLY { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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
        ToolError(format!("the argument `{name}` is missing; `{}` expects {expected}", tool.name))
    })
}

fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Stands behind a text that is not whole, so that nobody takes it for whole.
const CUT: &str = "[cut off: the reply was longer than its model may write]";

fn output(reply: PromptReply, cut: bool) -> Result<ToolOutput, ToolError> {
    let text = match reply.content {
        ReplyContent::Text if cut => format!("{}\n{CUT}", reply.raw.trim_end()),
        // Lines that were lost leave no trace in the others.
        ReplyContent::Object(_) | ReplyContent::List(_) | ReplyContent::Wrong { .. } if cut => {
            return Err(ToolError("the reply was cut off, because it was longer than its model may write".to_owned()));
        }
        ReplyContent::Text => reply.raw,
        ReplyContent::Object(value) => plain_text(&value),
        ReplyContent::List(values) => Value::Array(values).to_string(),
        ReplyContent::Wrong { reason } => {
            return Err(ToolError(format!("the reply is not what the prompt asks for: {reason}")));
        }
    };
    let (in_token, out_token, model) = (reply.in_token, reply.out_token, reply.model);
    let usage = Usage { in_token, out_token, model, model_ms: reply.ms, model_calls: 1, ..Usage::default() };
    Ok(ToolOutput { text, usage })
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
