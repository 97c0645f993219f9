//! Tasks that end with what they belong to.

use parking_lot::Mutex;
use tokio::task::JoinSet;

#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.lock().spawn(task);
    }
}
