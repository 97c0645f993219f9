//! The deployment's configuration, copied into our own: runs are pinned to what is there.

use super::broker::{Broker, Heard, Taking};
use super::rpc::{CallError, Service};
use super::topic::Topic;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use trellis_domain::config::{AGENT_TYPES, StoredItem, validate};
use trellis_domain::{Caller, Workspace};
use trellis_orchestrator::ports::{Config, ConfigError};

/// Where all of the deployment's configuration is.
const REQUEST: &str = "request:tg:config";
const RESPONSE: &str = "response:tg:config";
/// How long a configuration service that fails is left alone.
const AGAIN: Duration = Duration::from_secs(2);

/// Names that are longer are not kept.
const LONGEST_KEY: usize = 500;

/// Values of one type in one workspace, by key.
pub(crate) type Values = BTreeMap<String, String>;

/// What has changed.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Notice {
    #[serde(default)]
    version: Option<u64>,
    /// The workspaces in which something of a type has changed.
    #[serde(default)]
    changes: Option<BTreeMap<String, Option<Vec<String>>>>,
    #[serde(default)]
    workspace_changes: Option<WorkspaceChanges>,
}

#[derive(Debug, Default, Deserialize)]
struct WorkspaceChanges {
    #[serde(default)]
    deleted: Option<Vec<String>>,
}

/// What is to be read again: everything, or these types in these workspaces.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    everything: bool,
    places: BTreeSet<(String, String)>,
    pub(crate) gone: BTreeSet<String>,
}

impl Due {
    fn note(&mut self, notice: Notice, flow_kind: &str) {
        for (kind, workspaces) in notice.changes.unwrap_or_default() {
            if kind != flow_kind && !AGENT_TYPES.contains(&kind.as_str()) {
                continue;
            }
            let workspaces = workspaces.unwrap_or_default().into_iter().filter(|name| !is_reserved(name));
            self.places.extend(workspaces.map(|workspace| (workspace, kind.clone())));
        }
        let deleted = notice.workspace_changes.and_then(|changes| changes.deleted).unwrap_or_default();
        self.gone.extend(deleted);
    }

    fn is_nothing(&self) -> bool {
        !self.everything && self.places.is_empty() && self.gone.is_empty()
    }
}

/// Those that only hold what others are made from.
fn is_reserved(workspace: &str) -> bool {
    workspace.starts_with('_')
}

/// Reads the deployment's configuration.
#[derive(Debug)]
pub(crate) struct Configuration {
    broker: Arc<Broker>,
    service: Service,
    /// `processor:<id>`: our flows.
    flow_kind: String,
    timeout: Duration,
    heard: mpsc::Receiver<Heard>,
    due: Due,
}

/// What was read: for each workspace and type all of its values.
pub(crate) type Read = BTreeMap<(String, String), Values>;

impl Configuration {
    pub(crate) fn new(broker: &Arc<Broker>, id: &str, notices: &Topic, timeout: Duration) -> Self {
        let topic = |name| Topic::parse(name).expect("the names of the configuration's queues are written here");
        Self {
            service: Service::new(broker, topic(REQUEST), topic(RESPONSE)),
            heard: broker.listen(notices, &Taking::Everything),
            broker: Arc::clone(broker),
            flow_kind: format!("processor:{id}"),
            timeout,
            due: Due::default(),
        }
    }

    pub(crate) fn flow_kind(&self) -> &str {
        &self.flow_kind
    }

    /// Waits for a change, and gives what it made. Whatever may have been missed is read again.
    pub(crate) async fn changed(&mut self) -> (Read, BTreeSet<String>) {
        loop {
            while self.due.is_nothing() {
                let heard = self.heard.recv().await;
                self.note(heard).await;
            }
            // What came meanwhile is read along.
            while let Ok(heard) = self.heard.try_recv() {
                self.note(Some(heard)).await;
            }
            match self.read().await {
                Ok(read) => {
                    let due = std::mem::take(&mut self.due);
                    return (read, due.gone);
                }
                Err(error) => {
                    tracing::warn!(%error, "the configuration cannot be read; it is tried again");
                    self.broker.world().sleep(AGAIN).await;
                }
            }
        }
    }

