//! Configuration as people and programs may change it, whichever door they come in by.

use std::sync::Arc;
use trellis_domain::config::{ConfigItem, OWN_KIND, Problem, PromptItem, Settings, StoredItem, validate};
use trellis_domain::{Caller, Configured, Hash, Workspace};
use trellis_models::check_template;
use trellis_orchestrator::ports::{BoxFuture, Config, ConfigError, HistoryEntry, SignalListener};

/// The type of the items that the program keeps for itself.
pub(crate) const OWN: &str = OWN_KIND;

/// Refuses what the store cannot judge: templates that cannot be compiled, and changes of the program's own items.
#[derive(Debug)]
pub(crate) struct GuardedConfig(pub(crate) Arc<dyn Config>);

fn check_kind(kind: &str, key: &str) -> Result<(), ConfigError> {
    if kind != OWN {
        return Ok(());
    }
    Err(ConfigError::Invalid(vec![Problem {
        kind: kind.to_owned(),
        key: key.to_owned(),
        field: "type".to_owned(),
        what: format!("items of type `{OWN}` are the program's own"),
        mend: "choose another type; nothing in them is meant to be changed".to_owned(),
    }]))
}

fn check(items: &[StoredItem]) -> Result<(), ConfigError> {
    items.iter().try_for_each(|item| check_kind(&item.kind, &item.key))?;
    let broken: Vec<_> = items.iter().filter_map(broken_template).collect();
    if broken.is_empty() { Ok(()) } else { Err(ConfigError::Invalid(broken)) }
}

/// Why the template in an item cannot be used, if it has one and cannot.
pub(crate) fn broken_template(item: &StoredItem) -> Option<Problem> {
    let Ok(ConfigItem::Prompt(PromptItem::Template { prompt: text, .. } | PromptItem::System(text))) =
        validate(&item.kind, &item.key, &item.value)
    else {
        return None;
    };
    check_template(&text).err().map(|reason| Problem {
        kind: item.kind.clone(),
        key: item.key.clone(),
        field: "prompt".to_owned(),
        what: format!("the template cannot be compiled: {reason}"),
        mend: "correct it".to_owned(),
    })
}

impl Config for GuardedConfig {
    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        items: Vec<StoredItem>,
        by: Caller,
    ) -> BoxFuture<'a, Result<u64, ConfigError>> {
        match check(&items) {
            Ok(()) => self.0.put(workspace, items, by),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn delete<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
        by: Caller,
    ) -> BoxFuture<'a, Result<Option<u64>, ConfigError>> {
        match check_kind(kind, key) {
            Ok(()) => self.0.delete(workspace, kind, key, by),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn adopt<'a>(
        &'a self,
        workspace: &'a Workspace,
        changes: Vec<(String, String, Option<String>)>,
        by: Caller,
    ) -> BoxFuture<'a, Result<(), ConfigError>> {
        match changes.iter().try_for_each(|(kind, key, _)| check_kind(kind, key)) {
            Ok(()) => self.0.adopt(workspace, changes, by),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn get<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ConfigError>> {
        self.0.get(workspace, kind, key)
    }

    fn version<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<u64, ConfigError>> {
        self.0.version(workspace)
    }

    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<Workspace>, ConfigError>> {
        self.0.workspaces()
    }

    fn all<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(u64, Vec<StoredItem>), ConfigError>> {
        self.0.all(workspace)
    }

    fn history<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<HistoryEntry>, ConfigError>> {
        self.0.history(workspace, kind, key)
    }

    fn all_at<'a>(
        &'a self,
        workspace: &'a Workspace,
        version: u64,
    ) -> BoxFuture<'a, Result<Vec<StoredItem>, ConfigError>> {
        self.0.all_at(workspace, version)
    }

    fn configured<'a>(
        &'a self,
        workspace: &'a Workspace,
        version: u64,
    ) -> BoxFuture<'a, Result<Option<Configured>, ConfigError>> {
        self.0.configured(workspace, version)
    }

    fn pin<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<Arc<Settings>, ConfigError>> {
        self.0.pin(workspace)
    }

    fn snapshot<'a>(
        &'a self,
        workspace: &'a Workspace,
        hash: Hash,
    ) -> BoxFuture<'a, Result<Arc<Settings>, ConfigError>> {
        self.0.snapshot(workspace, hash)
    }

    fn watch(&self) -> SignalListener {
        self.0.watch()
    }

    fn changed_elsewhere(&self, workspace: &Workspace, version: u64) {
        self.0.changed_elsewhere(workspace, version);
    }
}
