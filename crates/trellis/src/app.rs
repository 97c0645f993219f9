//! Where everything is, and how it is wired.

use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::guarded::GuardedConfig;
use crate::model_settings;
use crate::query_settings;
use std::path::PathBuf;
use std::sync::Arc;
use trellis_domain::{Scope, Workspace};
use trellis_models::{Choice, Connections, Models, Rehearsal, TemplatePrompter, choose};
use trellis_orchestrator::RunService;
use trellis_orchestrator::documents::Loader;
use trellis_orchestrator::graph_rag::{EntityNames, GraphRag, IndexedKnowledge};
use trellis_orchestrator::hub::Hub;
use trellis_orchestrator::meter::{Metered, TokenMeter};
use trellis_orchestrator::orchestrator::{Options, Orchestrator, Ports};
use trellis_orchestrator::ports::{Config, Embedder, Knowledge, Prompter, RealWorld, Search, ToolRunner, World};
use trellis_orchestrator::queue::FairQueue;
use trellis_orchestrator::tables::TableLoader;
use trellis_patterns::router::OperatorLimits;
use trellis_readers::Readers;
use trellis_search::EmbeddedSearch;
use trellis_store::{Holder, OpenError, Program, QuerySettings, Store};
use trellis_tools::{Outside, Tools};

/// What this program is told when it is to evaluate one query for another process of itself. Not a command: nobody
/// types it, and it has to start at once.
pub(crate) const QUERY_WORKER: &str = "query-worker";
/// The same to read one PDF.
pub(crate) const PDF_WORKER: &str = "pdf-worker";

/// An open data folder.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) search: Arc<dyn Search>,
    /// What was loaded, with an index of what its entities are called.
    pub(crate) knowledge: Arc<dyn Knowledge>,
    pub(crate) entities: EntityNames,
    /// For queries of tools. Commands that are about queries read them themselves, and tell what is wrong with them.
    queries: QuerySettings,
    pub(crate) scope: Scope,
    /// What models read and write while this runs.
    pub(crate) meter: Arc<TokenMeter>,
    pub(crate) world: Arc<dyn World>,
}

/// What a command does with a data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It only looks, so that it works also where nothing can be written.
    Read,
    Write,
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
    /// Opens or makes the folder and brings its configuration seeds up to date.
    pub(crate) async fn open(global: &Global, command: &str, purpose: Purpose) -> Result<Self, Closed> {
        let app = Self::open_as_it_is(global, command, None, purpose)?;
        crate::seeds::apply(&*app.store.config, app.workspace()).await.map_err(Failure::from)?;
        Ok(app)
    }

    /// The same for a server: whoever finds the folder in use learns its address.
    pub(crate) async fn open_to_serve(global: &Global, url: String) -> Result<Self, Failure> {
        let app = Self::open_as_it_is(global, "serve", Some(url), Purpose::Write)?;
        crate::seeds::apply(&*app.store.config, app.workspace()).await?;
        Ok(app)
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
        let search = Arc::new(EmbeddedSearch::new(&store.path().join("search")));
        // Whoever needs the model is told what is wrong with it.
        let embedder = embedder(global).ok().flatten();
        let entities = EntityNames { search: Arc::new(EmbeddedSearch::new(&store.path().join("entities"))), embedder };
        let knowledge = Arc::new(IndexedKnowledge::new(Arc::clone(&store.knowledge) as _, entities.clone()));
        let queries = query_settings::of_operator(global, &[]).unwrap_or_default();
        let scope = Scope { workspace, ..Scope::default() };
        Ok(Self { store, search, knowledge, entities, queries, scope, meter: Arc::default(), world })
    }

    /// Opens a folder that is there already: looking at something does not make it.
    pub(crate) fn open_existing(global: &Global, command: &str, purpose: Purpose) -> Result<Self, Closed> {
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
                self.store.graph.evaluate_with(program, settings);
            }
            Err(error) => tracing::error!(%error, "this program cannot be found, so that there is no SPARQL"),
        }
    }

    /// Loads documents, and finds them with the same model.
    pub(crate) fn loader(&self, embedder: Option<Arc<dyn Embedder>>) -> Result<Loader, Failure> {
        let path = this_program().map_err(Failure::unexpected)?;
        let pdf = trellis_readers::Program { path, arguments: vec![PDF_WORKER.into()], variables: Vec::new() };
        let (library, search) = (Arc::clone(&self.store.library) as _, Arc::clone(&self.search));
        Ok(Loader::new(library, search, Arc::new(Readers::new(pdf)), embedder, Arc::clone(&self.world)))
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
        Tools::new(Arc::clone(prompter))
            .with(outside)
            .with_documents(Arc::clone(&self.search), Arc::clone(&self.world))
            .with_knowledge(self.graph_rag(prompter), Arc::clone(&self.store.graph) as _)
            .with_tables(Arc::clone(&self.store.tables) as _)
    }

    /// Loads rows, and finds them by meaning with the same model.
    pub(crate) fn table_loader(&self, embedder: Option<Arc<dyn Embedder>>) -> TableLoader {
        TableLoader::new(Arc::clone(&self.store.tables) as _, embedder)
    }

    /// The configuration for whoever may change it.
    pub(crate) fn config(&self) -> Arc<dyn Config> {
        Arc::new(GuardedConfig(Arc::clone(&self.store.config) as _))
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
            journal: Arc::clone(&self.store.journal) as _,
            queue: Arc::new(FairQueue::new(Arc::clone(&self.world))),
            config: self.config(),
            tools: with(Arc::new(self.tools(&prompter, outside))),
            prompter,
            hub: Arc::new(Hub::default()),
            world: Arc::clone(&self.world),
        };
        Arc::new(Orchestrator::new(ports, Options { limits, ..Options::default() }))
    }

    /// The runs of this folder, for commands that answer none: no model is asked.
    pub(crate) fn runs(&self) -> RunService {
        let nobody = Models::new(Arc::new(Rehearsal::default()));
        RunService::new(&self.orchestrator(OperatorLimits::default(), nobody, Outside::default()))
    }
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
