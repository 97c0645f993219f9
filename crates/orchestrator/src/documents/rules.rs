//! The rules of searching that do not depend on where passages are kept.

use super::words;
use crate::ports::{SearchDocument, SearchError};
use std::collections::BTreeSet;

/// Most bytes of a passage.
pub const LARGEST_PASSAGE: usize = 16 << 10;
/// Most passages of a document.
pub const MOST_PASSAGES: usize = 50_000;
/// Most passages of a collection: a search looks at the vectors of all of them.
pub const MOST_PASSAGES_OF_COLLECTION: u64 = 1_000_000;
/// Most documents in one call.
pub const MOST_DOCUMENTS_AT_ONCE: usize = 256;
/// Most numbers of a vector.
pub const MOST_DIMENSIONS: usize = 4096;
/// Most passages that are found at once.
pub const MOST_FOUND: usize = 100;
/// How many passages of each ranking are joined, for each that is wanted: one that is good in both may be first in none.
pub const MOST_CANDIDATES: usize = 4;
/// Most bytes of ids, titles and headings.
const LONGEST_NAME: usize = 1000;
const DEEPEST_HEADING: usize = 16;
/// Most different words of a question that are looked for, and how much of it is read for them.
const MOST_WORDS: usize = 64;
const LONGEST_QUESTION: usize = 64 << 10;

/// Whether documents can be kept, all of them.
pub fn check_documents(documents: &[SearchDocument]) -> Result<(), SearchError> {
    let invalid = |what: String| Err(SearchError::Invalid(what));
    if documents.len() > MOST_DOCUMENTS_AT_ONCE {
        return invalid(format!("{} documents at once; give at most {MOST_DOCUMENTS_AT_ONCE}", documents.len()));
    }
    let mut ids = BTreeSet::new();
    for document in documents {
        let id = &document.info.id;
        if !ids.insert(id) {
            return invalid(format!("the document {id} is given twice"));
        }
        check(document).or_else(|what| invalid(format!("the document {id:.100} cannot be searched: {what}")))?;
    }
    Ok(())
}

fn check(document: &SearchDocument) -> Result<(), String> {
    let info = &document.info;
    check_id(&info.id)?;
    if info.title.len() > LONGEST_NAME || info.text.len() > LONGEST_NAME {
        return Err(format!("its title or text id is longer than {LONGEST_NAME} bytes"));
    }
    let count = document.passages.len();
    if count > MOST_PASSAGES {
        return Err(format!("it has {count} passages, at most {MOST_PASSAGES} are kept; split it"));
    }
    for passage in &document.passages {
        let size = passage.text.len();
        if size > LARGEST_PASSAGE {
            return Err(format!("a passage has {size} bytes, at most {LARGEST_PASSAGE} are kept"));
        }
        let headings = &passage.place.headings;
        if headings.len() > DEEPEST_HEADING || headings.iter().any(|heading| heading.len() > LONGEST_NAME) {
            return Err("a passage stands under too many or too long headings".to_owned());
        }
    }
    let Some(vectors) = &document.vectors else { return Ok(()) };
    if vectors.vectors.len() != count {
        return Err(format!("it has {count} passages and {} vectors", vectors.vectors.len()));
    }
    let dimensions = vectors.vectors.first().map_or(1, Vec::len);
    if vectors.model.is_empty() || vectors.model.len() > LONGEST_NAME {
        return Err("its vectors are of no model that can be named".to_owned());
    }
    vectors.vectors.iter().try_for_each(|vector| check_vector(vector, dimensions))
}

fn check_id(id: &str) -> Result<(), String> {
    if id.is_empty() || id.len() > LONGEST_NAME || id.chars().any(char::is_control) {
        return Err("its id is not 1 to 1000 bytes without control characters".to_owned());
    }
    Ok(())
}

fn check_vector(vector: &[f32], dimensions: usize) -> Result<(), String> {
    if vector.is_empty() || vector.len() > MOST_DIMENSIONS || vector.len() != dimensions {
        return Err(format!(
            "a vector has {} numbers; 1 to {MOST_DIMENSIONS}, the same for all, are kept",
            vector.len()
        ));
    }
    if vector.iter().any(|number| !number.is_finite()) {
        return Err("a vector has a number that is none".to_owned());
    }
    Ok(())
}

/// A vector of the same direction and length 1, so that a product of two is their similarity. All zeros stay so.
pub fn normalised(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    #[allow(clippy::cast_possible_truncation, reason = "a part of a length of 1 is small")]
    let part = |number: &f32| if length == 0.0 { 0.0 } else { (f64::from(*number) / length) as f32 };
    vector.iter().map(part).collect()
}

/// The different words of a question, in its order.
pub fn query_words(question: &str) -> Vec<String> {
    let end = question.floor_char_boundary(LONGEST_QUESTION);
    let mut seen = BTreeSet::new();
    let different = words(&question[..end]).map(|word| word.text).filter(|word| seen.insert(word.clone()));
    different.take(MOST_WORDS).collect()
}
