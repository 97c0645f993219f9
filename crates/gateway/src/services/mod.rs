//! The services, by the names that clients know.
//!
//! Each has an `answer`: one reply to one request, which is all that REST can carry. Those that have more to say
//! on a socket have a `stream` as well.

mod agent;
mod asking;
mod batches;
mod collections;
mod config;
mod decision_scoring;
mod documents;
mod flow;
mod graph_rag;
pub(crate) mod held;
mod iam;
mod librarian;
mod mcp_tool;
mod model;
pub(crate) mod sparql;
mod structured_diag;
mod tables;
mod terms;
mod triples;
mod whole_collection;

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
    DecisionScoring,
    StructuredDiag,
    /// Known to clients, and not offered by this server.
    Missing(&'static str),
}

/// The services of flows that there are.
pub(crate) const OF_FLOWS: &[&str] = &[
    "agent",
    "prompt",
    "text-completion",
    "document-rag",
    "graph-rag",
    "embeddings",
    "text-load",
    "document-load",
    "mcp-tool",
    "triples",
    "sparql",
    "rows",
    "nlp-query",
    "structured-query",
    "structured-diag",
    "row-embeddings",
    "decision-scoring",
];
/// The services of workspaces.
pub(crate) const OF_WORKSPACES: &[&str] = &["librarian", "collection-management", "config", "flow", "iam"];

/// Names of flow services that clients may ask for and that this server does not have.
const MISSING_IN_FLOWS: &[&str] =
    &["graph-embeddings", "document-embeddings", "reranker", "image-to-text", "cloze", "field-extraction"];
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
            "decision-scoring" => Some(Self::DecisionScoring),
            "structured-diag" => Some(Self::StructuredDiag),
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
            Self::DecisionScoring => decision_scoring::answer(gateway, call).await,
            Self::StructuredDiag => structured_diag::answer(gateway, call).await,
            Self::Triples => return triples::answer(gateway, call).await,
            Self::Sparql => return sparql::answer(gateway, call).await,
            Self::Missing(name) => {
                Err(ServiceError::gateway(format!("the service `{name}` is not available on this server")))
            }
        };
        reply.map(|reply| written(&reply))
    }

    /// Whether a request may take so long that others must not wait for its reply to be made.
    pub(crate) fn takes_long(self, call: &Call) -> bool {
        self == Self::Librarian && librarian::takes_long(call)
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
            | Self::DecisionScoring
            | Self::StructuredDiag
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
            | Self::RowEmbeddings
            | Self::DecisionScoring
            | Self::StructuredDiag => Ok(outbox.last(&self.answer(gateway, call).await?).await?),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_that_is_told_of_is_there() {
        let here = |service: Option<Service>| service.is_some_and(|service| !matches!(service, Service::Missing(_)));
        assert!(OF_FLOWS.iter().all(|name| here(Service::of_flow(name))));
        assert!(OF_WORKSPACES.iter().all(|name| here(Service::of_workspace(name))));
    }
}
