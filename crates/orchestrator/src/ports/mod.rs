//! What the loop needs from the world. Chosen at run time, so futures are boxed.

mod config;
mod document_reader;
mod embedder;
mod graph;
mod journal;
mod knowledge;
mod library;
mod log;
mod notes;
mod presence;
mod prompter;
mod queue;
mod search;
mod signal;
mod stream;
mod tables;
mod tool_runner;
mod tool_servers;
mod world;

pub use config::{Config, ConfigError, HistoryEntry, items_at};
pub use document_reader::{DocumentReader, ReadDocument, ReadError};
pub use embedder::{EmbedError, Embedder, TextRole};
pub use graph::{Answer, Asking, Found, Graph, GraphError, QuadPattern, QueryLimits};
pub use journal::{
    Claim, ClaimId, Claiming, Commit, Committed, Cut, Disposition, Journal, JournalError, KeptSession, NewRecord,
    NewTurn, OpenTurn, Outcome, RunFilter, RunPage, Service, SessionLog, SetAside, TurnKey, UnreadableRun,
    all_due_turns,
};
pub use knowledge::{Added, Knowledge, KnowledgeError, KnowledgePlace, LoadedBy, LoadedCollection};
pub use library::{
    DocumentMetadata, Library, LibraryError, LibraryFuture, Listing, MetadataChanges, Processing, StoredDocument,
    Upload,
};
pub use log::{Log, LogEntry, LogError, Verdict};
pub use notes::{Note, Notes};
pub use presence::{Presence, Process, TurnInHand};
pub use prompter::{
    CallLabels, Completion, ModelWish, PromptCall, PromptError, PromptNeed, PromptReply, Prompter, ReplyContent,
    ReplySink, distinct,
};
pub use queue::{Delivery, Queue, QueueError, Receipt, Role};
pub use search::{
    DocumentInfo, FoundPassage, FoundPassages, IndexedDocument, Passage, PassageVectors, Place, Search, SearchDocument,
    SearchError, SearchFuture, SearchQuery,
};
pub use signal::{Signal, SignalListener};
pub use stream::{Heard, Stream, StreamListener, StreamMessage, StreamNotice, TextChunk, TextKind};
pub use tables::{
    Condition, Direction, FoundRows, LoadedTable, NearValue, NearValues, PutRows, RowQuery, TablePlace, Tables,
    TablesError, TablesFuture, Test, ValueQuery, ValueVector, Vectorless,
};
pub use tool_runner::{CallInput, ToolCall, ToolError, ToolOutput, ToolQuestion, ToolRunner};
pub use tool_servers::{Discovered, LeftOutTool, ToolList, ToolServers};
pub use world::{RealWorld, World};

/// A boxed future, as ports return them.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
