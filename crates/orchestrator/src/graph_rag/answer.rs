//! A question to a knowledge graph, from its words to its answer.

use super::bounds::GraphQuestion;
use super::edges::Reader;
use super::fitness::Fitness;
use super::hops::{Explored, Kept, Traversal};
use super::labels::Labels;
use super::models::{Asker, LONGEST_STEP, Models, Use};
use super::names::{EntityName, EntityNames, FoundEntities};
use super::sources::{Source, SourcePassage, passages_of, source_passages, sources};
use crate::ports::{
    Knowledge, KnowledgeError, PromptNeed, Prompter, QuadPattern, ReplyContent, ReplySink, SearchError, World,
};
use crate::unheard::Unheard;
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_domain::rdf::Term;
use trellis_domain::record::{Explained, ModelCall};
use trellis_provenance::retrieval::GraphTrace;

/// The prompts that are asked with, besides that for edges.
pub const CONCEPTS: &str = "extract-concepts";
const SYNTHESIS: &str = "kg-synthesis";
/// Concepts of a question, and characters of each.
const MOST_CONCEPTS: usize = 10;
const LONGEST_CONCEPT: usize = 200;
/// Bytes of one part of an edge that the answer is made from, and of all edges together where it is not known what the
/// model can read.
const LONGEST_PART: usize = 2_000;
const MOST_KNOWLEDGE: u64 = 64 << 10;

/// Hears of the steps while they are made, and of the answer while it is written.
pub trait Listener: Send + Sync {
    fn explained(&mut self, told: &Explained);

    /// What hears the answer.
    fn answer(&mut self) -> &mut dyn ReplySink;
}

/// Answers questions from loaded knowledge.
#[derive(Debug, Clone)]
pub struct GraphRag {
    pub knowledge: Arc<dyn Knowledge>,
    pub names: EntityNames,
    pub prompter: Arc<dyn Prompter>,
    pub world: Arc<dyn World>,
}

/// How the text of an answer came about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Written {
    #[default]
    ByModel,
    /// By a model that was stopped at its limit of tokens.
    CutShort,
    /// There was nothing to write it from: it says why.
    FromNothing,
    /// No model could write it, for this reason: it says what was found.
    Unwritten(String),
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GraphAnswer {
    pub text: String,
    pub written: Written,
    /// Question, grounding, exploration, focus, synthesis; nothing if there is nothing to look at.
    pub trace: Vec<Explained>,
    pub calls: Vec<ModelCall>,
    /// Documents that the edges were taken from, as far as that is said.
    pub sources: Vec<Source>,
    /// Passages of documents that say what the edges say.
    pub passages: Vec<SourcePassage>,
}

/// Why a question cannot be answered.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub struct GraphRagError {
    pub reason: String,
    pub calls: Vec<ModelCall>,
}

/// A question while it is answered.
struct Inquiry<'r> {
    rag: &'r GraphRag,
    question: &'r GraphQuestion,
    trace: GraphTrace,
    told: Vec<Explained>,
    models: Models<'r>,
    listener: &'r mut dyn Listener,
}

/// What the index or the store has against it.
struct Failed(String);

impl From<KnowledgeError> for Failed {
    fn from(error: KnowledgeError) -> Self {
        Self(error.to_string())
    }
}

impl From<SearchError> for Failed {
    fn from(error: SearchError) -> Self {
        Self(error.to_string())
    }
}

impl GraphRag {
    /// Answers a question. Whatever models do, there is an answer: only a store that fails is an error.
    pub async fn answer(
        &self,
        question: &GraphQuestion,
        asker: Asker,
        listener: &mut dyn Listener,
    ) -> Result<GraphAnswer, GraphRagError> {
        let models = Models::new(&*self.prompter, asker, &self.world.fresh_id());
        let trace = GraphTrace::new(&question.id);
        let mut inquiry = Inquiry { rag: self, question, trace, told: Vec::new(), models, listener };
        match inquiry.answer().await {
            Ok(answer) => Ok(GraphAnswer { trace: inquiry.told, calls: inquiry.models.calls, ..answer }),
            Err(Failed(reason)) => Err(GraphRagError { reason, calls: inquiry.models.calls }),
        }
    }
}

