//! What a gateway is connected to when it is made.

use crate::access::Access;
use crate::calls::Calls;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_domain::Workspace;
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_orchestrator::RunService;
use trellis_orchestrator::documents::Loader;
use trellis_orchestrator::graph_rag::GraphRag;
use trellis_orchestrator::meter::TokenMeter;
use trellis_orchestrator::ports::{
    BoxFuture, Config, ConfigError, Graph, Knowledge, Library, Log, Presence, Prompter, ToolRunner, World,
};
use trellis_orchestrator::tables::TableLoader;
use trellis_patterns::router::OperatorLimits;
use trellis_tabular::Program;

/// Gives a new workspace what it starts with.
pub trait Founder: Send + Sync + std::fmt::Debug {
    fn found<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(), ConfigError>>;
}

/// Tells a run as people read it. The command line has the words for it.
pub trait RunText: Send + Sync + std::fmt::Debug {
    /// The run from its question to its end, with whole texts or only with their beginnings.
    fn of(&self, run: &RunSummary, records: &[Arc<Record>], full: bool) -> String;
}

/// How Parquet files are read that somebody sends.
#[derive(Debug, Clone)]
pub struct ParquetReader {
    /// How a process is started that reads one.
    pub program: Program,
    /// Where a file is kept while it is read, on disk.
    pub folder: PathBuf,
    /// How long a file waits for its turn behind others.
    pub patience: Duration,
}

/// What a gateway is connected to.
#[derive(Debug)]
pub struct Wiring {
    pub runs: RunService,
    pub config: Arc<dyn Config>,
    /// For calls of models that belong to no run.
    pub prompter: Arc<dyn Prompter>,
    /// For calls of tools that belong to no run.
    pub tools: Arc<dyn ToolRunner>,
    pub world: Arc<dyn World>,
    /// What the models of `prompter` have read and written.
    pub meter: Arc<TokenMeter>,
    /// The operator's, for what belongs to no run.
    pub limits: OperatorLimits,
    pub library: Arc<dyn Library>,
    /// Documents that are searched; none if nothing is searched here.
    pub documents: Option<Loader>,
    pub graph: Arc<dyn Graph>,
    pub knowledge: Arc<dyn Knowledge>,
    /// Answers from it; none if there is nobody to answer.
    pub graph_rag: Option<GraphRag>,
    /// Tables, and how rows get into them.
    pub tables: TableLoader,
    /// How Parquet files are read; none if they are not.
    pub parquet: Option<ParquetReader>,
    pub log: Arc<dyn Log>,
    /// Who works on the store.
    pub presence: Arc<dyn Presence>,
    pub run_text: Arc<dyn RunText>,
    pub access: Access,
    pub founder: Arc<dyn Founder>,
    /// Nobody but this machine can reach the server: other names for it are a trick.
    pub loopback_only: bool,
    pub phase: watch::Receiver<Phase>,
    pub calls: Calls,
}

/// How far a server is on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Serving,
    /// No question is taken. What is being answered is answered to its end.
    Draining,
    /// Whoever still follows a run gets the message that it goes on when the server is back.
    Closed,
}
