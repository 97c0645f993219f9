//! Tools by kind. A tool that cannot be called says why, in words that the model can act on.
//!
//! Owns what a call of each kind does. Does not choose tools and does not record anything: the loop does.

mod arguments;
mod documents;
pub mod http;
mod knowledge;
pub mod mcp;
mod prompt;
mod service;
mod sparql;
mod tables;

use documents::Documents;
use http::{Http, Template};
use knowledge::KnowledgeQuery;
use mcp::Mcp;
use prompt::Prompts;
use sparql::Sparql;
use std::sync::Arc;
use tables::TableTools;
use trellis_domain::Workspace;
use trellis_domain::config::{Settings, ToolItem, ToolKind};
use trellis_orchestrator::documents::Retriever;
use trellis_orchestrator::graph_rag::GraphRag;
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{
    BoxFuture, Embedder, Graph, ModelWish, Prompter, Search, Tables, ToolCall, ToolError, ToolOutput, ToolRunner,
    ToolServers, World,
};
use trellis_orchestrator::tables::Asker;

/// All kinds of tools, each in its own module.
#[derive(Debug)]
pub struct Tools {
    prompter: Arc<dyn Prompter>,
    prompts: Prompts,
    outside: Outside,
    documents: Documents,
    knowledge: KnowledgeQuery,
    sparql: Sparql,
    tables: TableTools,
}

/// What calls go through that reach somebody else.
#[derive(Debug, Default)]
pub struct Outside {
    pub http: Http,
    pub mcp: Mcp,
    /// Makes vectors of questions.
    pub embedder: Option<Arc<dyn Embedder>>,
}

impl Tools {
    /// Those that need nothing but a model.
    pub fn new(prompter: Arc<dyn Prompter>) -> Self {
        Self {
            prompts: Prompts::new(Arc::clone(&prompter)),
            prompter,
            outside: Outside::default(),
            documents: Documents::default(),
            knowledge: KnowledgeQuery::default(),
            sparql: Sparql::default(),
            tables: TableTools::default(),
        }
    }

    /// And those that reach somebody else.
    #[must_use]
    pub fn with(self, outside: Outside) -> Self {
        Self { outside, ..self }
    }

    /// And those that search documents, with what reaches somebody else.
    #[must_use]
    pub fn with_documents(self, search: Arc<dyn Search>, world: Arc<dyn World>) -> Self {
        let embedder = self.outside.embedder.clone();
        Self { documents: Documents::new(Retriever { search, embedder }, world), ..self }
    }

    /// And those that ask loaded knowledge in words.
    #[must_use]
    pub fn with_knowledge(self, rag: GraphRag) -> Self {
        Self { knowledge: KnowledgeQuery::new(rag), ..self }
    }

    /// And those that ask it, and runs, in SPARQL.
    #[must_use]
    pub fn with_sparql(self, graph: Arc<dyn Graph>) -> Self {
        Self { sparql: Sparql::new(graph), ..self }
    }

    /// And those that ask tables, with what reaches somebody else.
    #[must_use]
    pub fn with_tables(self, tables: Arc<dyn Tables>, world: Arc<dyn World>) -> Self {
        let embedder = self.outside.embedder.clone();
        let asker = Asker { prompter: Arc::clone(&self.prompter), tables, world };
        Self { tables: TableTools::new(asker, embedder), ..self }
    }

    async fn perform(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        match call.tool.kind {
            ToolKind::TextCompletion | ToolKind::Prompt => self.prompts.call(call).await,
            ToolKind::Http => self.outside.http.call(&fitted(call)?).await,
            ToolKind::McpTool => self.outside.mcp.call(&fitted_if_told(call)?).await,
            ToolKind::ToolService => service::call(&self.outside.http, &fitted_if_told(call)?).await,
            ToolKind::DocumentRag => self.documents.call(&call).await,
            ToolKind::KnowledgeQuery => self.knowledge.call(call).await,
            ToolKind::SparqlQuery => self.sparql.call(&call).await,
            ToolKind::StructuredQuery => self.tables.ask(call).await,
            ToolKind::RowEmbeddingsQuery => self.tables.find(&call).await,
            ToolKind::Agent => Err(ToolError::new(ONLY_IN_RUNS)),
        }
    }
}

/// An agent is a session of the run that calls it.
const ONLY_IN_RUNS: &str =
    "an agent can be called only by a run; ask a question that needs it, or try it with `trellis ask --pattern`";

/// The call with arguments as its tool wants them.
fn fitted(call: ToolCall) -> Result<ToolCall, ToolError> {
    let arguments = arguments::fitted(&call.tool, &call.arguments).map_err(ToolError::new)?;
    Ok(ToolCall { arguments, ..call })
}

/// A tool of somebody else's may be configured without a word about its arguments: whoever has it knows them.
fn fitted_if_told(call: ToolCall) -> Result<ToolCall, ToolError> {
    if call.tool.arguments.is_empty() { Ok(call) } else { fitted(call) }
}

impl ToolRunner for Tools {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(self.perform(call))
    }

    fn obstacle(&self, workspace: &Workspace, tool: &ToolItem, settings: &Settings) -> Option<String> {
        match tool.kind {
            ToolKind::TextCompletion | ToolKind::Prompt => self.prompts.obstacle(tool),
            ToolKind::Http => {
                let template = Template::read(&tool.settings).map_err(|(_, why)| why);
                let obstacle = template.and_then(|template| self.outside.http.check(&template)).err();
                obstacle.or_else(|| arguments::obstacle(tool))
            }
            ToolKind::McpTool => {
                self.outside.mcp.obstacle(workspace, tool, settings).or_else(|| arguments::obstacle(tool))
            }
            ToolKind::DocumentRag => self.documents.obstacle(),
            ToolKind::KnowledgeQuery => self.knowledge.obstacle(tool),
            ToolKind::SparqlQuery => self.sparql.obstacle(tool),
            ToolKind::StructuredQuery => self.tables.asking_obstacle(),
            ToolKind::RowEmbeddingsQuery => self.tables.finding_obstacle(tool, settings),
            // What stands against it depends on who calls, and is said there.
            ToolKind::Agent => None,
            ToolKind::ToolService => {
                service::obstacle(&self.outside.http, tool, settings).or_else(|| arguments::obstacle(tool))
            }
        }
    }

    fn servers(&self) -> Option<&dyn ToolServers> {
        Some(&self.outside.mcp)
    }

    fn capacity(&self, tool: &ToolItem, settings: &Settings, wish: ModelWish<'_>) -> Option<Arc<CallCapacity>> {
        if tool.kind == ToolKind::KnowledgeQuery {
            return self.knowledge.capacity(settings, wish);
        }
        if tool.kind == ToolKind::StructuredQuery {
            return self.tables.capacity(settings, wish);
        }
        if tool.kind.asks_a_model() { self.prompts.capacity(tool, settings, wish) } else { None }
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
