//! Callers: they ask, ask again when they get no answer, follow their run, lose their connection and come back.

use crate::followers;
use crate::processes::Processes;
use crate::scenario::{Asked, Scenario};
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::{AgentRequest, AgentStep, PlanStep, StepStatus};
use trellis_domain::park::answer;
use trellis_domain::{Caller, RequestId, RunId, Scope, Workspace};
use trellis_orchestrator::accept::{AcceptError, Acceptance, UnknownNames};
use trellis_orchestrator::orchestrator::TurnError;
use trellis_orchestrator::ports::{Disposition, Journal};
use trellis_orchestrator::{Answering, Question};

/// What a caller has seen.
#[derive(Debug, Default)]
pub struct Received {
    pub run: Option<RunId>,
    /// The request was refused, or belonged to another run when it came again.
    pub trouble: Vec<String>,
    /// How often each connection that reached the end was told that the dialog is over.
    pub ends: Vec<u32>,
    /// Records that came too late or out of order, text that was not what it should be.
    pub misled: Vec<String>,
}

pub(crate) fn workspace(number: u8) -> Workspace {
    if number == 0 { Workspace::default() } else { Workspace::new("other").expect("a valid name") }
}

/// The history of a plan of which others have taken the first steps.
fn begun(scene: &Value) -> Vec<AgentStep> {
    let Some(taken) = scene["begun"].as_u64() else { return Vec::new() };
    let step = |(place, step): (u64, &Value)| {
        let is_taken = place < taken;
        PlanStep {
            goal: step.to_string(),
            tool_hint: String::new(),
            depends_on: serde_json::from_value(step["needs"].clone()).unwrap_or_default(),
            status: if is_taken { StepStatus::Completed } else { StepStatus::Pending },
            result: if is_taken { "known before".to_owned() } else { String::new() },
        }
    };
    let plan = (0..).zip(scene["plan"].as_array().into_iter().flatten()).map(step).collect();
    vec![AgentStep { step_type: "execute".to_owned(), plan, ..AgentStep::default() }]
}

fn question(number: usize, asked: &Asked) -> Question {
    let request = AgentRequest {
        question: asked.scene.to_string(),
        pattern: asked.pattern.clone(),
        streaming: number.is_multiple_of(2),
        // The same in both workspaces, and for several questions of one: none of this may mix them up.
        session_id: if number.is_multiple_of(2) { "same".to_owned() } else { String::new() },
        history: begun(&asked.scene),
        ..AgentRequest::default()
    };
    Question {
        scope: Scope { workspace: workspace(asked.workspace), ..Scope::default() },
        request_id: RequestId::new(&format!("request-{number}")).expect("a valid id"),
        request,
        limits: SomeLimits::default(),
        names: UnknownNames::Refuse,
        selection: trellis_domain::Selection::default(),
        by: None,
    }
}

/// How long a caller waits for an answer before it asks somebody else.
const ANSWER: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_secs(1);

fn is_passing(error: &AcceptError) -> bool {
    let disposition = match error {
        AcceptError::Journal(error) => error.disposition(),
        AcceptError::Config(error) => error.disposition(),
        AcceptError::EmptyQuestion
        | AcceptError::QuestionTooLong { .. }
        | AcceptError::TooLarge(_)
        | AcceptError::InvalidId(_)
        | AcceptError::Refused(_)
        | AcceptError::OtherRequest { .. }
        | AcceptError::NothingEarlier(_)
        | AcceptError::Newer(_)
        | AcceptError::TooManyRuns { .. } => return false,
    };
    disposition == Disposition::Retry
}

