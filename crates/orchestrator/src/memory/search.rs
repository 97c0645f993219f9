//! A search index in memory.

use crate::documents::{MOST_CANDIDATES, MOST_FOUND, QueryWord, check_documents, fuse, normalised, query_words, words};
use crate::ports::{
    FoundPassage, FoundPassages, IndexedDocument, Search, SearchDocument, SearchError, SearchFuture, SearchQuery,
};
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use trellis_domain::{Collection, Workspace};

type Documents = BTreeMap<String, SearchDocument>;
/// A passage by its document and number.
type Key = (String, u64);

#[derive(Debug, Default)]
pub struct MemorySearch {
    collections: RwLock<BTreeMap<(Workspace, Collection), Documents>>,
}

fn ready<'a, T: Send + 'a>(value: Result<T, SearchError>) -> SearchFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl MemorySearch {
    fn look<T: Default>(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        look: impl FnOnce(&Documents) -> T,
    ) -> T {
        let collections = self.collections.read();
        collections.get(&(workspace.clone(), collection.clone())).map(look).unwrap_or_default()
    }
}

impl Search for MemorySearch {
    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        documents: Vec<SearchDocument>,
    ) -> SearchFuture<'a, ()> {
        let checked = check_documents(&documents);
        if checked.is_ok() {
            let mut collections = self.collections.write();
            let place = collections.entry((workspace.clone(), collection.clone())).or_default();
            place.extend(documents.into_iter().map(|document| (document.info.id.clone(), document)));
        }
        ready(checked)
    }

    fn remove<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        document: &'a str,
    ) -> SearchFuture<'a, bool> {
        let mut collections = self.collections.write();
        let place = collections.get_mut(&(workspace.clone(), collection.clone()));
        ready(Ok(place.is_some_and(|documents| documents.remove(document).is_some())))
    }

    fn remove_collection<'a>(&'a self, workspace: &'a Workspace, collection: &'a Collection) -> SearchFuture<'a, ()> {
        self.collections.write().remove(&(workspace.clone(), collection.clone()));
        ready(Ok(()))
    }

    fn find<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        query: SearchQuery,
    ) -> SearchFuture<'a, FoundPassages> {
        ready(Ok(self.look(workspace, collection, |documents| find(documents, &query))))
    }

    fn document<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        id: &'a str,
    ) -> SearchFuture<'a, Option<IndexedDocument>> {
        ready(Ok(self.look(workspace, collection, |documents| documents.get(id).map(listed))))
    }

    fn documents<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        after: Option<&'a str>,
        limit: usize,
    ) -> SearchFuture<'a, Vec<IndexedDocument>> {
        let is_behind = |id: &String| after.is_none_or(|after| id.as_str() > after);
        let page = |documents: &Documents| {
            let behind = documents.iter().filter(|(id, _)| is_behind(id));
            behind.take(limit).map(|(_, document)| listed(document)).collect()
        };
        ready(Ok(self.look(workspace, collection, page)))
    }
}

fn listed(document: &SearchDocument) -> IndexedDocument {
    IndexedDocument {
        info: document.info.clone(),
        passages: document.passages.len() as u64,
        model: document.vectors.as_ref().map(|vectors| vectors.model.clone()),
    }
}

fn find(documents: &Documents, query: &SearchQuery) -> FoundPassages {
    let limit = query.limit.min(MOST_FOUND);
    let most = limit * MOST_CANDIDATES;
    let by_words = ranked(scores_by_words(documents, &query.text), most);
    let similar = query.vector.as_ref().map(|vector| similarities(documents, vector)).unwrap_or_default();
    let compared = similar.len() as u64;
    let fused = fuse([by_words, ranked(similar, most)]);
    let passages = fused.into_iter().take(limit).map(|((id, number), score)| {
        let document = &documents[&id];
        let passage = document.passages[usize::try_from(number).expect("it is an index")].clone();
        FoundPassage { document: document.info.clone(), number, passage, score }
    });
    FoundPassages { passages: passages.collect(), compared }
}

/// The best first; equals by document and number.
fn ranked(mut scores: Vec<(f64, Key)>, most: usize) -> Vec<Key> {
    scores.sort_by(|(one, key), (other, other_key)| other.total_cmp(one).then_with(|| key.cmp(other_key)));
    scores.into_iter().take(most).map(|(_, key)| key).collect()
}

fn keyed(documents: &Documents) -> impl Iterator<Item = (Key, &SearchDocument, usize)> {
    documents.iter().flat_map(|(id, document)| {
        (0..document.passages.len()).map(move |index| ((id.clone(), index as u64), document, index))
    })
}

/// BM25 with its usual parameters, over passages with their headings and titles.
fn scores_by_words(documents: &Documents, question: &str) -> Vec<(f64, Key)> {
    #[allow(clippy::cast_precision_loss, reason = "these are small")]
    let number = |count: usize| count as f64;
    let of = |text: &str| words(text).map(|word| word.text).collect::<Vec<_>>();
    let passages: Vec<(Key, [Vec<String>; 2])> = keyed(documents)
        .map(|(key, document, index)| {
            let passage = &document.passages[index];
            let above = format!("{} {}", document.info.title, passage.place.headings.join(" "));
            (key, [of(&above), of(&passage.text)])
        })
        .collect();
    let entries = |word: &str| {
        let parts = passages.iter().flat_map(|(_, parts)| parts);
        Ok::<_, Infallible>(parts.filter(|part| part.iter().any(|own| own == word)).count() as u64)
    };
    let Ok(wanted) = query_words(question, entries);
    let passages: Vec<(Key, Vec<String>)> = passages.into_iter().map(|(key, parts)| (key, parts.concat())).collect();
    let average = number(passages.iter().map(|(_, words)| words.len()).sum()) / number(passages.len().max(1));
    let weight = |word: &QueryWord| {
        let having = passages.iter().filter(|(_, words)| words.contains(&word.text)).count();
        f64::from(word.weight) * (1.0 + (number(passages.len()) - number(having) + 0.5) / (number(having) + 0.5)).ln()
    };
    let wanted: Vec<(&String, f64)> = wanted.iter().map(|word| (&word.text, weight(word))).collect();
    let score = |words: &Vec<String>| {
        let has: BTreeSet<&String> = words.iter().collect();
        let present = wanted.iter().filter(|(word, _)| has.contains(*word));
        present
            .map(|(word, weight)| {
                let times = number(words.iter().filter(|found| found == word).count());
                let length = 1.2 * (0.25 + 0.75 * number(words.len()) / average);
                weight * times * 2.2 / (times + length)
            })
            .sum::<f64>()
    };
    let scored = passages.iter().map(|(key, words)| (score(words), key.clone()));
    scored.filter(|(score, _)| *score > 0.0).collect()
}

fn similarities(documents: &Documents, (model, vector): &(String, Vec<f32>)) -> Vec<(f64, Key)> {
    let wanted = normalised(vector);
    let similar = keyed(documents).filter_map(|(key, document, index)| {
        let vectors = document.vectors.as_ref().filter(|vectors| &vectors.model == model)?;
        let own = vectors.vectors.get(index).filter(|own| own.len() == wanted.len())?;
        let product = normalised(own).iter().zip(&wanted).map(|(one, other)| f64::from(one * other)).sum();
        Some((product, key))
    });
    similar.collect()
}
