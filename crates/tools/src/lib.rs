//! Tools by kind. A tool that cannot be called says why, in words that the model can act on.
//!
//! Owns what a call of each kind does. Does not choose tools and does not record anything: the loop does.

mod arguments;
pub mod http;
mod prompt;

use http::{Http, Template};
use prompt::Prompts;
use std::sync::Arc;
use trellis_domain::TaskTypeName;
use trellis_domain::config::{Settings, ToolItem, ToolKind};
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{BoxFuture, Prompter, ToolCall, ToolError, ToolOutput, ToolRunner};

/// All kinds of tools, each in its own module.
#[derive(Debug)]
pub struct Tools {
    prompts: Prompts,
    http: Http,
}

impl Tools {
    /// Those that need nothing but a model.
    pub fn new(prompter: Arc<dyn Prompter>) -> Self {
        Self { prompts: Prompts::new(prompter), http: Http::default() }
    }

    /// And those that call addresses.
    #[must_use]
    pub fn with_http(self, http: Http) -> Self {
        Self { http, ..self }
    }

    async fn perform(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        match call.tool.kind {
            ToolKind::TextCompletion | ToolKind::Prompt => self.prompts.call(call).await,
            ToolKind::Http => {
                let arguments = arguments::fitted(&call.tool, &call.arguments).map_err(ToolError::new)?;
                self.http.call(&ToolCall { arguments, ..call }).await
            }
            kind @ (ToolKind::KnowledgeQuery
            | ToolKind::McpTool
            | ToolKind::StructuredQuery
            | ToolKind::RowEmbeddingsQuery
            | ToolKind::ToolService) => Err(ToolError::new(not_available(kind))),
        }
    }
}

fn not_available(kind: ToolKind) -> String {
    format!("tools of type `{}` are not available in this version", kind.as_str())
}

impl ToolRunner for Tools {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(self.perform(call))
    }

    fn obstacle(&self, tool: &ToolItem, _settings: &Settings) -> Option<String> {
        match tool.kind {
            ToolKind::TextCompletion | ToolKind::Prompt => self.prompts.obstacle(tool),
            ToolKind::Http => {
                let template = Template::read(&tool.settings).map_err(|(_, why)| why);
                template.and_then(|template| self.http.check(&template)).err()
            }
            kind @ (ToolKind::KnowledgeQuery
            | ToolKind::McpTool
            | ToolKind::StructuredQuery
            | ToolKind::RowEmbeddingsQuery
            | ToolKind::ToolService) => Some(not_available(kind)),
        }
    }

    fn capacity(
        &self,
        tool: &ToolItem,
        settings: &Settings,
        task_type: Option<&TaskTypeName>,
    ) -> Option<Arc<CallCapacity>> {
        if tool.kind.asks_a_model() { self.prompts.capacity(tool, settings, task_type) } else { None }
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
