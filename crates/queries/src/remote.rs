//! The tables as a query's process sees them: through a pipe to the process that has them.
//!
//! A question and its reply cost as much as some twenty reads of the tables. So quads come in blocks, answers to
//! small patterns are remembered, and a term that is asked for brings along those that are likely to be asked for next.

use crate::order::{EncodedQuad, IdPattern};
use crate::overlay::Overlay;
use crate::query::QueryError;
use crate::source::{QuadSource, Source};
use crate::term_id::{TermId, read_term};
use crate::wire::{Message, Pack, ask};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::rc::Rc;
use trellis_domain::rdf::{Quad, Term};

/// Blocks in which neighbours of a term are looked for.
const RECENT_BLOCKS: usize = 8;
/// Terms that are fetched together.
const TERMS_TOGETHER: usize = 256;
/// Patterns that are remembered with their quads, if these came in one block.
const REMEMBERED_PATTERNS: usize = 16_384;
/// Bytes of terms that are remembered.
const REMEMBERED_TERMS: usize = 8 << 20;
/// No node of a run has a longer name.
const LONGEST_IRI: usize = 4096;

/// Both ways to the process that has the tables.
pub(crate) struct ProcessLink {
    from: RefCell<Box<dyn Read>>,
    to: RefCell<Box<dyn Write>>,
    scans: Cell<u64>,
    recent: RefCell<VecDeque<Rc<[EncodedQuad]>>>,
    patterns: RefCell<HashMap<IdPattern, Rc<[EncodedQuad]>>>,
    terms: RefCell<Terms>,
}

#[derive(Default)]
struct Terms {
    known: HashMap<TermId, Term>,
    bytes: usize,
}

/// The other side is gone, or does not make sense; then nobody waits for this query.
fn lost<T>(_: T) -> QueryError {
    QueryError::Cancelled
}

impl ProcessLink {
    pub(crate) fn new(from: Box<dyn Read>, to: Box<dyn Write>) -> Self {
        Self {
            from: RefCell::new(from),
            to: RefCell::new(to),
            scans: Cell::default(),
            recent: RefCell::default(),
            patterns: RefCell::default(),
            terms: RefCell::default(),
        }
    }

    pub(crate) fn say(&self, words: Pack) -> Result<(), QueryError> {
        words.send(&mut *self.to.borrow_mut()).map_err(lost)
    }

    fn hear(&self) -> Result<Message, QueryError> {
        let mut message = Message::receive(&mut *self.from.borrow_mut()).map_err(lost)?.ok_or(QueryError::Cancelled)?;
        // Whatever comes is a reply: the job came first, and nothing else is told.
        message.byte().map(|_| message).ok_or(QueryError::Cancelled)
    }

    fn ask(&self, question: Pack) -> Result<Message, QueryError> {
        self.say(question)?;
        self.hear()
    }

    /// A block of quads, and whether there are more.
    fn block(&self, question: Pack) -> Result<(Rc<[EncodedQuad]>, bool), QueryError> {
        let mut reply = self.ask(question)?;
        let more = reply.byte() == Some(1);
        let mut quads = Vec::new();
        while !reply.is_over() {
            quads.push(reply.quad().ok_or(QueryError::Cancelled)?);
        }
        let quads: Rc<[_]> = quads.into();
        let mut recent = self.recent.borrow_mut();
        if recent.len() == RECENT_BLOCKS {
            recent.pop_front();
        }
        recent.push_back(Rc::clone(&quads));
        Ok((quads, more))
    }

    /// The term and its unknown neighbours: those below it in the same column of a block that came lately.
    fn with_neighbours(&self, id: TermId) -> Vec<TermId> {
        let columns: [fn(&EncodedQuad) -> TermId; 4] = [|quad| quad.s, |quad| quad.o, |quad| quad.p, |quad| quad.g];
        let (recent, terms) = (self.recent.borrow(), self.terms.borrow());
        for block in recent.iter().rev() {
            for column in columns {
                let Some(place) = block.iter().position(|quad| column(quad) == id) else { continue };
                let mut wanted = vec![id];
                for next in block[place..].iter().map(column) {
                    if wanted.len() == TERMS_TOGETHER {
                        break;
                    }
                    if Some(&next) != wanted.last() && next != TermId::DEFAULT_GRAPH && !terms.known.contains_key(&next)
                    {
                        wanted.push(next);
                    }
                }
                return wanted;
            }
        }
        vec![id]
    }

    fn fetch(&self, id: TermId) -> Result<Term, QueryError> {
        let wanted = self.with_neighbours(id);
        let mut question = Pack::new(ask::TERMS);
        for id in &wanted {
            question.id(*id);
        }
        let mut reply = self.ask(question)?;
        let mut terms = self.terms.borrow_mut();
        if terms.bytes > REMEMBERED_TERMS {
            *terms = Terms::default();
        }
        // There may be fewer than were wanted, if they are long.
        for id in wanted {
            let Some(canonical) = reply.bytes() else { break };
            let term = read_term(canonical).ok_or(QueryError::Cancelled)?;
            terms.bytes += canonical.len() + size_of::<(TermId, Term)>();
            terms.known.insert(id, term);
        }
        terms.known.get(&id).cloned().ok_or(QueryError::Cancelled)
    }

