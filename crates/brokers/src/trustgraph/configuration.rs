//! The deployment's configuration, copied into our own: runs are pinned to what is there.

use super::broker::{Broker, Heard, Taking};
use super::rpc::{CallError, Service};
use super::topic::Topic;
use crate::back_off::BackOff;
use serde::Deserialize;
use serde_json::{Map, Value, json};
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
/// How long a configuration service that fails is left alone: at first, and at most.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_AT_MOST: Duration = Duration::from_secs(30);

/// Names that are longer are not kept.
const LONGEST_KEY: usize = 500;

/// Values of one type in one workspace, by key. One without a text is there, and could not be read.
pub(crate) type Values = BTreeMap<String, Option<String>>;

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

/// What is to be read again: types in all workspaces, or in some.
#[derive(Debug, Default, PartialEq, Eq)]
struct Due {
    kinds: BTreeSet<String>,
    /// Workspaces with a type.
    places: BTreeSet<(String, String)>,
    gone: BTreeSet<String>,
}

impl Due {
    fn everything(flow_kind: &str) -> Self {
        let kinds = AGENT_TYPES.into_iter().chain([flow_kind]).map(str::to_owned).collect();
        Self { kinds, ..Self::default() }
    }

    fn of(notice: Notice, flow_kind: &str) -> Self {
        let mut due = Self::default();
        for (kind, workspaces) in notice.changes.unwrap_or_default() {
            if kind != flow_kind && !AGENT_TYPES.contains(&kind.as_str()) {
                continue;
            }
            let workspaces = workspaces.unwrap_or_default().into_iter().filter(|name| !is_reserved(name));
            due.places.extend(workspaces.map(|workspace| (workspace, kind.clone())));
        }
        due.gone =
            notice.workspace_changes.and_then(|changes| changes.deleted).unwrap_or_default().into_iter().collect();
        due
    }

    fn add(&mut self, other: Self) {
        self.kinds.extend(other.kinds);
        self.places.extend(other.places);
        self.gone.extend(other.gone);
    }