/// Asks until somebody has accepted.
async fn accepted(processes: &Processes, question: &Question) -> Result<Acceptance, AcceptError> {
    loop {
        if let Some(process) = processes.any() {
            let accepting = process.runs.accept(question.clone());
            match tokio::time::timeout(ANSWER, accepting).await {
                Ok(Err(error)) if is_passing(&error) => {}
                Ok(result) => return result,
                Err(_) => {}
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Cancels until somebody has done it. A run that nobody has accepted yet is left alone.
pub(crate) async fn cancel(processes: &Processes, workspace: &Workspace, run: &RunId) {
    loop {
        if let Some(process) = processes.any() {
            let by = Caller::program();
            let cancelling = process.runs.cancel(workspace, run, &by);
            match tokio::time::timeout(ANSWER, cancelling).await {
                Ok(Err(TurnError::Journal(error))) if error.disposition() == Disposition::Retry => {}
                Ok(_) => return,
                Err(_) => {}
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Tells a run something, once. Whatever becomes of it: it may have ended, or the process may die.
pub(crate) async fn tell(processes: &Processes, workspace: &Workspace, run: &RunId) {
    let Some(process) = processes.any() else { return };
    let by = Caller::program();
    let telling = process.runs.tell(workspace, run, "only the last two years", &by);
    let told = tokio::time::timeout(ANSWER, telling).await;
    let what = if matches!(told, Ok(Ok(_))) { "messages of people" } else { "messages that did not count" };
    processes.common.recorder.count(what);
}

/// To questions whether something may be called, and to those about calls that may have been made.
const ANSWERS: [&str; 7] =
    [answer::APPROVE, answer::APPROVE, answer::DENY, answer::CONTINUE, answer::RETRY, answer::RESULT, ""];

/// People who look now and then whether a run waits for them. They agree, disagree, or let it be.
pub(crate) async fn answer_questions(
    processes: Arc<Processes>,
    scenario: Scenario,
    received: Vec<Arc<Mutex<Received>>>,
) {
    loop {
        tokio::time::sleep(Duration::from_secs(7)).await;
        for (asked, received) in scenario.questions.iter().zip(&received) {
            let run = received.lock().run.clone();
            let Some(run) = run else { continue };
            let workspace = workspace(asked.workspace);
            let summary = processes.common.journal.run(&workspace, &run).await.ok().flatten();
            for question in summary.into_iter().flat_map(|summary| summary.parked) {
                let choice = *processes.common.fault_source.chance().pick(&ANSWERS);
                let result = (choice == answer::RESULT).then(|| "what it brought, says a person".to_owned());
                let (choice, by) = (choice.to_owned(), Caller::program());
                let (reason, arguments) = (None, None);
                let answer =
                    Answering { question: Some(question), choice, reason, arguments, result, content: None, by };
                if let Some(process) = processes.any() {
                    // Whatever becomes of it: somebody else may be faster, or the process may die.
                    let deciding = process.runs.decide(&workspace, &run, &answer);
                    let decided = tokio::time::timeout(ANSWER, deciding).await;
                    let what =
                        if matches!(decided, Ok(Ok(_))) { "answers of people" } else { "answers that did not count" };
                    processes.common.recorder.count(what);
                }
            }
        }
    }
}

/// One caller from its question to its answer.
pub(crate) async fn ask(processes: Arc<Processes>, number: usize, asked: Asked, received: Arc<Mutex<Received>>) {
    let note = |change: &mut dyn FnMut(&mut Received)| {
        change(&mut received.lock());
    };
    tokio::time::sleep(Duration::from_millis(asked.at_ms)).await;
    let question = question(number, &asked);
    let run = match accepted(&processes, &question).await {
        Ok(acceptance) => acceptance.run,
        Err(error) => return note(&mut |received| received.trouble.push(format!("refused: {error}"))),
    };
    note(&mut |received| received.run = Some(run.clone()));
    if asked.again {
        tokio::time::sleep(AGAIN).await;
        match accepted(&processes, &question).await {
            Ok(Acceptance { run: same, attached: true }) if same == run => {}
            other => note(&mut |received| received.trouble.push(format!("the same request came again: {other:?}"))),
        }
    }
    let place = (&question.scope.workspace, &run);
    // To its end, over as many connections as it takes, and once more afterwards.
    let (mut ended, mut connections) = (0, 0);
    while ended < 2 {
        if let Some(process) = processes.any() {
            connections += 1;
            // The connection is lost now and then; the caller begins anew.
            let (ends, misled) =
                followers::follow(&processes, &process, place, question.request.streaming, connections <= 5).await;
            ended += u32::from(ends.is_some());
            note(&mut |received| {
                received.ends.extend(ends);
                received.misled.extend(misled.iter().cloned());
            });
        }
        tokio::time::sleep(AGAIN).await;
    }
}
