//! Asks the questions, each as a run of its own, and leaves none of them open.

use super::answerer::Answerer;
use super::routed::RoutedOnly;
use crate::app::App;
use crate::cli::Eval;
use crate::failure::Failure;
use crate::person;
use crate::serving::{Interrupt, Serving};
use crate::show::note;
use futures_util::StreamExt;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::watch;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::{Body, Name, Record};
use trellis_domain::{RequestId, RunId};
use trellis_evaluation::{Documents, FixtureTools, Item, Outcome, Suite, Trial, TrialKey};
use trellis_models::{NotRecorded, RecordedReplies};
use trellis_orchestrator::accept::{Question, UnknownNames};
use trellis_orchestrator::hub::Item as Followed;
use trellis_orchestrator::ports::{RealWorld, World};
use trellis_orchestrator::{Orchestrator, RunService};
use trellis_tools::Outside;

/// What all trials of an evaluation have in common.
pub(super) struct Trials<'e> {
    pub(super) app: &'e App,
    pub(super) eval: &'e Eval,
    pub(super) is_quiet: bool,
    pub(super) documents: &'e Documents,
    pub(super) instructions: &'e [String],
}

/// Where the questions to one of those that are compared go.
struct Asking {
    orchestrator: Arc<Orchestrator>,
    fixtures: Arc<FixtureTools>,
    routed_only: Arc<RoutedOnly>,
    recorded: Option<Arc<RecordedReplies>>,
    /// Becomes true if nothing more is to be asked.
    stopped: watch::Receiver<bool>,
}

