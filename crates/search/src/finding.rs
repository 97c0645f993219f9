//! What is found in a collection.

use crate::collection::{Opened, failed};
use crate::schema::StoredPassage;
use crate::vectors::Space;
use std::collections::BTreeMap;
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, BoostQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, Searcher, TERMINATED, Term};
use trellis_orchestrator::documents::{MOST_CANDIDATES, MOST_FOUND, fuse, query_words};
use trellis_orchestrator::ports::{FoundPassage, FoundPassages, IndexedDocument, SearchError, SearchQuery};

/// A passage by its document and number.
type Key = (String, u64);
type Passages = BTreeMap<Key, StoredPassage>;

impl Opened {
    pub(crate) fn find(&self, query: &SearchQuery) -> Result<FoundPassages, SearchError> {
        let limit = query.limit.min(MOST_FOUND);
        if limit == 0 {
            return Ok(FoundPassages::default());
        }
        let most = limit * MOST_CANDIDATES;
        let mut passages = Passages::new();
        let rows = self.rows.read();
        let searcher = self.searcher();
        let by_words = self.by_words(&searcher, &query.text, most)?;
        let by_words = self.ranked(&searcher, by_words, &mut passages)?;
        let (similar, compared) = match &query.vector {
            Some((model, vector)) if !vector.is_empty() => self.by_vector(&searcher, model, vector, most)?,
            Some(_) | None => (Vec::new(), 0),
        };
        drop(rows);
        let by_vector = self.ranked(&searcher, similar, &mut passages)?;
        let best = fuse([by_words, by_vector]).into_iter().take(limit);
        let found = best.filter_map(|(key, score)| {
            let StoredPassage { document, number, passage } = passages.remove(&key)?;
            Some(FoundPassage { document, number, passage, score })
        });
        Ok(FoundPassages { passages: found.collect(), compared })
    }

    fn by_words(&self, searcher: &Searcher, text: &str, most: usize) -> Result<Vec<(f32, DocAddress)>, SearchError> {
        let terms = |word: &str| [self.fields.text, self.fields.above].map(|field| Term::from_field_text(field, word));
        let entries = |word: &str| terms(word).iter().map(|term| searcher.doc_freq(term)).sum();
        let wanted = query_words(text, entries).map_err(failed("searched"))?;
        let any: Vec<Box<dyn Query>> = wanted
            .iter()
            .flat_map(|word| terms(&word.text).map(|term| (term, word.weight)))
            .map(|(term, weight)| {
                let query = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
                Box::new(BoostQuery::new(query, weight)) as Box<dyn Query>
            })
            .collect();
        if any.is_empty() {
            return Ok(Vec::new());
        }
        let best = TopDocs::with_limit(most).order_by_score();
        searcher.search(&BooleanQuery::union(any), &best).map_err(failed("searched"))
    }

    fn by_vector(
        &self,
        searcher: &Searcher,
        model: &str,
        vector: &[f32],
        most: usize,
    ) -> Result<(Vec<(f32, DocAddress)>, u64), SearchError> {
        let space = Space::new(&self.folder, model, vector.len());
        let live = self.live_rows(searcher, space.id)?;
        if live.rows.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let damaged = |error: std::io::Error| {
            let why = format!(
                "the vectors in {} are damaged: {error}; `trellis doctor` says what to do",
                self.folder.display()
            );
            SearchError::Index { doing: "searched", why }
        };
        let nearest = space.nearest(vector, &live.rows, most).map_err(damaged)?;
        let passages = nearest.into_iter().filter_map(|near| Some((near.similarity, live.passage(near.row)?)));
        Ok((passages.collect(), live.rows.len() as u64))
    }

    /// The best first; equals by document and number. The passages themselves are added to those that are known.
    fn ranked(
        &self,
        searcher: &Searcher,
        scored: Vec<(f32, DocAddress)>,
        passages: &mut Passages,
    ) -> Result<Vec<Key>, SearchError> {
        let mut keyed = Vec::with_capacity(scored.len());
        for (score, address) in scored {
            let passage: StoredPassage = self.stored(searcher, address)?;
            let key = (passage.document.id.clone(), passage.number);
            passages.insert(key.clone(), passage);
            keyed.push((score, key));
        }
        keyed.sort_by(|(one, key), (other, other_key)| other.total_cmp(one).then_with(|| key.cmp(other_key)));
        Ok(keyed.into_iter().map(|(_, key)| key).collect())
    }

    fn stored<T: for<'a> serde::Deserialize<'a>>(
        &self,
        searcher: &Searcher,
        address: DocAddress,
    ) -> Result<T, SearchError> {
        self.fields.stored(&searcher.doc(address).map_err(failed("read"))?)
    }

    pub(crate) fn document(&self, id: &str) -> Result<Option<IndexedDocument>, SearchError> {
        let searcher = self.searcher();
        let query = TermQuery::new(self.fields.head_of(id), IndexRecordOption::Basic);
        let found = searcher.search(&query, &TopDocs::with_limit(1).order_by_score()).map_err(failed("searched"))?;
        found.first().map(|(_, address)| self.stored(&searcher, *address)).transpose()
    }

    pub(crate) fn documents(&self, after: Option<&str>, limit: usize) -> Result<Vec<IndexedDocument>, SearchError> {
        let searcher = self.searcher();
        let mut heads: BTreeMap<String, DocAddress> = BTreeMap::new();
        for (segment, _) in (0_u32..).zip(searcher.segment_readers()) {
            self.heads(&searcher, segment, after, limit, &mut heads).map_err(|error| failed("read")(error))?;
        }
        heads.into_values().take(limit).map(|address| self.stored(&searcher, address)).collect()
    }

    /// The first documents of a segment, by id. The ids are sorted there.
    fn heads(
        &self,
        searcher: &Searcher,
        segment: u32,
        after: Option<&str>,
        limit: usize,
        heads: &mut BTreeMap<String, DocAddress>,
    ) -> Result<(), tantivy::TantivyError> {
        let reader = searcher.segment_reader(segment);
        let index = reader.inverted_index(self.fields.head)?;
        let ids = index.terms().range();
        let ids = if let Some(after) = after { ids.gt(after) } else { ids };
        let mut ids = ids.into_stream()?;
        let mut taken = 0;
        while taken < limit && ids.advance() {
            let mut entries = index.read_postings_from_terminfo(ids.value(), IndexRecordOption::Basic)?;
            while entries.doc() != TERMINATED && reader.is_deleted(entries.doc()) {
                entries.advance();
            }
            if entries.doc() != TERMINATED {
                let id = String::from_utf8_lossy(ids.key()).into_owned();
                heads.insert(id, DocAddress::new(segment, entries.doc()));
                taken += 1;
            }
        }
        Ok(())
    }
}
