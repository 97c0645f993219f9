//! Bytes become lines, and lines become messages. Pure, and bounded whatever a server sends.

/// More than the largest reply that any limit allows, written as one JSON string.
pub(super) const LONGEST_LINE: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineError {
    TooLong,
    NotUtf8,
}

/// Cuts a stream of bytes into lines. Characters may be split anywhere between the pieces.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Where the first line that is not yet given begins.
    start: usize,
    /// Up to where no end of line is.
    searched: usize,
}

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line without its end.
    pub(crate) fn next(&mut self) -> Option<Result<String, LineError>> {
        let Some(place) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return (self.waiting() > LONGEST_LINE).then_some(Err(LineError::TooLong));
        };
        let end = self.searched + place;
        let line = text(&self.buffer[self.start..end]);
        self.start = end + 1;
        self.searched = self.start;
        Some(line)
    }

    /// What is left when the stream has ended: everything that was not given as a line.
    pub(crate) fn rest(&mut self) -> Option<Result<String, LineError>> {
        let rest = self.buffer.split_off(self.start);
        *self = Self::default();
        (!rest.is_empty()).then(|| text(&rest))
    }

    /// How many bytes are held that were not given yet.
    pub(crate) fn waiting(&self) -> usize {
        self.buffer.len() - self.start
    }
}

fn text(bytes: &[u8]) -> Result<String, LineError> {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.len() > LONGEST_LINE {
        return Err(LineError::TooLong);
    }
    String::from_utf8(bytes.to_vec()).map_err(|_| LineError::NotUtf8)
}

/// How messages are told apart in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `data: …` up to a blank line. Comments, names and ids of events say nothing that we need.
    Events,
    /// One JSON value per line.
    JsonLines,
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
            Framing::JsonLines => Brought::Message(line),
            Framing::Events if blank => self.take(),
            Framing::Events if first && line.trim_start().starts_with('{') => Brought::Document(line),
            Framing::Events => return self.field(&line),
        })
    }

    /// What is left when the stream has ended.
    pub(crate) fn end(&mut self) -> Brought {
        self.take()
    }

    fn field(&mut self, line: &str) -> Result<Brought, LineError> {
        let Some(data) = line.strip_prefix("data:") else {
            let known = [":", "event:", "id:", "retry:"].iter().any(|name| line.starts_with(name));
            if !known && self.unrecognised.is_none() {
                self.unrecognised = Some(line.to_owned());
            }
            return Ok(Brought::Nothing);
        };
        let data = data.strip_prefix(' ').unwrap_or(data);
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
