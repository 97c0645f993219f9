//! Plan-then-execute: a plan as a graph of steps, each step a turn of its own, then a synthesis.
//!
//! A step starts when everything it depends on is done. Each turn has exactly one record that finishes it, and what
//! that record opens follows from the records up to it alone; so steps that finish together neither open a step twice
//! nor lose one, and a turn that is decided again closes in the same way.

mod causes;
mod describe;
mod history;
mod mend;
mod names;
mod prompt;
mod read;
mod replay;
mod schema;
mod state;
mod tools;
mod value;

use crate::contract::{CallPlace, Effect, Ending, Order, Pattern, Turn, settled};
use crate::describe::{Describer, Notice};
use crate::reader::{ReadReply, Reader, ReplyForm};
use crate::session::Session;
use crate::synthesis::{self, SynthesisName};
use crate::text::cut;
use serde::{Deserialize, Serialize};
use trellis_domain::SessionId;
use trellis_domain::decision::Decision;
use trellis_domain::message::AgentStep;
use trellis_domain::parts::Reply;
use trellis_domain::record::{Name, Reading, Replied};
use trellis_domain::run::Termination;
use trellis_provenance::iri;

pub use names::{PlanNames, PlanTurn};
pub use state::{Missing, PlanState, StepState, StepStatus};
pub use value::{DIRECT_STEP, PlanDecision, PlannedStep, StepAside};

#[derive(Debug, Clone, Copy)]
pub struct Plan;

impl Plan {
    pub const NAME: &'static str = "plan-then-execute";
}

/// What a plan may refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRules {
    /// The number that the first new step gets.
    pub first: u32,
    /// Steps of earlier plans that are done and may be built on.
    pub finished: Vec<u32>,
    /// How many new steps there may be.
    pub most: u32,
}

impl Pattern for Plan {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn prompts(&self) -> &'static [&'static str] {
        &[prompt::CREATE, prompt::STEP, prompt::REVISE, prompt::SYNTHESISE]
    }

    fn first_turn(&self) -> Name {
        Name::plan(0)
    }

    fn decide(&self, session: &Session, turn: &Turn) -> Vec<Order> {
        match PlanTurn::of(&turn.name) {
            Some(PlanTurn::Plan(0)) => create(session),
            Some(PlanTurn::Plan(k)) => revise(session, k),
            Some(PlanTurn::Step(number)) => execute(session, number),
            Some(PlanTurn::Synthesis) => synthesise(session),
            None => fail(format!("a plan has no turn `{}`", turn.name)),
        }
    }

    fn causes(&self, session: &Session, name: &Name) -> Vec<Name> {
        causes::of(session, name)
    }

    fn form(&self, prompt: &str) -> ReplyForm {
        if prompt == prompt::SYNTHESISE { ReplyForm::Answer } else { ReplyForm::Whole }
    }

    fn read(&self, reader: &Reader, reply: &Reply, offered: Vec<Decision>) -> ReadReply {
        let raw = &reply.text();
        match reader.prompt() {
            prompt::CREATE => read::read_plan(raw, &reader.rules(), offered),
            prompt::STEP => read::read_step(raw, &reader.rules::<String>(), offered),
            prompt::REVISE => read::read_revision(raw, &reader.rules(), offered),
            _ => synthesis::read(raw, &reader.rules::<Vec<u32>>(), offered),
        }
    }

    fn history(&self, session: &Session, turn: &Name) -> Vec<AgentStep> {
        PlanTurn::of(turn).map(|turn| history::steps(session, turn)).unwrap_or_default()
    }

    fn part(&self, name: &Name) -> Option<u32> {
        describe::part(name)
    }

    fn notice<'r>(&self, name: &Name, replied: &'r Replied) -> Option<Notice<'r>> {
        describe::notice(name, replied)
    }

    fn place_of_call(&self, session: &SessionId, outcome: &Name) -> CallPlace {
        let Some(i) = names::step_of_result(outcome) else { return CallPlace::of_node(iri::named(session, outcome)) };
        CallPlace { node: iri::step(session, i), document: iri::step_document(session, i) }
    }

    fn describer(&self) -> Box<dyn Describer> {
        Box::<describe::PlanActs>::default()
    }
}

/// A plan that others have begun goes on where it stands.
fn create(session: &Session) -> Vec<Order> {
    let (_, opened) = PlanState::taken_up(session);
    if !opened.is_empty() {
        return opened.into_iter().map(Order::Open).collect();
    }
    let name = Name::plan(0);
    match settled(session, &name, |problem| prompt::create(session, problem)) {
        Err(ask) => vec![ask],
        Ok(replied @ Replied { reading: Reading::Failed { reason }, .. }) => {
            vec![Order::End(Ending::without_reply(replied, reason))]
        }
        Ok(_) => close(session, &last_asked(session, &name)),
    }
}

