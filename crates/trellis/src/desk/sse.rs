//! Server-sent events out of a stream of bytes. Pure, and bounded whatever a server sends.

use trellis_domain::event_stream::{LineError, LineReader, field};

/// More than any record has.
const LARGEST: usize = 64 << 20;

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServerEvent {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) data: String,
}

/// Puts events together from pieces that may end anywhere.
#[derive(Debug)]
pub(super) struct Events {
    lines: LineReader,
    event: ServerEvent,
    begun: bool,
}

impl Events {
    pub(super) fn new() -> Self {
        Self { lines: LineReader::new(LARGEST), event: ServerEvent::default(), begun: false }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// The next whole event. An event that a broken connection has cut off is none.
    pub(super) fn next(&mut self) -> Result<Option<ServerEvent>, LineError> {
        while let Some(line) = self.lines.next().transpose()? {
            let begun = std::mem::replace(&mut self.begun, true);
            self.line(if begun { &line } else { line.trim_start_matches('\u{feff}') });
            if line.is_empty() {
                let mut event = std::mem::take(&mut self.event);
                // Every line of data has left a line break; an event without data is none.
                if event.data.pop().is_some() {
                    return Ok(Some(event));
                }
            }
        }
        let held = self.lines.waiting() + self.event.data.len();
        if held > LARGEST { Err(LineError::TooLong) } else { Ok(None) }
    }

    fn line(&mut self, line: &str) {
        match field(line) {
            ("data", value) => self.event.data.extend([value, "\n"]),
            ("event", value) => value.clone_into(&mut self.event.kind),
            ("id", value) => value.clone_into(&mut self.event.id),
            // Comments keep the connection alive and say nothing.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<ServerEvent> {
        let (mut events, mut read) = (Events::new(), Vec::new());
        for piece in pieces {
            events.push(piece);
            while let Some(event) = events.next().unwrap() {
                read.push(event);
            }
        }
        read
    }

    fn event(id: &str, kind: &str, data: &str) -> ServerEvent {
        ServerEvent { id: id.to_owned(), kind: kind.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn events_are_the_same_wherever_their_pieces_end() {
        let text =
            "\u{feff}: hello\r\n\r\nid: 7\r\nevent: record\r\ndata: {\"ä\":\r\ndata: 1}\r\n\r\n:\n\ndata:x\n\nid: 8\n";
        let expected = [event("7", "record", "{\"ä\":\n1}"), event("", "", "x")];
        let bytes = text.as_bytes();
        assert_eq!(read(&[bytes]), expected);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), expected);
        for cut in 0..bytes.len() {
            assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn an_event_that_is_cut_off_is_none() {
        assert_eq!(read(&[b"id: 1\ndata: whole\n\nid: 2\ndata: half"]), [event("1", "", "whole")]);
        assert_eq!(read(&[b"data: half\n"]), []);
    }

    #[test]
    fn what_is_no_text_or_too_much_is_refused() {
        let mut events = Events::new();
        events.push(b"data: \xff\n");
        assert_eq!(events.next(), Err(LineError::NotUtf8));
        let mut events = Events::new();
        events.push(&vec![b'x'; LARGEST + 1]);
        assert_eq!(events.next(), Err(LineError::TooLong));
    }
}
