//! The services, by the names that clients know.
//!
//! Each has an `answer`: one reply to one request, which is all that REST can carry. Those that have more to say
//! on a socket have a `stream` as well.

mod agent;
mod batches;
mod collections;
mod config;
mod documents;
mod flow;
mod graph_rag;
pub(crate) mod held;
mod iam;
mod librarian;
mod mcp_tool;
mod model;
pub(crate) mod sparql;
mod tables;
mod terms;
mod triples;

use crate::call::Call;
use crate::error::{ServiceError, StreamError};
use crate::inside::Gateway;
use crate::outbox::Outbox;
use axum::response::Response;
use documents::Loading;
use held::{Written, written};
use model::Asked;
use std::sync::Arc;

/// A service that exists, here or at least by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Agent,
    Config,
    Flow,
    Iam,
    Model(Asked),
    McpTool,
    GraphRag,
    Embeddings,
    Load(Loading),
    Librarian,
    Collections,
    Triples,
    Sparql,
    Rows,
    NlpQuery,
    StructuredQuery,
    RowEmbeddings,
    /// Known to clients, and not offered by this server.
    Missing(&'static str),
}

/// Names of flow services that clients may ask for and that this server does not have.
const MISSING_IN_FLOWS: &[&str] = &[
    "graph-embeddings",
    "document-embeddings",
    "structured-diag",
    "reranker",
    "image-to-text",
    "cloze",
    "decision-scoring",
    "field-extraction",
];
const MISSING_IN_WORKSPACES: &[&str] = &["knowledge"];

impl Service {
    /// A service of a flow.
    pub(crate) fn of_flow(name: &str) -> Option<Self> {
        match name {
            "agent" => Some(Self::Agent),
            "prompt" => Some(Self::Model(Asked::Prompt)),
            "text-completion" => Some(Self::Model(Asked::Completion)),
            "document-rag" => Some(Self::Model(Asked::Documents)),
            "graph-rag" => Some(Self::GraphRag),
            "embeddings" => Some(Self::Embeddings),
            "text-load" => Some(Self::Load(Loading::Text)),
            "document-load" => Some(Self::Load(Loading::Document)),
            "mcp-tool" => Some(Self::McpTool),
            "triples" => Some(Self::Triples),
            "sparql" => Some(Self::Sparql),
            "rows" => Some(Self::Rows),
            "nlp-query" => Some(Self::NlpQuery),
            "structured-query" => Some(Self::StructuredQuery),
            "row-embeddings" => Some(Self::RowEmbeddings),
            _ => missing(MISSING_IN_FLOWS, name),
        }
    }

    /// A service of a workspace.
    pub(crate) fn of_workspace(name: &str) -> Option<Self> {
        match name {
            "librarian" => Some(Self::Librarian),
            "collection-management" => Some(Self::Collections),
            "config" => Some(Self::Config),
            "flow" => Some(Self::Flow),
            "iam" => Some(Self::Iam),
            _ => missing(MISSING_IN_WORKSPACES, name),
        }
    }

    /// One reply, whole.
    pub(crate) async fn answer(self, gateway: &Gateway, call: Call) -> Result<Written, ServiceError> {
        check_flow(&call).await?;
        let reply = match self {
            Self::Agent => agent::answer(gateway, call).await,
            Self::Librarian => librarian::answer(call).await,
            Self::Collections => collections::answer(call).await,
            Self::Config => config::answer(gateway, call).await,
            Self::Flow => flow::answer(call).await,
            Self::Iam => iam::answer(gateway, call).await,
            Self::Model(asked) => asked.answer(gateway, call).await,
            Self::McpTool => mcp_tool::answer(gateway, call).await,
            Self::GraphRag => graph_rag::answer(gateway, call).await,
            Self::Embeddings => documents::embed(gateway, call).await,
            Self::Load(loading) => loading.answer(gateway, call).await,
            Self::Rows => tables::rows(call).await,
            Self::NlpQuery => tables::query_for(gateway, call).await,
            Self::StructuredQuery => tables::ask(gateway, call).await,
            Self::RowEmbeddings => tables::near(call).await,
            Self::Triples => return triples::answer(gateway, call).await,
            Self::Sparql => return sparql::answer(gateway, call).await,
            Self::Missing(name) => {
                Err(ServiceError::gateway(format!("the service `{name}` is not available on this server")))
            }
        };
        reply.map(|reply| written(&reply))
    }

    /// A reply over HTTP that is sent while it is read, because it may be large. None if the service has none such.
    pub(crate) async fn streamed(self, gateway: &Arc<Gateway>, call: &Call) -> Result<Option<Response>, ServiceError> {
        match self {
            Self::Librarian => librarian::streamed(gateway, call).await,
            Self::Agent
            | Self::Config
            | Self::Flow
            | Self::Iam
            | Self::Model(_)
            | Self::McpTool
            | Self::GraphRag
            | Self::Embeddings
            | Self::Load(_)
            | Self::Collections
            | Self::Triples
            | Self::Sparql
            | Self::Rows
            | Self::NlpQuery
            | Self::StructuredQuery
            | Self::RowEmbeddings
            | Self::Missing(_) => Ok(None),
        }
    }

    /// As many replies as there are.
    pub(crate) async fn stream(self, gateway: &Gateway, call: Call, outbox: &Outbox) -> Result<(), StreamError> {
        check_flow(&call).await?;
        match self {
            Self::Agent => agent::stream(gateway, call, outbox).await,
            Self::Librarian => librarian::stream(gateway, call, outbox).await,
            Self::Model(asked) => asked.stream(gateway, call, outbox).await,
            Self::GraphRag => graph_rag::stream(gateway, call, outbox).await,
            Self::Triples => {
                let _floor = outbox.floor().await;
                triples::stream(gateway, call, outbox).await
            }
            Self::Sparql => sparql::stream(gateway, call, outbox).await,
            // Others on the socket do not wait for it.
            Self::McpTool
            | Self::Embeddings
            | Self::Load(_)
            | Self::Rows
            | Self::NlpQuery
            | Self::StructuredQuery
            | Self::RowEmbeddings => Ok(outbox.last(&self.answer(gateway, call).await?).await?),
            Self::Collections | Self::Config | Self::Flow | Self::Iam | Self::Missing(_) => {
                let _floor = outbox.floor().await;
                Ok(outbox.last(&self.answer(gateway, call).await?).await?)
            }
        }
    }
}

/// A flow that is named must be there.
async fn check_flow(call: &Call) -> Result<(), ServiceError> {
    match &call.flow {
        Some(flow) => flow::check(call, flow).await,
        None => Ok(()),
    }
}

fn missing(names: &[&'static str], name: &str) -> Option<Service> {
    names.iter().find(|known| **known == name).map(|name| Service::Missing(name))
}
