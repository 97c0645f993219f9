//! The vocabulary of Trellis: messages, ids, terms and quads, configuration items, records.
//!
//! This crate owns what things *are* and how they are written down. It does not decide, perform or
//! store anything: no async, no clock, no randomness, no IO.

mod body;
pub mod broker;
pub mod budget;
mod caller;
mod cause;
pub mod config;
mod counted;
pub mod decision;
pub mod document;
pub mod event_stream;
pub mod fan_out;
pub mod gateway;
pub mod hash;
pub mod history;
pub mod ids;
pub mod input;
mod intent;
mod lenient;
pub mod limits;
pub mod marks;
pub mod merkle;
pub mod message;
#[cfg(test)]
mod message_tests;
mod name;
mod named;
pub mod outage;
pub mod park;
pub mod parts;
mod plain;
mod prompt_use;
pub mod rdf;
pub mod reading;
pub mod record;
pub mod reply;
pub mod request;
pub mod run;
pub mod sealed;
mod secret;
mod selection;
mod since;
pub mod table;
pub mod time;
pub mod told;
mod unreadable;
mod upgrade;
pub mod usage;

pub use caller::{Caller, Configured, Surface};
pub use counted::counted;
pub use hash::Hash;
pub use ids::{Collection, ConversationId, Flow, RequestId, RunId, Scope, SessionId, Workspace};
pub use named::{GroupName, PatternName, TaskTypeName, ToolName};
pub use plain::plain_lines;
pub use secret::Secret;
pub use selection::Selection;
pub use since::{NotSince, Since};
pub use time::Timestamp;