    fn texts(&self, question: Pack) -> Result<Vec<String>, QueryError> {
        let mut reply = self.ask(question)?;
        let mut texts = Vec::new();
        while !reply.is_over() {
            texts.push(reply.text().ok_or(QueryError::Cancelled)?);
        }
        Ok(texts)
    }

    fn project(&self, run: &str) -> Result<Vec<Quad>, QueryError> {
        let mut question = Pack::new(ask::PROJECT);
        question.text(run);
        self.say(question)?;
        let mut quads = Vec::new();
        loop {
            let mut part = self.hear()?;
            let more = part.byte() == Some(1);
            while !part.is_over() {
                quads.push(quad(&mut part).ok_or(QueryError::Cancelled)?);
            }
            if !more {
                return Ok(quads);
            }
        }
    }
}

fn quad(part: &mut Message) -> Option<Quad> {
    let mut term = || read_term(part.bytes()?);
    let (s, p, o) = (term()?, term()?, term()?);
    Some(Quad { s, p, o, g: Some(part.text()?).filter(|graph| !graph.is_empty()) })
}

/// The tables behind a link.
pub(crate) struct Remote(pub(crate) Rc<ProcessLink>);

impl Source for Remote {
    fn scan(&self, pattern: IdPattern) -> Result<QuadSource, QueryError> {
        let link = Rc::clone(&self.0);
        if let Some(block) = link.patterns.borrow().get(&pattern) {
            let block = Rc::clone(block);
            return Ok(Box::new(Blocks { link: Rc::clone(&link), number: 0, block, at: 0, more: false }));
        }
        let number = link.scans.replace(link.scans.get() + 1);
        let mut question = Pack::new(ask::SCAN);
        question.number(number);
        question.pattern(&pattern);
        let (block, more) = link.block(question)?;
        if !more {
            let mut patterns = link.patterns.borrow_mut();
            if patterns.len() == REMEMBERED_PATTERNS {
                patterns.clear();
            }
            patterns.insert(pattern, Rc::clone(&block));
        }
        Ok(Box::new(Blocks { link, number, block, at: 0, more }))
    }

    fn term(&self, id: TermId) -> Result<Term, QueryError> {
        if let Some(term) = self.0.terms.borrow().known.get(&id) {
            return Ok(term.clone());
        }
        self.0.fetch(id)
    }

    fn named_graphs(&self) -> Result<Vec<TermId>, QueryError> {
        let mut reply = self.0.ask(Pack::new(ask::GRAPHS))?;
        let mut graphs = Vec::new();
        while !reply.is_over() {
            graphs.push(reply.id().ok_or(QueryError::Cancelled)?);
        }
        Ok(graphs)
    }
}

/// The quads of one scan, block by block.
struct Blocks {
    link: Rc<ProcessLink>,
    number: u64,
    block: Rc<[EncodedQuad]>,
    at: usize,
    more: bool,
}

impl Iterator for Blocks {
    type Item = Result<EncodedQuad, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.block.len() && self.more {
            let mut question = Pack::new(ask::MORE);
            question.number(self.number);
            match self.link.block(question) {
                Ok((block, more)) => (self.block, self.at, self.more) = (block, 0, more),
                Err(error) => return Some(Err(error)),
            }
        }
        let quad = self.block.get(self.at).copied()?;
        self.at += 1;
        Some(Ok(quad))
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        if self.more {
            let mut words = Pack::new(ask::CLOSE);
            words.number(self.number);
            // If the other side is gone, the next question finds out.
            drop(self.link.say(words));
        }
    }
}

/// The runs that the view lacks, behind a link. If that is gone, the next question finds out.
pub(crate) struct RemoteOverlay {
    pub(crate) link: Rc<ProcessLink>,
    pub(crate) runs: Vec<String>,
}

impl RemoteOverlay {
    fn about(&self, what: u8, iri: &str) -> Vec<String> {
        if iri.len() > LONGEST_IRI {
            return Vec::new();
        }
        let mut question = Pack::new(what);
        question.text(iri);
        self.link.texts(question).unwrap_or_default()
    }
}

impl Overlay for RemoteOverlay {
    fn runs(&self) -> Vec<String> {
        self.runs.clone()
    }

    fn run_of(&self, iri: &str) -> Option<String> {
        self.about(ask::RUN_OF, iri).pop()
    }

    fn runs_naming(&self, iri: &str) -> Vec<String> {
        self.about(ask::RUNS_NAMING, iri)
    }

    fn project(&self, run: &str) -> Vec<Quad> {
        self.link.project(run).unwrap_or_default()
    }
}
