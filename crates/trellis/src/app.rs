//! Where everything is, and how it is wired.

use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::model_settings;
use std::path::PathBuf;
use std::sync::Arc;
use trellis_domain::{RunId, Scope, Workspace};
use trellis_models::{Choice, Connections, Models, TemplatePrompter, choose};
use trellis_orchestrator::driver::{Options, Orchestrator, Ports};
use trellis_orchestrator::hub::Hub;
use trellis_orchestrator::ports::{Journal, RealWorld, RunFilter, World};
use trellis_orchestrator::queue::FairQueue;
use trellis_patterns::router::OperatorLimits;
use trellis_store::{Holder, Store};
use trellis_tools::Tools;

/// An open data folder.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) scope: Scope,
    pub(crate) world: Arc<dyn World>,
}

impl App {
    /// Opens or makes the folder and brings its configuration seeds up to date.
    pub(crate) async fn open(global: &Global, command: &str) -> Result<Self, Failure> {
        let app = Self::open_as_it_is(global, command, None)?;
        crate::seeds::apply(&*app.store.config, app.workspace()).await?;
        Ok(app)
    }

    /// The same for a server: whoever finds the folder in use learns its address.
    pub(crate) async fn open_to_serve(global: &Global, url: String) -> Result<Self, Failure> {
        let app = Self::open_as_it_is(global, "serve", Some(url))?;
        crate::seeds::apply(&*app.store.config, app.workspace()).await?;
        Ok(app)
    }

    fn open_as_it_is(global: &Global, command: &str, url: Option<String>) -> Result<Self, Failure> {
        let workspace = Workspace::new(&global.workspace).map_err(|error| Failure::usage(error.to_string()))?;
        let world: Arc<dyn World> = Arc::new(RealWorld);
        let holder = Holder { pid: std::process::id(), command: format!("trellis {command}"), url };
        let store = Store::open(&data_folder(global)?, &holder, Arc::clone(&world))?;
        Ok(Self { store, scope: Scope { workspace, ..Scope::default() }, world })
    }

    /// Opens a folder that is there already: looking at something does not make it.
    pub(crate) fn open_existing(global: &Global, command: &str) -> Result<Self, Failure> {
        let folder = data_folder(global)?;
        if !folder.join("format").exists() {
            let message = format!("there is no data in {}; `trellis ask` makes some", folder.display());
            return Err(Failure::new(Exit::NotFound, message));
        }
        Self::open_as_it_is(global, command, None)
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.scope.workspace
    }

    /// The loop over this folder, with these models.
    pub(crate) fn orchestrator(&self, limits: OperatorLimits, models: Models) -> Arc<Orchestrator> {
        let prompter = Arc::new(TemplatePrompter::with_models(models, Arc::clone(&self.world)));
        let ports = Ports {
            journal: Arc::clone(&self.store.journal) as _,
            queue: Arc::new(FairQueue::new(Arc::clone(&self.world))),
            config: Arc::clone(&self.store.config) as _,
            tools: Arc::new(Tools::new(Arc::clone(&prompter) as _)),
            prompter,
            hub: Arc::new(Hub::default()),
            world: Arc::clone(&self.world),
        };
        Arc::new(Orchestrator::new(ports, Options { limits, ..Options::default() }))
    }

    /// The run that a person means: an id, a unique prefix, `last`, or `@2` for the second newest.
    pub(crate) async fn find_run(&self, wish: &str) -> Result<RunId, Failure> {
        let newest = if wish == "last" { Some(1) } else { wish.strip_prefix('@').and_then(|n| n.parse().ok()) };
        if let Some(place) = newest.filter(|place| *place > 0) {
            let page = self.store.journal.runs(self.workspace(), &RunFilter::default(), None, place).await?;
            let found = page.runs.into_iter().nth(place - 1).map(|run| run.run);
            return found
                .ok_or_else(|| Failure::new(Exit::NotFound, "there are not so many runs; `trellis runs` lists them"));
        }
        let matching = self.store.journal.with_prefix(self.workspace(), wish, 6).await?;
        match matching.as_slice() {
            [run] => Ok(run.clone()),
            [] => Err(Failure::new(Exit::NotFound, format!("there is no run `{wish}`; `trellis runs` lists them"))),
            several => {
                let exact = several.iter().find(|run| run.as_str() == wish).cloned();
                let names: Vec<_> = several.iter().map(RunId::as_str).collect();
                let message = format!("`{wish}` could be {}; write more of the id", names.join(", "));
                exact.ok_or_else(|| Failure::usage(message))
            }
        }
    }
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

/// The models that were named or that the environment knows; see [`choose`].
pub(crate) fn chosen_models(global: &Global) -> Result<Vec<Choice>, Failure> {
    let environment = |name: &str| std::env::var(name).ok();
    choose(&global.model, &environment).map_err(|error| Failure::usage(error.to_string()))
}

/// Whether the operator named models, so that those of a workspace do not count.
pub(crate) fn names_models(global: &Global) -> bool {
    global.model.iter().any(|name| !name.trim().is_empty())
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
