//! Requests to agents out of a flow's queue: each is accepted, noted and only then acknowledged.

use super::broker::{Heard, Letter, Received, Taking};
use super::flow::{NEXT, REQUEST, RunningFlow};
use super::promises::{OpenDialog, StrayEnd};
use super::telling::Teller;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::{AgentRequest, AgentStep, PlanStep, StepStatus};
use trellis_domain::request::fingerprint;
use trellis_domain::{Caller, Hash, RequestId, RunId, Selection, SessionId, Surface};
use trellis_orchestrator::accept::UnknownNames;
use trellis_orchestrator::{AcceptError, Question};
use trellis_patterns::plan::Plan;
use trellis_patterns::react::React;
use trellis_patterns::supervisor::Supervisor;
use trellis_patterns::taken_up::{check_findings, check_plan, is_done, newest_plan};
use trellis_patterns::wire::{WireTurn, is_subagent, step_type, turn_of};

/// So often the end of somebody else's subagent goes round in a pool, for about a quarter of an hour: whoever waits for it may
/// be at work with a model, and the original takes nothing meanwhile.
const MOST_ROUNDS: u32 = 230;
/// So many ends of others are kept.
const MOST_STRAYS: usize = 1_000;
/// How long a request that cannot be taken now is left alone, and how long there may be no place for the next.
const AGAIN: Duration = Duration::from_secs(1);
/// So often it is looked for dialogs that nobody tells.
const LOOK: Duration = Duration::from_secs(5);

/// Takes requests of all flows.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) teller: Teller,
    /// The name that all processes of a pool share.
    pub(crate) id: String,
    pub(crate) limits: SomeLimits,
    /// How many dialogs of a flow are open at once.
    pub(crate) dialogs_per_flow: usize,
    /// Those that are being told.
    telling: Mutex<BTreeSet<(RunId, String)>>,
    /// Ends of others that are kept: id of the message, session, correlation and round.
    strays: Mutex<BTreeSet<(String, String, String, u32)>>,
    tasks: Mutex<JoinSet<()>>,
}

/// How long an end of others is kept before it is handed on again: longer each time, up to some seconds.
fn pause(rounds: u32) -> Duration {
    (AGAIN / 4).saturating_mul(1 << rounds.min(4))
}

/// A request as a question of ours.
#[derive(Debug, PartialEq)]
struct Taken {
    request: AgentRequest,
    follows: Option<String>,
    subagent: Option<AgentRequest>,
}

impl Requests {
    pub(crate) fn new(teller: Teller, id: String, limits: SomeLimits, dialogs_per_flow: usize) -> Self {
        let (telling, strays, tasks) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { teller, id, limits, dialogs_per_flow, telling, strays, tasks }
    }

    /// Serves a flow until it is stopped. Dialogs that are open then are told to their end.
    pub(crate) async fn serve(self: Arc<Self>, flow: Arc<RunningFlow>, stopped: watch::Receiver<bool>) {
        tokio::join!(self.take_requests(&flow, stopped.clone()), self.take_over(&flow, stopped));
    }

    /// Goes on with what other processes have left, again and again.
    async fn take_over(self: &Arc<Self>, flow: &Arc<RunningFlow>, mut stopped: watch::Receiver<bool>) {
        loop {
            self.left(OpenDialog::KIND, flow).await.into_iter().for_each(|dialog| self.go_on(flow, dialog, None));
            self.left(StrayEnd::KIND, flow).await.into_iter().for_each(|end| self.send_on(flow, end));
            tokio::select! {
                biased;
                () = told_to_stop(&mut stopped) => return,
                () = self.teller.broker.world().sleep(LOOK) => {}
            }
        }
    }

    /// What nobody holds of a kind.
    async fn left<P: DeserializeOwned>(&self, kind: &'static str, flow: &RunningFlow) -> Vec<P> {
        let texts = self.teller.notes.take_over(kind, &flow.scope).await.unwrap_or_else(|error| {
            tracing::warn!(%error, kind, "what other processes left cannot be read; it is tried again");
            Vec::new()
        });
        let read = |text: &String| serde_json::from_str(text);
        let unreadable = |error: &serde_json::Error| tracing::error!(%error, kind, "a note cannot be read");
        texts.iter().filter_map(|text| read(text).inspect_err(unreadable).ok()).collect()
    }