/// A planner that cannot be understood or reached leaves the plan as it is.
fn revise(session: &Session, k: u32) -> Vec<Order> {
    let name = Name::plan(k);
    match settled(session, &name, |problem| prompt::revise(session, k, &PlanState::of(session), problem)) {
        Err(ask) => vec![ask],
        Ok(_) => close(session, &last_asked(session, &name)),
    }
}

/// One choice of the model, and at most one call.
fn execute(session: &Session, number: u32) -> Vec<Order> {
    let state = PlanState::of(session);
    let Some(step) = state.step(number) else { return fail(format!("the plan has no step {number}")) };
    let (name, result) = (Name::step(number), Name::step_result(number));
    let replied = match settled(session, &name, |problem| prompt::step(session, &state, step, problem)) {
        Err(ask) => return vec![ask],
        Ok(replied) => replied,
    };
    let effect = match &replied.reading {
        Reading::Answered { .. } => return close(session, &last_asked(session, &name)),
        Reading::Acted { tool, arguments, .. } => Effect::CallTool { tool: tool.clone(), arguments: arguments.clone() },
        Reading::Unusable { reason } | Reading::Failed { reason } => Effect::Report { error: reason.clone() },
        Reading::Decided { .. } => Effect::Report { error: "the reply was read in another way".to_owned() },
    };
    if session.has(&result) { close(session, &result) } else { vec![Order::Perform(result, effect)] }
}

fn synthesise(session: &Session) -> Vec<Order> {
    let state = PlanState::of(session);
    let missing: Vec<_> = state.missing().iter().map(|missing| missing.number).collect();
    let replied = match settled(session, &Name::synthesis(), |problem| prompt::synthesise(session, &state, problem)) {
        Err(ask) => return vec![ask],
        Ok(replied) => replied,
    };
    let is_complete = missing.is_empty() && session.left_out().is_empty();
    let reason = if is_complete { Termination::PlanComplete } else { Termination::PlanPartial };
    let error = match &replied.reading {
        Reading::Answered { text, .. } => {
            return vec![Order::End(Ending { missing, ..Ending::answered(reason, text.text()) })];
        }
        Reading::Unusable { reason } | Reading::Failed { reason } => reason.clone(),
        Reading::Acted { .. } | Reading::Decided { .. } => "the reply was read in another way".to_owned(),
    };
    match found_so_far(&state) {
        Some(answer) => {
            let answered = Ending::answered(Termination::PlanPartial, answer);
            vec![Order::End(Ending { error: Some(error), missing, ..answered })]
        }
        None => vec![Order::End(Ending::without_reply(replied, error))],
    }
}

/// The results themselves, as the answer of a session whose synthesis could not be written.
fn found_so_far(state: &PlanState<'_>) -> Option<String> {
    const SHOWN_BYTES: usize = 2_000;
    let completed = state.steps.iter().filter(|step| step.status == StepStatus::Completed);
    let line = |step: &StepState<'_>| {
        let result = if step.result.is_empty() { "nothing".to_owned() } else { cut(step.result, SHOWN_BYTES) };
        format!("\n- Step {}, {}: {result}", step.number, step.goal)
    };
    let lines: String = completed.map(line).collect();
    (!lines.is_empty()).then(|| format!("No answer could be written from the results. Found so far:{lines}"))
}

/// Closes the turn that a record finishes, and opens what follows from it.
fn close(session: &Session, finishing: &Name) -> Vec<Order> {
    let opened = PlanState::opened_by(session, finishing);
    if opened.is_empty() { vec![Order::Close] } else { opened.into_iter().map(Order::Open).collect() }
}

/// The record of the reply that counts.
fn last_asked(session: &Session, name: &Name) -> Name {
    let retry = name.retry();
    if session.has(&retry) { retry } else { name.clone() }
}

fn fail(error: String) -> Vec<Order> {
    vec![Order::End(Ending::failed(Termination::Error, error))]
}

#[cfg(test)]
mod begun_tests;
#[cfg(test)]
mod fixture_tests;
#[cfg(test)]
mod flow_tests;
#[cfg(test)]
mod mend_tests;
#[cfg(test)]
mod prompt_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod read_tests;
#[cfg(test)]
mod script_tests;
#[cfg(test)]
mod shell_tests;
