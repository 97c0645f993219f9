//! The process that has the index, while another one evaluates a query on them.

use crate::overlay::Overlay;
use crate::query::QueryError;
use crate::source::{QuadSource, Source};
use crate::term_id::{canonical_bytes, read_term};
use crate::wire::{Message, Pack, ask, await_greeting, tell};
use crate::worker::Job;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use trellis_domain::rdf::{Quad, Term, Triple};
use trellis_orchestrator::ports::{Answer, GraphError};

/// Quads of a scan's first block, which may be all that is looked at, and of its largest.
const FIRST_BLOCK: usize = 32;
const LARGEST_BLOCK: usize = 2048;
/// Bytes after which a message ends.
const FULL: usize = 256 << 10;
/// Scans that a query may have open.
const MOST_SCANS: usize = 1024;

/// Why a worker gave no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// The query cannot be answered, or not in this way.
    Refused(GraphError),
    /// It is gone, or does not make sense.
    Lost(io::Error),
}

impl<T: Into<QueryError>> From<T> for Unanswered {
    fn from(error: T) -> Self {
        Self::Refused(error.into().into())
    }
}

/// Gives a job to a worker and everything that it asks for, until it has an answer: what a source has, and what is laid
/// over it.
pub fn attend(
    source: &dyn Source,
    overlay: &dyn Overlay,
    job: &Job,
    (from, to): (&mut impl Read, &mut impl Write),
) -> Result<Answer, Unanswered> {
    await_greeting(from).map_err(Unanswered::Lost)?;
    job.pack(&overlay.runs()).send(to).map_err(Unanswered::Lost)?;
    let mut attendant = Attendant { source, overlay, scans: HashMap::new(), answer: None };
    loop {
        let mut asked = Message::receive(from).map_err(Unanswered::Lost)?.ok_or_else(ended)?;
        match asked.byte().ok_or_else(nonsense)? {
            ask::END => return attendant.answer.ok_or_else(nonsense),
            ask::REFUSED => return Err(Unanswered::Refused(refusal(&mut asked).ok_or_else(nonsense)?)),
            ask::PROJECT => {
                let run = asked.text().ok_or_else(nonsense)?;
                project(&overlay.project(&run), to).map_err(Unanswered::Lost)?;
            }
            what => {
                if let Some(reply) = attendant.reply(what, &mut asked)? {
                    reply.send(to).map_err(Unanswered::Lost)?;
                }
            }
        }
    }
}

fn ended() -> Unanswered {
    Unanswered::Lost(io::ErrorKind::UnexpectedEof.into())
}

fn nonsense() -> Unanswered {
    Unanswered::Lost(io::ErrorKind::InvalidData.into())
}

fn refusal(said: &mut Message) -> Option<GraphError> {
    let is_too_large = said.byte()? == 1;
    let why = said.text()?;
    Some(if is_too_large { GraphError::TooLarge(why) } else { GraphError::Query(why) })
}

struct Attendant<'o> {
    source: &'o dyn Source,
    overlay: &'o dyn Overlay,
    /// With the size of their next block.
    scans: HashMap<u64, (QuadSource, usize)>,
    /// As much of it as has come.
    answer: Option<Answer>,
}

impl Attendant<'_> {
    fn reply(&mut self, what: u8, asked: &mut Message) -> Result<Option<Pack>, Unanswered> {
        let mut reply = Pack::new(tell::REPLY);
        match what {
            ask::SCAN => {
                let (number, pattern) = (asked.number().ok_or_else(nonsense)?, asked.pattern().ok_or_else(nonsense)?);
                if self.scans.len() >= MOST_SCANS {
                    return Err(QueryError::TooComplex { what: "patterns at work", max: MOST_SCANS }.into());
                }
                self.block(number, self.source.scan(pattern)?, FIRST_BLOCK, &mut reply)?;
            }
            ask::MORE => {
                let number = asked.number().ok_or_else(nonsense)?;
                let (scan, size) = self.scans.remove(&number).ok_or_else(nonsense)?;
                self.block(number, scan, size, &mut reply)?;
            }
            ask::CLOSE => {
                self.scans.remove(&asked.number().ok_or_else(nonsense)?);
                return Ok(None);
            }
            ask::TERMS => {
                let mut wanted = Vec::new();
                while !asked.is_over() {
                    wanted.push(asked.id().ok_or_else(nonsense)?);
                }
                self.source.expect(&wanted)?;
                // The first one always, others as long as there is room.
                for id in wanted {
                    reply.bytes(&canonical_bytes(&self.source.term(id)?));
                    if reply.len() >= FULL {
                        break;
                    }
                }
            }
            ask::GRAPHS => {
                for graph in self.source.named_graphs()? {
                    reply.id(graph);
                }
            }
            ask::RUN_OF => {
                let run = self.overlay.run_of(&asked.text().ok_or_else(nonsense)?);
                reply.texts(&run);
            }
            ask::RUNS_NAMING => {
                let runs = self.overlay.runs_naming(&asked.text().ok_or_else(nonsense)?);
                reply.texts(&runs);
            }
            ask::ANSWER => {
                self.answer = Some(beginning(asked).ok_or_else(nonsense)?);
                return Ok(None);
            }
            ask::PART => {
                let answer = self.answer.as_mut().ok_or_else(nonsense)?;
                more_of(answer, asked).ok_or_else(nonsense)?;
                return Ok(None);
            }
            _ => return Err(nonsense()),
        }
        Ok(Some(reply))
    }

    fn block(&mut self, number: u64, mut scan: QuadSource, size: usize, reply: &mut Pack) -> Result<(), Unanswered> {
        let quads = scan.by_ref().take(size).collect::<Result<Vec<_>, _>>()?;
        let more = quads.len() == size;
        reply.byte(u8::from(more));
        for quad in &quads {
            reply.quad(quad);
        }
        if more {
            self.scans.insert(number, (scan, (4 * size).min(LARGEST_BLOCK)));
        }
        Ok(())
    }
}

