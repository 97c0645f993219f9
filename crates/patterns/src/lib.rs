//! Router and patterns as pure reconcilers, and the parsers of model replies.
//!
//! A pattern looks at a session's records and says what is due. It performs nothing and knows no
//! clock: time, ids and replies arrive as data. The shell that performs orders is in `orchestrator`.

pub mod contract;
pub mod react;
pub mod router;
pub mod session;
pub mod toolset;

pub use contract::{Effect, Ending, Order, Pattern, PromptOrder, Turn, pattern};
pub use session::Session;
