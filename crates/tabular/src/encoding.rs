//! Bytes of a file as UTF-8, as they come.

use encoding_rs::{Decoder, DecoderResult, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::io::{self, ErrorKind, Read};

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// How a file's text is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, or UTF-16 if its mark stands in front.
    #[default]
    Unicode,
    /// What older programs write in western Europe and America; every byte means something.
    Windows1252,
}

impl Encoding {
    pub fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "utf-8" | "utf8" | "utf-16" | "unicode" => Some(Self::Unicode),
            "windows-1252" | "cp1252" | "latin1" | "latin-1" | "iso-8859-1" => Some(Self::Windows1252),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Unicode => "utf-8",
            Self::Windows1252 => "windows-1252",
        }
    }
}

/// Reads UTF-8, whatever the file is written in. The mark in front is left out.
pub(crate) struct Decoding {
    reader: Box<dyn Read + Send>,
    decoder: Option<Decoder>,
    encoding: Encoding,
    input: Vec<u8>,
    output: Vec<u8>,
    taken: usize,
    /// Bytes of the file that were decoded.
    at: u64,
    is_over: bool,
    /// What is wrong behind the text that was decoded.
    fault: Option<String>,
}

impl Decoding {
    pub(crate) fn new(reader: Box<dyn Read + Send>, encoding: Encoding) -> Self {
        Self {
            reader,
            decoder: None,
            encoding,
            input: Vec::new(),
            output: Vec::new(),
            taken: 0,
            at: 0,
            is_over: false,
            fault: None,
        }
    }

    /// Reads more, until there is something to decode or nothing comes any more.
    fn fill(&mut self) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        let size = loop {
            match self.reader.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.is_over = size == 0;
        self.input.extend_from_slice(&piece[..size]);
        Ok(())
    }

    /// What the mark in front says.
    fn decoder(&mut self) -> io::Result<Decoder> {
        while self.input.len() < 3 && !self.is_over {
            self.fill()?;
        }
        let (encoding, mark) = match (&self.input[..], self.encoding) {
            ([0xef, 0xbb, 0xbf, ..], _) => (UTF_8, 3),
            ([0xff, 0xfe, ..], Encoding::Unicode) => (UTF_16LE, 2),
            ([0xfe, 0xff, ..], Encoding::Unicode) => (UTF_16BE, 2),
            (_, Encoding::Unicode) => (UTF_8, 0),
            (_, Encoding::Windows1252) => (WINDOWS_1252, 0),
        };
        self.input.drain(..mark);
        self.at = mark as u64;
        Ok(encoding.new_decoder_without_bom_handling())
    }

    fn decode(&mut self) -> io::Result<()> {
        if let Some(fault) = self.fault.take() {
            return Err(io::Error::new(ErrorKind::InvalidData, fault));
        }
        let mut decoder = match self.decoder.take() {
            Some(decoder) => decoder,
            None => self.decoder()?,
        };
        if self.input.is_empty() && !self.is_over {
            self.fill()?;
        }
        let most = decoder.max_utf8_buffer_length_without_replacement(self.input.len()).unwrap_or(4 * PIECE);
        self.output.resize(most, 0);
        self.taken = 0;
        let (result, read, written) =
            decoder.decode_to_utf8_without_replacement(&self.input, &mut self.output, self.is_over);
        self.output.truncate(written);
        self.at += read as u64;
        if let DecoderResult::Malformed(length, more) = result {
            let place = self.at.saturating_sub(u64::from(length) + u64::from(more));
            let what = format!(
                "this is not UTF-8 (byte {place} of the file); convert the file, or say --encoding windows-1252 if an \
                 older program wrote it"
            );
            // What is right in front of it comes first, so that the line is known.
            self.fault = Some(what);
        }
        self.input.drain(..read);
        self.decoder = Some(decoder);
        Ok(())
    }
}

impl Read for Decoding {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.output.len() {
            if self.is_over && self.input.is_empty() && self.decoder.is_some() && self.fault.is_none() {
                return Ok(0);
            }
            self.decode()?;
            if self.is_over && self.input.is_empty() && self.output.is_empty() && self.fault.is_none() {
                return Ok(0);
            }
        }
        let size = out.len().min(self.output.len() - self.taken);
        out[..size].copy_from_slice(&self.output[self.taken..self.taken + size]);
        self.taken += size;
        Ok(size)
    }
}
