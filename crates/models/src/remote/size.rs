//! How much a model can read, where its server has to be asked for it.

use super::endpoint::Endpoint;
use super::members::KEPT;
use crate::described::Described;
use crate::provider::ContextSize;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// A server that could not tell is asked again after this.
const ASKED_AGAIN: Duration = Duration::from_mins(5);

/// What was found out about the size of one model.
#[derive(Debug)]
pub(super) struct Size {
    /// None if there is nowhere to ask.
    described: Option<Described>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// What the server said last. It holds while the server cannot be asked.
    size: Option<u64>,
    asked: Arc<OnceCell<Asked>>,
}

#[derive(Debug)]
struct Asked {
    at: Instant,
    was_told: bool,
}

impl Asked {
    /// A server may be started anew with another size.
    fn is_over(&self) -> bool {
        self.at.elapsed() >= if self.was_told { KEPT } else { ASKED_AGAIN }
    }
}

impl Size {
    pub(super) fn new(described: Option<Described>) -> Self {
        Self { described, known: Mutex::default() }
    }

    /// What the operator set, else what the server says. Calls at the same time share its answer.
    pub(super) async fn of(&self, endpoint: &Endpoint, model: &str) -> Option<ContextSize> {
        if let Some(set) = endpoint.settings.context_tokens {
            return Some(ContextSize::Set(set));
        }
        let described = self.described.as_ref()?;
        let asked = {
            let mut known = self.known.lock();
            if known.asked.get().is_some_and(Asked::is_over) {
                known.asked = Arc::default();
            }
            Arc::clone(&known.asked)
        };
        asked.get_or_init(|| self.ask(described, endpoint, model)).await;
        self.known.lock().size.map(ContextSize::Told)
    }

    async fn ask(&self, described: &Described, endpoint: &Endpoint, model: &str) -> Asked {
        let description = endpoint.describe(described, model).await;
        let size = description.and_then(|description| described.size_in(&description, model));
        if size.is_some() {
            self.known.lock().size = size;
        } else {
            tracing::info!(provider = endpoint.name(), model, "the server does not tell how much the model can read");
        }
        Asked { at: Instant::now(), was_told: size.is_some() }
    }
}