    fn is_nothing(&self) -> bool {
        self.kinds.is_empty() && self.places.is_empty() && self.gone.is_empty()
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
    /// What could not be read, and is tried again after a while. Nothing else waits for it.
    failed: Due,
    back_off: BackOff,
    /// What was said of the last failure: it is not said again and again.
    complaint: String,
    /// The workspaces that there were.
    workspaces: BTreeSet<String>,
    /// Places that had nothing when they were looked at.
    empty: BTreeSet<(String, String)>,
}

/// What was read: for each workspace and type all of its values.
pub(crate) type Read = BTreeMap<(String, String), Values>;

/// The keys of one type that the service lists, by workspace.
type Listed = BTreeMap<String, BTreeSet<String>>;

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
            failed: Due::default(),
            back_off: BackOff::new(AGAIN, AGAIN_AT_MOST),
            complaint: String::new(),
            workspaces: BTreeSet::new(),
            empty: BTreeSet::new(),
        }
    }

    pub(crate) fn flow_kind(&self) -> &str {
        &self.flow_kind
    }

    /// Whether all flows are known: none of what tells of them could not be read.
    pub(crate) fn knows_flows(&self) -> bool {
        let Due { kinds, places, .. } = &self.failed;
        !kinds.contains(&self.flow_kind) && !places.iter().any(|(_, kind)| *kind == self.flow_kind)
    }

    /// Waits for a change, and gives what it made. Whatever may have been missed is read again; what cannot be read is
    /// left as it is, and keeps nothing else from being read.
    pub(crate) async fn changed(&mut self) -> (Read, BTreeSet<String>) {
        loop {
            while self.due.is_nothing() {
                let heard = tokio::select! {
                    biased;
                    heard = self.heard.recv() => Some(heard),
                    () = self.back_off.wait(&**self.broker.world()), if !self.failed.is_nothing() => None,
                };
                match heard {
                    Some(heard) => self.note(heard).await,
                    None => self.due.add(std::mem::take(&mut self.failed)),
                }
            }
            // What came meanwhile is read along.
            while let Ok(heard) = self.heard.try_recv() {
                self.note(Some(heard)).await;
            }
            let due = std::mem::take(&mut self.due);
            let (read, failed, complaint) = self.read(&due).await;
            self.tell(complaint);
            self.failed.add(failed);
            if self.failed.is_nothing() {
                self.back_off.succeeded();
            }
            if !read.is_empty() || !due.gone.is_empty() {
                return (read, due.gone);
            }
        }
    }

    fn tell(&mut self, complaint: Option<String>) {
        let complaint = complaint.unwrap_or_default();
        if !complaint.is_empty() && complaint != self.complaint {
            tracing::warn!(
                error = complaint,
                "a part of the configuration cannot be read; it stays as it is and is tried again"
            );
        }
        self.complaint = complaint;
    }

    async fn note(&mut self, heard: Option<Heard>) {
        match heard {
            Some(Heard::Listening) => self.due.add(Due::everything(&self.flow_kind)),
            Some(Heard::Lost) => {}
            Some(Heard::Message(message)) => match serde_json::from_slice::<Notice>(&message.body) {
                Ok(notice) => {
                    tracing::debug!(version = notice.version, "the configuration has changed");
                    self.due.add(Due::of(notice, &self.flow_kind));
                }
                Err(error) => {
                    tracing::warn!(%error, "a notice of the configuration cannot be read; all of it is read again");
                    self.due.add(Due::everything(&self.flow_kind));
                }
            },
            // The program ends.
            None => std::future::pending().await,
        }
    }

    /// Reads what is due; what could not be read of it, and the first reason.
    async fn read(&mut self, due: &Due) -> (Read, Due, Option<String>) {
        let (mut read, mut failed, mut complaint) = (Read::new(), Due::default(), None::<CallError>);
        // Whoever refuses one thing may answer the next; a service that does not answer is not asked for the rest.
        let is_silent = |complaint: &Option<CallError>| complaint.as_ref().is_some_and(CallError::is_silence);
        let mut listed = BTreeMap::<String, Listed>::new();
        let kinds: BTreeSet<_> = due.kinds.iter().chain(due.places.iter().map(|(_, kind)| kind)).collect();
        for kind in kinds {
            let keys = if is_silent(&complaint) { None } else { Some(self.listed(kind).await) };
            match keys {
                Some(Ok(keys)) => {
                    self.workspaces.extend(keys.keys().cloned());
                    listed.insert(kind.clone(), keys);
                }
                other => {
                    failed.kinds.extend(due.kinds.get(kind).cloned());
                    failed.places.extend(due.places.iter().filter(|(_, of)| of == kind).cloned());
                    complaint = complaint.or(other.and_then(Result::err));
                }
            }
        }
        let whole = listed.keys().filter(|kind| due.kinds.contains(*kind));
        let everywhere =
            whole.flat_map(|kind| self.workspaces.iter().map(move |workspace| (workspace.clone(), kind.clone())));
        let places: BTreeSet<_> = everywhere.chain(due.places.difference(&failed.places).cloned()).collect();
        for place in places {
            let keys = listed.get(&place.1).and_then(|listed| listed.get(&place.0));
            if keys.is_none() && self.empty.contains(&place) {
                read.insert(place, Values::new());
                continue;
            }
            let values = if is_silent(&complaint) { None } else { Some(self.values(&place.0, &place.1).await) };
            match values {
                Some(Ok(mut values)) => {
                    // What one list has and the other has not, is there: only what neither has is gone.
                    for key in keys.into_iter().flatten() {
                        values.entry(key.clone()).or_default();
                    }
                    if values.is_empty() {
                        self.empty.insert(place.clone())
                    } else {
                        self.empty.remove(&place)
                    };
                    read.insert(place, values);
                }
                other => {
                    failed.places.insert(place);
                    complaint = complaint.or(other.and_then(Result::err));
                }
            }
        }
        (read, failed, complaint.map(|error| error.to_string()))
    }

    async fn listed(&self, kind: &str) -> Result<Listed, CallError> {
        let mut listed = Listed::new();
        for value in self.ask("getkeys-all-ws", "", kind).await? {
            let text = |name| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            if let Some(workspace) = text("workspace").filter(|name| !is_reserved(name)) {
                listed.entry(workspace.to_owned()).or_default().extend(text("key").map(str::to_owned));
            }
        }
        Ok(listed)
    }

    async fn values(&self, workspace: &str, kind: &str) -> Result<Values, CallError> {
        let text = |value: &Map<String, Value>, name| Some(value.get(name)?.as_str()?.to_owned());
        let values = self.ask("getvalues", workspace, kind).await?;
        Ok(values.iter().filter_map(|value| Some((text(value, "key")?, text(value, "value")))).collect())
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
            let Some(value) = value else { continue };
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
        Due::of(serde_json::from_str(notice).unwrap(), FLOWS)
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
    fn what_is_there_and_cannot_be_read_stays_as_it_was() {
        let values = Values::from([("look".to_owned(), None)]);
        assert_eq!(changes(&[item("tool", "look", GOOD)], &BTreeMap::from([("tool", &values)])), []);
    }

    #[test]
    fn what_cannot_be_used_does_not_take_the_place_of_what_can() {
        let values = Values::from([("look".to_owned(), Some(r#"{"type": "telepathy"}"#.to_owned()))]);
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
