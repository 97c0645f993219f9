//! Answering a question that a run waits for.

use crate::handling::Handling;
use crate::orchestrator::{Orchestrator, TurnError};
use crate::park::decision;
use crate::ports::{JournalError, NewTurn, Outcome, TurnKey};
use serde_json::{Map, Value, json};
use trellis_domain::document::Document;
use trellis_domain::input;
use trellis_domain::limits::SomeLimits;
use trellis_domain::park::{Parked, Settled, answer as options};
use trellis_domain::record::{Body, Name};
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::{Caller, RunId, Scope, SessionId, Workspace};
use trellis_patterns::Session;

/// Somebody's answer to a parked question.
#[derive(Debug, Clone)]
pub struct Answering {
    /// The question, by session and number. None: the only one that is open.
    pub question: Option<(SessionId, u32)>,
    pub choice: String,
    pub reason: Option<String>,
    /// What a call is to be made with instead.
    pub arguments: Option<Map<String, Value>>,
    /// What a call has brought, as the answerer knows it.
    pub result: Option<String>,
    /// What a tool asks for: the fields of its form; of several, an object with one for each.
    pub content: Option<Map<String, Value>>,
    pub by: Caller,
}

/// The question that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub session: SessionId,
    pub number: u32,
}

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    #[error("there is no run `{0}`")]
    Unknown(RunId),
    #[error("the run has ended ({0}); there is nothing to decide")]
    Ended(RunState),
    #[error("the run waits for nobody; there is nothing to decide")]
    NothingToDecide,
    #[error("the run waits for several answers; say which question is meant: {}", .0.join(", "))]
    Several(Vec<String>),
    #[error("it is decided already: {chosen}")]
    AlreadyDecided { chosen: String },
    #[error("`{choice}` is not one of the options; choose one of {}", .options.join(", "))]
    NotAnOption { choice: String, options: Vec<String> },
    #[error("this is for {} to decide", .0.join(", "))]
    NotAllowed(Vec<String>),
    #[error("there are no arguments to change: the question is not whether or how a call is made")]
    NoArguments,
    #[error("`result` needs what the call has brought, and nothing else does")]
    ResultMismatch,
    #[error("`answer` needs what the tool asks for, as content, and nothing else does")]
    ContentMismatch,
    #[error("this is not what the tool asks for: {0}")]
    WrongContent(String),
    #[error("reason, arguments, result and content have {bytes} bytes; at most {limit} are allowed")]
    TooLong { bytes: usize, limit: u64 },
    #[error(transparent)]
    Turn(#[from] TurnError),
}

impl From<JournalError> for DecideError {
    fn from(error: JournalError) -> Self {
        Self::Turn(error.into())
    }
}

impl Orchestrator {
    /// See [`RunService::decide`](crate::RunService::decide).
    pub(crate) async fn decide(
        &self,
        workspace: &Workspace,
        run: &RunId,
        answer: &Answering,
    ) -> Result<Answered, DecideError> {
        let summary = self.ports.journal.run(workspace, run).await?;
        let Answered { session, number } = question(answer, run, summary)?;
        self.check_size(answer)?;
        let mut conflicts = 0;
        loop {
            let scope = Scope { workspace: workspace.clone(), ..Scope::default() };
            let mut key =
                TurnKey { scope, run: run.clone(), session: session.clone(), name: Name::park_expiry(number) };
            let folded = self.load_without_settings(&key).await?.ok_or(DecideError::NothingToDecide)?;
            let first = folded.record(&Name::session()).filter(|first| first.header.run == *run);
            key.scope.flow = first.ok_or(DecideError::NothingToDecide)?.header.flow.clone();
            let park = folded.park(number).ok_or(DecideError::NothingToDecide)?;
            let settled = settled(&folded, park, answer)?;
            let open = NewTurn { session: session.clone(), name: park.turn.clone(), due: None };
            let handling = Handling::new(key, folded, 1);
            let record = handling.own(Name::park_decision(number), Body::Settled(Box::new(settled)));
            let record = handling.decided(record, self.ports.world.now());
            let commit = handling.commit(vec![record], vec![Name::park_expiry(number)], vec![open]);
            // A conflict means that something happened meanwhile: look again.
            if let Outcome::Committed(committed) = self.ports.journal.commit(commit).await? {
                self.after_commit(workspace, run, &committed).await;
                return Ok(Answered { session, number });
            }
            conflicts += 1;
            if conflicts > MOST_CONFLICTS {
                return Err(DecideError::NothingToDecide);
            }
        }
    }

