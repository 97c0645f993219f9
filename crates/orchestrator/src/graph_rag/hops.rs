//! From entities to the edges that an answer rests on, hop by hop: what is around, what of it fits, and what follows.

use super::edges::{Reader, Side};
use super::fitness::{Fit, Fitness};
use super::labels::Labels;
use super::models::Models;
use super::scoring::{self, Score, Shown};
use crate::ports::KnowledgeError;
use std::collections::HashSet;
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement, Excluded};
use trellis_domain::rdf::{Term, Triple};
use trellis_provenance::retrieval::KeptEdge;

/// Characters of an edge that are compared and shown, as in TrustGraph's service.
const LONGEST_EDGE: usize = 240;
/// Edges that are kept of a hop for which no model could be asked: without a judge, fewer are better.
const UNJUDGED: usize = 10;

/// Bytes of all edges that are kept, with what is said of them: they are recorded, and told in one piece.
const MOST_KEPT: usize = 256 << 10;

/// An edge with what its parts are called.
#[derive(Debug, Clone)]
struct Candidate {
    triple: Triple,
    labels: Shown,
    fit: Fit,
}

/// An edge that was kept, and how it is shown.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) edge: KeptEdge,
    pub(super) labels: Shown,
}

/// What all hops came to.
#[derive(Debug, Default)]
pub(super) struct Explored {
    pub(super) kept: Vec<Kept>,
    /// One for each hop.
    pub(super) choices: Vec<Decision>,
    bytes: usize,
    /// Edges were left out because there was no room for them.
    is_full: bool,
}

impl Explored {
    /// Whether there is room for an edge. Where there is none for one there is none for those after it, which help less.
    fn takes(&mut self, candidate: &Candidate, score: &Score) -> bool {
        let bytes = candidate.triple.text_bytes() + score.reason.as_ref().map_or(0, String::len);
        self.is_full |= self.bytes + bytes > MOST_KEPT;
        if !self.is_full {
            self.bytes += bytes;
        }
        !self.is_full
    }
}

/// The way through one graph.
pub(super) struct Traversal<'k, 'm, 'p> {
    pub(super) reader: Reader<'k>,
    pub(super) labels: Labels<'k>,
    pub(super) fitness: Fitness<'k>,
    pub(super) concepts: &'k [String],
    pub(super) models: &'m mut Models<'p>,
    /// Where the options of each choice come from.
    pub(super) source: String,
}

