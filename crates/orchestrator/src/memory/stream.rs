//! The stream between processes that are one: several orchestrators in a test.

use crate::ports::{BoxFuture, Heard, Stream, StreamListener, StreamMessage};
use tokio::sync::broadcast::{self, error::RecvError};

#[derive(Debug)]
pub struct MemoryStream(broadcast::Sender<StreamMessage>);

/// So many messages wait for a listener at most.
const WAITING: usize = 1_024;

impl Default for MemoryStream {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING))
    }
}

impl Stream for MemoryStream {
    fn publish(&self, message: StreamMessage) {
        // Nobody listens: nobody misses it.
        drop(self.0.send(message));
    }

    fn listen(&self) -> Box<dyn StreamListener> {
        Box::new(Listener(self.0.subscribe()))
    }
}

#[derive(Debug)]
struct Listener(broadcast::Receiver<StreamMessage>);

impl StreamListener for Listener {
    fn next(&mut self) -> BoxFuture<'_, Heard> {
        Box::pin(async {
            match self.0.recv().await {
                Ok(message) => Heard::Message(message),
                Err(RecvError::Lagged(_)) => Heard::Missed,
                // Nobody is left who could say anything.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        })
    }
}
