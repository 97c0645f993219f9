//! Where the replies of one request on a socket go.

use crate::bounds;
use crate::error::{Gone, Refusal};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;

/// Replies of one request, each in its envelope. A slow reader makes the writer wait, never the server grow.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// As the client wrote it; none if the request had none.
    id: Option<Value>,
    to: mpsc::Sender<String>,
}

const TOO_LARGE: &str = "the reply is larger than 1 MiB, which stock clients cannot receive in one piece; ask for less, \
                         or for a stream in smaller batches";

#[derive(Serialize)]
struct Envelope<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    complete: bool,
}

impl Outbox {
    pub(crate) fn new(id: Option<Value>, to: mpsc::Sender<String>) -> Self {
        Self { id, to }
    }

    pub(crate) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// A reply; more will follow.
    pub(crate) async fn more(&self, reply: &impl Serialize) -> Result<(), Gone> {
        self.send(Some(reply), None, false).await
    }

    /// The last reply.
    pub(crate) async fn last(&self, reply: &impl Serialize) -> Result<(), Gone> {
        self.send(Some(reply), None, true).await
    }

    /// The last reply, which tells of a failure: in itself, and in the envelope for those who look only there.
    pub(crate) async fn failed(&self, reply: &impl Serialize, refusal: &Refusal) -> Result<(), Gone> {
        self.send(Some(reply), Some(refusal.object()), true).await
    }

    /// The request was refused. In the envelope, where every kind of call of the stock client looks.
    pub(crate) async fn refuse(&self, refusal: &Refusal) -> Result<(), Gone> {
        self.send(None::<&Value>, Some(refusal.object()), true).await
    }

    async fn send(&self, response: Option<&impl Serialize>, error: Option<Value>, complete: bool) -> Result<(), Gone> {
        let envelope = Envelope { id: self.id.as_ref(), response, error, complete };
        let mut text = serde_json::to_string(&envelope).expect("replies are always JSON");
        let too_large = text.len() > bounds::FRAME;
        if too_large {
            let error = Refusal::gateway(TOO_LARGE).object();
            let envelope =
                Envelope { id: self.id.as_ref(), response: None::<&Value>, error: Some(error), complete: true };
            text = serde_json::to_string(&envelope).expect("errors are always JSON");
        }
        self.to.send(text).await.map_err(|_| Gone)?;
        // Nothing may follow the last reply.
        if too_large { Err(Gone) } else { Ok(()) }
    }
}
