//! A session as its records tell it.

use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::config::Settings;
use trellis_domain::ids::config_iri;
use trellis_domain::limits::Limits;
use trellis_domain::record::{Accepted, Body, Ended, Name, Observed, Record, Replied, Routed};
use trellis_domain::usage::Usage;
use trellis_domain::{Hash, Timestamp};

/// Folded records of one session, with the configuration it is pinned to.
#[derive(Debug, Clone)]
pub struct Session {
    settings: Arc<Settings>,
    /// The version of the newest record folded in.
    seen: u64,
    records: BTreeMap<Name, Arc<Record>>,
    tool_state: String,
    usage: Usage,
}

/// A request that names no state is in this one.
pub const NO_STATE: &str = "undefined";

impl Session {
    pub fn new(settings: Arc<Settings>) -> Self {
        let tool_state = NO_STATE.to_owned();
        Self { settings, seen: 0, records: BTreeMap::new(), tool_state, usage: Usage::default() }
    }

    /// Folds one record in. Records that arrived after the end change nothing that counts.
    pub fn apply(&mut self, record: Arc<Record>) {
        self.seen = self.seen.max(record.header.version);
        if !record.header.late && !self.records.contains_key(&record.header.name) {
            self.count(&record.body);
        }
        self.records.insert(record.header.name.clone(), record);
    }

    fn count(&mut self, body: &Body) {
        self.usage.add(&cost(body));
        match body {
            Body::Accepted(accepted) if !accepted.state.is_empty() => self.tool_state.clone_from(&accepted.state),
            Body::Observed(observed) => {
                if let Some(state) = &observed.state {
                    self.tool_state.clone_from(state);
                }
            }
            Body::Accepted(_) | Body::Routed(_) | Body::Replied(_) | Body::Ended(_) => {}
        }
    }

    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// The IRI of all configuration items of a type in this session's workspace.
    pub fn config_source(&self, kind: &str) -> String {
        let workspace = self.records.values().next().map(|record| record.header.workspace.clone());
        config_iri(&workspace.unwrap_or_default(), kind, None)
    }

    pub fn seen(&self) -> u64 {
        self.seen
    }

    pub fn has(&self, name: &Name) -> bool {
        self.records.contains_key(name)
    }

    pub fn record(&self, name: &Name) -> Option<&Arc<Record>> {
        self.records.get(name)
    }

    pub fn content_hash(&self, name: &Name) -> Option<Hash> {
        Some(self.records.get(name)?.header.content)
    }

    pub fn accepted(&self) -> Option<&Accepted> {
        match &self.records.get(&Name::session())?.body {
            Body::Accepted(accepted) => Some(accepted),
            Body::Routed(_) | Body::Replied(_) | Body::Observed(_) | Body::Ended(_) => None,
        }
    }

    pub fn started(&self) -> Option<Timestamp> {
        Some(self.records.get(&Name::session())?.header.time)
    }

    pub fn routed(&self) -> Option<&Routed> {
        match &self.records.get(&Name::pattern_decision())?.body {
            Body::Routed(routed) => Some(routed),
            Body::Accepted(_) | Body::Replied(_) | Body::Observed(_) | Body::Ended(_) => None,
        }
    }

    pub fn limits(&self) -> Limits {
        self.routed().map(|routed| routed.limits.clone()).unwrap_or_default()
    }

    /// The model's reply in iteration `n`.
    pub fn reply(&self, n: u32) -> Option<&Replied> {
        match &self.records.get(&Name::iteration(n))?.body {
            Body::Replied(replied) => Some(replied),
            Body::Accepted(_) | Body::Routed(_) | Body::Observed(_) | Body::Ended(_) => None,
        }
    }

    pub fn observation(&self, n: u32) -> Option<&Observed> {
        match &self.records.get(&Name::observation(n))?.body {
            Body::Observed(observed) => Some(observed),
            Body::Accepted(_) | Body::Routed(_) | Body::Replied(_) | Body::Ended(_) => None,
        }
    }

    pub fn ended(&self) -> Option<&Ended> {
        match &self.records.get(&Name::end())?.body {
            Body::Ended(ended) => Some(ended),
            Body::Accepted(_) | Body::Routed(_) | Body::Replied(_) | Body::Observed(_) => None,
        }
    }

    /// The state that decides which tools apply.
    pub fn tool_state(&self) -> &str {
        &self.tool_state
    }

    pub fn usage(&self) -> &Usage {
        &self.usage
    }
}

/// What the call behind a record cost.
pub fn cost(body: &Body) -> Usage {
    match body {
        Body::Replied(replied) => Usage {
            in_token: replied.in_token,
            out_token: replied.out_token,
            model: replied.model.clone(),
            model_ms: replied.ms,
            model_calls: 1,
            ..Usage::default()
        },
        Body::Observed(observed) => {
            let mut usage = observed.usage.clone();
            let tool_calls = u32::from(observed.idempotency_key.is_some());
            usage.add(&Usage { tool_ms: observed.ms, tool_calls, ..Usage::default() });
            usage
        }
        Body::Accepted(_) | Body::Routed(_) | Body::Ended(_) => Usage::default(),
    }
}
