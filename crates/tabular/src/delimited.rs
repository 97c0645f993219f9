//! Text with delimiters: a first line with the names of columns, and a row in each record. Quotes hold delimiters, ends
//! of lines and doubled quotes.

use crate::encoding::Decoding;
use crate::{Fault, LARGEST_RECORD, MOST_COLUMNS, Record};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use serde_json::Value;
use std::io::{ErrorKind, Read};

const PIECE: usize = 64 << 10;
/// What may stand between columns, the likeliest first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

pub(crate) struct Delimited {
    reader: Box<Decoding>,
    /// None until the first line says it.
    delimiter: Option<u8>,
    parser: Option<Reader>,
    columns: Option<Vec<String>>,
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
    ends: Vec<usize>,
    is_over: bool,
}

impl Delimited {
    pub(crate) fn new(reader: Box<Decoding>, delimiter: Option<u8>) -> Self {
        Self {
            reader,
            delimiter,
            parser: None,
            columns: None,
            input: Vec::new(),
            taken: 0,
            output: vec![0; PIECE],
            ends: vec![0; MOST_COLUMNS + 1],
            is_over: false,
        }
    }

    /// The names in the first line.
    pub(crate) fn columns(&mut self) -> Result<&[String], Fault> {
        if self.columns.is_none() {
            let names = self.fields()?.map(|(_, names)| names).unwrap_or_default();
            check_names(&names)?;
            self.columns = Some(names.into_iter().map(|name| name.trim().to_owned()).collect());
        }
        Ok(self.columns.as_deref().unwrap_or_default())
    }

    pub(crate) fn next(&mut self) -> Option<Result<Record, Fault>> {
        if let Err(fault) = self.columns() {
            return Some(Err(fault));
        }
        let (line, fields) = match self.fields() {
            Ok(found) => found?,
            Err(fault) => return Some(Err(fault)),
        };
        let columns = self.columns.as_deref().unwrap_or_default();
        if fields.len() != columns.len() {
            let (found, named) = (fields.len(), columns.len());
            let what =
                format!("{found} columns where the first line names {named}; is a quote or a delimiter missing?");
            return Some(Err(Fault::new(line, what)));
        }
        let cells = columns.iter().cloned().zip(fields.into_iter().map(Value::String)).collect();
        Some(Ok(Record { line, cells }))
    }

    /// One record and the line that it begins in; None behind the last.
    fn fields(&mut self) -> Result<Option<(u64, Vec<String>)>, Fault> {
        let (mut written, mut ended) = (0, 0);
        if self.parser.is_none() {
            self.begin()?;
        }
        let mut parser = self.parser.take().expect("it has just begun");
        let mut line = None;
        let found = loop {
            if self.taken == self.input.len() && !self.is_over {
                self.fill(parser.line())?;
            }
            let before = parser.line();
            let (result, read, bytes, ends) =
                parser.read_record(&self.input[self.taken..], &mut self.output[written..], &mut self.ends[ended..]);
            // Empty lines in front of a record are none of it.
            let skipped =
                self.input[self.taken..self.taken + read].iter().take_while(|byte| matches!(byte, b'\n' | b'\r'));
            let skipped = skipped.filter(|byte| **byte == b'\n').count() as u64;
            if line.is_none() && (bytes > 0 || ends > 0 || read > 0) {
                line = Some(before + skipped);
            }
            self.taken += read;
            written += bytes;
            ended += ends;
            let begun = line.unwrap_or(before);
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.output.len() >= LARGEST_RECORD => {
                    let what = "a record is longer than 4 MiB; is a quote missing that closes a field?";
                    return Err(Fault::new(begun, what));
                }
                ReadRecordResult::OutputFull => self.output.resize((2 * self.output.len()).min(LARGEST_RECORD), 0),
                ReadRecordResult::OutputEndsFull => {
                    return Err(Fault::new(begun, format!("the record has more than {MOST_COLUMNS} columns")));
                }
                ReadRecordResult::Record => break Some(begun),
                ReadRecordResult::End => break None,
            }
        };
        self.parser = Some(parser);
        let Some(line) = found else { return Ok(None) };
        let mut start = 0;
        let mut fields = Vec::with_capacity(ended);
        for end in &self.ends[..ended] {
            let field = str::from_utf8(&self.output[start..*end]).map_err(|_| Fault::new(line, "this is not UTF-8"))?;
            fields.push(field.to_owned());
            start = *end;
        }
        // What was needed once is not held for ever.
        if self.output.len() > PIECE && written < PIECE {
            self.output = vec![0; PIECE];
        }
        Ok(Some((line, fields)))
    }

    /// Finds out what stands between columns.
    fn begin(&mut self) -> Result<(), Fault> {
        self.fill(1)?;
        let delimiter = self.delimiter.unwrap_or_else(|| likeliest(&self.input));
        self.parser = Some(ReaderBuilder::new().delimiter(delimiter).build());
        Ok(())
    }

    fn fill(&mut self, line: u64) -> Result<(), Fault> {
        self.input.resize(PIECE, 0);
        self.taken = 0;
        let size = loop {
            match self.reader.read(&mut self.input) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::unread(line, &error)),
                Ok(size) => break size,
            }
        };
        self.input.truncate(size);
        self.is_over = size == 0;
        Ok(())
    }
}

/// What stands most often in the first line, outside of quotes.
fn likeliest(input: &[u8]) -> u8 {
    let mut is_quoted = false;
    let mut counts = [0_usize; DELIMITERS.len()];
    for byte in input {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' | b'\r' if !is_quoted => break,
            _ if is_quoted => {}
            byte => {
                if let Some(place) = DELIMITERS.iter().position(|delimiter| delimiter == byte) {
                    counts[place] += 1;
                }
            }
        }
    }
    let most = counts.iter().max().copied().unwrap_or_default();
    let place = counts.iter().position(|count| *count == most && most > 0);
    DELIMITERS[place.unwrap_or_default()]
}

fn check_names(names: &[String]) -> Result<(), Fault> {
    if names.is_empty() {
        return Err(Fault::new(1, "the file is empty; its first line has to name the columns"));
    }
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if name.trim().is_empty() {
            return Err(Fault::new(1, "a column has no name; the first line has to name all of them"));
        }
        if !seen.insert(name.trim()) {
            return Err(Fault::new(1, format!("two columns are called `{name:.100}`")));
        }
    }
    Ok(())
}
