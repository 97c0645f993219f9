//! A TrustGraph deployment around us: we take the place of its agent orchestrator.
//!
//! Requests come out of the deployment's queues, configuration from its configuration service; prompts and tools are its
//! services. What happened is in a journal of our own, as everywhere else: a message is acknowledged as soon as its question is
//! there, and no message waits for a model.

mod broker;
mod configuration;
mod flow;
mod folder;
mod librarian;
mod promises;
mod prompter;
mod requests;
mod rpc;
mod telling;
mod tools;
mod topic;

pub use folder::FolderNotes;
pub use topic::NotATopic;

use crate::address::BrokerAddress;
use crate::bus::{BusError, BusOptions};
use broker::Broker;
use configuration::{Configuration, Read, Values, copy};
use flow::{FlowTopics, Flows, RunningFlow};
use requests::{Requests, told_to_stop};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use telling::Teller;
use tokio::sync::watch;
use tokio::task::JoinSet;
use topic::Topic;
use trellis_domain::config::AGENT_TYPES;
use trellis_domain::limits::SomeLimits;
use trellis_domain::{Flow, Scope, Workspace};
use trellis_orchestrator::RunService;
use trellis_orchestrator::ports::{Config, Notes, Prompter, ToolRunner, World};

/// How this process takes part in a deployment.
#[derive(Debug, Clone)]
pub struct TrustGraphOptions {
    /// The name of the processor, which all processes of a pool share.
    pub id: String,
    /// Where changes of the configuration are told.
    pub notices: String,
    pub config_timeout: Duration,
    pub prompt_timeout: Duration,
    pub librarian_timeout: Duration,
    /// What holds for requests, which cannot say so themselves.
    pub limits: SomeLimits,
    /// How many dialogs of a flow are open at once.
    pub dialogs_per_flow: usize,
}

/// A deployment that we are connected to.
#[derive(Debug)]
pub struct TrustGraph {
    broker: Arc<Broker>,
    flows: Arc<Flows>,
    options: TrustGraphOptions,
    notices: Topic,
}

