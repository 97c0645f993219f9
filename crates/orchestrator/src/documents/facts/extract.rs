//! A model is asked for the facts of each passage that it has not been asked about, some at a time.

use super::budget::{FactsBudgets, FactsSpending, LoadSpending, UsedUp};
use super::names;
use super::notes::{self, AskedOf, Standing};
use super::reply::{self, Said};
use super::turns::{Room, Turns};
use crate::documents::{Gate, LoadError, Loader};
use crate::ports::{
    BoxFuture, Config, DocumentInfo, KnowledgeError, KnowledgePlace, Passage, PromptCall, PromptError, Prompter,
};
use crate::unheard::Unheard;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::Settings;
use trellis_domain::rdf::Quad;
use trellis_domain::record::FailedAttempt;
use trellis_domain::{Scope, Timestamp, Workspace};

/// The prompt that passages are shown with.
const PROMPT: &str = "extract-facts";
/// Passages that are asked about at once: of one load, of all loads of a workspace, of all.
const AT_ONCE: usize = 4;
const OF_ONE: usize = 4;
const OF_ALL: usize = 12;
/// How long a passage waits for its turn behind those of others, and how long a model may take for it.
const WAITING: Duration = Duration::from_hours(24);
const ASKING: Duration = Duration::from_mins(5);
/// Passages that are written together: each writing waits for the disk, and a process that dies loses what is not
/// written.
const WRITTEN_TOGETHER: usize = 16;
/// Bytes of a reply: who writes more repeats itself.
const LONGEST_REPLY: u64 = 256 << 10;
/// How often it is looked once more whether the document is still there, where that cannot be told. Each look waits for its
/// turn by itself.
const CHECKED_AGAIN: usize = 3;
/// So many calls that fail one after the other mean that nobody is there.
const FAILURES: u64 = 4;

/// Asks for facts.
#[derive(Debug, Clone)]
pub struct Extraction {
    prompter: Arc<dyn Prompter>,
    /// Where the prompt is.
    config: Arc<dyn Config>,
    /// As `provider/name`.
    model: String,
    asking: Gate,
    turns: Turns,
    budgets: FactsBudgets,
    spending: FactsSpending,
}

impl Extraction {
    pub fn new(prompter: Arc<dyn Prompter>, config: Arc<dyn Config>, model: impl Into<String>) -> Self {
        Self {
            prompter,
            config,
            model: model.into(),
            asking: Gate::new(OF_ALL, OF_ONE, WAITING),
            turns: Turns::default(),
            budgets: FactsBudgets::default(),
            spending: FactsSpending::default(),
        }
    }

    /// The same with the operator's budgets, and what is spent of them already.
    #[must_use]
    pub fn within(self, budgets: FactsBudgets, spending: FactsSpending) -> Self {
        Self { budgets, spending, ..self }
    }

    /// Room for a document until its facts are taken; none if others wait already.
    pub(in crate::documents) fn room(&self, workspace: &Workspace) -> Option<Room> {
        self.turns.room(workspace)
    }
}

/// What came of asking about a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractedFacts {
    /// Facts of the passages that were asked about.
    pub facts: u64,
    /// Passages that were asked about. Those that were known from before are not.
    pub asked: u64,
    /// Passages without facts because nobody can read what the model said of them.
    #[serde(default)]
    pub unreadable: u64,
    /// Passages that no model answered for. Loading again asks about them.
    #[serde(default)]
    pub unanswered: u64,
    /// Those of them that nobody was asked about, because the operator's budget was used up.
    #[serde(default)]
    pub over_budget: u64,
    #[serde(default)]
    pub in_token: u64,
    #[serde(default)]
    pub out_token: u64,
}

impl ExtractedFacts {
    /// What came of two documents.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            facts: self.facts + other.facts,
            asked: self.asked + other.asked,
            unreadable: self.unreadable + other.unreadable,
            unanswered: self.unanswered + other.unanswered,
            over_budget: self.over_budget + other.over_budget,
            in_token: self.in_token + other.in_token,
            out_token: self.out_token + other.out_token,
        }
    }
}

/// How many passages of a document are done, of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactsProgress {
    pub done: u64,
    pub passages: u64,
}

/// What facts are taken from.
#[derive(Debug)]
pub(in crate::documents) struct Material {
    pub(in crate::documents) info: DocumentInfo,
    pub(in crate::documents) passages: Vec<Passage>,
    /// Given back with it.
    pub(in crate::documents) _room: Room,
}

