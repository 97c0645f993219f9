//! Who asked for something, as far as that is known.

use crate::Timestamp;
use crate::decision::words;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Somebody, and the way they came. Never what they proved it with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// A user that the operator named, `operator`, or the user of the machine; none where nobody is asked who they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub surface: Surface,
}

words!(
    /// The ways in.
    Surface {
        /// Our own paths over HTTP.
        Api,
        /// The paths of OpenAI's packages.
        Openai,
        /// The Model Context Protocol, over HTTP or as a program.
        Mcp,
        /// A WebSocket, as stock clients of TrustGraph open it.
        TrustgraphSocket,
        /// The same services over HTTP.
        TrustgraphRest,
        /// A queue of a TrustGraph deployment.
        TrustgraphQueue,
        /// A command that has the data folder itself.
        CommandLine,
        /// Nobody: the program does it by itself.
        Program,
    }
);

impl Caller {
    pub fn new(name: Option<String>, surface: Surface) -> Self {
        Self { name, surface }
    }

    /// The program itself, such as when it brings its seeds.
    pub fn program() -> Self {
        Self { name: Some("trellis".to_owned()), surface: Surface::Program }
    }

    /// A name to show, also where there is none.
    pub fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or("anonymous")
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.shown(), self.surface)
    }
}

/// Who made a version of a workspace's configuration, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    pub version: u64,
    pub time: Timestamp,
    pub by: Caller,
}