    async fn note(&mut self, heard: Option<Heard>) {
        match heard {
            Some(Heard::Listening) => self.due.everything = true,
            Some(Heard::Lost) => {}
            Some(Heard::Message(message)) => match serde_json::from_slice::<Notice>(&message.body) {
                Ok(notice) => {
                    tracing::debug!(version = notice.version, "the configuration has changed");
                    self.due.note(notice, &self.flow_kind);
                }
                Err(error) => {
                    tracing::warn!(%error, "a notice of the configuration cannot be read; all of it is read again");
                    self.due.everything = true;
                }
            },
            // The program ends.
            None => std::future::pending().await,
        }
    }

    async fn read(&self) -> Result<Read, CallError> {
        let mut read = Read::new();
        if self.due.everything {
            self.read_everything(&mut read).await?;
        }
        for (workspace, kind) in &self.due.places {
            if let Entry::Vacant(place) = read.entry((workspace.clone(), kind.clone())) {
                place.insert(self.values(workspace, kind).await?);
            }
        }
        Ok(read)
    }

    /// All types of all workspaces. A type that a workspace has nothing of is read as nothing.
    async fn read_everything(&self, read: &mut Read) -> Result<(), CallError> {
        let kinds = || AGENT_TYPES.into_iter().chain([self.flow_kind.as_str()]);
        let mut found = BTreeMap::<&str, BTreeSet<String>>::new();
        for kind in kinds() {
            let keys = self.ask("getkeys-all-ws", "", kind).await?;
            let workspaces = keys.into_iter().filter_map(|value| Some(value.get("workspace")?.as_str()?.to_owned()));
            found.insert(kind, workspaces.filter(|name| !name.is_empty() && !is_reserved(name)).collect());
        }
        let workspaces: BTreeSet<_> = found.values().flatten().cloned().collect();
        for kind in kinds() {
            for workspace in &workspaces {
                let has_some = found.get(kind).is_some_and(|with| with.contains(workspace));
                let values = if has_some { self.values(workspace, kind).await? } else { Values::new() };
                read.insert((workspace.clone(), kind.to_owned()), values);
            }
        }
        Ok(())
    }

    async fn values(&self, workspace: &str, kind: &str) -> Result<Values, CallError> {
        let text = |value: &Map<String, Value>, name| Some(value.get(name)?.as_str()?.to_owned());
        let values = self.ask("getvalues", workspace, kind).await?;
        Ok(values.iter().filter_map(|value| Some((text(value, "key")?, text(value, "value")?))).collect())
    }

    /// An answer without a list is no empty list.
    async fn ask(&self, operation: &str, workspace: &str, kind: &str) -> Result<Vec<Map<String, Value>>, CallError> {
        let body = json!({ "operation": operation, "workspace": workspace, "keys": [], "type": kind, "values": [] });
        let mut answer = self.service.ask(&body, self.timeout).await?;
        let Value::Array(values) = answer["values"].take() else {
            let what = format!("the configuration service gave no list of values for `{operation}` of `{kind}`");
            return Err(CallError::Refused(what));
        };
        Ok(values
            .into_iter()
            .filter_map(|value| if let Value::Object(value) = value { Some(value) } else { None })
            .collect())
    }
}

/// Brings our copy of a workspace's configuration up to date. Types that were not read stay as they are.
pub(crate) async fn copy(
    config: &dyn Config,
    workspace: &Workspace,
    read: &BTreeMap<&str, &Values>,
) -> Result<(), ConfigError> {
    let (_, stored) = config.all(workspace).await?;
    let changes = changes(&stored, read);
    if changes.is_empty() {
        return Ok(());
    }
    tracing::info!(%workspace, items = changes.len(), "the configuration has changed");
    let by = Caller { name: Some("trustgraph".to_owned()), ..Caller::program() };
    config.adopt(workspace, changes, by).await
}