impl Traversal<'_, '_, '_> {
    pub(super) async fn explore(&mut self, seeds: Vec<Term>) -> Result<Explored, KnowledgeError> {
        let question = self.reader.question;
        let first = question.steps.first().map(|step| step.types.as_slice()).unwrap_or_default();
        let mut frontier = self.reader.of_types(seeds, first).await?;
        let (mut visited, mut seen) = (HashSet::new(), HashSet::new());
        let mut explored = Explored::default();
        for hop in 1..=question.bounds.path {
            let step = question.steps.get(hop);
            visited.extend(frontier.iter().cloned());
            let around = self.reader.around(&frontier, step, &mut seen).await?;
            if around.edges.is_empty() {
                break;
            }
            let candidates = self.candidates(around.edges).await?;
            let room = question.bounds.subgraph.saturating_sub(explored.kept.len());
            let kept = self.keep(candidates, (room, around.cut), &mut explored).await;
            let ends = kept.iter().flat_map(|kept| [&kept.edge.triple.s, &kept.edge.triple.o]);
            let mut next: Vec<Term> = Vec::new();
            for end in ends.filter(|end| matches!(end, Term::Iri { .. } | Term::Blank { .. })) {
                if visited.insert(end.clone()) {
                    next.push(end.clone());
                }
            }
            explored.kept.extend(kept);
            frontier = self.reader.of_types(next, step.map(|step| step.types.as_slice()).unwrap_or_default()).await?;
            if frontier.is_empty() || explored.is_full || explored.kept.len() >= question.bounds.subgraph {
                break;
            }
        }
        Ok(explored)
    }

    /// The edges with their labels, those that fit best first.
    async fn candidates(&mut self, edges: Vec<(Triple, Side)>) -> Result<Vec<Candidate>, KnowledgeError> {
        let (mut shown, mut news) = (Vec::with_capacity(edges.len()), Vec::with_capacity(edges.len()));
        for (triple, side) in &edges {
            let labels =
                [self.labels.of(&triple.s).await?, self.labels.of(&triple.p).await?, self.labels.of(&triple.o).await?];
            // What is new, seen from the entity that is known.
            let [s, p, o] = &labels;
            let text = match side {
                Side::Subject => format!("{p} {o}"),
                Side::Property => format!("{s} {o}"),
                Side::Object => format!("{s} {p}"),
            };
            news.push(text.chars().take(LONGEST_EDGE).collect());
            shown.push(labels);
        }
        let fits = self.fitness.of(&news).await;
        let all = edges.into_iter().zip(shown).zip(fits);
        let mut candidates: Vec<_> =
            all.map(|(((triple, _), labels), fit)| Candidate { triple, labels, fit }).collect();
        // Stable: in the order of the store among equals.
        candidates.sort_by(|one, other| other.fit.score.total_cmp(&one.fit.score));
        Ok(candidates)
    }

    /// Those that a model finds to help. The choice is told with everything that it could have been.
    async fn keep(
        &mut self,
        mut candidates: Vec<Candidate>,
        (room, cut): (usize, usize),
        explored: &mut Explored,
    ) -> Vec<Kept> {
        let bounds = self.reader.question.bounds;
        let left_out = candidates.len().saturating_sub(bounds.scored);
        candidates.truncate(bounds.scored);
        let shown: Vec<Shown> = candidates.iter().map(|candidate| in_short(&candidate.labels)).collect();
        let options = shown.iter().enumerate().map(|(at, edge)| format!("{}: {}", scoring::id(at), edge.join(" | ")));
        let version = self.models.settings().version;
        let mut decision = Decision::offered(DecisionKind::Edges, options.collect(), self.source.clone(), version);
        if left_out > 0 {
            let reason = "they fit the question less, by words or meaning".to_owned();
            decision.excluded.push(Excluded { name: format!("{left_out} other edges"), reason });
        }
        if cut > 0 {
            let reason = format!("only the first {} of each direction are looked at", bounds.triples);
            decision.excluded.push(Excluded { name: format!("more edges of {cut} entities"), reason });
        }
        let query = &self.reader.question.query;
        let judged = scoring::scores(self.models, query, self.concepts, &shown).await;
        let mut scores = if let Ok((scores, enforcement)) = judged {
            decision.enforcement = enforcement;
            scores
        } else {
            // The call is on record, with what went wrong.
            (decision.decided_by, decision.enforcement) = (DecidedBy::Fallback, Enforcement::None);
            by_fit(&candidates)
        };
        scores.truncate(bounds.edges.min(room));
        let before = scores.len();
        scores.retain(|score| explored.takes(&candidates[score.edge], score));
        if scores.len() < before {
            let reason = format!("all edges together have more than {} KiB", MOST_KEPT >> 10);
            let name = format!("{} edges that would have been chosen", before - scores.len());
            decision.excluded.push(Excluded { name, reason });
        }
        let choice = explored.choices.len();
        decision.chosen = scores.iter().map(|score| decision.options[score.edge].clone()).collect();
        explored.choices.push(decision);
        scores.into_iter().map(|score| self.kept(&candidates[score.edge], score, choice)).collect()
    }

    fn kept(&self, candidate: &Candidate, score: Score, choice: usize) -> Kept {
        let Candidate { triple, labels, fit } = candidate.clone();
        let concept = fit.concept.and_then(|concept| self.concepts.get(concept).cloned());
        Kept {
            edge: KeptEdge {
                triple,
                concept,
                score: score.points,
                reasoning: score.reason,
                choice,
                passages: Vec::new(),
            },
            labels,
        }
    }
}

/// Without a model: those that have something in common with the question.
fn by_fit(candidates: &[Candidate]) -> Vec<Score> {
    let fitting = candidates.iter().enumerate().filter(|(_, candidate)| candidate.fit.concept.is_some());
    let score = |(edge, candidate): (usize, &Candidate)| Score { edge, points: candidate.fit.score, reason: None };
    fitting.take(UNJUDGED).map(score).collect()
}

/// Each part of an edge gets its share of what is shown.
fn in_short(labels: &Shown) -> Shown {
    labels.each_ref().map(|label| {
        let line = label.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(LONGEST_EDGE / 3) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    })
}