impl Inquiry<'_> {
    async fn answer(&mut self) -> Result<GraphAnswer, Failed> {
        let GraphQuestion { place, query, parent, document, .. } = self.question;
        let collection = &place.collection;
        if self.rag.knowledge.matching(place, &QuadPattern::default(), 1).await?.is_empty() {
            let text = format!("The collection `{collection}` has no knowledge.");
            return Ok(GraphAnswer { text, written: Written::FromNothing, ..GraphAnswer::default() });
        }
        self.tell(self.trace.question(query, self.rag.world.now(), parent.as_deref()));
        let concepts = self.concepts().await;
        let found = self.entities(&concepts).await?;
        self.tell(self.trace.grounding(&concepts, &self.models.usage_since(0)));
        let before = self.models.calls.len();
        let explored = self.explore(&concepts, &found.entities).await?;
        let entities: Vec<String> = found.entities.iter().map(|entity| entity.iri.clone()).collect();
        self.tell(self.trace.exploration(explored.kept.len(), &entities));
        let mut edges: Vec<_> = explored.kept.iter().map(|kept| kept.edge.clone()).collect();
        for edge in &mut edges {
            edge.passages = passages_of(&*self.rag.knowledge, place, &edge.triple).await?;
        }
        let from = edges.iter().flat_map(|edge| &edge.passages);
        let passages = source_passages(&*self.rag.knowledge, place, from).await?;
        self.tell(self.trace.focus(&edges, &explored.choices, &self.models.usage_since(before)));
        let triples: Vec<_> = edges.into_iter().map(|edge| edge.triple).collect();
        let sources = sources(&*self.rag.knowledge, place, &passages, &triples).await?;
        let before = self.models.calls.len();
        let mut answer = if explored.kept.is_empty() {
            let text = self.nothing(&concepts, &found).await?;
            GraphAnswer { text, written: Written::FromNothing, ..GraphAnswer::default() }
        } else {
            self.write(&explored, &sources).await
        };
        let written = document.as_deref().filter(|_| !answer.text.is_empty());
        self.tell(self.trace.synthesis(written, &self.models.usage_since(before)));
        (answer.sources, answer.passages) = (sources, passages);
        Ok(answer)
    }

    fn tell(&mut self, told: Explained) {
        self.listener.explained(&told);
        self.told.push(told);
    }

    /// What the question is about. If nobody can say, the question itself.
    async fn concepts(&mut self) -> Vec<String> {
        let GraphQuestion { query, concepts, entities, .. } = self.question;
        if !concepts.is_empty() {
            return concepts.iter().take(MOST_CONCEPTS).cloned().collect();
        }
        if !entities.is_empty() {
            return vec![query.clone()];
        }
        let reply = self
            .models
            .ask((CONCEPTS, Use::Step), [("query", json!(query))], None, &mut Unheard::up_to(LONGEST_STEP))
            .await;
        let concepts = reply.map(|reply| listed(&reply.raw)).unwrap_or_default();
        if concepts.is_empty() { vec![query.clone()] } else { concepts }
    }

    async fn entities(&self, concepts: &[String]) -> Result<FoundEntities, Failed> {
        let GraphQuestion { place, entities, bounds, .. } = self.question;
        if entities.is_empty() {
            return Ok(self.rag.names.find(place, concepts, bounds.entities).await?);
        }
        let named = |iri: &String| EntityName { iri: iri.clone(), name: String::new() };
        Ok(FoundEntities { entities: entities.iter().take(bounds.entities).map(named).collect(), words_only: None })
    }

    async fn explore(&mut self, concepts: &[String], entities: &[EntityName]) -> Result<Explored, Failed> {
        let (question, knowledge) = (self.question, &*self.rag.knowledge);
        let mut labels = Labels::new(knowledge, &question.place, &question.languages);
        let named: Vec<_> = entities.iter().filter(|entity| !entity.name.is_empty()).cloned().collect();
        labels.learn(&named);
        let embedder = self.rag.names.embedder.as_deref();
        let mut traversal = Traversal {
            reader: Reader { knowledge, question },
            labels,
            fitness: Fitness::new(concepts, embedder).await,
            concepts,
            models: &mut self.models,
            source: self.trace.exploration_iri(),
        };
        let seeds = entities.iter().map(|entity| Term::iri(&entity.iri)).collect();
        Ok(traversal.explore(seeds).await?)
    }

    /// Why there is nothing to answer from, in words that somebody can act on.
    async fn nothing(&self, concepts: &[String], found: &FoundEntities) -> Result<String, Failed> {
        let GraphQuestion { place, .. } = self.question;
        let collection = &place.collection;
        if !found.entities.is_empty() {
            let names: Vec<&str> = found.entities.iter().take(5).map(|entity| entity.iri.as_str()).collect();
            let names = names.join(", ");
            return Ok(format!("The knowledge in `{collection}` says nothing that helps. Looked around: {names}."));
        }
        if !self.rag.names.knows_any(place).await? {
            return Ok(format!(
                "The entities of the collection `{collection}` are not indexed by name, so that none can be found: it \
                 was loaded before there was such an index. Loading its files again adds it."
            ));
        }
        let words_only = found.words_only.as_ref().map(|why| format!(" Only words were compared, not meaning: {why}."));
        let (concepts, why) = (concepts.join(", "), words_only.unwrap_or_default());
        Ok(format!("Nothing in the knowledge in `{collection}` is called like this: {concepts}.{why}"))
    }

    /// Has the answer written. What nobody writes is told as it was found.
    async fn write(&mut self, explored: &Explored, sources: &[Source]) -> GraphAnswer {
        let id = (SYNTHESIS, Use::Answer);
        let settings = self.models.settings();
        let need = PromptNeed { settings, id: SYNTHESIS, wish: self.models.wish() };
        let room = self.models.prompter().room(need).await;
        let (knowledge, left_out) = shown(&explored.kept, room.unwrap_or(MOST_KNOWLEDGE).min(MOST_KNOWLEDGE));
        let variables = [
            ("query", json!(self.question.query)),
            ("knowledge", Value::Array(knowledge)),
            ("sources", json!(sources)),
        ];
        let reply = self.models.ask(id, variables, None, self.listener.answer()).await;
        let unwritten = match reply {
            Ok(reply) if reply.raw.trim().is_empty() => "the model wrote nothing".to_owned(),
            Ok(reply) => match reply.content {
                ReplyContent::Wrong { reason } => reason,
                ReplyContent::Text | ReplyContent::Object(_) | ReplyContent::List(_) => {
                    let written = if reply.cut_short { Written::CutShort } else { Written::ByModel };
                    return GraphAnswer { text: reply.raw, written, ..GraphAnswer::default() };
                }
            },
            Err(why) => why,
        };
        let mut text = format!("No answer could be written ({unwritten}). This was found:");
        for kept in explored.kept.iter().take(explored.kept.len() - left_out) {
            text.push_str("\n- ");
            text.push_str(&kept.labels.each_ref().map(|label| in_part(label)).join(" | "));
        }
        GraphAnswer { text, written: Written::Unwritten(unwritten), ..GraphAnswer::default() }
    }
}