impl Material {
    fn passage(&self, number: u64) -> Option<&Passage> {
        self.passages.get(usize::try_from(number).ok()?)
    }
}

/// What came of one passage.
struct Answered {
    number: u64,
    /// An error says why nobody answered.
    said: Result<Heard, Unanswered>,
}

struct Heard {
    /// None if it cannot be read.
    said: Option<Said>,
    asked: AskedOf,
    in_token: u64,
    out_token: u64,
}

enum Unanswered {
    /// Others may be answered.
    Call(String),
    /// Nobody can be asked at all.
    All(String),
    /// Nobody was asked.
    Budget(UsedUp),
}

fn unfinished(reason: impl ToString) -> LoadError {
    LoadError::Facts { reason: reason.to_string() }
}

impl Loader {
    /// Asks about all passages that have not been asked about.
    pub(in crate::documents) fn extract<'a>(
        &'a self,
        extraction: &'a Extraction,
        place: &'a KnowledgePlace,
        material: &'a Material,
    ) -> BoxFuture<'a, Result<ExtractedFacts, LoadError>> {
        Box::pin(self.ask_about(extraction, place, material))
    }

    async fn ask_about(
        &self,
        extraction: &Extraction,
        place: &KnowledgePlace,
        material: &Material,
    ) -> Result<ExtractedFacts, LoadError> {
        let document = names::document_of(&material.info.text);
        let _turn = extraction.turns.begin(place, document).await.ok_or(LoadError::FactsBusy)?;
        let mut work =
            Work { loader: self, place, material, left: 0, batch: Vec::new(), came: ExtractedFacts::default() };
        let left = work.begin().await.map_err(unfinished)?;
        let settings = extraction.config.pin(&place.workspace).await.map_err(unfinished)?;
        let asking = Asking {
            extraction: extraction.clone(),
            settings,
            spending: LoadSpending::new(extraction.budgets, &place.workspace, &extraction.spending),
            scope: Scope { workspace: place.workspace.clone(), ..Scope::default() },
            mark: self.world.fresh_id().chars().filter(char::is_ascii_alphanumeric).take(8).collect(),
        };
        let asking = Arc::new(asking);
        let calls = stream::iter(left).map(|number| {
            let (asking, world) = (Arc::clone(&asking), Arc::clone(&self.world));
            let variables = variables(material, number);
            let graph = names::passage(names::document_of(&material.info.text), number);
            async move { Answered { number, said: asking.ask(variables, &graph, || world.now()).await } }
        });
        let mut answers = calls.buffer_unordered(AT_ONCE);
        let mut in_a_row = 0;
        while let Some(Answered { number, said }) = answers.next().await {
            match said {
                Ok(heard) => {
                    in_a_row = 0;
                    work.take(number, heard);
                    if work.batch.len() >= WRITTEN_TOGETHER {
                        work.write().await?;
                    }
                }
                Err(Unanswered::Budget(used_up)) => work.leave_out(used_up),
                Err(why @ (Unanswered::Call(_) | Unanswered::All(_))) => {
                    in_a_row += 1;
                    work.came.unanswered += 1;
                    let ends = matches!(why, Unanswered::All(_)) || in_a_row >= FAILURES;
                    let (Unanswered::Call(reason) | Unanswered::All(reason)) = &why else { continue };
                    if ends || work.came.asked == 0 && work.came.unanswered == work.left {
                        work.write().await?;
                        return Err(unfinished(reason));
                    }
                }
            }
        }
        work.end().await
    }
}

/// What the calls of one document have in common.
struct Asking {
    extraction: Extraction,
    settings: Arc<Settings>,
    scope: Scope,
    spending: LoadSpending,
    /// Stands in the marks around a passage; nothing that it can know.
    mark: String,
}

