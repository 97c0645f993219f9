//! Where everything is, and how it is wired.

use crate::cli::Global;
use crate::cluster::{self, Cluster};
use crate::failure::{Exit, Failure};
use crate::guarded::GuardedConfig;
use crate::model_settings;
use crate::query_settings;
use crate::state::{Purpose, State};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::{Scope, Workspace};
use trellis_models::{Choice, Connections, Models, Rehearsal, TemplatePrompter, choose};
use trellis_orchestrator::RunService;
use trellis_orchestrator::documents::{Extraction, FactsSpending, Loader};
use trellis_orchestrator::graph_rag::{EntityNames, GraphRag, IndexedKnowledge};
use trellis_orchestrator::meter::{Metered, TokenMeter};
use trellis_orchestrator::orchestrator::{Options, Orchestrator, Ports};
use trellis_orchestrator::ports::{Config, Embedder, Knowledge, Prompter, RealWorld, Role, ToolRunner, World};
use trellis_orchestrator::tables::TableLoader;
use trellis_orchestrator::workers::WorkerOptions;
use trellis_patterns::router::OperatorLimits;
use trellis_readers::Readers;
use trellis_store::{Holder, OpenError, Program, QuerySettings, Store};
use trellis_tools::{Outside, Tools};

/// What this program is told when it is to evaluate one query for another process of itself. Not a command: nobody
/// types it, and it has to start at once.
pub(crate) const QUERY_WORKER: &str = "query-worker";
/// The same to read one PDF.
pub(crate) const PDF_WORKER: &str = "pdf-worker";
/// The same to read one Parquet file.
pub(crate) const PARQUET_WORKER: &str = "parquet-worker";
/// The same to end a program that speaks MCP once this one is gone.
pub(crate) const PROGRAM_GUARD: &str = "program-guard";

/// An open data folder, or a state that several processes share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: State,
    /// What was loaded, with an index of what its entities are called.
    pub(crate) knowledge: Arc<dyn Knowledge>,
    pub(crate) entities: EntityNames,
    /// For queries of tools. Commands that are about queries read them themselves, and tell what is wrong with them.
    queries: QuerySettings,
    pub(crate) scope: Scope,
    /// What models read and write while this runs.
    pub(crate) meter: Arc<TokenMeter>,
    /// What facts of documents have cost while this runs.
    facts_spending: FactsSpending,
    /// How long workers of this process have a turn, unless they renew it.
    claim_life: Duration,
    pub(crate) world: Arc<dyn World>,
}

/// A data folder that could not be opened.
#[derive(Debug)]
pub(crate) enum Closed {
    /// Somebody has it and can be asked.
    Served {
        url: String,
        holder: Holder,
        error: Box<OpenError>,
    },
    Failed(Failure),
}

impl From<Failure> for Closed {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// For commands that need the folder itself.
impl From<Closed> for Failure {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Served { error, .. } => (*error).into(),
            Closed::Failed(failure) => failure,
        }
    }
}

impl App {
    /// Opens or makes the folder or the shared state, and brings its configuration seeds up to date.
    pub(crate) async fn open(global: &Global, command: &str, purpose: Purpose) -> Result<Self, Closed> {
        let app = match Cluster::named(global)? {
            Some(cluster) => Box::pin(Self::open_shared(global, &cluster, command, purpose)).await?,
            None => Self::open_as_it_is(global, command, None, purpose)?,
        };
        crate::seeds::apply(&*app.store.config, app.workspace()).await.map_err(Failure::from)?;
        Ok(app)
    }

    /// The same for a server: whoever finds the folder in use learns its address.
    pub(crate) async fn open_to_serve(global: &Global, url: String) -> Result<Self, Failure> {
        let app = match Cluster::named(global)? {
            Some(cluster) => Box::pin(Self::open_shared(global, &cluster, "serve", Purpose::Write)).await?,
            None => Self::open_as_it_is(global, "serve", Some(url), Purpose::Write)?,
        };
        crate::seeds::apply(&*app.store.config, app.workspace()).await?;
        Ok(app)
    }

    /// The same inside a deployment, whose own configuration takes the place of the seeds.
    pub(crate) async fn open_for_deployment(global: &Global) -> Result<Self, Failure> {
        match Cluster::named(global)? {
            Some(cluster) => Box::pin(Self::open_shared(global, &cluster, "orchestrator", Purpose::Write)).await,
            None => Ok(Self::open_as_it_is(global, "orchestrator", None, Purpose::Write)?),
        }
    }

