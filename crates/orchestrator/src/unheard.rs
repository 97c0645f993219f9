//! A reply that nobody reads while it is written.

use crate::ports::ReplySink;
use std::ops::ControlFlow;

/// Stops a model that writes more than so many bytes.
#[derive(Debug)]
pub(crate) struct Unheard {
    bytes: u64,
    limit: u64,
}

impl Unheard {
    pub(crate) fn up_to(limit: u64) -> Self {
        Self { bytes: 0, limit }
    }
}

impl ReplySink for Unheard {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.bytes += text.len() as u64;
        if self.bytes > self.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn restart(&mut self) {
        self.bytes = 0;
    }
}
