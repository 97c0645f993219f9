//! How much a model can read, where a provider has to be asked for it.

use super::converse::Dialect;
use super::endpoint::Endpoint;
use parking_lot::Mutex;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// A server that could not tell is asked again after this.
const ASKED_AGAIN: Duration = Duration::from_mins(5);

/// What was found out about the size of one model.
#[derive(Debug, Default)]
pub(super) struct Size(Mutex<Option<Asked>>);

#[derive(Debug, Clone, Copy)]
struct Asked {
    at: Instant,
    size: Option<u64>,
}

impl Size {
    /// What the provider said when it was asked.
    pub(super) fn known(&self) -> Option<u64> {
        self.0.lock().and_then(|asked| asked.size)
    }

    /// What the operator set, else what the provider says; none if nobody knows.
    pub(super) async fn of(&self, endpoint: &Endpoint, dialect: &impl Dialect, model: &str) -> Option<u64> {
        let set = endpoint.settings.context_tokens;
        let Some(path) = dialect.described_at().filter(|_| set.is_none()) else { return set };
        let asked = *self.0.lock();
        if let Some(asked) = asked.filter(|asked| asked.size.is_some() || asked.at.elapsed() < ASKED_AGAIN) {
            return asked.size;
        }
        let described = endpoint.describe(path, &json!({ "model": model })).await;
        let size = described.and_then(|description| dialect.size_in(&description));
        if size.is_none() {
            tracing::info!(provider = endpoint.name(), model, "the provider does not tell how much the model can read");
        }
        *self.0.lock() = Some(Asked { at: Instant::now(), size });
        size
    }
}
