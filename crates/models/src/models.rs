//! Which models a prompt goes to, and in which order.

use crate::choice::{REHEARSAL, provider_of};
use crate::connections::Connections;
use crate::provider::Provider;
use std::sync::Arc;
use trellis_domain::config::Settings;
use trellis_orchestrator::ports::{PromptNeed, distinct};

/// The operator's models in the order in which they are asked, and how others are found that configuration names.
#[derive(Debug, Clone)]
pub struct Models {
    first: Arc<dyn Provider>,
    others: Vec<Arc<dyn Provider>>,
    /// The operator named them: they count before those of the workspace.
    are_named: bool,
    connections: Option<Arc<Connections>>,
}

/// A model to ask. One that configuration names is connected when it is its turn.
#[derive(Debug, Clone)]
pub(crate) enum Candidate {
    Ready(Arc<dyn Provider>),
    Named(String),
}

impl Candidate {
    pub(crate) fn reads_variables(&self) -> bool {
        match self {
            Self::Ready(model) => model.reads_variables(),
            Self::Named(name) => provider_of(name) == REHEARSAL,
        }
    }

    /// Of one that is not connected yet, nothing else is known.
    pub(crate) fn may_take_tools(&self, prompt: &str) -> bool {
        match self {
            Self::Ready(model) => model.takes_tools(prompt),
            Self::Named(_) => true,
        }
    }
}

/// What configuration says about the models of one prompt, the most specific first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wishes<'c> {
    /// What the caller of the run chose.
    pub(crate) request: Option<&'c str>,
    pub(crate) prompt: &'c [String],
    pub(crate) task_type: &'c [String],
    pub(crate) workspace: &'c [String],
}

impl<'c> Wishes<'c> {
    pub(crate) fn of(need: PromptNeed<'c>) -> Self {
        let Settings { prompts, task_types, models, .. } = need.settings;
        let task_type = need.wish.task_type.and_then(|name| task_types.get(name));
        Self {
            request: need.wish.model,
            prompt: prompts.get(need.id).map_or(&[], |prompt| &prompt.models),
            task_type: task_type.map_or(&[], |task_type| &task_type.models),
            workspace: models,
        }
    }
}

impl Models {
    pub fn new(first: Arc<dyn Provider>) -> Self {
        Self { first, others: Vec::new(), are_named: false, connections: None }
    }

    /// One more, which is asked if none of those before it answers.
    #[must_use]
    pub fn or(mut self, next: Arc<dyn Provider>) -> Self {
        self.others.push(next);
        self
    }

    /// The operator named these models, so that what a workspace names does not count.
    #[must_use]
    pub fn named(mut self) -> Self {
        self.are_named = true;
        self
    }

    /// Finds the models that configuration names.
    #[must_use]
    pub fn connecting(mut self, connections: Arc<Connections>) -> Self {
        self.connections = Some(connections);
        self
    }

    /// The operator's models by name, in the order in which they are asked.
    pub fn names(&self) -> Vec<String> {
        self.of_operator().map(|model| model.name()).collect()
    }

    /// Those that a caller may choose from: what is asked here, whoever names it.
    pub(crate) fn choosable(&self, settings: &Settings) -> Vec<String> {
        let by_workspace = if self.are_named { &[][..] } else { &settings.models };
        distinct(self.names().into_iter().chain(by_workspace.iter().chain(settings.special_models()).cloned()))
    }

    pub(crate) fn of_operator(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Whom a prompt goes to: to the one that the caller chose, else to those that the most specific place names, and to nobody else.
    pub(crate) fn candidates(&self, wishes: &Wishes<'_>) -> Vec<Candidate> {
        if let Some(name) = wishes.request {
            let of_operator = self.of_operator().find(|model| model.name() == name);
            let chosen = of_operator.cloned().map_or_else(|| Candidate::Named(name.to_owned()), Candidate::Ready);
            return vec![chosen];
        }
        let by_workspace = if self.are_named { &[] } else { wishes.workspace };
        let most_specific =
            [wishes.prompt, wishes.task_type, by_workspace].into_iter().find(|models| !models.is_empty());
        match most_specific {
            Some(names) => names.iter().cloned().map(Candidate::Named).collect(),
            None => self.of_operator().cloned().map(Candidate::Ready).collect(),
        }
    }

    /// Makes a candidate ready; the error says why it cannot be asked.
    pub(crate) fn ready(&self, candidate: &Candidate) -> Result<Arc<dyn Provider>, String> {
        match candidate {
            Candidate::Ready(model) => Ok(Arc::clone(model)),
            Candidate::Named(name) => {
                let connections = self.connections.as_ref();
                let connections = connections.ok_or_else(|| format!("{name} cannot be asked from here"))?;
                connections.for_workspace(name).map_err(|error| format!("{name} cannot be asked: {error}"))
            }
        }
    }
}