impl Asking {
    async fn ask(
        &self,
        mut variables: Map<String, Value>,
        graph: &str,
        now: impl Fn() -> Timestamp + Send,
    ) -> Result<Heard, Unanswered> {
        let Extraction { prompter, model, asking, .. } = &self.extraction;
        let busy = || Unanswered::Call("other documents have been read for a day".to_owned());
        let _turn = asking.enter(&self.scope.workspace).await.ok_or_else(busy)?;
        self.spending.begin_call(now()).map_err(Unanswered::Budget)?;
        let shown: Vec<String> = variables.values().map(Value::to_string).collect();
        variables.insert("mark".to_owned(), json!(self.mark));
        let call = PromptCall {
            scope: self.scope.clone(),
            settings: Arc::clone(&self.settings),
            id: PROMPT.to_owned(),
            variables,
            schema: Some(reply::schema()),
            timeout: Some(ASKING),
            ..PromptCall::default()
        };
        let reply = match prompter.ask(call, &mut Unheard::up_to(LONGEST_REPLY)).await {
            Ok(reply) => reply,
            Err(error) => {
                let why = error.to_string();
                let PromptError::Provider { failures, .. } = error else { return Err(Unanswered::All(why)) };
                // The first of them is counted already.
                self.spending.settle(sent(&failures).saturating_sub(1), 0, now());
                return Err(Unanswered::Call(why));
            }
        };
        let said = reply::read(&reply.content, &reply.raw, graph, &shown.concat());
        let model = reply.prompt.model.clone().unwrap_or_else(|| model.clone());
        let asked = AskedOf { model, template: reply.prompt.template, time: now() };
        let [in_token, out_token] = [reply.in_token, reply.out_token].map(Option::unwrap_or_default);
        self.spending.settle(sent(&reply.failures), in_token.saturating_add(out_token), asked.time);
        Ok(Heard { said, asked, in_token, out_token })
    }
}

/// How many attempts reached a model.
fn sent(failures: &[FailedAttempt]) -> u64 {
    failures.iter().filter(|attempt| attempt.asked.is_some()).count() as u64
}

fn variables(material: &Material, number: u64) -> Map<String, Value> {
    let passage = material.passage(number);
    let (headings, text) = passage.map(|passage| (&passage.place.headings, &passage.text)).unzip();
    let variables = [("title", json!(material.info.title)), ("headings", json!(headings)), ("text", json!(text))];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The facts of one document while they are taken.
struct Work<'l> {
    loader: &'l Loader,
    place: &'l KnowledgePlace,
    material: &'l Material,
    left: u64,
    /// Passages that are not written yet.
    batch: Vec<(u64, Heard)>,
    came: ExtractedFacts,
}