    fn open_as_it_is(global: &Global, command: &str, url: Option<String>, purpose: Purpose) -> Result<Self, Closed> {
        let workspace = workspace(global)?.unwrap_or_default();
        let world: Arc<dyn World> = Arc::new(RealWorld);
        let holder = Holder { pid: std::process::id(), command: format!("trellis {command}"), url };
        let open = match purpose {
            Purpose::Read => Store::open_to_read,
            Purpose::Write => Store::open,
        };
        let store = open(&data_folder(global)?, &holder, Arc::clone(&world)).map_err(|error| match &error {
            OpenError::InUse { holder: holder @ Holder { url: Some(url), .. }, .. } => {
                Closed::Served { url: url.clone(), holder: holder.clone(), error: Box::new(error) }
            }
            OpenError::InUse { .. }
            | OpenError::NewerFormat { .. }
            | OpenError::Unusable { .. }
            | OpenError::NoRoom { .. }
            | OpenError::Damaged { .. } => Closed::Failed(error.into()),
        })?;
        let state = cluster::with_graph(global, State::of_folder(store), &*world)?;
        Ok(Self::of(global, state, workspace, world))
    }

    /// Opens a state that several processes share, as it is.
    pub(crate) async fn open_shared(
        global: &Global,
        cluster: &Cluster,
        command: &str,
        purpose: Purpose,
    ) -> Result<Self, Failure> {
        let workspace = workspace(global)?.unwrap_or_default();
        let (state, world) = cluster::open(cluster, command, purpose).await?;
        let state = cluster::with_graph(global, state, &*world)?;
        Ok(Self { claim_life: cluster.claim_life, ..Self::of(global, state, workspace, world) })
    }

    fn of(global: &Global, store: State, workspace: Workspace, world: Arc<dyn World>) -> Self {
        // Whoever needs the model is told what is wrong with it.
        let embedder = embedder(global).ok().flatten();
        let entities = EntityNames { search: Arc::clone(&store.material.entities), embedder };
        let knowledge = Arc::new(IndexedKnowledge::new(Arc::clone(&store.material.knowledge), entities.clone()));
        let queries = query_settings::of_operator(global, &[]).unwrap_or_default();
        let scope = Scope { workspace, ..Scope::default() };
        Self {
            store,
            knowledge,
            entities,
            queries,
            scope,
            meter: Arc::default(),
            facts_spending: FactsSpending::default(),
            claim_life: WorkerOptions::default().claim_life,
            world,
        }
    }

    /// Opens a folder that is there already: looking at something does not make it.
    pub(crate) fn open_existing(global: &Global, command: &str, purpose: Purpose) -> Result<Self, Closed> {
        if Cluster::named(global)?.is_some() {
            let message = format!("`trellis {command}` works on a data folder, not with --state (TRELLIS_STATE)");
            return Err(Closed::Failed(Failure::usage(message)));
        }
        let folder = data_folder(global)?;
        // What cannot even be looked for is told by whoever opens it; so is what lacks only one of these.
        if ["format", "journal", "log-head"].iter().all(|name| matches!(folder.join(name).try_exists(), Ok(false))) {
            let message = format!("there is no data in {}; `trellis ask` makes some", folder.display());
            return Err(Closed::Failed(Failure::new(Exit::NotFound, message)));
        }
        Self::open_as_it_is(global, command, None, purpose)
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.scope.workspace
    }

    /// Lets SPARQL be evaluated, in processes of this same program.
    pub(crate) fn evaluate_queries(&self, settings: QuerySettings) {
        match this_program() {
            Ok(path) => {
                let program = Program { path, arguments: vec![QUERY_WORKER.into()], variables: Vec::new() };
                self.store.evaluate_with(program, settings);
            }
            Err(error) => tracing::error!(%error, "this program cannot be found, so that there is no SPARQL"),
        }
    }

    /// What a gateway loads documents and rows with.
    pub(crate) fn loaders(&self, global: &Global, outside: &Outside) -> Result<(Loader, TableLoader), Failure> {
        let documents = self.loader(outside.embedder.clone())?.extracting(self.extraction(global)?);
        Ok((documents, self.table_loader(outside.embedder.clone())))
    }

    /// Loads documents, and finds them with the same model. Facts are not extracted.
    pub(crate) fn loader(&self, embedder: Option<Arc<dyn Embedder>>) -> Result<Loader, Failure> {
        let path = this_program().map_err(Failure::unexpected)?;
        let pdf = trellis_readers::Program { path, arguments: vec![PDF_WORKER.into()], variables: Vec::new() };
        let (library, search) = (Arc::clone(&self.store.library), Arc::clone(&self.store.material.search));
        let (reader, knowledge) = (Arc::new(Readers::new(pdf)), Arc::clone(&self.knowledge));
        Ok(Loader::new(library, search, reader, embedder, knowledge, Arc::clone(&self.world)))
    }

