//! What processes tell each other while they work. The journal is the truth: a message that is lost costs a delay, and one
//! that comes twice, late or out of order costs nothing.

use super::BoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trellis_domain::{RunId, SessionId, Workspace};
use utoipa::ToSchema;

/// What a piece of live text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TextKind {
    Thought,
    Answer,
}

/// What one process tells all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamMessage {
    /// The process that tells it. Whoever hears its own message ignores it.
    pub from: Arc<str>,
    pub workspace: Workspace,
    pub notice: StreamNotice,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum StreamNotice {
    Text(TextChunk),
    /// Nothing more comes of these messages.
    Abandoned {
        run: RunId,
        message_ids: Vec<Arc<str>>,
    },
    /// A run has records up to this number. What they say is in the journal.
    Committed {
        run: RunId,
        seq: u64,
    },
    /// Whoever works for this run lets go.
    Cancelled {
        run: RunId,
    },
    /// Somebody follows this run and wants to hear of its text and its commits. Said again and again for as long as that
    /// is so.
    Following {
        run: RunId,
        /// Open messages are wanted from their start.
        anew: bool,
    },
    ConfigurationChanged {
        version: u64,
    },
}

/// Text of an open message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextChunk {
    pub run: RunId,
    pub session: SessionId,
    pub message_id: Arc<str>,
    pub kind: TextKind,
    /// The newest record that the message was written after. Listeners get that one first.
    pub after: u64,
    /// How many bytes of the message come before.
    pub offset: usize,
    pub text: String,
}

/// The way to all other processes of a deployment. It has a bounded amount of messages on their way, and drops the oldest.
pub trait Stream: Send + Sync + std::fmt::Debug {
    /// Never waits. There is no promise that anybody hears it.
    fn publish(&self, message: StreamMessage);

    /// What is published from now on. One's own messages may be among it.
    fn listen(&self) -> Box<dyn StreamListener>;
}

/// One process's ear.
pub trait StreamListener: Send + std::fmt::Debug {
    /// Waits for the next message. A wait that is given up loses nothing. A connection that breaks is the adapter's
    /// business: it connects again and says that something may be missed.
    fn next(&mut self) -> BoxFuture<'_, Heard>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    Message(StreamMessage),
    /// Messages were lost here: look at the journal.
    Missed,
}