/// A run's quads, in as many messages as it takes.
fn project(quads: &[Quad], to: &mut impl Write) -> io::Result<()> {
    let mut left = quads.iter().peekable();
    loop {
        let mut part = Vec::new();
        let mut size = 0;
        while let Some(quad) = left.next_if(|_| size < FULL) {
            let terms = [&quad.s, &quad.p, &quad.o].map(canonical_bytes);
            size += terms.iter().map(Vec::len).sum::<usize>();
            part.push((terms, quad.g.as_deref().unwrap_or_default()));
        }
        let mut reply = Pack::new(tell::REPLY);
        reply.byte(u8::from(left.peek().is_some()));
        for (terms, graph) in part {
            for term in &terms {
                reply.bytes(term);
            }
            reply.text(graph);
        }
        reply.send(to)?;
        if left.peek().is_none() {
            return Ok(());
        }
    }
}

/// What kind of answer it is: everything but what there may be many of.
const ROWS: u8 = 0;
const TRUTH: u8 = 1;
const CONSTRUCTED: u8 = 2;
const DESCRIBED: u8 = 3;

/// Says an answer, in as many messages as it takes.
pub(crate) fn say(answer: &Answer, mut say: impl FnMut(Pack) -> Result<(), QueryError>) -> Result<(), QueryError> {
    let mut first = Pack::new(ask::ANSWER);
    match answer {
        Answer::Rows { variables, truncated, .. } => {
            first.byte(ROWS);
            first.byte(u8::from(*truncated));
            first.texts(variables);
        }
        Answer::Truth(truth) => {
            first.byte(TRUTH);
            first.byte(u8::from(*truth));
        }
        Answer::Constructed(_) => first.byte(CONSTRUCTED),
        Answer::Described(_) => first.byte(DESCRIBED),
    }
    say(first)?;
    let mut part = Pack::new(ask::PART);
    let mut flush_if = |part: &mut Pack, full: usize| {
        if part.len() < full { Ok(()) } else { say(std::mem::replace(part, Pack::new(ask::PART))) }
    };
    match answer {
        Answer::Rows { rows, .. } => {
            for row in rows {
                for cell in row {
                    part.byte(u8::from(cell.is_some()));
                    if let Some(term) = cell {
                        part.bytes(&canonical_bytes(term));
                    }
                }
                // Also a row without cells is one.
                part.byte(2);
                flush_if(&mut part, FULL)?;
            }
        }
        Answer::Constructed(triples) | Answer::Described(triples) => {
            for triple in triples {
                for term in [&triple.s, &triple.p, &triple.o] {
                    part.bytes(&canonical_bytes(term));
                }
                flush_if(&mut part, FULL)?;
            }
        }
        Answer::Truth(_) => {}
    }
    flush_if(&mut part, 0)?;
    say(Pack::new(ask::END))
}

fn beginning(said: &mut Message) -> Option<Answer> {
    Some(match said.byte()? {
        ROWS => {
            let (truncated, mut variables) = (said.byte()? == 1, Vec::new());
            while !said.is_over() {
                variables.push(said.text()?);
            }
            Answer::Rows { variables, rows: Vec::new(), truncated }
        }
        TRUTH => Answer::Truth(said.byte()? == 1),
        CONSTRUCTED => Answer::Constructed(Vec::new()),
        DESCRIBED => Answer::Described(Vec::new()),
        _ => return None,
    })
}

fn more_of(answer: &mut Answer, said: &mut Message) -> Option<()> {
    fn term(said: &mut Message) -> Option<Term> {
        read_term(said.bytes()?)
    }
    while !said.is_over() {
        match answer {
            Answer::Rows { variables, rows, .. } => {
                let mut row = Vec::with_capacity(variables.len());
                loop {
                    match said.byte()? {
                        0 => row.push(None),
                        1 => row.push(Some(term(said)?)),
                        _ => break,
                    }
                }
                rows.push(row);
            }
            Answer::Constructed(triples) | Answer::Described(triples) => {
                triples.push(Triple { s: term(said)?, p: term(said)?, o: term(said)? });
            }
            Answer::Truth(_) => return None,
        }
    }
    Some(())
}
