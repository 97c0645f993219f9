//! Models that are connected by name, when they are needed, and kept.

use crate::choice::{Choice, ChoiceError, capacity, choose};
use crate::provider::Provider;
use crate::rehearsal::Rehearsal;
use crate::remote::Pace;
use crate::room::Room;
use crate::settings::ModelSettings;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_orchestrator::ports::{Embedder, World};

type Environment = dyn Fn(&str) -> Option<String> + Send + Sync;

/// So many models are kept. Workspaces name what they like: above that, those that nobody asks are forgotten, and with them
/// what they refused.
const KEPT: usize = 256;

/// Connects models by what the environment knows: keys and addresses.
pub struct Connections {
    settings: ModelSettings,
    environment: Box<Environment>,
    world: Arc<dyn World>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By what they were asked for with.
    models: BTreeMap<String, Arc<dyn Provider>>,
    /// By provider.
    rooms: BTreeMap<String, Room>,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let models: Vec<_> = self.kept.lock().models.keys().cloned().collect();
        f.debug_struct("Connections").field("models", &models).finish_non_exhaustive()
    }
}

impl Connections {
    pub fn new(
        settings: ModelSettings,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
        world: Arc<dyn World>,
    ) -> Self {
        Self { settings, environment: Box::new(environment), world, kept: Mutex::default() }
    }

    /// A model that the configuration of a workspace names: only of a provider that the operator set up, or asks as well.
    pub(crate) fn for_workspace(&self, name: &str) -> Result<Arc<dyn Provider>, ChoiceError> {
        if let Some(model) = self.kept.lock().models.get(name) {
            return Ok(Arc::clone(model));
        }
        for choice in choose(&[name.to_owned()], &self.settings, &*self.environment)? {
            let Choice::Remote(choice) = choice else { continue };
            if !choice.is_set_up() && !self.kept.lock().rooms.contains_key(choice.provider()) {
                return Err(ChoiceError::NotSetUp { provider: choice.provider().to_owned() });
            }
        }
        self.named(name)
    }

    /// The model of that name, such as `openai/gpt-4.1-mini`. Nothing is sent to it yet.
    pub fn named(&self, name: &str) -> Result<Arc<dyn Provider>, ChoiceError> {
        if let Some(model) = self.kept.lock().models.get(name) {
            return Ok(Arc::clone(model));
        }
        let chosen = choose(&[name.to_owned()], &self.settings, &*self.environment)?;
        // Nothing was named, and nothing is chosen for that.
        let choice = chosen.into_iter().next().unwrap_or(Choice::Rehearsal);
        let model = self.connect(choice)?;
        let mut kept = self.kept.lock();
        if kept.models.len() >= KEPT {
            kept.models.retain(|_, model| Arc::strong_count(model) > 1);
        }
        Ok(Arc::clone(kept.models.entry(name.to_owned()).or_insert(model)))
    }

    /// Makes a chosen model ready. Nothing is sent to it yet.
    pub fn connect(&self, choice: Choice) -> Result<Arc<dyn Provider>, ChoiceError> {
        match choice {
            Choice::Rehearsal => {
                let delay = self.settings.rehearsal_delay;
                Ok(Arc::new(delay.map_or_else(Rehearsal::default, Rehearsal::new)))
            }
            Choice::Remote(choice) => {
                let (room, settings) = (self.room(choice.provider()), self.settings.of(&choice.name()));
                choice.connect_sharing(room, settings, Arc::clone(&self.world))
            }
        }
    }

    /// The model of that name, for vectors. Nothing is sent to it yet.
    pub fn embedder(&self, name: &str) -> Result<Arc<dyn Embedder>, ChoiceError> {
        let chosen = choose(&[name.to_owned()], &self.settings, &*self.environment)?;
        let Some(Choice::Remote(choice)) = chosen.into_iter().next() else {
            return Err(ChoiceError::NoVectors { provider: name.to_owned(), dialect: "a script" });
        };
        let (room, settings) = (self.room(choice.provider()), self.settings.of(&choice.name()));
        Ok(Arc::new(choice.embedder(room, settings, Arc::clone(&self.world))?))
    }

    /// What the models of a provider share.
    fn room(&self, provider: &str) -> Room {
        let own = self.settings.providers.get(provider).cloned().unwrap_or_default();
        let new = || Room {
            capacity: capacity(own.concurrency.unwrap_or(self.settings.usual.concurrency)),
            pace: Arc::new(Pace::new(own.rate_limit)),
        };
        self.kept.lock().rooms.entry(provider.to_owned()).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_orchestrator::ports::RealWorld;

    #[test]
    fn names_that_workspaces_make_up_are_not_kept_for_ever() {
        let environment = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-test".to_owned());
        let connections = Connections::new(ModelSettings::default(), environment, Arc::new(RealWorld));
        let used = connections.for_workspace("openai/used").unwrap();
        for number in 0..2 * KEPT {
            connections.for_workspace(&format!("openai/m{number}")).unwrap();
        }
        assert!(connections.kept.lock().models.len() <= KEPT);
        assert!(Arc::ptr_eq(&used, &connections.named("openai/used").unwrap()), "what is asked stays");
    }
}
