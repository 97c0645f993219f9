//! Router and patterns as pure reconcilers, and the parsers of model replies.
//!
//! A pattern looks at a session's records and says what is due. It performs nothing and knows no
//! clock: time, ids and replies arrive as data. The shell that performs orders is in `orchestrator`.

mod choice;
pub mod contract;
pub mod debate;
pub mod describe;
pub mod dispatch;
pub mod fan_out;
#[cfg(test)]
mod fixture;
pub mod plan;
pub mod react;
pub mod reader;
pub mod reflexion;
mod registry;
pub mod router;
pub mod session;
pub mod supervisor;
mod synthesis;
pub mod toolset;
pub mod wire;

pub use contract::{Effect, Ending, Order, Pattern, PromptOrder, Turn};
pub use describe::{Projector, documents, events, project};
pub use reader::{ReadReply, Reader, ReplyForm};
pub use registry::{implemented, missing_prompts, pattern};
pub use session::Session;
pub use synthesis::SynthesisName;
