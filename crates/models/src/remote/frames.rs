//! AWS's event streams: binary frames with lengths, headers and checksums. Pure, and bounded whatever a server sends.

use super::lines::LONGEST_LINE;
use serde_json::{Value, json};

/// Two lengths and the checksum of both.
const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;
/// What a header may hold at most, by the protocol.
const LONGEST_HEADERS: usize = 128 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameError {
    /// It is longer than anything that this program knows.
    TooLong,
    /// Lengths, checksums or text are not what they have to be.
    Damaged,
}

/// Cuts a stream of bytes into frames, wherever it is split.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    buffer: Vec<u8>,
    start: usize,
}

impl FrameReader {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether bytes are left that make no whole frame.
    pub(super) fn is_cut(&self) -> bool {
        self.start < self.buffer.len()
    }

    /// The next whole frame, as `{"kind of event": payload}`. None if more bytes are needed.
    pub(super) fn next(&mut self) -> Option<Result<String, FrameError>> {
        let rest = &self.buffer[self.start..];
        let prelude = rest.get(..PRELUDE)?;
        let (total, headers) = (number(prelude) as usize, number(&prelude[4..]) as usize);
        // The lengths are believed only once their checksum is right: nobody waits for a length that is none.
        if checksum(&prelude[..8]) != number(&prelude[8..]) {
            return Some(Err(FrameError::Damaged));
        }
        if total > LONGEST_LINE || headers > LONGEST_HEADERS {
            return Some(Err(FrameError::TooLong));
        }
        if total < PRELUDE + headers + CHECKSUM {
            return Some(Err(FrameError::Damaged));
        }
        let frame = rest.get(..total)?;
        let read = message(frame, headers).ok_or(FrameError::Damaged);
        self.start += total;
        Some(read)
    }
}

fn message(frame: &[u8], headers: usize) -> Option<String> {
    let (content, sum) = frame.split_at(frame.len() - CHECKSUM);
    if checksum(content) != number(sum) {
        return None;
    }
    let (headers, payload) = content[PRELUDE..].split_at(headers);
    let headers = Headers::read(headers)?;
    let payload = std::str::from_utf8(payload).ok()?;
    // A failure of the connection itself has no payload.
    if let Some(code) = headers.error_code {
        return Some(json!({ "error": { "code": code, "message": headers.error_message } }).to_string());
    }
    let kind = Value::from(headers.exception.or(headers.event).unwrap_or_default());
    let payload = if payload.trim().is_empty() { "{}" } else { payload };
    Some(format!("{{{kind}:{payload}}}"))
}

/// The headers that say what a frame is.
#[derive(Debug, Default)]
struct Headers {
    event: Option<String>,
    exception: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
}

impl Headers {
    fn read(mut bytes: &[u8]) -> Option<Self> {
        let mut headers = Self::default();
        while let Some((length, rest)) = bytes.split_first() {
            let (name, rest) = rest.split_at_checked(usize::from(*length))?;
            let (kind, rest) = rest.split_first()?;
            let size = match kind {
                0 | 1 => 0,
                2 => 1,
                3 => 2,
                4 => 4,
                5 | 8 => 8,
                6 | 7 => 2 + usize::from(u16::from_be_bytes(*rest.first_chunk()?)),
                9 => 16,
                _ => return None,
            };
            let (value, rest) = rest.split_at_checked(size)?;
            bytes = rest;
            if *kind == 7 {
                headers.note(name, std::str::from_utf8(&value[2..]).ok()?);
            }
        }
        Some(headers)
    }

    fn note(&mut self, name: &[u8], value: &str) {
        let place = match name {
            b":event-type" => &mut self.event,
            b":exception-type" => &mut self.exception,
            b":error-code" => &mut self.error_code,
            b":error-message" => &mut self.error_message,
            _ => return,
        };
        *place = Some(value.to_owned());
    }
}

/// The first four bytes as a number.
fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// CRC-32 as Ethernet and zip have it.
fn checksum(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |sum: u32, byte: &u8| TABLE[usize::from(sum.to_le_bytes()[0] ^ byte)] ^ (sum >> 8);
    !bytes.iter().fold(!0, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut place: u32 = 0;
    while place < 256 {
        let mut value = place;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[place as usize] = value;
        place += 1;
    }
    table
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
