//! Settings of a state that several processes share, and of a graph that is kept elsewhere.

use super::whole;

/// As they are called in the settings file. In the environment it is `TRELLIS_STATE` and so on.
const NAMES: [&str; 7] = ["state", "bus", "graph", "deployment", "connections", "claim-seconds", "replicas"];

/// Deployments have names that schemas, queues and subjects can have.
const LONGEST_NAME: usize = 30;
/// Below it, a process that is only slow would lose its turns.
const SHORTEST_CLAIM: u64 = 3;
/// What JetStream allows.
const MOST_REPLICAS: usize = 5;

/// What the settings file may say in its table `[cluster]`, and the environment as `TRELLIS_` and the name.
#[derive(Default, Clone, PartialEq, Eq)]
pub(crate) struct ClusterSettings {
    pub(crate) state: Option<String>,
    pub(crate) bus: Option<String>,
    /// Also of a folder.
    pub(crate) graph: Option<String>,
    pub(crate) deployment: Option<String>,
    pub(crate) connections: Option<usize>,
    pub(crate) claim_seconds: Option<u64>,
    pub(crate) replicas: Option<usize>,
}

/// Addresses have passwords.
impl std::fmt::Debug for ClusterSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterSettings").finish_non_exhaustive()
    }
}

impl ClusterSettings {
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "state" => self.state = Some(value.to_owned()),
            "bus" => self.bus = Some(value.to_owned()),
            "graph" => self.graph = Some(value.to_owned()),
            "deployment" => self.deployment = Some(deployment(value)?),
            "connections" => self.connections = Some(whole(value)?),
            "claim-seconds" => {
                let seconds = whole(value)?;
                if seconds < SHORTEST_CLAIM {
                    return Err(format!("a claim has to last {SHORTEST_CLAIM} seconds at least"));
                }
                self.claim_seconds = Some(seconds);
            }
            "replicas" => {
                let replicas = whole(value)?;
                if !(1..=MOST_REPLICAS).contains(&replicas) {
                    return Err(format!("a broker keeps wake-ups on 1 to {MOST_REPLICAS} of its servers"));
                }
                self.replicas = Some(replicas);
            }
            other => return Err(format!("there is no setting `{other}`; there are {}", NAMES.join(", "))),
        }
        Ok(())
    }

    /// What these say, else what the others do.
    pub(crate) fn or(self, others: Self) -> Self {
        Self {
            state: self.state.or(others.state),
            bus: self.bus.or(others.bus),
            graph: self.graph.or(others.graph),
            deployment: self.deployment.or(others.deployment),
            connections: self.connections.or(others.connections),
            claim_seconds: self.claim_seconds.or(others.claim_seconds),
            replicas: self.replicas.or(others.replicas),
        }
    }

    pub(crate) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut settings = Self::default();
        for name in NAMES {
            let variable_name = format!("TRELLIS_{}", name.replace('-', "_").to_uppercase());
            if let Some(value) = variable(&variable_name).filter(|value| !value.trim().is_empty()) {
                settings.set(name, value.trim()).map_err(|problem| format!("{variable_name}: {problem}"))?;
            }
        }
        Ok(settings)
    }
}

fn deployment(name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) || name.starts_with("pg_") {
        return Err(format!(
            "a deployment cannot be called {name:?}; write 1 to {LONGEST_NAME} of a-z, 0-9, - and _, not beginning with pg_"
        ));
    }
    Ok(name.to_owned())
}