    async fn take_requests(self: &Arc<Self>, flow: &Arc<RunningFlow>, mut stopped: watch::Receiver<bool>) {
        let places = Arc::new(Semaphore::new(self.dialogs_per_flow));
        let (workspace, name) = (&flow.scope.workspace, &flow.scope.flow);
        let subscription = format!("{}--{workspace}--{name}--request", self.id);
        let taking = Taking::Shared { subscription };
        let mut listening = None;
        loop {
            let Some(place) = self.place(&places, &mut listening, &mut stopped).await else { return };
            let heard =
                listening.get_or_insert_with(|| self.teller.broker.listen(flow.topics.needed(REQUEST), &taking));
            let received = tokio::select! {
                biased;
                () = told_to_stop(&mut stopped) => return,
                heard = heard.recv() => match heard {
                    Some(Heard::Message(received)) => received,
                    Some(Heard::Listening | Heard::Lost) => continue,
                    None => return,
                },
            };
            self.take(flow, received, place).await;
        }
    }

    /// A place for one more dialog, before a request is taken for it. While there has been none for a while, nobody listens:
    /// the broker would hand out a request that others may have a place for. None if nothing more is to be taken.
    async fn place(
        &self,
        places: &Arc<Semaphore>,
        listening: &mut Option<mpsc::Receiver<Heard>>,
        stopped: &mut watch::Receiver<bool>,
    ) -> Option<OwnedSemaphorePermit> {
        let mut free = std::pin::pin!(Arc::clone(places).acquire_owned());
        loop {
            tokio::select! {
                biased;
                place = &mut free => return place.ok(),
                () = told_to_stop(stopped) => return None,
                () = self.teller.broker.world().sleep(AGAIN), if listening.is_some() => *listening = None,
            }
        }
    }

    async fn take(self: &Arc<Self>, flow: &Arc<RunningFlow>, received: Received, place: OwnedSemaphorePermit) {
        let id = received.id.clone().unwrap_or_else(|| "unknown".to_owned());
        let request = match serde_json::from_slice::<AgentRequest>(&received.body) {
            Ok(request) => request,
            Err(error) => {
                tracing::warn!(id, %error, "a message is no request to an agent");
                self.teller.refuse(flow, &id, "", &format!("this is no request to an agent: {error}")).await;
                received.acknowledge().await;
                return;
            }
        };
        if let WireTurn::Completion { correlation, .. } = turn_of(&request) {
            return self.hand_on(flow, &received, &id, request, &correlation).await;
        }
        let session = request.session_id.clone();
        match self.accept(flow, &received, &id, request).await {
            Ok(dialog) => {
                received.acknowledge().await;
                if let Some(dialog) = dialog {
                    self.go_on(flow, dialog, Some(place));
                }
            }
            Err(Refused::Now(reason)) => {
                tracing::warn!(id, reason, "a request cannot be taken now");
                self.teller.broker.world().sleep(AGAIN).await;
                received.give_back().await;
            }
            Err(Refused::Ever(reason)) => {
                self.teller.refuse(flow, &id, &session, &reason).await;
                received.acknowledge().await;
            }
        }
    }

    /// The end of a subagent that was not sent out here: the supervisor that waits for it is in another process of the pool,
    /// and may be at work. It is kept, so that nothing else waits for it.
    async fn hand_on(
        self: &Arc<Self>,
        flow: &Arc<RunningFlow>,
        received: &Received,
        id: &str,
        request: AgentRequest,
        correlation: &str,
    ) {
        if received.handed_on >= MOST_ROUNDS {
            let session = &request.session_id;
            tracing::warn!(session, correlation, "nobody waits for this end of a subagent; it is dropped");
            received.acknowledge().await;
            return;
        }
        let end = StrayEnd { scope: flow.scope.clone(), id: id.to_owned(), request, rounds: received.handed_on };
        let kept = if self.strays.lock().len() < MOST_STRAYS {
            // One that is there is on its way already.
            self.teller.notes.begin(&end.note()).await.map_err(|error| error.to_string())
        } else {
            Err(format!("{MOST_STRAYS} of them are kept already"))
        };
        match kept {
            Ok(is_new) => {
                received.acknowledge().await;
                if is_new {
                    self.send_on(flow, end);
                }
            }
            Err(reason) => {
                tracing::warn!(correlation, reason, "the end of somebody else's subagent cannot be kept");
                self.teller.broker.world().sleep(AGAIN).await;
                received.give_back().await;
            }
        }
    }

