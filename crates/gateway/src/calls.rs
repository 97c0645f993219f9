//! Calls of models that are in flight, for a server that stops to wait for.

use tokio::sync::watch;

/// Calls of models that belong to no run, so that nobody but a server that stops waits for them.
#[derive(Debug, Default)]
pub struct Calls(watch::Sender<usize>);

impl Calls {
    pub(crate) fn begin(&self) -> InFlight<'_> {
        self.0.send_modify(|calls| *calls += 1);
        InFlight(self)
    }

    /// Waits until none is in flight.
    pub async fn finished(&self) {
        // The sender is here, so that there is no error.
        drop(self.0.subscribe().wait_for(|calls| *calls == 0).await);
    }
}

/// A call, until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlight<'c>(&'c Calls);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|calls| *calls -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn calls_are_waited_for() {
        let calls = Calls::default();
        assert!(calls.finished().now_or_never().is_some(), "there are none");
        let (one, two) = (calls.begin(), calls.begin());
        drop(one);
        assert!(calls.finished().now_or_never().is_none(), "one is left");
        drop(two);
        assert!(calls.finished().now_or_never().is_some());
    }
}
