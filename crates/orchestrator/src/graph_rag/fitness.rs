//! How well texts fit what a question is about, without a language model: by meaning if vectors can be made, else by words.

use crate::documents::{normalised, words};
use crate::ports::{Embedder, TextRole};
use std::collections::BTreeSet;

/// How well a text fits, and which of the concepts it fits best.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Fit {
    /// From 0 to 1.
    pub(super) score: f64,
    /// None if it has nothing in common with any.
    pub(super) concept: Option<usize>,
}

/// The concepts of a question.
#[derive(Debug)]
pub(super) struct Fitness<'e> {
    words: Vec<BTreeSet<String>>,
    vectors: Option<(&'e dyn Embedder, Vec<Vec<f32>>)>,
}

impl<'e> Fitness<'e> {
    /// A model that fails is done without.
    pub(super) async fn new(concepts: &[String], embedder: Option<&'e dyn Embedder>) -> Self {
        let words = concepts.iter().map(|concept| words_of(concept)).collect();
        let vectors = match embedder {
            Some(embedder) => {
                let made = embedder.embed(concepts.to_vec(), TextRole::Question).await.ok();
                made.map(|made| (embedder, made.iter().map(|vector| normalised(vector)).collect()))
            }
            None => None,
        };
        Self { words, vectors }
    }

    pub(super) async fn of(&self, texts: &[String]) -> Vec<Fit> {
        if let Some((embedder, concepts)) = &self.vectors
            && let Ok(vectors) = embedder.embed(texts.to_vec(), TextRole::Passage).await
            && vectors.len() == texts.len()
        {
            return vectors.iter().map(|vector| nearest(concepts, &normalised(vector))).collect();
        }
        texts.iter().map(|text| self.by_words(text)).collect()
    }

    /// How much of a concept a text says.
    fn by_words(&self, text: &str) -> Fit {
        let said = words_of(text);
        let share =
            |concept: &BTreeSet<String>| count(concept.intersection(&said).count()) / count(concept.len().max(1));
        best(self.words.iter().map(share))
    }
}

fn words_of(text: &str) -> BTreeSet<String> {
    words(text).map(|word| word.text).collect()
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn nearest(concepts: &[Vec<f32>], vector: &[f32]) -> Fit {
    let similarity =
        |concept: &Vec<f32>| concept.iter().zip(vector).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum();
    best(concepts.iter().map(similarity))
}

fn best(scores: impl Iterator<Item = f64>) -> Fit {
    let mut fit = Fit::default();
    for (concept, score) in scores.enumerate() {
        if score > fit.score {
            fit = Fit { score: score.min(1.0), concept: Some(concept) };
        }
    }
    fit
}
