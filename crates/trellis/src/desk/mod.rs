//! Where commands do their work: on the data folder, or at a server that has one. The same questions, the same
//! answers.

mod documents;
mod graph;
mod knowledge;
mod local;
mod mcp;
mod remote;
mod server;
mod sse;
mod stream;
mod tables;
mod tools;

pub(crate) use documents::{DocumentFile, LoadedDocument};
pub(crate) use knowledge::RdfFile;
pub(crate) use server::{Origin, Server};
pub(crate) use stream::Stream;
pub(crate) use tables::RowsFile;
pub(crate) use tools::WantedCall;

use crate::app::{App, Closed, workspace};
use crate::cli::Global;
use crate::cluster::Cluster;
use crate::failure::{Exit, Failure};
use crate::state::Purpose;
use std::sync::Arc;
use tokio::runtime::Handle;
use trellis_domain::RunId;
use trellis_domain::config::StoredItem;
use trellis_domain::record::Record;
use trellis_orchestrator::evidence::Evidence;
use trellis_orchestrator::ports::{LogEntry, RunFilter, Verdict};
use trellis_orchestrator::status::Status;
use trellis_orchestrator::summary::{Change, ListedRuns};
use trellis_orchestrator::{Answering, Cancelling};

/// An open data folder, or the server that is asked instead.
#[derive(Debug)]
pub(crate) enum Desk {
    Local(Box<App>),
    Remote(Server),
}

impl Desk {
    /// For looking: a folder must be there already.
    pub(crate) fn look(global: &Global, command: &str) -> Result<Self, Failure> {
        Self::existing(global, command, Purpose::Read)
    }

    /// For working on what is there already.
    pub(crate) fn change(global: &Global, command: &str) -> Result<Self, Failure> {
        Self::existing(global, command, Purpose::Write)
    }

    fn existing(global: &Global, command: &str, purpose: Purpose) -> Result<Self, Failure> {
        // What is wrong with the settings here is no matter of a server's.
        if let Some(server) = named(global)? {
            return Ok(Self::Remote(server));
        }
        let Some(cluster) = Cluster::named(global)? else {
            return Self::of(global, App::open_existing(global, command, purpose));
        };
        // There is nothing else to do meanwhile.
        let opening = App::open_shared(global, &cluster, command, purpose);
        let app = tokio::task::block_in_place(|| Handle::current().block_on(opening))?;
        Ok(Self::Local(Box::new(app)))
    }

    /// For working: a folder is made if need be, and its seeds are brought up to date.
    pub(crate) async fn work(global: &Global, command: &str, purpose: Purpose) -> Result<Self, Failure> {
        match named(global)? {
            Some(server) => Ok(Self::Remote(server)),
            None => Self::of(global, App::open(global, command, purpose).await),
        }
    }

    /// A folder that somebody serves is asked for there.
    fn of(global: &Global, opened: Result<App, Closed>) -> Result<Self, Failure> {
        match opened {
            Ok(app) => Ok(Self::Local(Box::new(app))),
            Err(Closed::Served { url, holder, .. }) => {
                tracing::info!(%url, "the data folder is served; asking there");
                Server::new(&url, Origin::Lock(holder), workspace(global)?).map(Self::Remote)
            }
            Err(Closed::Failed(failure)) => Err(failure),
        }
    }

    /// What has to be written behind a command so that it goes to the same place again.
    pub(crate) fn flags(&self) -> String {
        match self {
            Self::Local(_) => String::new(),
            Self::Remote(server) => server.flags(),
        }
    }

