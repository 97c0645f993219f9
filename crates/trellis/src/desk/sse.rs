//! Server-sent events out of a stream of bytes. Pure, and bounded whatever a server sends.

/// More than any record has.
const LARGEST: usize = 64 << 20;

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) data: String,
}

/// The stream is none that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    TooLarge,
    NotUtf8,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "an event is larger than any that this program knows",
            Self::NotUtf8 => "an event is not UTF-8",
        })
    }
}

/// Puts events together from pieces that may end anywhere.
#[derive(Debug, Default)]
pub(super) struct Events {
    buffer: Vec<u8>,
    /// Up to where there is no end of line.
    searched: usize,
    event: Event,
    begun: bool,
}

impl Events {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event. An event that a broken connection has cut off is none.
    pub(super) fn next(&mut self) -> Result<Option<Event>, Unreadable> {
        while let Some(place) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + place;
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            self.searched = 0;
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            let line =
                std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).map_err(|_| Unreadable::NotUtf8)?;
            let begun = std::mem::replace(&mut self.begun, true);
            self.line(if begun { line } else { line.trim_start_matches('\u{feff}') });
            if line.is_empty() {
                let mut event = std::mem::take(&mut self.event);
                // Every line of data has left a line break; an event without data is none.
                if event.data.pop().is_some() {
                    return Ok(Some(event));
                }
            }
        }
        self.searched = self.buffer.len();
        if self.buffer.len() + self.event.data.len() > LARGEST { Err(Unreadable::TooLarge) } else { Ok(None) }
    }

    fn line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.event.data.extend([value, "\n"]),
            "event" => value.clone_into(&mut self.event.kind),
            "id" => value.clone_into(&mut self.event.id),
            // Comments keep the connection alive and say nothing.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Event> {
        let (mut events, mut read) = (Events::default(), Vec::new());
        for piece in pieces {
            events.push(piece);
            while let Some(event) = events.next().unwrap() {
                read.push(event);
            }
        }
        read
    }

    fn event(id: &str, kind: &str, data: &str) -> Event {
        Event { id: id.to_owned(), kind: kind.to_owned(), data: data.to_owned() }
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
        let mut events = Events::default();
        events.push(b"data: \xff\n");
        assert_eq!(events.next(), Err(Unreadable::NotUtf8));
        let mut events = Events::default();
        events.push(&vec![b'x'; LARGEST + 1]);
        assert_eq!(events.next(), Err(Unreadable::TooLarge));
    }
}
