//! How large an answer is in memory.

use trellis_domain::rdf::Term;

/// What a term takes besides its text.
const TERM_BYTES: usize = 48;

/// The size of an answer so far.
#[derive(Debug, Default)]
pub struct Size(usize);

impl Size {
    /// Counts more terms. Whether all of them together take no more than so many bytes.
    pub fn admits<'a>(&mut self, terms: impl IntoIterator<Item = &'a Term>, most: usize) -> bool {
        self.0 += terms.into_iter().map(bytes_of).sum::<usize>();
        self.0 <= most
    }
}

fn bytes_of(term: &Term) -> usize {
    let texts = match term {
        Term::Iri { iri } => iri.len(),
        Term::Blank { id } => id.len(),
        Term::Literal { value, datatype, language } => value.len() + datatype.len() + language.len(),
        Term::Quoted { triple } => bytes_of(&triple.s) + bytes_of(&triple.p) + bytes_of(&triple.o),
    };
    texts + TERM_BYTES
}
