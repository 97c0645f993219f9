//! Models that are connected by name, when they are needed, and kept.

use crate::choice::{Choice, ChoiceError, capacity, choose};
use crate::provider::Provider;
use crate::rehearsal::Rehearsal;
use crate::remote::CallSettings;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::World;

/// How models are called: all of them, and some by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    pub usual: CallSettings,
    /// By `provider/name`: whether tools are offered as functions, against what is usual.
    pub native_tools: BTreeMap<String, bool>,
    /// The pause between two pieces of a rehearsed reply.
    pub rehearsal_delay: Option<Duration>,
}

impl ModelSettings {
    fn of(&self, model: &str) -> CallSettings {
        let native_tools = self.native_tools.get(model).copied().unwrap_or(self.usual.native_tools);
        CallSettings { native_tools, ..self.usual.clone() }
    }
}

type Environment = dyn Fn(&str) -> Option<String> + Send + Sync;

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
    capacities: BTreeMap<&'static str, Arc<CallCapacity>>,
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

    /// The model of that name, such as `openai/gpt-4.1-mini`. Nothing is sent to it yet.
    pub fn named(&self, name: &str) -> Result<Arc<dyn Provider>, ChoiceError> {
        if let Some(model) = self.kept.lock().models.get(name) {
            return Ok(Arc::clone(model));
        }
        let chosen = choose(&[name.to_owned()], &*self.environment)?;
        let choice = chosen.into_iter().next().ok_or_else(|| ChoiceError::UnknownProvider(name.to_owned()))?;
        let model = self.connect(choice)?;
        Ok(Arc::clone(self.kept.lock().models.entry(name.to_owned()).or_insert(model)))
    }

    /// Makes a chosen model ready. Nothing is sent to it yet.
    pub fn connect(&self, choice: Choice) -> Result<Arc<dyn Provider>, ChoiceError> {
        match choice {
            Choice::Rehearsal => {
                let delay = self.settings.rehearsal_delay;
                Ok(Arc::new(delay.map_or_else(Rehearsal::default, Rehearsal::new)))
            }
            Choice::Remote(choice) => {
                let settings = self.settings.of(&choice.name());
                let new = || capacity(&self.settings.usual);
                let capacity = Arc::clone(self.kept.lock().capacities.entry(choice.provider()).or_insert_with(new));
                Ok(choice.connect_sharing(capacity, settings, Arc::clone(&self.world))?)
            }
        }
    }
}