impl Work<'_> {
    fn document(&self) -> &str {
        names::document_of(&self.material.info.text)
    }

    /// Writes what is known of the document, and gives the passages that are to be asked about.
    async fn begin(&mut self) -> Result<Vec<u64>, KnowledgeError> {
        let (knowledge, place, Material { info, passages, .. }) = (&*self.loader.knowledge, self.place, self.material);
        let document = names::document_of(&info.text);
        let mut asked = notes::asked(knowledge, place, document).await?;
        let same = |(number, hash): (&u64, &String)| {
            self.material.passage(*number).is_some_and(|passage| notes::hash_of(passage) == *hash)
        };
        let is_torn = match notes::standing(knowledge, place, document).await? {
            Standing::Leaving => true,
            Standing::Unknown => !asked.is_empty(),
            Standing::Begun => false,
        };
        if is_torn || !asked.iter().all(same) {
            // A removal broke off, or it was split in another way.
            notes::remove(knowledge, place, document, Some(passages.len())).await?;
            asked.clear();
        } else if notes::is_renamed(knowledge, place, info).await? {
            let old = [document.to_owned(), names::outcome(document)];
            knowledge.remove_graphs(place, document, &old).await?;
        } else if notes::has_outcome(knowledge, place, document).await? {
            knowledge.remove_graphs(place, document, &[names::outcome(document)]).await?;
        }
        let mut quads = notes::of_document(document, info);
        quads.push(notes::begin(document, passages.len()));
        knowledge.add(place, document, quads).await?;
        if let Some(by) = &self.loader.by {
            knowledge.note_loader(place, document, by).await?;
        }
        let left: Vec<u64> = (0..passages.len() as u64).filter(|number| !asked.contains_key(number)).collect();
        self.left = left.len() as u64;
        self.tell();
        Ok(left)
    }

    fn tell(&self) {
        let passages = self.material.passages.len() as u64;
        let open = self.left.saturating_sub(self.came.asked + self.came.unanswered);
        (self.loader.progress.0)(FactsProgress { done: passages - open, passages });
    }

    fn take(&mut self, number: u64, heard: Heard) {
        self.came.asked += 1;
        self.came.in_token += heard.in_token;
        self.came.out_token += heard.out_token;
        match &heard.said {
            Some(said) => self.came.facts += said.facts,
            None => self.came.unreadable += 1,
        }
        self.batch.push((number, heard));
        self.tell();
    }

    /// Nobody is asked about a passage: it is left for another load.
    fn leave_out(&mut self, used_up: UsedUp) {
        if self.came.over_budget == 0 {
            let (KnowledgePlace { workspace, collection }, document) = (self.place, &self.material.info.id);
            tracing::warn!(%workspace, %collection, document, ?used_up, "the budget for facts is used up");
        }
        self.came.unanswered += 1;
        self.came.over_budget += 1;
    }

    /// Writes facts, what their entities are called, and only then that they are there. All of it is on disk afterwards.
    async fn write(&mut self) -> Result<(), LoadError> {
        // What nobody wants any more is not written at all, if that can be known.
        self.check_still_there().await?;
        // How many passages there are comes along each time: whoever removes the document meanwhile may have taken it away.
        let begun = || notes::begin(self.document(), self.material.passages.len());
        let (mut facts, mut done) = (vec![begun()], vec![begun()]);
        for (number, heard) in std::mem::take(&mut self.batch) {
            let Some(passage) = self.material.passage(number) else { continue };
            facts.extend(heard.said.into_iter().flat_map(|said| said.quads));
            done.extend(notes::of_passage(&self.material.info, number, passage, &heard.asked));
        }
        if done.len() == 1 {
            return Ok(());
        }
        let kept = self.keep([facts, done]).await;
        self.check_after(kept).await
    }

    async fn keep(&self, batches: impl IntoIterator<Item = Vec<Quad>>) -> Result<(), KnowledgeError> {
        let (knowledge, document) = (&*self.loader.knowledge, self.document());
        for quads in batches {
            knowledge.add(self.place, document, quads).await?;
            knowledge.save(self.place, document).await?;
        }
        Ok(())
    }

    /// Looks at the document once more after something was written, whether that went well or not: whoever has removed it
    /// meanwhile did not see what was written then. What nobody can look at is taken back, and left for another load.
    async fn check_after(&self, written: Result<(), KnowledgeError>) -> Result<(), LoadError> {
        let mut checked = self.check_still_there().await;
        for _ in 0..CHECKED_AGAIN {
            if !matches!(&checked, Err(LoadError::Search(_) | LoadError::Knowledge(_))) {
                break;
            }
            checked = self.check_still_there().await;
        }
        match checked {
            Err(error @ (LoadError::Search(_) | LoadError::Knowledge(_))) => {
                self.take_back().await?;
                Err(unfinished(error))
            }
            checked => checked.and(written.map_err(unfinished)),
        }
    }

    /// Takes all facts of the document away, as who removes it does.
    async fn take_back(&self) -> Result<(), KnowledgeError> {
        // What says how many passages there are may be gone already.
        let passages = Some(self.material.passages.len());
        notes::remove(&*self.loader.knowledge, self.place, self.document(), passages).await.map(drop)
    }

    /// A document that has left or changed meanwhile leaves no facts: whoever removes it removes first what makes this
    /// notice it, and then the facts. The same if somebody has removed what the collection knows.
    async fn check_still_there(&self) -> Result<(), LoadError> {
        let (knowledge, document) = (&*self.loader.knowledge, self.document());
        let KnowledgePlace { workspace, collection } = self.place;
        let found = self.loader.search.document(workspace, collection, &self.material.info.id).await?;
        let is_found = found.is_some_and(|found| names::document_of(&found.info.text) == document);
        if is_found && notes::standing(knowledge, self.place, document).await? == Standing::Begun {
            return Ok(());
        }
        self.take_back().await?;
        let what = if is_found { "its facts were removed meanwhile" } else { "it was changed or removed meanwhile" };
        Err(unfinished(what))
    }

    /// Writes the rest. With all passages answered, the document is not looked at again.
    async fn end(mut self) -> Result<ExtractedFacts, LoadError> {
        self.write().await?;
        let (knowledge, document) = (&*self.loader.knowledge, self.document());
        if self.came.unanswered > 0 {
            let kept = self.keep([notes::outcome(document, &self.came)]).await;
            self.check_after(kept).await?;
        } else {
            let asked = notes::asked(knowledge, self.place, document).await?;
            if asked.len() < self.material.passages.len() {
                return Err(unfinished("some of its facts were removed meanwhile"));
            }
            let complete = notes::complete(document, &self.material.info.hash);
            let mut kept = self.keep([vec![complete]]).await;
            if kept.is_ok() {
                kept = knowledge.finish(self.place, document).await;
            }
            self.check_after(kept).await?;
        }
        Ok(self.came)
    }
}
