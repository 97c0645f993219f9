//! What a parser reads from: the file, within bounds.

use crate::Format;
use crate::nesting::{DEEPEST, Nesting};
use memchr::{memchr, memchr_iter};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes without a single statement: a parser has them in memory.
const SILENCE: u64 = 16 << 20;
/// Objects of JSON-LD are read whole.
const JSON_SILENCE: u64 = 32 << 20;
/// Bytes of a tag, or of a text between tags.
const LONGEST_MARKUP: usize = 1 << 20;
/// Entities of XML are short names for the beginnings of IRIs. One that is made of others grows without end.
const MOST_ENTITIES: usize = 256;
const LONGEST_ENTITY: usize = 512;
/// Attributes between two statements: the parser of XML compares all attributes of a tag with one another, and keeps the
/// namespaces that they declare.
const MOST_ATTRIBUTES: u64 = 2_000;
const ENTITY: &[u8] = b"<!ENTITY";
const BUFFER: usize = 64 << 10;

/// How far a file was read, for whoever reads what comes out of the parser.
#[derive(Debug, Default)]
pub(crate) struct Place {
    lines: AtomicU64,
    /// Bytes since the last statement.
    silent: AtomicU64,
    /// Attributes of XML since then.
    attributes: AtomicU64,
}

impl Place {
    /// The line that was read last, beginning with one.
    pub(crate) fn line(&self) -> u64 {
        self.lines.load(Ordering::Relaxed) + 1
    }

    /// A statement came out.
    pub(crate) fn heard(&self) {
        self.silent.store(0, Ordering::Relaxed);
        self.attributes.store(0, Ordering::Relaxed);
    }
}

pub(crate) struct Guard<R> {
    from: R,
    format: Format,
    place: Arc<Place>,
    nesting: Nesting,
    markup: Markup,
    buffer: Vec<u8>,
    at: usize,
    begun: bool,
}

impl<R: Read> Guard<R> {
    pub(crate) fn new(from: R, format: Format, place: Arc<Place>) -> Self {
        let (nesting, markup, buffer) = (Nesting::new(format), Markup::default(), Vec::new());
        Self { from, format, place, nesting, markup, buffer, at: 0, begun: false }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.resize(BUFFER, 0);
        let read = loop {
            match self.from.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.buffer.truncate(read);
        self.at = 0;
        if !std::mem::replace(&mut self.begun, true) {
            self.check_encoding()?;
        }
        Ok(())
    }

    /// A mark of UTF-8 is skipped, one of another encoding is told.
    fn check_encoding(&mut self) -> io::Result<()> {
        match self.buffer.as_slice() {
            [0xef, 0xbb, 0xbf, ..] => self.at = 3,
            [0xfe, 0xff, ..] | [0xff, 0xfe, ..] => return Err(refused("this is UTF-16; convert it to UTF-8")),
            [0x1f, 0x8b, ..] => return Err(refused("this is compressed (gzip); unpack it first")),
            [b'P', b'K', 3, 4, ..] => return Err(refused("this is a zip archive; unpack it first")),
            _ => {}
        }
        Ok(())
    }

    /// Bounds hold for what the parser is about to get.
    fn check(&mut self, piece: &[u8]) -> io::Result<()> {
        let most = if self.format == Format::JsonLd { JSON_SILENCE } else { SILENCE };
        let silent = self.place.silent.fetch_add(piece.len() as u64, Ordering::Relaxed) + piece.len() as u64;
        if silent > most {
            let advice = if self.format == Format::JsonLd { "; convert it to N-Quads" } else { "" };
            return Err(refused(format!("{} MiB without a statement{advice}", most >> 20)));
        }
        if self.nesting.goes_too_deep(piece) {
            return Err(refused(format!("it is nested more than {DEEPEST} levels deep")));
        }
        if self.format != Format::RdfXml {
            return Ok(());
        }
        let new = self.markup.attributes(piece);
        if self.place.attributes.fetch_add(new, Ordering::Relaxed) + new > MOST_ATTRIBUTES {
            return Err(refused(format!("more than {MOST_ATTRIBUTES} attributes without a statement")));
        }
        self.markup.check(piece)
    }
}

fn refused(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.buffer.len() {
            self.fill()?;
        }
        let left = &self.buffer[self.at..];
        // The parser of XML does not know lines: it gets one at a time, so that it is known which it has.
        let line = if self.format == Format::RdfXml { memchr(b'\n', left) } else { None };
        let size = line.map_or(left.len(), |end| end + 1).min(out.len());
        let piece = &left[..size];
        out[..size].copy_from_slice(piece);
        self.at += size;
        let lines = memchr_iter(b'\n', &out[..size]).count() as u64;
        self.check(&out[..size])?;
        self.place.lines.fetch_add(lines, Ordering::Relaxed);
        Ok(size)
    }
}

/// What the parser of XML has to remember.
#[derive(Default)]
struct Markup {
    /// Bytes since the last tag began or ended.
    length: usize,
    /// How much of the beginning of an entity was seen.
    matched: usize,
    /// Bytes of the entity that is being declared.
    entity: Option<usize>,
    entities: usize,
    /// A `=` was seen, and since then nothing but blanks.
    assigns: bool,
}

impl Markup {
    /// How many values of attributes begin here, wherever they stand: what is within quotes or comments is counted, too,
    /// because whoever wants to be misunderstood can make tags look like either.
    fn attributes(&mut self, piece: &[u8]) -> u64 {
        let mut count = 0;
        for byte in piece {
            match byte {
                b'=' => self.assigns = true,
                b'"' | b'\'' => count += u64::from(std::mem::take(&mut self.assigns)),
                b' ' | b'\t' | b'\r' | b'\n' => {}
                _ => self.assigns = false,
            }
        }
        count
    }

    fn check(&mut self, piece: &[u8]) -> io::Result<()> {
        for byte in piece {
            self.length = if matches!(byte, b'<' | b'>') { 0 } else { self.length + 1 };
            if self.length > LONGEST_MARKUP {
                return Err(refused(format!("a text or tag is longer than {} KiB", LONGEST_MARKUP >> 10)));
            }
            match (&mut self.entity, byte) {
                (Some(_), b'>') => self.entity = None,
                (Some(_), b'&') => return Err(refused("an entity that is made of other entities is not read")),
                (Some(length), _) => {
                    *length += 1;
                    if *length > LONGEST_ENTITY {
                        return Err(refused(format!("an entity is longer than {LONGEST_ENTITY} bytes")));
                    }
                }
                (None, byte) => self.match_entity(*byte)?,
            }
        }
        Ok(())
    }

    fn match_entity(&mut self, byte: u8) -> io::Result<()> {
        let continues = byte == ENTITY[self.matched];
        self.matched = if continues { self.matched + 1 } else { usize::from(byte == ENTITY[0]) };
        if self.matched == ENTITY.len() {
            self.matched = 0;
            self.entity = Some(0);
            self.entities += 1;
            if self.entities > MOST_ENTITIES {
                return Err(refused(format!("there are more than {MOST_ENTITIES} entities")));
            }
        }
        Ok(())
    }
}
