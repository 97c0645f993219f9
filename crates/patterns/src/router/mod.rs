//! The choice of task type and pattern: by the caller, by there being no choice, or by a model out of the sets that
//! configuration defines.
//!
//! Nothing here can choose outside a set: a reply that names something else counts as no reply, and the fallback is a
//! member too.

mod check;
mod choose;
mod limits;
mod options;
mod prompt;
pub(crate) mod together;

pub use check::{Refusal, check, check_selection};
pub use limits::limits_for;
pub use options::callable;
pub use prompt::ROUTE;
pub use trellis_domain::limits::OperatorLimits;

use crate::contract::{Ending, Order, PromptOrder, Turn, settled};
use crate::session::Session;
use choose::Choice;
use trellis_domain::config::Settings;
use trellis_domain::decision::Decision;
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::{Accepted, Core, Name, Routed};
use trellis_domain::run::Termination;
use trellis_domain::{PatternName, TaskTypeName, Workspace};

/// The task type that everything falls back to.
pub const GENERAL: &str = "general";

/// What a caller may name, and the limits it may set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes<'a> {
    pub pattern: Option<&'a PatternName>,
    pub task_type: Option<&'a TaskTypeName>,
    pub framing: &'a str,
    pub limits: Option<&'a SomeLimits>,
    /// The request goes on from steps that were taken elsewhere.
    pub brings_history: bool,
}

impl<'a> Wishes<'a> {
    pub fn of(accepted: &'a Accepted) -> Self {
        Self {
            pattern: accepted.pattern.as_ref(),
            task_type: accepted.task_type.as_ref(),
            framing: &accepted.framing,
            limits: Some(&accepted.limits),
            brings_history: !accepted.history.is_empty(),
        }
    }

    /// A caller who names a pattern, or who is in the middle of something, does not want to be routed.
    fn bypass_routing(&self) -> bool {
        self.pattern.is_some() || self.brings_history
    }
}

/// Task type and pattern, if they are settled without asking a model.
///
/// ```
/// use trellis_domain::{Workspace, config::Settings};
/// use trellis_patterns::router::{OperatorLimits, Wishes, without_model};
///
/// let nothing = Settings::default();
/// let routed = without_model(&nothing, &Workspace::default(), Wishes::default(), &OperatorLimits::default());
/// assert_eq!(routed.map(|routed| routed.pattern).as_deref(), Some("react"));
/// ```
pub fn without_model(
    settings: &Settings,
    workspace: &Workspace,
    wishes: Wishes<'_>,
    operator: &OperatorLimits,
) -> Option<Routed> {
    let nobody = |_: Question<'_>| Err(NeedsModel);
    route(settings, workspace, wishes, operator, nobody).ok()
}

/// What is due in the turn in which a model is asked for task type and pattern.
pub fn decide(session: &Session, turn: &Turn) -> Vec<Order> {
    let Some(accepted) = session.accepted().filter(|_| turn.name.core() == Some(Core::Route)) else {
        let error = format!("there is nothing to route in turn `{}`", turn.name);
        return vec![Order::End(Ending::failed(Termination::Error, error))];
    };
    if session.routed().is_some() {
        return vec![Order::Close];
    }
    let ask = |question: Question<'_>| {
        let Question { name, offered, fallback, prompt, patterns } = question;
        if let Some(made) = together::pattern(session, &offered) {
            return Ok(made);
        }
        let alone = |problem: Option<&str>| prompt(session, offered.clone(), problem);
        let sets = patterns.and_then(|patterns| together::sets(session, &offered, patterns));
        let replied = match sets {
            Some(sets) => together::settled(session, &name, &offered, &sets, alone)?,
            None => settled(session, &name, alone)?,
        };
        let first = session.replied(&name).unwrap_or(replied);
        let rejected = together::pattern_in(session).filter(|read| read.kind == offered.kind);
        let rejected = rejected.and_then(|read| read.rejected.clone());
        let made = choose::by_model(offered, &fallback, first, replied);
        Ok(Decision { rejected: made.rejected.clone().or(rejected), ..made })
    };
    match route(session.settings(), &session.workspace(), Wishes::of(accepted), session.operator(), ask) {
        Ok(routed) => vec![Order::Become(Box::new(routed))],
        Err(order) => vec![order],
    }
}

struct NeedsModel;

/// A set with several options, and how a model is asked for one of them.
struct Question<'a> {
    /// The record that holds the reply.
    name: Name,
    offered: Decision,
    fallback: String,
    prompt: &'a dyn Fn(&Session, Decision, Option<&str>) -> PromptOrder,
    /// What is open under each of the options, if that can be asked for together with them.
    patterns: Option<&'a dyn Fn(&TaskTypeName) -> Choice>,
}

/// The task type first, then the pattern out of those that the task type allows.
fn route<E>(
    settings: &Settings,
    workspace: &Workspace,
    wishes: Wishes<'_>,
    operator: &OperatorLimits,
    ask: impl Fn(Question<'_>) -> Result<Decision, E>,
) -> Result<Routed, E> {
    let task_types = options::task_types(settings, workspace);
    let patterns = |task_type: &TaskTypeName| choose::pattern(settings, workspace, wishes, task_type, operator);
    let by_task_type = match choose::task_type(task_types, wishes) {
        Choice::Made(decision) => decision,
        Choice::Open { offered, fallback } => {
            let (name, prompt) = (Name::route_task_type(), &prompt::task_type);
            ask(Question { name, offered, fallback, prompt, patterns: Some(&patterns) })?
        }
    };
    let task_type = choose::chosen(&by_task_type).into();
    let by_pattern = match patterns(&task_type) {
        Choice::Made(decision) => decision,
        Choice::Open { offered, fallback } => {
            let prompt = |session: &Session, offered, problem: Option<&str>| {
                prompt::pattern(session, &task_type, offered, problem)
            };
            ask(Question { name: Name::route_pattern(), offered, fallback, prompt: &prompt, patterns: None })?
        }
    };
    let pattern = choose::chosen(&by_pattern).into();
    let item = settings.task_types.get(&task_type);
    let framing = match (wishes.framing, item) {
        ("", Some(item)) => item.framing.as_str().into(),
        (framing, _) => framing.into(),
    };
    Ok(Routed {
        framing,
        told: std::sync::Arc::default(),
        termination: item.map(|item| item.termination.clone()).unwrap_or_default(),
        limits: limits_for(settings, &task_type, &pattern, wishes.limits, operator),
        decisions: vec![by_task_type, by_pattern],
        task_type,
        pattern,
    })
}

#[cfg(test)]
#[path = "../router_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "../router_model_tests.rs"]
mod model_tests;

#[cfg(test)]
#[path = "../router_replies_tests.rs"]
mod replies_tests;

#[cfg(test)]
#[path = "../router_together_tests.rs"]
mod together_tests;
