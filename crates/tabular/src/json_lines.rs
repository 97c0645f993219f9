//! JSON Lines: an object in each line.

use crate::encoding::Decoding;
use crate::{Fault, LARGEST_RECORD, MOST_COLUMNS, Record};
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader, Read};

pub(crate) struct JsonLines {
    reader: BufReader<Box<Decoding>>,
    line: u64,
}

impl JsonLines {
    pub(crate) fn new(reader: Box<Decoding>) -> Self {
        Self { reader: BufReader::new(reader), line: 0 }
    }

    /// A first line that is no record, and is not counted.
    pub(crate) fn first(&mut self) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        let mut line = self.reader.by_ref().take(LARGEST_RECORD as u64);
        match line.read_until(b'\n', &mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(Fault { line: None, ..Fault::unread(1, &error) }),
        }
    }

    pub(crate) fn next(&mut self) -> Option<Result<Record, Fault>> {
        loop {
            self.line += 1;
            let mut bytes = Vec::new();
            let mut line = self.reader.by_ref().take(LARGEST_RECORD as u64 + 1);
            match line.read_until(b'\n', &mut bytes) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(Err(Fault::unread(self.line, &error))),
            }
            if bytes.len() > LARGEST_RECORD {
                return Some(Err(Fault::new(self.line, "the line is longer than 4 MiB")));
            }
            if !bytes.trim_ascii().is_empty() {
                return Some(self.read(&bytes));
            }
        }
    }

    fn read(&self, bytes: &[u8]) -> Result<Record, Fault> {
        let wrong = |error: serde_json::Error| Fault::new(self.line, format!("this is no JSON object: {error}"));
        let cells: Map<String, Value> = serde_json::from_slice(bytes).map_err(wrong)?;
        if cells.len() > MOST_COLUMNS {
            return Err(Fault::new(self.line, format!("the object has more than {MOST_COLUMNS} members")));
        }
        Ok(Record { line: self.line, cells })
    }
}