    /// The answer is recorded and may be shown to a model: it is no longer than a question may be.
    fn check_size(&self, answer: &Answering) -> Result<(), DecideError> {
        let given = [&answer.arguments, &answer.content].into_iter().flatten();
        let arguments = given.map(|given| json!(given).to_string().len()).sum::<usize>();
        let told = [&answer.reason, &answer.result].into_iter().flatten().map(String::len).sum::<usize>();
        let bytes = told + arguments;
        let limit = self.options.limits.refined(&SomeLimits::default()).max_question_bytes;
        if bytes as u64 > limit { Err(DecideError::TooLong { bytes, limit }) } else { Ok(()) }
    }
}

/// So many conflicts in a row mean that the question's turn is gone, and not that others are faster.
const MOST_CONFLICTS: u32 = 20;

/// The question that is meant.
fn question(answer: &Answering, run: &RunId, summary: Option<RunSummary>) -> Result<Answered, DecideError> {
    let summary = summary.ok_or_else(|| DecideError::Unknown(run.clone()))?;
    if summary.state.is_end() {
        return Err(DecideError::Ended(summary.state));
    }
    let (session, number) = match (&answer.question, summary.parked.as_slice()) {
        (Some(named), _) => named.clone(),
        (None, [only]) => only.clone(),
        (None, []) => return Err(DecideError::NothingToDecide),
        (None, several) => {
            let named = several.iter().map(|(session, number)| format!("{session}/{}", Name::park(*number)));
            return Err(DecideError::Several(named.collect()));
        }
    };
    Ok(Answered { session, number })
}

/// The record of an answer, if it counts.
fn settled(session: &Session, park: &Parked, answer: &Answering) -> Result<Settled, DecideError> {
    let number = park.number;
    if let Some(ended) = session.ended() {
        return Err(DecideError::Ended(ended.reason.run_state()));
    }
    if let Some(known) = session.settled(number) {
        return Err(DecideError::AlreadyDecided { chosen: known.decision.chosen.join(", ") });
    }
    if let Some(who) = &park.who
        && !answer.by.name.as_ref().is_some_and(|name| who.contains(name))
    {
        return Err(DecideError::NotAllowed(who.clone()));
    }
    if !park.offered.options.contains(&answer.choice) {
        let (choice, options) = (answer.choice.clone(), park.offered.options.clone());
        return Err(DecideError::NotAnOption { choice, options });
    }
    if answer.arguments.is_some() && (park.tool.is_none() || !park.forms.is_empty()) {
        return Err(DecideError::NoArguments);
    }
    if answer.result.is_some() != (answer.choice == options::RESULT) {
        return Err(DecideError::ResultMismatch);
    }
    if answer.content.is_some() != (answer.choice == options::ANSWER) {
        return Err(DecideError::ContentMismatch);
    }
    let content = answer.content.as_ref().map(|content| input::by_form(&park.forms, content));
    if let Some(content) = &content {
        input::check(&park.forms, content).map_err(DecideError::WrongContent)?;
    }
    let decision = decision(park, &answer.choice, answer.reason.as_deref());
    let result = answer.result.as_deref().and_then(Document::stored);
    let (arguments, by) = (answer.arguments.clone(), Some(answer.by.clone()));
    Ok(Settled { number, decision, arguments, result, content, by })
}
