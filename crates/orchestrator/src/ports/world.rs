//! Time, waiting and fresh ids: the only door to clock and chance.

use super::BoxFuture;
use std::time::Duration;
use trellis_domain::Timestamp;

pub trait World: Send + Sync + std::fmt::Debug {
    fn now(&self) -> Timestamp;

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()>;

    /// An id that nobody else has.
    fn fresh_id(&self) -> String;
}

/// The operating system's clock and randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealWorld;

impl World for RealWorld {
    #[expect(clippy::disallowed_methods, reason = "this is the port that others use instead")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the port that others use instead")]
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the port that others use instead")]
    fn fresh_id(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }
}
