//! Who waits is told of cancellations.

use tokio::sync::watch;

/// Ticks with every cancellation. Whose run it was is in the record.
#[derive(Debug)]
pub(crate) struct Cancels(watch::Sender<u64>);

impl Default for Cancels {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Cancels {
    /// Hears of the next one.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }

    /// Whoever waits looks whether it was its run.
    pub(crate) fn tick(&self) {
        self.0.send_modify(|ticks| *ticks += 1);
    }
}
