//! The rules of searching that do not depend on where passages are kept.

use super::words;
use crate::ports::{SearchDocument, SearchError};
use std::collections::{BTreeSet, HashMap};

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
/// How much of a question is read, and how many different words of it are looked up.
const LONGEST_QUESTION: usize = 64 << 10;
const MOST_LOOKED_UP: usize = 1024;
/// Most words that are looked for. Beyond the first of them only as long as all together have no more than so many entries,
/// which is what a search takes time for.
const MOST_WORDS: usize = 256;
const FIRST_WORDS: usize = 64;
const MOST_ENTRIES: u64 = 2_000_000;

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

/// A word of a question, and how much it counts.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryWord {
    pub text: String,
    /// 1 for a word that is said once. Saying it again counts less and less.
    pub weight: f32,
}

/// The words of a question that say most: those that the fewest passages have. Words that none has are left out.
/// `entries` tells how many entries of the index a word has. Equals come in the order of the question.
pub fn query_words<E>(question: &str, mut entries: impl FnMut(&str) -> Result<u64, E>) -> Result<Vec<QueryWord>, E> {
    let mut known = Vec::new();
    for word in different_words(question) {
        let entries = entries(&word.text)?;
        if entries > 0 {
            known.push((entries, word));
        }
    }
    known.sort_by_key(|(entries, _)| *entries);
    let mut all = 0;
    let few = known.into_iter().take(MOST_WORDS).enumerate().take_while(|(place, (entries, _))| {
        all += entries;
        *place < FIRST_WORDS || all <= MOST_ENTRIES
    });
    Ok(few.map(|(_, (_, word))| word).collect())
}

/// The different words of a question that are looked up, in its order.
pub fn different_words(question: &str) -> Vec<QueryWord> {
    let end = question.floor_char_boundary(LONGEST_QUESTION);
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut counted: Vec<(String, f32)> = Vec::new();
    for word in words(&question[..end]) {
        if let Some(place) = places.get(&word.text) {
            counted[*place].1 += 1.0;
        } else if counted.len() < MOST_LOOKED_UP {
            places.insert(word.text.clone(), counted.len());
            counted.push((word.text, 1.0));
        }
    }
    counted.into_iter().map(|(text, times)| QueryWord { text, weight: 1.0 + times.ln() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn chosen(question: &str, entries: impl Fn(&str) -> u64) -> Vec<String> {
        let Ok(words) = query_words(question, |word| Ok::<_, Infallible>(entries(word)));
        words.into_iter().map(|word| word.text).collect()
    }

    fn numbers(count: usize) -> String {
        (0..count).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_rarest_words_are_looked_for_and_unknown_ones_are_not() {
        let entries = |word: &str| match word {
            "the" => 100,
            "refund" => 3,
            "visa" => 3,
            _ => 0,
        };
        assert_eq!(chosen("The visa, the refund, the zebra", entries), ["visa", "refund", "the"]);
    }

    #[test]
    fn words_that_are_said_again_count_more() {
        let Ok(words) = query_words("card fee card", |_| Ok::<_, Infallible>(1));
        let [card, fee] = &words[..] else { panic!("two words: {words:?}") };
        assert!(card.weight > fee.weight && card.weight < 2.0 * fee.weight, "{words:?}");
        assert!((fee.weight - 1.0).abs() < f32::EPSILON);
    }

    #[test]
    fn words_are_looked_for_and_looked_up_within_bounds() {
        let long = numbers(3000);
        assert_eq!(chosen(&long, |_| 1).len(), MOST_WORDS);
        assert_eq!(chosen(&long, |_| MOST_ENTRIES / 100).len(), 100);
        assert_eq!(chosen(&long, |_| MOST_ENTRIES).len(), FIRST_WORDS);
        let mut looked_up = 0;
        let Ok(_) = query_words(&long, |_| {
            looked_up += 1;
            Ok::<_, Infallible>(1)
        });
        assert_eq!(looked_up, MOST_LOOKED_UP);
    }
}