    /// Asks for the facts of documents, if the operator names a model for it. Nothing is sent to it yet.
    pub(crate) fn extraction(&self, global: &Global) -> Result<Option<Extraction>, Failure> {
        let Some((name, models)) = extraction_model(global)? else { return Ok(None) };
        let budgets = model_settings::of_operator(global)?.extraction_budgets;
        let extraction = Extraction::new(self.prompter(models), self.config(), name);
        Ok(Some(extraction.within(budgets, self.facts_spending.clone())))
    }

    /// Answers questions from loaded knowledge.
    pub(crate) fn graph_rag(&self, prompter: &Arc<dyn Prompter>) -> GraphRag {
        let (knowledge, names) = (Arc::clone(&self.knowledge), self.entities.clone());
        GraphRag { knowledge, names, prompter: Arc::clone(prompter), world: Arc::clone(&self.world) }
    }

    /// All tools, with what they reach.
    pub(crate) fn tools(&self, prompter: &Arc<dyn Prompter>, outside: Outside) -> Tools {
        // Whoever serves has set this already.
        self.evaluate_queries(self.queries);
        let material = &self.store.material;
        Tools::new(Arc::clone(prompter))
            .with(outside)
            .with_sparql(Arc::clone(&material.graph))
            .with_tables(Arc::clone(&material.tables), Arc::clone(&self.world))
            .with_documents(Arc::clone(&material.search), Arc::clone(&self.world))
            .with_knowledge(self.graph_rag(prompter))
    }

    /// Loads rows, and finds them by meaning with the same model.
    pub(crate) fn table_loader(&self, embedder: Option<Arc<dyn Embedder>>) -> TableLoader {
        TableLoader::new(Arc::clone(&self.store.material.tables), embedder)
    }

    /// The configuration for whoever may change it.
    pub(crate) fn config(&self) -> Arc<dyn Config> {
        Arc::new(GuardedConfig(Arc::clone(&self.store.config)))
    }

    /// The loop over this folder, with these models.
    pub(crate) fn orchestrator(&self, limits: OperatorLimits, models: Models, outside: Outside) -> Arc<Orchestrator> {
        self.orchestrator_with(limits, self.prompter(models), outside, |tools| tools)
    }

    /// Asks these models.
    pub(crate) fn prompter(&self, models: Models) -> Arc<dyn Prompter> {
        let prompter = TemplatePrompter::with_models(models, Arc::clone(&self.world));
        Arc::new(Metered::new(Arc::new(prompter), Arc::clone(&self.meter)))
    }

    /// The loop with whoever answers prompts, and with other tools in front of the usual ones.
    pub(crate) fn orchestrator_with(
        &self,
        limits: OperatorLimits,
        prompter: Arc<dyn Prompter>,
        outside: Outside,
        with: impl FnOnce(Arc<dyn ToolRunner>) -> Arc<dyn ToolRunner>,
    ) -> Arc<Orchestrator> {
        let ports = Ports {
            journal: Arc::clone(&self.store.journal),
            queue: self.store.queue(&self.world),
            config: self.config(),
            tools: with(Arc::new(self.tools(&prompter, outside))),
            prompter,
            hub: Arc::new(self.store.hub(&self.world)),
            world: Arc::clone(&self.world),
        };
        Arc::new(Orchestrator::new(ports, Options { limits, ..Options::default() }))
    }

    /// How workers of this process take turns.
    pub(crate) fn worker_options(&self, roles: &[Role]) -> WorkerOptions {
        WorkerOptions { roles: roles.to_vec(), claim_life: self.claim_life, ..WorkerOptions::default() }
    }

    /// The runs of this folder, for commands that answer none: no model is asked.
    pub(crate) fn runs(&self) -> RunService {
        RunService::new(&self.idle_orchestrator())
    }

    /// The loop for whoever asks no model.
    pub(crate) fn idle_orchestrator(&self) -> Arc<Orchestrator> {
        let nobody = Models::new(Arc::new(Rehearsal::default()));
        self.orchestrator(OperatorLimits::default(), nobody, Outside::default())
    }
}

/// Reads one Parquet file.
pub(crate) fn parquet_program() -> std::io::Result<trellis_tabular::Program> {
    let (path, arguments) = (this_program()?, vec![PARQUET_WORKER.into()]);
    Ok(trellis_tabular::Program { path, arguments, variables: Vec::new() })
}

