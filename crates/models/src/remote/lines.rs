//! Lines become messages. Pure, and bounded whatever a server sends.

use trellis_domain::event_stream::{LineError, field};

/// More than the largest reply that any limit allows, written as one JSON string.
pub(crate) const LONGEST_LINE: usize = 8 << 20;

/// How messages are told apart in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `data: …` up to a blank line. Comments, names and ids of events say nothing that we need.
    Events,
    /// One JSON value per line.
    JsonLines,
    /// AWS's frames, which are no lines.
    AwsEvents,
}

/// What a line brings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Brought {
    Nothing,
    Message(String),
    /// The stream is one JSON document, which begins with this line: the server does not stream.
    Document(String),
}

/// Puts messages together from lines.
#[derive(Debug)]
pub(crate) struct Messages {
    framing: Framing,
    begun: bool,
    data: String,
    /// The data came in several lines. Servers that leave out the blank lines write one line per message, so that
    /// nobody needs to look again and again whether a longer one is whole.
    in_several: bool,
    /// The beginning of the first line that belongs to no message, for whoever wonders what was sent.
    pub(super) unrecognised: Option<String>,
}

impl Messages {
    pub(crate) fn new(framing: Framing) -> Self {
        Self { framing, begun: false, data: String::new(), in_several: false, unrecognised: None }
    }

    pub(crate) fn line(&mut self, line: String) -> Result<Brought, LineError> {
        let line = if self.begun { line } else { line.trim_start_matches('\u{feff}').to_owned() };
        let blank = line.trim().is_empty();
        let first = !self.begun;
        self.begun |= !blank;
        Ok(match self.framing {
            Framing::JsonLines if blank => Brought::Nothing,
            // A document over several lines begins with a bracket that stands alone.
            Framing::JsonLines if first && line.trim_end() == "{" => Brought::Document(line),
            Framing::JsonLines | Framing::AwsEvents => Brought::Message(line),
            Framing::Events if blank => self.take(),
            Framing::Events if first && line.trim_start().starts_with(['{', '[']) => Brought::Document(line),
            Framing::Events => return self.field(&line),
        })
    }

    /// What is left when the stream has ended.
    pub(crate) fn end(&mut self) -> Brought {
        self.take()
    }

    fn field(&mut self, line: &str) -> Result<Brought, LineError> {
        let data = match field(line) {
            ("data", data) => data,
            ("" | "event" | "id" | "retry", _) => return Ok(Brought::Nothing),
            _ => {
                self.unrecognised.get_or_insert_with(|| line.to_owned());
                return Ok(Brought::Nothing);
            }
        };
        // Some servers leave out the blank lines.
        let brought = if !self.in_several && is_whole(&self.data) { self.take() } else { Brought::Nothing };
        if self.data.len() + data.len() > LONGEST_LINE {
            return Err(LineError::TooLong);
        }
        if !self.data.is_empty() {
            self.data.push('\n');
            self.in_several = true;
        }
        self.data.push_str(data);
        Ok(brought)
    }

    fn take(&mut self) -> Brought {
        let data = std::mem::take(&mut self.data);
        self.in_several = false;
        if data.trim().is_empty() { Brought::Nothing } else { Brought::Message(data) }
    }
}

fn is_whole(data: &str) -> bool {
    !data.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
