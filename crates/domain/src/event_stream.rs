//! Streams of lines, such as server-sent events: bytes become lines, and lines become fields. Bounded whatever a server
//! sends.

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("a line is longer than any that this program knows")]
    TooLong,
    #[error("a line is not UTF-8")]
    NotUtf8,
}

/// Cuts a stream of bytes into lines. Characters may be split anywhere between the pieces.
///
/// ```
/// use trellis_domain::event_stream::{LineReader, field};
///
/// let mut lines = LineReader::new(100);
/// lines.push(b"data: a\r\nda");
/// assert_eq!(lines.next(), Some(Ok("data: a".to_owned())));
/// assert_eq!(lines.next(), None, "the second line is not whole yet");
/// assert_eq!(field("data: a"), ("data", "a"));
/// ```
#[derive(Debug)]
pub struct LineReader {
    /// In bytes.
    longest: usize,
    buffer: Vec<u8>,
    /// Where the first line that is not yet given begins.
    start: usize,
    /// Up to where no end of line is.
    searched: usize,
}

impl LineReader {
    pub const fn new(longest: usize) -> Self {
        Self { longest, buffer: Vec::new(), start: 0, searched: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line without its end.
    #[allow(clippy::should_implement_trait, reason = "none means that more bytes are needed, not the end")]
    pub fn next(&mut self) -> Option<Result<String, LineError>> {
        let Some(place) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return (self.waiting() > self.longest).then_some(Err(LineError::TooLong));
        };
        let end = self.searched + place;
        let line = self.text(&self.buffer[self.start..end]);
        self.start = end + 1;
        self.searched = self.start;
        Some(line)
    }

    /// What is left when the stream has ended: everything that was not given as a line.
    pub fn rest(&mut self) -> Option<Result<String, LineError>> {
        let rest = self.buffer.split_off(self.start);
        *self = Self::new(self.longest);
        (!rest.is_empty()).then(|| self.text(&rest))
    }

    /// How many bytes are held that were not given yet.
    pub fn waiting(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn text(&self, bytes: &[u8]) -> Result<String, LineError> {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.len() > self.longest {
            return Err(LineError::TooLong);
        }
        String::from_utf8(bytes.to_vec()).map_err(|_| LineError::NotUtf8)
    }
}

/// Name and value of a line of server-sent events. The name of a comment is empty.
pub fn field(line: &str) -> (&str, &str) {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    (name, value.strip_prefix(' ').unwrap_or(value))
}

#[cfg(test)]
#[path = "event_stream_tests.rs"]
mod tests;
