//! Tells whoever waits that something has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// Counts changes. Listeners wake in the order in which they began to wait: those of a `watch` channel wake in random order,
/// and what happens in a simulated world must be able to happen again.
#[derive(Debug, Clone, Default)]
pub struct Signal(Arc<Changes>);

#[derive(Debug, Default)]
struct Changes {
    count: AtomicU64,
    changed: Notify,
}

impl Signal {
    pub fn send(&self) {
        self.0.count.fetch_add(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }

    /// Hears of changes from now on.
    pub fn listen(&self) -> SignalListener {
        SignalListener { seen: self.0.count.load(Ordering::SeqCst), changes: Arc::clone(&self.0) }
    }
}

/// One listener. However many changes it has missed, it hears of them once.
#[derive(Debug)]
pub struct SignalListener {
    seen: u64,
    changes: Arc<Changes>,
}

impl SignalListener {
    /// Whether there was a change since the last one that was heard of.
    pub fn has_changed(&self) -> bool {
        self.changes.count.load(Ordering::SeqCst) != self.seen
    }

    /// Whether something had changed before anything was heard of.
    pub fn is_late(&self) -> bool {
        self.seen > 0
    }

    /// Nothing that has changed by now is heard of any more.
    pub fn mark_unchanged(&mut self) {
        self.seen = self.changes.count.load(Ordering::SeqCst);
    }

    /// Waits for a change.
    pub async fn changed(&mut self) {
        loop {
            // Made before the look: a change in between is not missed.
            let changed = self.changes.changed.notified();
            if self.has_changed() {
                break;
            }
            changed.await;
        }
        self.mark_unchanged();
    }
}

#[cfg(test)]
mod tests {
    use super::Signal;
    use std::sync::{Arc, Mutex};

    #[tokio::test]
    async fn listeners_wake_in_the_order_in_which_they_began_to_wait() {
        for _ in 0..20 {
            let (signal, woken) = (Signal::default(), Arc::new(Mutex::new(Vec::new())));
            let mut tasks = tokio::task::JoinSet::new();
            for number in 0..10 {
                let (mut listener, woken) = (signal.listen(), Arc::clone(&woken));
                tasks.spawn(async move {
                    listener.changed().await;
                    woken.lock().unwrap().push(number);
                });
            }
            tokio::task::yield_now().await;
            signal.send();
            tasks.join_all().await;
            assert_eq!(*woken.lock().unwrap(), (0..10).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn changes_are_heard_of_once_also_by_whoever_did_not_wait() {
        let signal = Signal::default();
        signal.send();
        let mut listener = signal.listen();
        assert!(!listener.has_changed() && listener.is_late(), "what was before is not heard of, only that there was");
        signal.send();
        signal.send();
        listener.changed().await;
        assert!(!listener.has_changed());
    }
}
