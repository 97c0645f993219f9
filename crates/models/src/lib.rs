//! Prompts become requests to a model, replies become text, objects or lists.
//!
//! Owns templates, retries, the reading of replies, and the providers. Does not know what a prompt is for: the one
//! exception is [`Rehearsal`], which plays a script where no model is configured, and says so.

mod asking;
mod choice;
mod cloud;
mod connections;
mod conversation;
mod credentials;
mod described;
mod dialect;
mod embedding;
mod examination;
mod functions;
mod models;
mod prompt_text;
mod prompter;
mod provider;
mod recorded;
mod rehearsal;
mod remote;
mod reply;
mod retries;
mod room;
mod said;
mod services;
mod settings;
mod strict;
mod template;
mod thinking;

pub use choice::{Choice, ChoiceError, RemoteChoice, choose};
pub use cloud::CloudError;
pub use connections::Connections;
pub use dialect::DialectKind;
pub use examination::{Can, Examination, Finding, examine};
pub use models::Models;
pub use prompt_text::PromptText;
pub use prompter::TemplatePrompter;
pub use provider::{
    ContextSize, LastSent, ModelReply, ModelRequest, OnPiece, Provider, ProviderError, Response, Sent, Turn,
};
pub use recorded::{NotRecorded, RecordedReplies, RecordedRun};
pub use rehearsal::{NOTE, Rehearsal};
pub use remote::{CallSettings, EndpointError, Prices, RateLimit, Sampling};
/// Plain HTTP, for whoever else has a server to talk to.
pub use remote::{address, cause, client};
pub use settings::{KeyPlace, ModelOptions, ModelSettings, ProviderSettings};
pub use template::check_template;
pub use trellis_domain::Secret;

#[cfg(test)]
mod seeded_prompt_tests;
