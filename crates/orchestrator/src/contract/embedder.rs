//! The contract of embedders: a vector belongs to its text, whatever is asked beside it.

use crate::ports::{EmbedError, Embedder, TextRole};

const ROLES: [TextRole; 2] = [TextRole::Question, TextRole::Passage];

/// Checks an embedder whose model is there.
pub async fn suite(embedder: &dyn Embedder) {
    the_model_is_named_with_its_provider(embedder);
    the_same_text_has_the_same_vector(embedder).await;
    together_is_as_one_by_one(embedder).await;
    many_texts_keep_their_order(embedder).await;
    texts_without_words_have_vectors(embedder).await;
    long_texts_have_vectors(embedder).await;
    nothing_asked_is_nothing_answered(embedder).await;
}

/// Checks an embedder whose server refuses everything, saying these words.
pub async fn refused(embedder: &dyn Embedder, words: &str) {
    let error = embedder.embed(texts(&["moss"]), TextRole::Passage).await.expect_err("nothing was made");
    let EmbedError::Permanent { reason } = &error else { panic!("asking again is no use: {error:?}") };
    assert!(reason.contains(words), "it says why: {reason}");
    assert!(reason.contains(provider(embedder)), "and who refused: {reason}");
    assert!(!reason.contains('\n'), "on one line: {reason:?}");
}

fn provider(embedder: &dyn Embedder) -> &str {
    let (provider, _) = embedder.model().split_once('/').expect("a model is named as provider/model");
    provider
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

async fn vectors(embedder: &dyn Embedder, asked: &[&str], role: TextRole) -> Vec<Vec<f32>> {
    let vectors = embedder.embed(texts(asked), role).await.expect("the model is there");
    assert_eq!(vectors.len(), asked.len(), "a vector for each text");
    vectors
}

async fn vector(embedder: &dyn Embedder, text: &str, role: TextRole) -> Vec<f32> {
    vectors(embedder, &[text], role).await.remove(0)
}

/// Models that compute on several processors do not add up in the same order every time.
fn is_same(one: &[f32], other: &[f32]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| (one - other).abs() <= 1e-3 * (1.0 + one.abs()))
}

fn the_model_is_named_with_its_provider(embedder: &dyn Embedder) {
    assert!(!provider(embedder).is_empty(), "{}", embedder.model());
}

async fn the_same_text_has_the_same_vector(embedder: &dyn Embedder) {
    for role in ROLES {
        let first = vector(embedder, "Moss grows on stones.", role).await;
        assert!(first.iter().all(|number| number.is_finite()), "{first:?}");
        assert!(first.iter().any(|number| *number != 0.0), "a vector points somewhere");
        assert!(is_same(&first, &vector(embedder, "Moss grows on stones.", role).await));
        let other = vector(embedder, "The ferry sails at noon.", role).await;
        assert_eq!(other.len(), first.len(), "all vectors are of one length");
        assert!(!is_same(&first, &other), "another text has another vector");
    }
    let question = vector(embedder, "Why is moss green?", TextRole::Question).await;
    let passage = vector(embedder, "Moss is green.", TextRole::Passage).await;
    assert_eq!(question.len(), passage.len(), "questions and passages can be compared");
}

async fn together_is_as_one_by_one(embedder: &dyn Embedder) {
    let asked = ["Moss grows on stones.", "Fern", "Moss grows on stones.", "Über Möwen 🐦", "line\nand \"quote\""];
    for role in ROLES {
        for (text, together) in asked.iter().zip(vectors(embedder, &asked, role).await) {
            assert!(is_same(&together, &vector(embedder, text, role).await), "{text}");
        }
    }
}

/// More than go out in one request.
async fn many_texts_keep_their_order(embedder: &dyn Embedder) {
    let asked: Vec<String> = (0..150).map(|number| format!("Stone number {number} has moss on it.")).collect();
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let all = vectors(embedder, &asked, TextRole::Passage).await;
    for place in [0, 1, 63, 64, 65, 127, 128, 149] {
        let alone = vector(embedder, asked[place], TextRole::Passage).await;
        assert!(is_same(&all[place], &alone), "the vector of text {place} stands in its place");
    }
}

/// One such text among others takes nothing away from them.
async fn texts_without_words_have_vectors(embedder: &dyn Embedder) {
    for role in ROLES {
        let found = vectors(embedder, &["", "Fern", " \n\t"], role).await;
        assert!(found.iter().all(|vector| !vector.is_empty() && vector.len() == found[1].len()));
        assert!(is_same(&found[1], &vector(embedder, "Fern", role).await));
    }
}

/// Whatever their characters are: each of them begins at another byte.
async fn long_texts_have_vectors(embedder: &dyn Embedder) {
    let short = vector(embedder, "Fern", TextRole::Passage).await;
    for begin in ["", "x", "xx", "xxx"] {
        let long = format!("{begin}{}", "🌿".repeat(50_000));
        let found = vectors(embedder, &[long.as_str(), "Fern"], TextRole::Passage).await;
        assert_eq!(found[0].len(), short.len());
        assert!(is_same(&found[1], &short));
    }
}

async fn nothing_asked_is_nothing_answered(embedder: &dyn Embedder) {
    assert!(vectors(embedder, &[], TextRole::Passage).await.is_empty());
}