/// What has to be written, and what has to go.
fn changes(stored: &[StoredItem], read: &BTreeMap<&str, &Values>) -> Vec<(String, String, Option<String>)> {
    let of = |kind: &str, key: &str| stored.iter().find(|item| item.kind == kind && item.key == key);
    let mut changes = Vec::new();
    for (kind, values) in read {
        for (key, value) in *values {
            if key.is_empty() || key.len() > LONGEST_KEY || key.contains('\0') {
                tracing::warn!(kind, "an item of the configuration has a name that cannot be kept");
                continue;
            }
            let value = as_served(kind, value);
            let before = of(kind, key);
            if before.is_some_and(|before| before.value == value) {
                continue;
            }
            if let Err(problem) = validate(kind, key, &value) {
                tracing::warn!(%problem, "an item of the configuration cannot be used");
                // What was good before holds until something good takes its place.
                if before.is_some_and(|before| validate(kind, key, &before.value).is_ok()) {
                    continue;
                }
            }
            changes.push(((*kind).to_owned(), key.clone(), Some(value)));
        }
    }
    let is_gone =
        |item: &&StoredItem| read.get(item.kind.as_str()).is_some_and(|values| !values.contains_key(&item.key));
    let gone = stored.iter().filter(is_gone).map(|item| (item.kind.clone(), item.key.clone(), None));
    changes.extend(gone);
    changes
}

/// A prompt without the members that only our own templates have: the deployment's prompt service knows no turns.
fn as_served(kind: &str, value: &str) -> String {
    let read = || serde_json::from_str::<Map<String, Value>>(value).ok();
    let Some(mut members) = (kind == "prompt").then(read).flatten() else { return value.to_owned() };
    let ours = ["conversation", "next"].map(|name| members.remove(name).is_some());
    if ours.contains(&true) { Value::Object(members).to_string() } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOWS: &str = "processor:agent-manager";

    fn noted(notice: &str) -> Due {
        let mut due = Due::default();
        due.note(serde_json::from_str(notice).unwrap(), FLOWS);
        due
    }

    #[test]
    fn only_what_concerns_agents_and_their_flows_is_read_again() {
        let due = noted(r#"{"version": 8, "changes": {"tool": ["a", "_b"], "flow": ["a"], "token-cost": null}}"#);
        assert_eq!(due.places, BTreeSet::from([("a".to_owned(), "tool".to_owned())]));
        let due = noted(&format!(r#"{{"version": 9, "changes": {{"{FLOWS}": ["a"]}}, "workspace_changes": null}}"#));
        assert_eq!(due.places, BTreeSet::from([("a".to_owned(), FLOWS.to_owned())]));
        let due =
            noted(r#"{"version": 9, "changes": null, "workspace_changes": {"created": ["n"], "deleted": ["o"]}}"#);
        assert_eq!((due.places.len(), due.gone), (0, BTreeSet::from(["o".to_owned()])));
        assert!(noted("{}").is_nothing());
    }

    fn item(kind: &str, key: &str, value: &str) -> StoredItem {
        StoredItem { kind: kind.to_owned(), key: key.to_owned(), value: value.to_owned() }
    }

    const GOOD: &str = r#"{"name": "look", "type": "knowledge-query", "description": "d"}"#;

    #[test]
    fn a_notice_about_one_type_leaves_the_others_alone() {
        let service = r#"{"request-queue": "request:tg:joke", "response-queue": "response:tg:joke"}"#;
        let stored = [item("tool", "look", GOOD), item("tool-service", "joke", service)];
        let values = Values::new();
        let changed = changes(&stored, &BTreeMap::from([("tool-service", &values)]));
        assert_eq!(changed, [("tool-service".to_owned(), "joke".to_owned(), None)]);
        assert_eq!(changes(&stored, &BTreeMap::new()), []);
    }

    #[test]
    fn what_cannot_be_used_does_not_take_the_place_of_what_can() {
        let values = Values::from([("look".to_owned(), r#"{"type": "telepathy"}"#.to_owned())]);
        let read = BTreeMap::from([("tool", &values)]);
        assert_eq!(changes(&[item("tool", "look", GOOD)], &read), []);
        // A new one is kept as it is: what is wrong with it is told with the others.
        assert_eq!(changes(&[], &read).len(), 1);
    }

    #[test]
    fn prompts_are_asked_for_as_the_deployment_can_serve_them() {
        let own = r#"{"prompt": "p", "conversation": true, "next": "n"}"#;
        assert_eq!(as_served("prompt", own), r#"{"prompt":"p"}"#);
        assert_eq!(as_served("prompt", r#""a system prompt""#), r#""a system prompt""#);
        assert_eq!(as_served("tool", own), own);
    }
}
