//! Tools that are services of the deployment. All others are called as everywhere else.

use super::flow::{Flows, RunningFlow, service};
use super::rpc::{CallError, Service};
use super::topic::Topic;
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use trellis_domain::Workspace;
use trellis_domain::config::{Settings, ToolItem, ToolKind};
use trellis_domain::rdf::Quad;
use trellis_domain::record::Explained;
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{BoxFuture, ModelWish, ToolCall, ToolError, ToolOutput, ToolRunner, ToolServers};

/// The deployment's services in front of other tools.
#[derive(Debug)]
pub(crate) struct BrokerTools {
    pub(crate) flows: Arc<Flows>,
    pub(crate) others: Arc<dyn ToolRunner>,
}

/// Whether a service of the deployment does this.
fn is_served(kind: ToolKind) -> bool {
    match kind {
        ToolKind::KnowledgeQuery
        | ToolKind::DocumentRag
        | ToolKind::McpTool
        | ToolKind::StructuredQuery
        | ToolKind::RowEmbeddingsQuery
        | ToolKind::ToolService => true,
        ToolKind::TextCompletion | ToolKind::Prompt | ToolKind::Http | ToolKind::SparqlQuery | ToolKind::Agent => false,
    }
}

impl BrokerTools {
    async fn perform(&self, call: ToolCall) -> Result<ToolOutput, ToolError> {
        if !is_served(call.tool.kind) || has_address(&call.tool, &call.settings) {
            return self.others.call(call).await;
        }
        let gone = || ToolError::new(format!("the flow {} has been stopped", call.scope.flow));
        let flow = self.flows.get(&call.scope).await.ok_or_else(gone)?;
        let called = match call.tool.kind {
            ToolKind::KnowledgeQuery => rag(&flow, service::GRAPH_RAG, &call).await,
            ToolKind::DocumentRag => rag(&flow, service::DOCUMENT_RAG, &call).await,
            ToolKind::McpTool => mcp_tool(&flow, &call).await.map(text),
            ToolKind::StructuredQuery => structured_query(&flow, &call).await.map(text),
            ToolKind::RowEmbeddingsQuery => rows(&flow, &call).await.map(text),
            ToolKind::ToolService => tool_service(&flow, &call).await.map(text),
            ToolKind::TextCompletion | ToolKind::Prompt | ToolKind::Http | ToolKind::SparqlQuery | ToolKind::Agent => {
                return self.others.call(call).await;
            }
        };
        called.map_err(ToolError::new)
    }
}

/// A tool service that has an address, too, is called there.
fn has_address(tool: &ToolItem, settings: &Settings) -> bool {
    let service = settings.tool_services.get(tool.setting("service").unwrap_or_default());
    tool.kind == ToolKind::ToolService && service.is_some_and(|service| service.url.is_some())
}

fn text(text: String) -> ToolOutput {
    ToolOutput { text, ..ToolOutput::default() }
}

fn serving(flow: &RunningFlow, name: &str) -> Result<Arc<Service>, String> {
    flow.service(name).ok_or_else(|| format!("the flow {} has no service {name}", flow.scope.flow))
}

fn said(error: CallError) -> String {
    error.to_string()
}

fn argument<'c>(call: &'c ToolCall, name: &str) -> Result<&'c str, String> {
    let value = call.arguments.get(name).filter(|value| !value.is_null());
    let value = value.ok_or_else(|| format!("the argument `{name}` is missing"))?;
    value.as_str().ok_or_else(|| format!("the argument `{name}` is no text"))
}

/// The collection that the item names, else `default`, as in the original.
fn collection(tool: &ToolItem) -> &str {
    tool.setting("collection").filter(|name| !name.is_empty()).unwrap_or("default")
}

