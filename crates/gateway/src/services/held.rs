//! Answers of the graph: how much of them is in memory at a time, for all callers together.
//!
//! A list of quads takes memory until it is written, and in a stream until its reader has read it.

use crate::error::ServiceError;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Semaphore, SemaphorePermit};
use trellis_domain::rdf::{Quad, Term, Triple};
use trellis_orchestrator::ports::Answer;

/// Bytes of all answers together.
static ROOM: Semaphore = Semaphore::const_new(128 << 20);
/// What a term takes besides its text.
const TERM_BYTES: usize = 72;

/// A reply as it is sent. What it was made from is not kept, and takes many times as much.
pub(crate) type Written = Box<RawValue>;

pub(crate) fn written(reply: &impl Serialize) -> Written {
    to_raw_value(reply).expect("replies are always JSON")
}

/// The place that an answer takes until this is dropped.
pub(super) struct Held(#[expect(dead_code, reason = "it only has to be there")] SemaphorePermit<'static>);

/// Takes the place for an answer that is there. Nobody waits for it with an answer in hand.
fn hold(bytes: usize) -> Result<Held, ServiceError> {
    let full =
        || ServiceError::gateway("the server holds as many answers as it can; ask again in a moment, or for less");
    let bytes = u32::try_from(bytes).map_err(|_| full())?;
    ROOM.try_acquire_many(bytes).map(Held).map_err(|_| full())
}

pub(super) fn hold_quads(quads: &[Quad]) -> Result<Held, ServiceError> {
    let graph = |quad: &Quad| quad.g.as_ref().map_or(0, String::len);
    hold(quads.iter().map(|quad| of(&quad.s) + of(&quad.p) + of(&quad.o) + graph(quad)).sum())
}

pub(super) fn hold_answer(answer: &Answer) -> Result<Held, ServiceError> {
    hold(match answer {
        Answer::Rows { rows, .. } => rows.iter().flatten().map(|cell| cell.as_ref().map_or(TERM_BYTES, of)).sum(),
        Answer::Constructed(triples) | Answer::Described(triples) => triples.iter().map(of_triple).sum(),
        Answer::Truth(_) => 0,
    })
}

fn of_triple(triple: &Triple) -> usize {
    of(&triple.s) + of(&triple.p) + of(&triple.o)
}

fn of(term: &Term) -> usize {
    let text = match term {
        Term::Iri { iri } => iri.len(),
        Term::Blank { id } => id.len(),
        Term::Literal { value, datatype, language } => value.len() + datatype.len() + language.len(),
        Term::Quoted { triple } => of_triple(triple),
    };
    text + TERM_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_share_the_room_and_give_it_back() {
        let quad =
            Quad { s: Term::iri("urn:s"), p: Term::iri("urn:p"), o: Term::literal("x".repeat(32 << 20)), g: None };
        let held: Vec<_> = (0..3).map(|_| hold_quads(std::slice::from_ref(&quad)).ok().unwrap()).collect();
        assert!(hold_quads(std::slice::from_ref(&quad)).is_err(), "terms take more than their texts");
        assert!(hold_answer(&Answer::Truth(true)).is_ok(), "small ones find room");
        drop(held);
        let rows = vec![vec![Some(quad.o.clone()), None], vec![Some(quad.o), None]];
        assert!(hold_answer(&Answer::Rows { variables: Vec::new(), rows, truncated: false }).is_ok());
    }
}
