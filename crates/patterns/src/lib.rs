//! Router and patterns as pure reconcilers, and the parsers of model replies.
//!
//! A pattern looks at a session's records and says what is due. It performs nothing and knows no
//! clock: time, ids and replies arrive as data. The shell that performs orders is in `orchestrator`.

mod choice;
pub mod contract;
pub mod debate;
mod delegate;
pub mod describe;
pub mod dispatch;
mod echo;
pub mod fan_out;
#[cfg(test)]
mod fixture;
pub mod guard;
mod history;
mod inlined;
mod known;
pub mod plan;
mod projector;
pub mod react;
pub mod reader;
pub mod reflexion;
mod registry;
mod room;
pub mod router;
pub mod session;
pub mod spending;
pub mod supervisor;
mod synthesis;
pub mod taken_up;
mod text;
pub mod toolset;
pub mod wire;

pub use contract::{CallPlace, Effect, Ending, Order, Pattern, PromptOrder, Turn};
pub use known::{agents_of, implemented, is_implemented};
pub use projector::{Projector, documents, events, project};
pub use reader::{ReadReply, Reader, ReplyForm};
pub use registry::{UnknownPattern, after_join, first_turn, form, missing_prompts, notice, pattern, read, read_in};
pub use session::Session;
pub use synthesis::SynthesisName;