/// Questions to a graph or to documents: what the service tells of its own steps becomes part of the run's record.
async fn rag(flow: &RunningFlow, name: &str, call: &ToolCall) -> Result<ToolOutput, String> {
    let limit = |name: &str| json!(call.tool.settings.get(name).and_then(Value::as_u64).unwrap_or(0));
    let mut body = json!({ "query": argument(call, "question")?, "collection": collection(&call.tool) });
    if name == service::GRAPH_RAG {
        for (field, setting) in GRAPH_LIMITS {
            body[field] = limit(setting);
        }
        body["streaming"] = json!(false);
        body["parent_uri"] = json!(call.step.clone().unwrap_or_default());
        body["user_context"] = Value::Null;
        for list in ["grounding_seeds", "graph_seeds", "languages", "traversal_instructions"] {
            body[list] = json!([]);
        }
        body["graph"] = Value::Null;
    } else {
        body["doc_limit"] = limit("limit");
        body["fetch_limit"] = json!(0);
        body["streaming"] = json!(false);
    }
    let mut output = ToolOutput::default();
    let hear = &mut |response: Value| {
        if response["message_type"] == "explain" {
            output.trace.extend(explained(&response));
        } else {
            output.text.extend(written(&response["response"]));
        }
        let is_last = response["end_of_session"] == true;
        if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    serving(flow, name)?.stream(&body, call.timeout, hear).await.map_err(said)?;
    Ok(output)
}

/// 0 means that the service decides.
const GRAPH_LIMITS: [(&str, &str); 7] = [
    ("entity_limit", "entity-limit"),
    ("triple_limit", "triple-limit"),
    ("max_subgraph_size", "max-subgraph-size"),
    ("max_path_length", "max-path-length"),
    ("edge_score_limit", "edge-score-limit"),
    ("edge_limit", "edge-limit"),
    ("max_reranker_input", "max-reranker-input"),
];

/// A step that the service tells of, without statements that cannot be read.
fn explained(response: &Value) -> Option<Explained> {
    let id = response["explain_id"].as_str().filter(|id| !id.is_empty())?;
    let triples = response["explain_triples"].as_array().map(Vec::as_slice).unwrap_or_default();
    let graph = response["explain_graph"].as_str();
    let quads = triples.iter().filter_map(|triple| {
        let quad: Quad = serde_json::from_value(triple.clone()).ok()?;
        Some(Quad { g: quad.g.filter(|g| !g.is_empty()).or_else(|| graph.map(str::to_owned)), ..quad })
    });
    Some(Explained { id: id.to_owned(), quads: quads.collect() })
}

async fn mcp_tool(flow: &RunningFlow, call: &ToolCall) -> Result<String, String> {
    let body = json!({
        "name": call.tool.setting("mcp-tool").unwrap_or_default(), "parameters": json!(call.arguments).to_string(),
    });
    let reply = serving(flow, service::MCP_TOOL)?.ask(&body, call.timeout).await.map_err(said)?;
    match (written(&reply["text"]), written(&reply["object"])) {
        (Some(text), _) if !text.is_empty() => Ok(text),
        (_, Some(object)) => Ok(object),
        (Some(_), None) => Ok(String::new()),
        (None, None) => Err("the service gave neither a text nor an object".to_owned()),
    }
}

/// A value as a text. What should be one, and is another value, is told as it is written.
pub(crate) fn written(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Some(value.to_string()),
    }
}

async fn structured_query(flow: &RunningFlow, call: &ToolCall) -> Result<String, String> {
    let body = json!({ "question": argument(call, "question")?, "collection": collection(&call.tool) });
    let reply = serving(flow, service::STRUCTURED_QUERY)?.ask(&body, call.timeout).await.map_err(said)?;
    let problems: Vec<_> = reply["errors"].as_array().into_iter().flatten().filter_map(written).collect();
    match written(&reply["data"]).filter(|data| !data.is_empty() && data != "null") {
        Some(data) => Ok(data),
        None if problems.is_empty() => Ok("No data returned".to_owned()),
        None => Err(problems.join("; ")),
    }
}

