//! A SPARQL endpoint that keeps the graph of finished runs, in the place of the store.

use crate::cli::Global;
use crate::failure::Failure;
use crate::settings_file::SettingsFile;
use crate::state::State;
use trellis_domain::Secret;
use trellis_orchestrator::ports::World;
use trellis_sparql::{Address, Credentials};

/// The endpoint that was named, if one was: `--graph`, else `TRELLIS_GRAPH`, else the settings file.
pub(crate) fn address(global: &Global) -> Result<Option<Address>, Failure> {
    let in_environment = || std::env::var("TRELLIS_GRAPH").ok().filter(|text| !text.trim().is_empty());
    // Whoever needs more of the file is told what is wrong with it.
    let in_file = || SettingsFile::of(global).ok().and_then(|file| file.cluster.graph);
    let Some(named) = global.shared.graph.clone().or_else(in_environment).or_else(in_file) else { return Ok(None) };
    let secret = |name: &str| std::env::var(name).ok().and_then(|text| Secret::new(&text));
    let credentials = Credentials { password: secret("TRELLIS_GRAPH_PASSWORD"), token: secret("TRELLIS_GRAPH_TOKEN") };
    let wrong = |error| Failure::usage(format!("--graph (TRELLIS_GRAPH): {error}"));
    Address::parse(&named, credentials).map(Some).map_err(wrong)
}

/// A store with its graph where that was named.
pub(crate) fn with_graph(global: &Global, state: State, world: &dyn World) -> Result<State, Failure> {
    match address(global)? {
        Some(address) => state.with_graph_at(address, world).map_err(|error| Failure::usage(error.to_string())),
        None => Ok(state),
    }
}