/// Why a deployment cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TrustGraphError {
    #[error(transparent)]
    NotATopic(#[from] NotATopic),
    #[error(transparent)]
    Broker(#[from] BusError),
}

impl TrustGraph {
    /// Connects to the deployment's RabbitMQ. One that is lost afterwards is looked for until it is back.
    pub async fn connect(
        address: BrokerAddress,
        options: TrustGraphOptions,
        world: Arc<dyn World>,
    ) -> Result<Self, TrustGraphError> {
        let notices = Topic::parse(&options.notices)?;
        let shown = address.to_string();
        let connected = Broker::connect(address, BusOptions::default(), world).await;
        let broker = connected.map_err(|reason| BusError::Unusable { address: shown, reason })?;
        Ok(Self { broker: Arc::new(broker), flows: Arc::default(), options, notices })
    }

    /// Prompts through the prompt service of the flow that asks.
    pub fn prompter(&self) -> Arc<dyn Prompter> {
        Arc::new(prompter::BrokerPrompter {
            flows: Arc::clone(&self.flows),
            world: Arc::clone(self.broker.world()),
            timeout: self.options.prompt_timeout,
        })
    }

    /// The services of the flow that asks in front of other tools.
    pub fn tools(&self, others: Arc<dyn ToolRunner>) -> Arc<dyn ToolRunner> {
        Arc::new(tools::BrokerTools { flows: Arc::clone(&self.flows), others })
    }

    /// Serves the deployment until it is told to stop: then nothing new is taken. Open dialogs are noted, and told to their
    /// end by whoever has the notes next.
    pub async fn serve(
        &self,
        runs: RunService,
        config: Arc<dyn Config>,
        notes: Arc<dyn Notes>,
        mut stop: watch::Receiver<bool>,
    ) {
        let TrustGraphOptions { id, limits, dialogs_per_flow, librarian_timeout, config_timeout, .. } = &self.options;
        let broker = Arc::clone(&self.broker);
        let teller = Teller { broker, runs, notes: Arc::clone(&notes), librarian_timeout: *librarian_timeout };
        let requests = Arc::new(Requests::new(teller, id.clone(), limits.clone(), *dialogs_per_flow));
        let mut configuration = Configuration::new(&self.broker, id, &self.notices, *config_timeout);
        let mut serving = ServedFlows {
            trustgraph: self,
            requests: Arc::clone(&requests),
            flows: BTreeMap::new(),
            tasks: JoinSet::new(),
        };
        let mut holding = std::pin::pin!(hold(&*notes, &**self.broker.world()));
        loop {
            let (read, gone) = tokio::select! {
                biased;
                changed = configuration.changed() => changed,
                () = told_to_stop(&mut stop) => break,
                () = &mut holding => break,
            };
            apply(&*config, &read, configuration.flow_kind()).await;
            serving.update(&read, &gone, configuration.flow_kind());
            if configuration.knows_flows() {
                self.flows.are_known();
            }
        }
        serving.stop_all().await;
        tracing::info!(open_dialogs = requests.open(), "no requests are taken any more");
        requests.stop_telling().await;
        if let Err(error) = notes.leave().await {
            tracing::warn!(%error, "open dialogs are not let go; others take them over after a while");
        }
    }
}

/// So often this process says that it is still there.
const HOLD: Duration = Duration::from_secs(5);

/// Says again and again that this process is there.
async fn hold(notes: &dyn Notes, world: &dyn World) {
    loop {
        world.sleep(HOLD).await;
        if let Err(error) = notes.hold().await {
            tracing::warn!(%error, "the notes of open dialogs cannot be held; others may take them over");
        }
    }
}

/// Copies what was read of the agents' configuration. A workspace that fails does not keep others from it.
async fn apply(config: &dyn Config, read: &Read, flow_kind: &str) {
    let mut by_workspace = BTreeMap::<&str, BTreeMap<&str, &Values>>::new();
    for ((workspace, kind), values) in read.iter().filter(|((_, kind), _)| kind != flow_kind) {
        if AGENT_TYPES.contains(&kind.as_str()) {
            by_workspace.entry(workspace).or_default().insert(kind, values);
        }
    }
    for (name, read) in by_workspace {
        let copied = match Workspace::new(name) {
            Ok(workspace) => copy(config, &workspace, &read).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = copied {
            tracing::error!(workspace = name, error, "the configuration cannot be copied");
        }
    }
}

/// The flows that are served, with their definitions.
struct ServedFlows<'a> {
    trustgraph: &'a TrustGraph,
    requests: Arc<Requests>,
    flows: BTreeMap<Scope, ServedFlow>,
    tasks: JoinSet<()>,
}

struct ServedFlow {
    definition: String,
    stop: watch::Sender<bool>,
}

impl ServedFlows<'_> {
    /// Starts and stops flows as the configuration has them; one whose definition has changed is stopped and started.
    fn update(&mut self, read: &Read, gone: &BTreeSet<String>, flow_kind: &str) {
        let gone_flows: Vec<_> =
            self.flows.keys().filter(|scope| gone.contains(scope.workspace.as_str())).cloned().collect();
        for scope in &gone_flows {
            self.stop(scope);
        }
        for ((workspace, _), definitions) in read.iter().filter(|((_, kind), _)| kind == flow_kind) {
            let Ok(workspace) = Workspace::new(workspace) else { continue };
            let is_gone =
                |scope: &&Scope| scope.workspace == workspace && !definitions.contains_key(scope.flow.as_str());
            let gone_flows: Vec<_> = self.flows.keys().filter(is_gone).cloned().collect();
            for scope in &gone_flows {
                self.stop(scope);
            }
            // One that is there and cannot be read stays as it is.
            let definitions = definitions.iter().filter_map(|(name, definition)| Some((name, definition.as_ref()?)));
            for (name, definition) in definitions {
                match Flow::new(name) {
                    Ok(flow) => self.serve(Scope { workspace: workspace.clone(), flow }, definition),
                    Err(error) => tracing::error!(%workspace, flow = name, %error, "a flow cannot be served"),
                }
            }
        }
    }

    /// Serves a flow as it is defined now. A definition that cannot be served takes no other's place.
    fn serve(&mut self, scope: Scope, definition: &str) {
        let served = self.flows.get(&scope).map(|served| served.definition.as_str());
        if served == Some(definition) {
            // It may have been stopped and started since.
            self.trustgraph.broker.listen_again();
            return;
        }
        let is_served = served.is_some();
        let topics = match FlowTopics::read(definition) {
            Ok(topics) => topics,
            Err(reason) => {
                let Scope { workspace, flow } = &scope;
                tracing::error!(%workspace, %flow, is_served, reason, "a flow cannot be served as it is defined now");
                return;
            }
        };
        self.stop(&scope);
        tracing::info!(workspace = %scope.workspace, flow = %scope.flow, "a flow is served");
        let flow = Arc::new(RunningFlow::new(&self.trustgraph.broker, scope.clone(), topics));
        self.trustgraph.flows.put(Arc::clone(&flow));
        let (stop, stopped) = watch::channel(false);
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(Arc::clone(&self.requests).serve(flow, stopped));
        self.flows.insert(scope, ServedFlow { definition: definition.to_owned(), stop });
    }

    fn stop(&mut self, scope: &Scope) {
        let Some(served) = self.flows.remove(scope) else { return };
        tracing::info!(workspace = %scope.workspace, flow = %scope.flow, "a flow is not served any more");
        served.stop.send_replace(true);
        self.trustgraph.flows.remove(scope);
    }

    /// What is being taken is taken.
    async fn stop_all(mut self) {
        for served in self.flows.values() {
            served.stop.send_replace(true);
        }
        while self.tasks.join_next().await.is_some() {}
    }
}