/// The edges that there is room for, and how many there is none for: those that came last.
fn shown(kept: &[Kept], room: u64) -> (Vec<Value>, usize) {
    let (mut edges, mut bytes) = (Vec::new(), 0);
    for Kept { labels, .. } in kept {
        let [s, p, o] = labels.each_ref().map(|label| in_part(label));
        bytes += (s.len() + p.len() + o.len() + 16) as u64;
        if bytes > room && !edges.is_empty() {
            break;
        }
        edges.push(json!({"s": s, "p": p, "o": o}));
    }
    let left_out = kept.len() - edges.len();
    (edges, left_out)
}

fn in_part(label: &str) -> &str {
    &label[..label.floor_char_boundary(LONGEST_PART)]
}

/// A concept for each line; what lists put in front of them is left out.
fn listed(text: &str) -> Vec<String> {
    let item = |line: &str| {
        let line = line.trim();
        let number = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        let line = line[number..].strip_prefix(['.', ')']).filter(|_| number > 0).unwrap_or(line);
        let line = line.trim().trim_start_matches(['-', '*', '•']).trim().trim_matches(['"', '`', '\'']);
        line.chars().take(LONGEST_CONCEPT).collect::<String>()
    };
    let mut concepts: Vec<String> = Vec::new();
    for concept in text.lines().map(item).filter(|concept| concept.chars().any(char::is_alphanumeric)) {
        if concepts.len() < MOST_CONCEPTS && !concepts.contains(&concept) {
            concepts.push(concept);
        }
    }
    concepts
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