    /// Gives an end back to the pool, after a while.
    fn send_on(self: &Arc<Self>, flow: &Arc<RunningFlow>, end: StrayEnd) {
        let AgentRequest { session_id, correlation_id, .. } = &end.request;
        let key = (end.id.clone(), session_id.clone(), correlation_id.clone(), end.rounds);
        if !self.strays.lock().insert(key.clone()) {
            return;
        }
        let (requests, flow) = (Arc::clone(self), Arc::clone(flow));
        self.spawn(async move {
            let Teller { broker, notes, .. } = &requests.teller;
            broker.world().sleep(pause(end.rounds)).await;
            let body = trellis_domain::broker::request(&end.request).to_string();
            let topic = flow.topics.get(NEXT).unwrap_or_else(|| flow.topics.needed(REQUEST));
            let letter = Letter { id: &end.id, body: &body, handed_on: end.rounds + 1 };
            broker.publish_to_somebody(topic, letter).await;
            if let Err(error) = notes.remove(&end.note()).await {
                tracing::warn!(%error, "the note of an end that was handed on cannot be removed");
            }
            requests.strays.lock().remove(&key);
        });
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// The dialog that is to be told, unless that is being done: the request came before.
    async fn accept(
        &self,
        flow: &RunningFlow,
        received: &Received,
        id: &str,
        request: AgentRequest,
    ) -> Result<Option<OpenDialog>, Refused> {
        let Taken { request, follows, subagent } = taken(request);
        // Whoever names no id gets one that is the same if the message comes again.
        let named = received.id.as_deref().and_then(|id| RequestId::new(id).ok());
        let derived = || RequestId::new(&Hash::of(&received.body).to_string());
        let request_id = named.map_or_else(derived, Ok).map_err(|error| Refused::Ever(error.to_string()))?;
        let (streaming, collection) = (request.streaming, request.collection.clone());
        let question = Question {
            scope: flow.scope.clone(),
            request_id,
            request,
            limits: self.limits.clone(),
            names: UnknownNames::FallBack,
            selection: Selection::default(),
            by: Some(Caller::new(None, Surface::TrustgraphQueue)),
        };
        let accepted = self.teller.runs.accept(question).await.map_err(Refused::of)?;
        let dialog = OpenDialog {
            scope: flow.scope.clone(),
            run: accepted.run,
            id: id.to_owned(),
            streaming,
            collection,
            told: 0,
            subagent,
            follows,
        };
        let noted = self.teller.notes.begin(&dialog.note()).await;
        let is_new = noted.map_err(|error| Refused::Now(format!("it cannot be noted: {error}")))?;
        Ok(is_new.then_some(dialog))
    }

    /// Tells a dialog to its end, unless that is being done.
    fn go_on(self: &Arc<Self>, flow: &Arc<RunningFlow>, dialog: OpenDialog, place: Option<OwnedSemaphorePermit>) {
        let key = (dialog.run.clone(), dialog.id.clone());
        if !self.telling.lock().insert(key.clone()) {
            return;
        }
        let (requests, flow) = (Arc::clone(self), Arc::clone(flow));
        self.spawn(async move {
            requests.teller.tell(&flow, dialog).await;
            requests.telling.lock().remove(&key);
            drop(place);
        });
    }

    /// Tells nothing any more.
    pub(crate) async fn stop_telling(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
    }

    /// How many dialogs are open.
    pub(crate) fn open(&self) -> usize {
        self.telling.lock().len()
    }
}

/// Waits until something is to stop, or nobody could say so any more.
pub(crate) async fn told_to_stop(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

/// Why a request was not accepted.
enum Refused {
    /// It may be later.
    Now(String),
    Ever(String),
}

impl Refused {
    fn of(error: AcceptError) -> Self {
        match error {
            AcceptError::TooManyRuns { .. }
            | AcceptError::Journal(_)
            | AcceptError::Config(_)
            | AcceptError::Newer(_) => Self::Now(error.to_string()),
            AcceptError::EmptyQuestion
            | AcceptError::QuestionTooLong { .. }
            | AcceptError::TooLarge(_)
            | AcceptError::InvalidId(_)
            | AcceptError::Refused(_)
            | AcceptError::OtherRequest { .. }
            | AcceptError::NothingEarlier(_) => Self::Ever(error.to_string()),
        }
    }
}

/// What becomes of a request: a new question as it is, and one that others have begun as a question of its own which goes
/// on from their steps. Their part of the graph has names that must not be given twice.
fn taken(mut request: AgentRequest) -> Taken {
    let turn = turn_of(&request);
    let subagent = is_subagent(&request).then(|| AgentRequest { history: Vec::new(), ..request.clone() });
    if subagent.is_some() {
        // Whoever reads its answer reads it whole.
        request.streaming = false;
    }
    let given = SessionId::new(&request.session_id).ok();
    let node = |session: &str, path: &str| format!("urn:trustgraph:agent:{session}/{path}");
    let follows = match (&turn, &given) {
        (WireTurn::Continuation, Some(session)) => Some(node(session.as_str(), &last_node(&request.history))),
        (WireTurn::Synthesis { .. }, Some(session)) => Some(node(session.as_str(), "decompose")),
        (WireTurn::New, _) if !request.parent_session_id.is_empty() => {
            SessionId::new(&request.parent_session_id).ok().map(|parent| node(parent.as_str(), "decompose"))
        }
        _ => None,
    };
    if let (false, Some(session)) = (turn == WireTurn::New, &given) {
        let own = session.beside(fingerprint(&request));
        own.as_str().clone_into(&mut request.session_id);
    }
    go_on_from(&mut request, &turn);
    request.correlation_id.clear();
    request.parent_session_id.clear();
    request.subagent_goal.clear();
    request.expected_siblings = 0;
    Taken { request, follows, subagent }
}

/// Has it gone on with where others stand. What cannot be read as that is shown to a ReAct session, so that nothing is done
/// twice: a new plan would take its steps once more, as stock templates for plans show no history, and a new team be sent out.
fn go_on_from(request: &mut AgentRequest, turn: &WireTurn) {
    let plan = newest_plan(&request.history);
    let (pattern, checked) = match turn {
        WireTurn::Synthesis { .. } => (Supervisor::NAME, check_findings(&request.history)),
        WireTurn::Continuation if !plan.is_empty() => (Plan::NAME, check_plan(plan)),
        WireTurn::Continuation | WireTurn::New | WireTurn::Completion { .. } => return,
    };
    let is_named = request.pattern.is_empty() || request.pattern == pattern;
    let checked = checked.and_then(|()| if is_named { Ok(()) } else { Err("its pattern is another one".to_owned()) });
    let Err(reason) = checked else {
        pattern.clone_into(&mut request.pattern);
        return;
    };
    let session = &request.session_id;
    tracing::warn!(session, pattern, reason, "what others have begun cannot be gone on with where it stands");
    let history = if matches!(turn, WireTurn::Synthesis { .. }) {
        request.history.iter().flat_map(findings).collect()
    } else if plan.iter().any(is_done) {
        rest_of_plan(&request.history, plan)
    } else {
        // A plan that was only made can be made again.
        return;
    };
    React::NAME.clone_into(&mut request.pattern);
    request.history = history;
}

/// The last node that the original has written for these steps.
fn last_node(history: &[AgentStep]) -> String {
    let planned = history.iter().any(|step| matches!(step.step_type.as_str(), step_type::PLAN | step_type::EXECUTE));
    match newest_plan(history).iter().rposition(is_done) {
        Some(last) => format!("step/{last}"),
        None if planned => "plan".to_owned(),
        None => format!("i{}/observation", history.len()),
    }
}

/// What a plan has brought and what is left of it, as steps that every prompt shows.
fn rest_of_plan(history: &[AgentStep], plan: &[PlanStep]) -> Vec<AgentStep> {
    let before = history.iter().filter(|step| step.plan.is_empty()).cloned();
    let done = plan.iter().filter(|step| is_done(step)).map(|step| AgentStep {
        thought: "This step of the plan was taken".to_owned(),
        action: "step".to_owned(),
        arguments: [("goal".to_owned(), step.goal.clone())].into_iter().collect(),
        observation: step.result.clone(),
        ..AgentStep::default()
    });
    let is_left = |step: &&PlanStep| matches!(step.status, StepStatus::Pending | StepStatus::Running);
    let left: Vec<_> = plan.iter().filter(is_left).map(|step| format!("- {}", step.goal)).collect();
    let observation = match left.as_slice() {
        [] => "All steps of the plan were taken.".to_owned(),
        left => format!("Steps of the plan that were not taken yet:\n{}", left.join("\n")),
    };
    let planned = AgentStep {
        thought: "What is left of the plan?".to_owned(),
        action: "plan".to_owned(),
        observation,
        ..AgentStep::default()
    };
    before.chain(done).chain([planned]).collect()
}

/// What subagents found, as steps that every prompt shows.
fn findings(step: &AgentStep) -> Vec<AgentStep> {
    if step.subagent_results.is_empty() {
        return vec![step.clone()];
    }
    let found = step.subagent_results.iter().map(|(goal, result)| AgentStep {
        thought: "A subagent was sent to find this out".to_owned(),
        action: "subagent".to_owned(),
        arguments: [("goal".to_owned(), goal.clone())].into_iter().collect(),
        observation: result.clone(),
        ..AgentStep::default()
    });
    found.collect()
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
