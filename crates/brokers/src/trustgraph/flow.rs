//! A flow of the deployment: where its requests come from, and which services it has.

use super::broker::Broker;
use super::rpc::Service;
use super::topic::Topic;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use tokio::sync::watch;
use trellis_domain::Scope;

/// The topics of a flow by their names in its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlowTopics(BTreeMap<String, Topic>);

/// Services that a flow may have, as its definition names them.
pub(crate) mod service {
    pub(crate) const PROMPT: &str = "prompt";
    pub(crate) const GRAPH_RAG: &str = "graph-rag";
    pub(crate) const DOCUMENT_RAG: &str = "document-rag";
    pub(crate) const MCP_TOOL: &str = "mcp-tool";
    pub(crate) const STRUCTURED_QUERY: &str = "structured-query";
    pub(crate) const EMBEDDINGS: &str = "embeddings";
    pub(crate) const ROW_EMBEDDINGS: &str = "row-embeddings-query";
    pub(crate) const LIBRARIAN: &str = "librarian";
}

pub(crate) const REQUEST: &str = "request";
pub(crate) const NEXT: &str = "next";
pub(crate) const RESPONSE: &str = "response";
pub(crate) const EXPLAINABILITY: &str = "explainability";

impl FlowTopics {
    /// Reads a definition; what it says of each topic that is none.
    pub(crate) fn read(definition: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(definition).map_err(|error| format!("it is no JSON: {error}"))?;
        let topics = value.get("topics").and_then(Value::as_object).ok_or("it has no `topics`")?;
        let mut read = BTreeMap::new();
        for (name, identifier) in topics {
            let identifier = identifier.as_str().ok_or_else(|| format!("the topic `{name}` is no text"))?;
            let topic = Topic::parse(identifier).map_err(|error| format!("the topic `{name}`: {error}"))?;
            read.insert(name.clone(), topic);
        }
        // Without these nobody can be answered.
        for needed in [REQUEST, RESPONSE] {
            if !read.contains_key(needed) {
                return Err(format!("it has no topic `{needed}`"));
            }
        }
        Ok(Self(read))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Topic> {
        self.0.get(name)
    }

    /// One that every flow has.
    pub(crate) fn needed(&self, name: &str) -> &Topic {
        self.0.get(name).expect("a flow without request or response is not read")
    }
}

/// A flow that runs.
#[derive(Debug)]
pub(crate) struct RunningFlow {
    pub(crate) scope: Scope,
    pub(crate) topics: FlowTopics,
    broker: Arc<Broker>,
    /// Those that were needed so far.
    services: Mutex<HashMap<String, Arc<Service>>>,
}

impl RunningFlow {
    pub(crate) fn new(broker: &Arc<Broker>, scope: Scope, topics: FlowTopics) -> Self {
        Self { scope, topics, broker: Arc::clone(broker), services: Mutex::default() }
    }

    /// A service by its name; none if the definition does not have it.
    pub(crate) fn service(&self, name: &str) -> Option<Arc<Service>> {
        let request = self.topics.get(&format!("{name}-request"))?;
        let response = self.topics.get(&format!("{name}-response"))?;
        Some(self.at(request, response))
    }

    /// A service by its queues.
    pub(crate) fn at(&self, request: &Topic, response: &Topic) -> Arc<Service> {
        let key = format!("{request} {response}");
        let mut services = self.services.lock();
        let made = || Arc::new(Service::new(&self.broker, request.clone(), response.clone()));
        Arc::clone(services.entry(key).or_insert_with(made))
    }
}

/// The flows that run now.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    running: RwLock<HashMap<Scope, Arc<RunningFlow>>>,
    /// Those that have been stopped. Their services are there for as long as somebody tells a dialog of theirs.
    stopped: RwLock<HashMap<Scope, Weak<RunningFlow>>>,
    /// Whether the deployment has told which there are.
    known: watch::Sender<bool>,
}

impl Flows {
    /// A flow, if it runs or a dialog of it is still told. Runs that a crash has left open go on before it is known which do:
    /// they wait for that, or for their own.
    pub(crate) async fn get(&self, scope: &Scope) -> Option<Arc<RunningFlow>> {
        let running = || self.running.read().get(scope).cloned();
        let stopped = || self.stopped.read().get(scope).and_then(Weak::upgrade);
        let mut known = self.known.subscribe();
        drop(known.wait_for(|known| *known || running().is_some()).await);
        running().or_else(stopped)
    }

    pub(crate) fn put(&self, flow: Arc<RunningFlow>) {
        self.running.write().insert(flow.scope.clone(), flow);
        // Whoever waits for it looks again.
        self.known.send_modify(|_| {});
    }

    pub(crate) fn remove(&self, scope: &Scope) {
        let Some(flow) = self.running.write().remove(scope) else { return };
        let mut stopped = self.stopped.write();
        stopped.retain(|_, flow| flow.strong_count() > 0);
        stopped.insert(scope.clone(), Arc::downgrade(&flow));
    }

    /// All that the deployment has are there.
    pub(crate) fn are_known(&self) {
        self.known.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn a_definition_needs_no_more_than_a_way_in_and_a_way_out() {
        let text = r#"{"topics": {"request": "request:tg:agent:a:b", "response": "response:tg:agent:a:b"}}"#;
        let topics = FlowTopics::read(text).unwrap();
        assert_eq!(topics.needed(REQUEST).exchange(), "tg.request.agent:a:b");
        assert_eq!(topics.get("prompt-request"), None);
    }

    #[tokio::test]
    async fn whether_a_flow_runs_is_not_known_before_the_deployment_has_told() {
        let (flows, scope) = (Flows::default(), Scope::default());
        assert!(flows.get(&scope).now_or_never().is_none(), "it is waited for");
        flows.are_known();
        assert!(flows.get(&scope).await.is_none());
    }

    #[test]
    fn a_definition_that_cannot_be_served_says_why() {
        let cases = [
            ("{", "no JSON"),
            ("{}", "`topics`"),
            (r#"{"topics": {"request": 1}}"#, "`request` is no text"),
            (r#"{"topics": {"request": "a:b"}}"#, "class:space:topic"),
            (r#"{"topics": {"request": "request:tg:a"}}"#, "no topic `response`"),
        ];
        for (text, why) in cases {
            let error = FlowTopics::read(text).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
    }
}