async fn rows(flow: &RunningFlow, call: &ToolCall) -> Result<String, String> {
    let texts = json!({ "texts": [argument(call, "query")?] });
    let embedded = serving(flow, service::EMBEDDINGS)?.ask(&texts, call.timeout).await.map_err(said)?;
    let vector = embedded["vectors"].get(0).filter(|vector| vector.is_array());
    let vector = vector.ok_or("the embeddings service gave no vector")?;
    let limit = call.tool.settings.get("limit").and_then(Value::as_u64).unwrap_or(10);
    let body = json!({
        "vector": vector, "limit": limit, "collection": collection(&call.tool),
        "schema_name": call.tool.setting("schema-name").unwrap_or_default(),
        "index_name": call.tool.setting("index-name"), "attributes": {},
    });
    let found = serving(flow, service::ROW_EMBEDDINGS)?.ask(&body, call.timeout).await.map_err(said)?;
    let lines: Vec<_> = found["matches"].as_array().into_iter().flatten().map(row).collect();
    if lines.is_empty() {
        return Ok("No matching records found".to_owned());
    }
    Ok(format!("Matching records:\n{}", lines.join("\n")))
}

fn row(found: &Value) -> String {
    let values = found["index_value"].as_array().into_iter().flatten();
    let values: Vec<_> = values.map(|value| written(value).unwrap_or_default()).collect();
    let (index, score) = (found["index_name"].as_str().unwrap_or_default(), found["score"].as_f64().unwrap_or(0.0));
    format!("- {index}: {} (score: {score:.3})", values.join(", "))
}

async fn tool_service(flow: &RunningFlow, call: &ToolCall) -> Result<String, String> {
    let (request, response) = queues(&call.tool, &call.settings)?;
    let key = call.tool.setting("service").unwrap_or_default();
    let params = call.settings.tool_services.get(key).map(|service| service.config_params.as_slice());
    let params = params.unwrap_or_default().iter();
    let config: Map<_, _> =
        params.filter_map(|(name, _)| Some((name.clone(), call.tool.settings.get(name)?.clone()))).collect();
    // Both are texts that hold JSON.
    let body = json!({ "config": json!(config).to_string(), "arguments": json!(call.arguments).to_string() });
    let mut text = String::new();
    let hear = &mut |reply: Value| {
        text.extend(written(&reply["response"]));
        // Whoever gives one reply need not say that it is the last.
        let more = reply["end_of_stream"] == false;
        if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    flow.at(&request, &response).stream(&body, call.timeout, hear).await.map_err(said)?;
    Ok(text)
}

/// The queues that a tool service listens to.
fn queues(tool: &ToolItem, settings: &Settings) -> Result<(Topic, Topic), String> {
    let key = tool.setting("service").unwrap_or_default();
    let service = settings.tool_services.get(key).ok_or_else(|| format!("there is no tool-service `{key}`"))?;
    let topic = |name: &Option<String>| {
        let name = name.as_deref().ok_or_else(|| format!("tool-service/{key} names no queues"))?;
        Topic::parse(name).map_err(|error| format!("tool-service/{key}: {error}"))
    };
    Ok((topic(&service.request_queue)?, topic(&service.response_queue)?))
}

impl ToolRunner for BrokerTools {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(self.perform(call))
    }

    fn obstacle(&self, workspace: &Workspace, tool: &ToolItem, settings: &Settings) -> Option<String> {
        if !is_served(tool.kind) || has_address(tool, settings) {
            return self.others.obstacle(workspace, tool, settings);
        }
        // Which services there are differs from flow to flow: a call of one that is missing says so.
        if tool.kind == ToolKind::ToolService { queues(tool, settings).err() } else { None }
    }

    fn servers(&self) -> Option<&dyn ToolServers> {
        self.others.servers()
    }

    fn capacity(&self, tool: &ToolItem, settings: &Settings, wish: ModelWish<'_>) -> Option<Arc<CallCapacity>> {
        if is_served(tool.kind) { None } else { self.others.capacity(tool, settings, wish) }
    }
}