impl Trials<'_> {
    /// Asks all questions under all patterns. Break if somebody interrupted it; what was judged until then counts.
    pub(super) async fn ask_all(
        &self,
        answerer: Answerer,
        suite: &Suite,
        judged: &mut Vec<Trial>,
        interrupt: &mut Interrupt,
    ) -> Result<ControlFlow<()>, Failure> {
        let Answerer { name, limits, prompter, recorded } = answerer;
        let routed_only = Arc::new(RoutedOnly::new(prompter));
        let mut fixtures = None;
        let orchestrator =
            self.app.orchestrator_with(limits, Arc::clone(&routed_only) as _, Outside::default(), |inner| {
                let tools = Arc::new(FixtureTools::new(inner, self.documents.clone()));
                fixtures = Some(Arc::clone(&tools));
                tools
            });
        let fixtures = fixtures.ok_or_else(|| Failure::unexpected("the tools were not asked for"))?;
        let mut serving = Serving::start(&orchestrator);
        let (stop, stopped) = watch::channel(false);
        // Which of several recorded replies a run gets depends on who asks first.
        let at_once = if recorded.is_some() { 1 } else { usize::from(self.eval.at_once) };
        let asking = Asking { orchestrator, fixtures, routed_only, recorded, stopped };
        let asked = self.eval.patterns.iter().flat_map(|pattern| {
            let repeats = move |item| (1..=self.eval.repeat).map(move |repeat| (item, pattern, repeat));
            suite.items.iter().take(self.eval.first.unwrap_or(usize::MAX)).flat_map(repeats)
        });
        let one = |(item, pattern, repeat): (_, &String, _)| {
            let key = TrialKey { model: name.clone(), pattern: pattern.clone(), repeat };
            self.one(&asking, item, key)
        };
        let mut running = futures_util::stream::iter(asked.map(one)).buffered(at_once);
        let (mut failure, mut is_interrupted) = (None, false);
        loop {
            tokio::select! {
                next = running.next() => match next {
                    None => break,
                    Some(Ok(trial)) => judged.extend(trial.inspect(|trial| self.tell(trial))),
                    // The others end, too: nobody would wait for them.
                    Some(Err(error)) => {
                        failure.get_or_insert(error);
                        stop.send_replace(true);
                    }
                },
                error = serving.store_failure() => {
                    failure.get_or_insert(error);
                    break;
                }
                () = interrupt.received() => {
                    // Twice is said by somebody in a hurry.
                    if std::mem::replace(&mut is_interrupted, true) {
                        break;
                    }
                    stop.send_replace(true);
                }
            }
        }
        drop(running);
        serving.abandon().await?;
        match failure {
            Some(failure) => Err(failure),
            None if is_interrupted => Ok(ControlFlow::Break(())),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    /// One question, for whoever waits.
    fn tell(&self, trial: &Trial) {
        if self.is_quiet {
            return;
        }
        let verdict = match (trial.is_right(), &trial.not_covered) {
            (_, Some(_)) => "not covered",
            (Some(true), None) => "right",
            (Some(false), None) => "wrong",
            (None, None) => "not judged",
        };
        let Trial { item, key, why, not_covered, outcome, .. } = trial;
        let why = why.as_ref().or(not_covered.as_ref()).map(|why| format!(": {why}")).unwrap_or_default();
        let ms = outcome.ms.map(|ms| format!(", {ms} ms")).unwrap_or_default();
        note(&format!("{item} {}: {verdict}, {} calls{ms}{why}", key.pattern, outcome.model_calls));
    }

    /// Asks one question and judges what came of it. None if it was stopped before.
    async fn one(&self, asking: &Asking, item: &Item, key: TrialKey) -> Result<Option<Trial>, Failure> {
        if *asking.stopped.borrow() {
            return Ok(None);
        }
        let request_id = RequestId::new(&RealWorld.fresh_id()).map_err(Failure::unexpected)?;
        let run = RunId::for_request(&self.app.scope, &request_id);
        asking.fixtures.for_session(run.clone(), item.recorded.clone());
        let named = (key.pattern != TrialKey::AUTO).then_some(&key.pattern).or(item.pattern.as_ref());
        // Where only the router's choice is judged, nobody waits for an answer.
        let only_routed = item.check.is_none() && named.is_none();
        if only_routed {
            asking.routed_only.begin(run.clone());
        }
        let records = self.records(asking, question(self.app, item, named, request_id), only_routed).await;
        asking.fixtures.forget(&run);
        asking.routed_only.forget(&run);
        let Some(records) = records? else { return Ok(None) };
        let mut outcome = Outcome::of(&records);
        let Some(recorded) = &asking.recorded else {
            return Ok(Some(self.judged(item, key, outcome)));
        };
        outcome.ms = None;
        Ok(Some(match recorded.take_missed(&run).into_iter().next() {
            Some(NotRecorded { prompt, step }) => {
                let lacks = format!("no reply is recorded to what the prompt `{prompt}` says now, in step `{step}`");
                Trial::not_covered(item, key, outcome, lacks)
            }
            None => self.judged(item, key, outcome),
        }))
    }

    fn judged(&self, item: &Item, key: TrialKey, outcome: Outcome) -> Trial {
        Trial::graded(item, key, outcome).with_instructions(self.instructions.iter().map(String::as_str))
    }

    /// All records of the run, or those until it was routed. None if it was stopped before: then it is cancelled.
    async fn records(
        &self,
        asking: &Asking,
        question: Question,
        only_routed: bool,
    ) -> Result<Option<Vec<Record>>, Failure> {
        let runs = RunService::new(&asking.orchestrator);
        let (workspace, by) = (self.app.workspace(), person::caller());
        let run = runs.accept(question).await?.run;
        let mut followed = runs.follow(workspace, &run, 0);
        let mut stopped = asking.stopped.clone();
        loop {
            let item = tokio::select! {
                item = followed.next() => item?,
                _ = stopped.wait_for(|stop| *stop) => {
                    runs.cancel(workspace, &run, &by).await?;
                    return Ok(None);
                }
            };
            let Followed::Record(record) = item else { continue };
            let is_of_run = record.header.session == run;
            if is_of_run && record.header.name == Name::end() {
                break;
            }
            // Nobody is there to answer.
            let waits = matches!(record.body, Body::Parked(_));
            if waits || is_of_run && record.header.name == Name::pattern_decision() && only_routed {
                runs.cancel(workspace, &run, &by).await?;
            }
        }
        let mut records: Vec<_> = runs.all_records(workspace, &run).await?.iter().map(|it| (**it).clone()).collect();
        let routed = records.iter().position(|record| record.header.name == Name::pattern_decision());
        if let Some(routed) = routed.filter(|_| only_routed) {
            // What came after the choice depends on how soon the run was cancelled.
            records.truncate(routed + 1);
        }
        Ok(Some(records))
    }
}

fn question(app: &App, item: &Item, named: Option<&String>, request_id: RequestId) -> Question {
    let tools: Vec<_> = item.tools.iter().chain(item.recorded.keys()).cloned().collect();
    let request = AgentRequest {
        question: item.question.clone(),
        pattern: named.cloned().unwrap_or_default(),
        group: (!tools.is_empty()).then_some(tools),
        ..AgentRequest::default()
    };
    Question {
        scope: app.scope.clone(),
        request_id,
        request,
        limits: SomeLimits::default(),
        names: UnknownNames::Refuse,
        selection: trellis_domain::Selection::default(),
        by: Some(person::caller()),
    }
}
