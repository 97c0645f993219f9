//! Which state and which bus: flags over environment over the settings file.

use crate::cli::Global;
use crate::failure::Failure;
use crate::named::cluster_setting::ClusterSettings;
use crate::settings_file::SettingsFile;
use std::time::Duration;

/// A state that several processes share, and how this one uses it.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) state: String,
    pub(crate) bus: Option<String>,
    /// The schema of the database, and what queues and subjects of a broker begin with.
    pub(crate) deployment: String,
    pub(crate) connections: usize,
    /// A turn of a process that died is taken by another one after so long.
    pub(crate) claim_life: Duration,
    /// On how many servers of its cluster a broker keeps each wake-up.
    pub(crate) replicas: usize,
}

impl Cluster {
    /// The state that was named, if one was and no folder is named more closely.
    pub(crate) fn named(global: &Global) -> Result<Option<Self>, Failure> {
        if global.data.is_some() {
            return match (&global.shared.state, &global.shared.bus) {
                (Some(_), _) => Err(Failure::usage("--data and --state are two places; name one of them")),
                (None, Some(_)) => Err(Failure::usage("a data folder is of one process and has no use for --bus")),
                (None, None) => Ok(None),
            };
        }
        let flags = ClusterSettings {
            state: global.shared.state.clone(),
            bus: global.shared.bus.clone(),
            ..ClusterSettings::default()
        };
        let environment = ClusterSettings::of_environment(|name| std::env::var(name).ok()).map_err(Failure::usage)?;
        let all = flags.or(environment).or(SettingsFile::of(global)?.cluster);
        Self::of(all).map_err(Failure::usage)
    }

    fn of(settings: ClusterSettings) -> Result<Option<Self>, String> {
        let ClusterSettings { state, bus, graph: _, deployment, connections, claim_seconds, replicas } = settings;
        let Some(state) = state else {
            return match bus {
                None => Ok(None),
                Some(_) => {
                    Err("a bus is for processes that share a state; name the state, too: --state (TRELLIS_STATE) \
                                postgres://USER:PASSWORD@HOST:5432/NAME"
                        .to_owned())
                }
            };
        };
        if !is_database(&state) {
            let scheme = state.split_once("://").map_or("an address without a scheme", |(scheme, _)| scheme);
            return Err(format!(
                "no state can be kept at {scheme}; write --state (TRELLIS_STATE) postgres://USER:PASSWORD@HOST:5432/NAME"
            ));
        }
        Ok(Some(Self {
            state,
            bus,
            deployment: deployment.unwrap_or_else(|| "trellis".to_owned()),
            connections: connections.unwrap_or(12),
            claim_life: Duration::from_secs(claim_seconds.unwrap_or(30)),
            replicas: replicas.unwrap_or(1),
        }))
    }
}

/// Whether this is the address of PostgreSQL.
pub(super) fn is_database(address: &str) -> bool {
    ["postgres://", "postgresql://"].iter().any(|scheme| address.starts_with(scheme))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
