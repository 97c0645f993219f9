//! What a query's process and the process that has the tables say to each other.
//!
//! The worker asks, its owner replies. A message is its length and that many bytes, the first of which says what it
//! is. Both ends are the same program, so there are no versions; the greeting only tells the worker's words from
//! whatever else comes out of a process.

use crate::order::{EncodedQuad, Graphs, IdPattern};
use crate::term_id::TermId;
use std::io::{self, ErrorKind, Read, Write};

/// What a worker says first.
pub(crate) const GREETING: &[u8] = b"\x01trellis query worker\n";
/// How much may come before the greeting.
const NOISE: usize = 4096;
/// No message is longer. The longest carry one row of an answer, or one term.
const LONGEST: usize = 64 << 20;

/// A message that is being put together.
pub(crate) struct Pack(Vec<u8>);

impl Pack {
    pub(crate) fn new(tag: u8) -> Self {
        // Room for the length, so that a message is one write.
        Self(vec![0, 0, 0, 0, tag])
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn id(&mut self, id: TermId) {
        self.0.extend_from_slice(&id.to_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn texts<'a>(&mut self, texts: impl IntoIterator<Item = &'a String>) {
        for text in texts {
            self.text(text);
        }
    }

    pub(crate) fn quad(&mut self, quad: &EncodedQuad) {
        for id in [quad.s, quad.p, quad.o, quad.g] {
            self.id(id);
        }
    }

    pub(crate) fn pattern(&mut self, pattern: &IdPattern) {
        for id in [pattern.s, pattern.p, pattern.o] {
            self.byte(u8::from(id.is_some()));
            if let Some(id) = id {
                self.id(id);
            }
        }
        match pattern.g {
            Graphs::All => self.byte(0),
            Graphs::Named => self.byte(1),
            Graphs::One(graph) => {
                self.byte(2);
                self.id(graph);
            }
        }
    }

    pub(crate) fn send(mut self, to: &mut impl Write) -> io::Result<()> {
        let length = self.0.len() - 4;
        let told = u32::try_from(length).ok().filter(|_| length <= LONGEST);
        let told = told.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "a message is too long"))?;
        self.0[..4].copy_from_slice(&told.to_le_bytes());
        to.write_all(&self.0)?;
        to.flush()
    }
}

/// A message that came; `None` from each of its methods if it ends too early or is not what was expected.
pub(crate) struct Message(Vec<u8>, usize);

impl Message {
    /// The next message; none if the other side has closed.
    pub(crate) fn receive(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut length = [0; 4];
        match from.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(io::Error::new(ErrorKind::InvalidData, "a message is too long"));
        }
        let mut bytes = Vec::new();
        from.take(length as u64).read_to_end(&mut bytes)?;
        Ok((bytes.len() == length).then_some(Self(bytes, 0)))
    }

    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let end = self.1.checked_add(count)?;
        let taken = self.0.get(self.1..end)?;
        self.1 = end;
        Some(taken)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.1 >= self.0.len()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn id(&mut self) -> Option<TermId> {
        Some(TermId::from_bytes(self.take(16)?.try_into().ok()?))
    }

    pub(crate) fn bytes(&mut self) -> Option<&[u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    pub(crate) fn quad(&mut self) -> Option<EncodedQuad> {
        Some(EncodedQuad { s: self.id()?, p: self.id()?, o: self.id()?, g: self.id()? })
    }

    pub(crate) fn pattern(&mut self) -> Option<IdPattern> {
        let mut ids = [None; 3];
        for id in &mut ids {
            if self.byte()? == 1 {
                *id = Some(self.id()?);
            }
        }
        let g = match self.byte()? {
            0 => Graphs::All,
            1 => Graphs::Named,
            2 => Graphs::One(self.id()?),
            _ => return None,
        };
        Some(IdPattern { s: ids[0], p: ids[1], o: ids[2], g })
    }
}

/// Reads up to the end of the greeting.
pub(crate) fn await_greeting(from: &mut impl Read) -> io::Result<()> {
    let (mut received, mut byte) = (Vec::new(), [0]);
    while !received.ends_with(GREETING) {
        if received.len() == NOISE {
            return Err(io::Error::new(ErrorKind::InvalidData, "this is not a query worker"));
        }
        from.read_exact(&mut byte)?;
        received.push(byte[0]);
    }
    Ok(())
}

/// What a worker asks and says.
pub(crate) mod ask {
    pub(crate) const SCAN: u8 = 1;
    pub(crate) const MORE: u8 = 2;
    pub(crate) const CLOSE: u8 = 3;
    pub(crate) const TERMS: u8 = 4;
    pub(crate) const GRAPHS: u8 = 5;
    pub(crate) const RUN_OF: u8 = 6;
    pub(crate) const RUNS_NAMING: u8 = 7;
    pub(crate) const PROJECT: u8 = 8;
    pub(crate) const ANSWER: u8 = 9;
    pub(crate) const PART: u8 = 10;
    pub(crate) const END: u8 = 11;
    pub(crate) const REFUSED: u8 = 12;
}

/// What its owner says.
pub(crate) mod tell {
    pub(crate) const JOB: u8 = 1;
    pub(crate) const REPLY: u8 = 2;
}
