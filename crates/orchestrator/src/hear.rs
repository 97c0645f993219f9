//! What other processes tell, and what this one makes of it. All of it is in the journal and in the configuration, too:
//! whoever hears nothing comes to know it later.

use crate::orchestrator::Orchestrator;
use crate::ports::{ConfigError, Heard, StreamMessage, StreamNotice};
use std::collections::BTreeMap;
use std::time::Duration;
use trellis_domain::Workspace;

/// How often the configuration is looked at, whatever is heard.
const LOOK_AT_CONFIG: Duration = Duration::from_secs(30);

/// The newest version of each workspace's configuration that is known here.
type Versions = BTreeMap<Workspace, u64>;

impl Orchestrator {
    /// Hears what other processes tell, for as long as it is awaited; it never returns. Workers do it by themselves: this
    /// is for a process that only follows runs. In a process that is alone, nothing is done.
    pub async fn hear(&self) {
        let Some(mut listener) = self.ports.hub.listen() else { return std::future::pending().await };
        let mut changes = self.ports.config.watch();
        let mut known = self.versions().await.unwrap_or_default();
        let world = &self.ports.world;
        let mut look = world.sleep(LOOK_AT_CONFIG);
        loop {
            tokio::select! {
                biased;
                () = changes.changed() => {
                    for (workspace, version) in self.newer_than(&mut known).await {
                        self.ports.hub.tell_others(&workspace, || StreamNotice::ConfigurationChanged { version });
                    }
                }
                () = &mut look => {
                    for (workspace, version) in self.newer_than(&mut known).await {
                        self.ports.config.changed_elsewhere(&workspace, version);
                    }
                    self.ports.hub.forget_followers_elsewhere();
                    look = world.sleep(LOOK_AT_CONFIG);
                }
                heard = listener.next() => match heard {
                    Heard::Message(message) => self.heard(message, &mut known),
                    Heard::Missed => {
                        self.ports.hub.missed();
                        self.cancels.send();
                    }
                },
            }
        }
    }

    fn heard(&self, message: StreamMessage, known: &mut Versions) {
        let StreamMessage { from, workspace, notice } = message;
        let hub = &self.ports.hub;
        if hub.is_own(&from) {
            return;
        }
        match notice {
            StreamNotice::Text(chunk) => hub.hear_text(&workspace, &from, &chunk),
            StreamNotice::Abandoned { run, message_ids } => hub.hear_abandoned(&workspace, &from, &run, &message_ids),
            StreamNotice::Committed { run, seq } => hub.hear_commit(&workspace, &run, seq),
            StreamNotice::Following { run, anew } => hub.hear_following(&workspace, &run, anew),
            // Everybody who waits for a call would look, so only if it can be theirs.
            StreamNotice::Cancelled { run } if self.claims.hold(&workspace, &run) => self.cancels.send(),
            StreamNotice::Cancelled { .. } => {}
            StreamNotice::ConfigurationChanged { version } => {
                let newest = known.entry(workspace.clone()).or_default();
                if *newest < version {
                    *newest = version;
                    self.ports.config.changed_elsewhere(&workspace, version);
                }
            }
        }
    }

    async fn versions(&self) -> Result<Versions, ConfigError> {
        let config = &self.ports.config;
        let mut versions = Versions::new();
        for workspace in config.workspaces().await? {
            let version = config.version(&workspace).await?;
            versions.insert(workspace, version);
        }
        Ok(versions)
    }

    /// The versions that were made since; they are known then.
    async fn newer_than(&self, known: &mut Versions) -> Versions {
        let mut newer = match self.versions().await {
            Ok(versions) => versions,
            Err(error) => {
                tracing::warn!(%error, "the configuration's versions could not be read; trying again later");
                return Versions::new();
            }
        };
        newer.retain(|workspace, version| known.get(workspace).is_none_or(|known| known < version));
        known.extend(newer.clone());
        newer
    }
}