/// Ends programs that were started once this one is gone.
pub(crate) fn program_guard() -> std::io::Result<trellis_tools::mcp::Guard> {
    Ok(trellis_tools::mcp::Guard { path: this_program()?, argument: PROGRAM_GUARD })
}

/// The program that runs, also if another one has taken its name since.
fn this_program() -> std::io::Result<PathBuf> {
    let itself = PathBuf::from("/proc/self/exe");
    if itself.exists() { Ok(itself) } else { std::env::current_exe() }
}

/// The workspace that was named, if one was.
pub(crate) fn workspace(global: &Global) -> Result<Option<Workspace>, Failure> {
    let named = global.workspace.as_deref().filter(|name| !name.is_empty()).map(Workspace::new).transpose();
    named.map_err(|error| Failure::usage(error.to_string()))
}

/// `--data`, else `TRELLIS_DATA`, else the platform's data directory.
fn data_folder(global: &Global) -> Result<PathBuf, Failure> {
    use etcetera::BaseStrategy;
    let named = std::env::var_os("TRELLIS_DATA").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    if let Some(folder) = global.data.clone().or(named) {
        return Ok(folder);
    }
    let strategy = etcetera::choose_base_strategy()
        .map_err(|error| Failure::usage(format!("cannot find a data directory: {error}; name one with --data")))?;
    Ok(strategy.data_dir().join("trellis"))
}

/// `--model`, else `TRELLIS_MODEL`.
fn named_models(global: &Global) -> Vec<String> {
    let known = std::env::var("TRELLIS_MODEL").unwrap_or_default();
    let known = known.split(',').map(str::to_owned);
    let named = if global.model.is_empty() { known.collect() } else { global.model.clone() };
    named.into_iter().filter(|name| !name.trim().is_empty()).collect()
}

/// The models that were named or that the environment knows; see [`choose`].
pub(crate) fn chosen_models(global: &Global) -> Result<Vec<Choice>, Failure> {
    let environment = |name: &str| std::env::var(name).ok();
    let settings = model_settings::of_operator(global)?;
    choose(&named_models(global), &settings, &environment).map_err(|error| Failure::usage(error.to_string()))
}

/// Whether the operator named models, so that those of a workspace do not count.
pub(crate) fn names_models(global: &Global) -> bool {
    !named_models(global).is_empty()
}

/// The model that makes vectors, if one is set. Nothing is sent to it yet.
pub(crate) fn embedder(global: &Global) -> Result<Option<Arc<dyn Embedder>>, Failure> {
    let settings = model_settings::of_operator(global)?;
    let Some(name) = settings.embedding_model.clone() else { return Ok(None) };
    let connections = Connections::new(settings, |name| std::env::var(name).ok(), Arc::new(RealWorld));
    let wrong = |error| Failure::usage(format!("the embedding model {name}: {error}"));
    connections.embedder(&name).map(Some).map_err(wrong)
}

/// The model that is asked for facts, if one is set.
pub(crate) fn extraction_model(global: &Global) -> Result<Option<(String, Models)>, Failure> {
    let settings = model_settings::of_operator(global)?;
    let Some(name) = settings.extraction_model.clone() else { return Ok(None) };
    let wrong = |error| Failure::usage(format!("the extraction model {name}: {error}"));
    let environment = |name: &str| std::env::var(name).ok();
    let chosen = choose(std::slice::from_ref(&name), &settings, &environment).map_err(wrong)?;
    let connections = Arc::new(Connections::new(settings, environment, Arc::new(RealWorld)));
    let first = chosen.into_iter().next().ok_or_else(|| Failure::unexpected("no model was chosen"))?;
    let model = connections.connect(first).map_err(wrong)?;
    Ok(Some((name, Models::new(model).named().connecting(connections))))
}

/// Makes the chosen models ready, and finds those that configuration names. Nothing is sent to them yet.
pub(crate) fn models(global: &Global) -> Result<Models, Failure> {
    let settings = model_settings::of_operator(global)?;
    let connections = Arc::new(Connections::new(settings, |name| std::env::var(name).ok(), Arc::new(RealWorld)));
    let ready = |choice| connections.connect(choice).map_err(|error| Failure::usage(error.to_string()));
    let mut chosen = chosen_models(global)?.into_iter().map(ready);
    let first = chosen.next().ok_or_else(|| Failure::unexpected("no model was chosen"))??;
    let models = chosen.try_fold(Models::new(first), |models, next| Ok::<_, Failure>(models.or(next?)))?;
    let models = if names_models(global) { models.named() } else { models };
    Ok(models.connecting(connections))
}
