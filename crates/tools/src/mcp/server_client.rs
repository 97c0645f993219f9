//! The client of one server: opens the connection when it is needed, and again after it has ended.

use super::connection::Connection;
use super::servers::Server;
use crate::http::Reach;
use parking_lot::Mutex;
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use trellis_orchestrator::ports::ToolList;

const GONE: &str = "the server is not spoken to any more";
/// A server that let a call wait in vain has as long again, and so much more, to show that it is still there: one that does
/// one thing at a time may be busy with the call of somebody else.
const SIGN_OF_LIFE: Duration = if cfg!(test) { Duration::from_millis(500) } else { Duration::from_secs(10) };

#[derive(Debug)]
pub(super) struct ServerClient {
    server: Server,
    /// Where it may be reached.
    reach: Arc<Reach>,
    connection: Mutex<Option<Arc<Connection>>>,
    /// Whoever opens a connection opens it for all who wait.
    opening: Semaphore,
    calls: Semaphore,
}

impl ServerClient {
    pub(super) fn new(server: Server, reach: Arc<Reach>) -> Self {
        let calls = Semaphore::new(server.at_once);
        Self { server, reach, connection: Mutex::default(), opening: Semaphore::new(1), calls }
    }

    /// Without what the server is let in with: it may repeat it.
    pub(super) fn redacted(&self, text: String) -> String {
        self.server.secrets.iter().fold(text, |text, secret| secret.redact(&text))
    }

    /// `time` is what the caller gives it, and drops the call after.
    pub(super) async fn call(
        self: &Arc<Self>,
        wanted: CallToolRequestParams,
        time: Duration,
    ) -> Result<CallToolResponse, String> {
        let _turn = self.calls.acquire().await.map_err(|_| GONE)?;
        let connection = self.connected().await?;
        let limit = self.server.timeout.unwrap_or(Duration::MAX);
        let patience = time.min(limit) + SIGN_OF_LIFE;
        let (client, watched) = (Arc::clone(self), Arc::clone(&connection));
        let mut watch = Watch { client, connection: watched, patience, is_answered: false };
        let answer = tokio::time::timeout(limit, connection.call(wanted)).await;
        watch.is_answered = answer.is_ok();
        answer.map_err(|_| format!("no answer within {} s", limit.as_secs_f32()))?
    }

    /// The tools that it has.
    pub(super) async fn tools(self: &Arc<Self>, name: &str) -> Result<ToolList, String> {
        let connection = self.connected().await?;
        let tools = tokio::time::timeout(self.server.start_timeout, connection.tools(name)).await;
        tools.map_err(|_| "it did not list its tools in time".to_owned())?
    }

    /// A connection that works, as far as anybody knows. One that has ended is made anew; a call that was under way then
    /// is not repeated, because it may have been done.
    async fn connected(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        if let Some(open) = self.open() {
            return Ok(open);
        }
        // In a task of its own: some programs take longer to begin than a call may last, and the next call finds them.
        let client = Arc::clone(self);
        tokio::spawn(async move { client.reopened().await }).await.map_err(|_| GONE)?
    }

    async fn reopened(&self) -> Result<Arc<Connection>, String> {
        let _alone = self.opening.acquire().await.map_err(|_| GONE)?;
        if let Some(open) = self.open() {
            return Ok(open);
        }
        // The one before ends first: two of the same program may stand in each other's way.
        let before = self.connection.lock().take();
        drop(before);
        let opened = Arc::new(Connection::open(&self.server.transport, &self.reach, self.server.start_timeout).await?);
        *self.connection.lock() = Some(Arc::clone(&opened));
        Ok(opened)
    }

    pub(super) fn open(&self) -> Option<Arc<Connection>> {
        self.connection.lock().clone().filter(|open| !open.is_over())
    }
}

/// Sees to it that a server which does nothing any more is started again: calls are dropped when their time is over.
struct Watch {
    client: Arc<ServerClient>,
    connection: Arc<Connection>,
    patience: Duration,
    is_answered: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.is_answered || self.connection.is_over() {
            return;
        }
        let (client, connection, patience) = (Arc::clone(&self.client), Arc::clone(&self.connection), self.patience);
        let look = async move {
            let is_alive = tokio::time::timeout(patience, connection.gives_a_sign()).await.unwrap_or(false);
            if !is_alive {
                client.connection.lock().take_if(|current| Arc::ptr_eq(current, &connection));
                connection.end();
            }
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(look);
        }
    }
}