    /// Runs, newest first, and where to go on.
    pub(crate) async fn runs(
        &self,
        filter: &RunFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListedRuns, Failure> {
        match self {
            Self::Local(app) => app.list(filter, cursor, limit).await,
            Self::Remote(server) => server.runs(filter, cursor, limit).await,
        }
    }

    /// The run that a person means: an id, a unique prefix, `last`, or `@2` for the second newest.
    pub(crate) async fn find_run(&self, wish: &str) -> Result<RunId, Failure> {
        let newest = if wish == "last" { Some(1) } else { wish.strip_prefix('@').and_then(|n| n.parse().ok()) };
        if let Some(place) = newest.filter(|place| *place > 0) {
            let page = self.runs(&RunFilter::default(), None, place).await?;
            let found = page.runs.into_iter().nth(place - 1).map(|run| run.run_id);
            return found
                .ok_or_else(|| Failure::new(Exit::NotFound, "there are not so many runs; `trellis runs` lists them"));
        }
        match self.with_prefix(wish).await?.as_slice() {
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

    /// The first runs whose ids begin so.
    async fn with_prefix(&self, start: &str) -> Result<Vec<RunId>, Failure> {
        const ENOUGH: usize = 6;
        match self {
            Self::Local(app) => app.with_prefix(start, ENOUGH).await,
            Self::Remote(server) => server.with_prefix(start, ENOUGH).await,
        }
    }

    /// All records of a run, in order.
    pub(crate) async fn records(&self, run: &RunId) -> Result<Vec<Arc<Record>>, Failure> {
        match self {
            Self::Local(app) => app.records(run).await,
            Self::Remote(server) => server.records(run).await,
        }
    }

    /// What it takes to check a run without trusting whoever has it.
    pub(crate) async fn evidence(&self, run: &RunId) -> Result<Evidence, Failure> {
        match self {
            Self::Local(app) => app.evidence(run).await,
            Self::Remote(server) => server.evidence(run).await,
        }
    }

    /// Size and root of the log, signed.
    pub(crate) async fn checkpoint(&self) -> Result<String, Failure> {
        match self {
            Self::Local(app) => Ok(app.store.log.checkpoint().await?),
            Self::Remote(server) => server.checkpoint().await,
        }
    }

    /// The key that checkpoints are signed with.
    pub(crate) async fn log_key(&self) -> Result<String, Failure> {
        match self {
            Self::Local(app) => Ok(app.store.log.public_key()),
            Self::Remote(server) => server.log_key().await,
        }
    }

    /// Whether everything that a checkpoint covers is there, unchanged.
    pub(crate) async fn against(&self, checkpoint: &str) -> Result<Verdict, Failure> {
        match self {
            Self::Local(app) => Ok(app.store.log.against(checkpoint).await?),
            Self::Remote(server) => server.against(checkpoint).await,
        }
    }

    /// Entries of the log from a number on; none behind its end.
    pub(crate) async fn entries(&self, from: u64) -> Result<Vec<LogEntry>, Failure> {
        const AT_ONCE: usize = 200;
        match self {
            Self::Local(app) => Ok(app.store.log.entries(from, AT_ONCE).await?),
            Self::Remote(server) => server.entries(from, AT_ONCE).await,
        }
    }

    pub(crate) async fn cancel(&self, run: &RunId) -> Result<Cancelling, Failure> {
        match self {
            Self::Local(app) => app.cancel(run).await,
            Self::Remote(server) => server.cancel(run).await,
        }
    }

    /// Answers a question that a run waits for.
    pub(crate) async fn decide(&self, run: &RunId, answer: &Answering) -> Result<(), Failure> {
        match self {
            Self::Local(app) => app.decide(run, answer).await,
            Self::Remote(server) => server.decide(run, answer).await,
        }
    }

    /// Tells a run something while it is under way. Gives how many agents will hear it.
    pub(crate) async fn tell(&self, run: &RunId, message: &str) -> Result<usize, Failure> {
        match self {
            Self::Local(app) => app.tell(run, message).await,
            Self::Remote(server) => server.tell(run, message).await,
        }
    }

    /// The version of the configuration and all its items, sorted.
    pub(crate) async fn items(&self) -> Result<(u64, Vec<StoredItem>), Failure> {
        match self {
            Self::Local(app) => app.items().await,
            Self::Remote(server) => server.items().await,
        }
    }

    /// All items as they were at a version that there is, sorted.
    pub(crate) async fn items_at(&self, version: u64) -> Result<Vec<StoredItem>, Failure> {
        match self {
            Self::Local(app) => app.items_at(version).await,
            Self::Remote(server) => server.items_at(version).await,
        }
    }

    /// Writes items that somebody made up as one new version, or none of them.
    pub(crate) async fn configure(&self, global: &Global, items: Vec<StoredItem>) -> Result<u64, Failure> {
        if let Self::Local(app) = self {
            tools::check_offered(app, global, &items)?;
        }
        self.put(items).await
    }

    /// Writes items as one new version, or none of them.
    pub(crate) async fn put(&self, items: Vec<StoredItem>) -> Result<u64, Failure> {
        match self {
            Self::Local(app) => app.put(items).await,
            Self::Remote(server) => server.put(items).await,
        }
    }

    /// The version that the deletion made; None if there was no such item.
    pub(crate) async fn delete(&self, kind: &str, key: &str) -> Result<Option<u64>, Failure> {
        match self {
            Self::Local(app) => app.delete(kind, key).await,
            Self::Remote(server) => server.delete(kind, key).await,
        }
    }

    /// The changes of an item, oldest first; none if there never was such an item.
    pub(crate) async fn history(&self, kind: &str, key: &str) -> Result<Vec<Change>, Failure> {
        match self {
            Self::Local(app) => app.history(kind, key).await,
            Self::Remote(server) => server.history(kind, key).await,
        }
    }

    /// How those are getting on who work there.
    pub(crate) async fn status(&self) -> Result<Status, Failure> {
        match self {
            Self::Local(app) => app.status().await,
            Self::Remote(server) => server.status().await,
        }
    }

    /// The name of the workspace.
    pub(crate) async fn workspace(&self) -> Result<String, Failure> {
        match self {
            Self::Local(app) => Ok(app.workspace().as_str().to_owned()),
            Self::Remote(server) => server.workspace().await,
        }
    }
}

/// The server that was asked for: `--url`, else `TRUSTGRAPH_URL` unless a folder or a state was named.
fn named(global: &Global) -> Result<Option<Server>, Failure> {
    if global.url.is_some() && global.shared.state.is_some() {
        return Err(Failure::usage("--url and --state are two places; name one of them"));
    }
    let known = || std::env::var("TRUSTGRAPH_URL").ok().filter(|url| !url.trim().is_empty());
    let (url, origin) = match (&global.url, &global.data, &global.shared.state) {
        (Some(url), _, _) => (url.clone(), Origin::Flag),
        (None, Some(_), _) | (None, _, Some(_)) => return Ok(None),
        (None, None, None) => match known() {
            Some(url) => (url, Origin::Environment),
            None => return Ok(None),
        },
    };
    Server::new(&url, origin, workspace(global)?).map(Some)
}

/// The folder itself, for commands that a server has no use for. What to do instead is said if there is one.
pub(crate) fn folder_alone(global: &Global, command: &str, purpose: Purpose, instead: &str) -> Result<App, Failure> {
    if global.url.is_some() {
        return Err(Failure::usage(format!("`trellis {command}` works on a data folder, not with --url; {instead}")));
    }
    App::open_existing(global, command, purpose).map_err(|closed| match closed {
        Closed::Served { holder, .. } => {
            Failure::new(Exit::DataFolder, format!("the data folder is in use by {holder}; {instead}"))
        }
        Closed::Failed(failure) => failure,
    })
}
