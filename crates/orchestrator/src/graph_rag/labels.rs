//! What terms are called in front of a model.

use super::names::{EntityName, in_words, local_name};
use crate::ports::{Knowledge, KnowledgeError, KnowledgePlace, QuadPattern};
use std::collections::HashMap;
use trellis_domain::rdf::{Quad, Term};
use trellis_provenance::vocabulary::rdfs;

/// Labels of a term that are looked at for one in the right language.
const LOOKED_AT: usize = 10;

/// Labels of one question, each looked up once.
#[derive(Debug)]
pub(super) struct Labels<'k> {
    knowledge: &'k dyn Knowledge,
    place: &'k KnowledgePlace,
    languages: &'k [String],
    known: HashMap<Term, String>,
}

impl<'k> Labels<'k> {
    pub(super) fn new(knowledge: &'k dyn Knowledge, place: &'k KnowledgePlace, languages: &'k [String]) -> Self {
        Self { knowledge, place, languages, known: HashMap::new() }
    }

    /// Names that are known already.
    pub(super) fn learn(&mut self, names: &[EntityName]) {
        for EntityName { iri, name } in names {
            self.known.entry(Term::iri(iri)).or_insert_with(|| name.clone());
        }
    }

    pub(super) async fn of(&mut self, term: &Term) -> Result<String, KnowledgeError> {
        match term {
            Term::Literal { value, .. } => return Ok(value.clone()),
            Term::Quoted { .. } => return Ok(term.to_string()),
            Term::Iri { .. } | Term::Blank { .. } => {}
        }
        if let Some(label) = self.known.get(term) {
            return Ok(label.clone());
        }
        let pattern = QuadPattern { s: Some(term.clone()), p: Some(Term::iri(rdfs::LABEL)), ..QuadPattern::default() };
        let labels = self.knowledge.matching(self.place, &pattern, LOOKED_AT).await?;
        let label = self.best(&labels).unwrap_or_else(|| match term {
            Term::Iri { iri } => in_words(local_name(iri)),
            Term::Blank { .. } | Term::Literal { .. } | Term::Quoted { .. } => "something".to_owned(),
        });
        self.known.insert(term.clone(), label.clone());
        Ok(label)
    }

    /// The first in a wanted language, else one that most can read.
    fn best(&self, labels: &[Quad]) -> Option<String> {
        let read = |quad: &Quad| match &quad.o {
            Term::Literal { value, language, .. } if !value.trim().is_empty() => {
                Some((self.rank(language), value.trim().to_owned()))
            }
            Term::Iri { .. } | Term::Blank { .. } | Term::Literal { .. } | Term::Quoted { .. } => None,
        };
        labels.iter().filter_map(read).min_by_key(|(rank, _)| *rank).map(|(_, label)| label)
    }

    fn rank(&self, language: &str) -> usize {
        let wanted = self.languages.iter().position(|wanted| wanted.eq_ignore_ascii_case(language));
        let is_usual = || language.is_empty() || language.to_ascii_lowercase().starts_with("en");
        wanted.unwrap_or_else(|| self.languages.len() + usize::from(!is_usual()))
    }
}
