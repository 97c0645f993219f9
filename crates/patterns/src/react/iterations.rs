//! Iterations: think, act, observe, and again. What the model is shown, and what comes between two of them, is the
//! pattern's.

use super::IterationNames;
use super::fold::{can_be_shortened, overflows};
use super::names::{observation_of, reply_of};
use super::progress::{Course, LOOP, counts_idle, course};
use crate::contract::{Effect, Ending, Order, PromptOrder, Turn};
use crate::room;
use crate::session::Session;
use serde_json::{Map, Value};
use trellis_domain::document::Document;
use trellis_domain::record::{Name, Observed, Reading, Replied};
use trellis_domain::run::Termination;
use trellis_domain::{ToolName, counted};

/// The action that stands for a reply which could not be read.
pub const PARSE_ERROR: &str = "__parse_error__";

/// What a pattern that works in iterations adds to them.
pub(crate) trait Iteration {
    /// What the model is asked in iteration `n`.
    fn prompt(&self, session: &Session, n: u32) -> PromptOrder;

    /// Whether the iterations before are shown as turns of a conversation, of which the older ones can be shortened.
    fn is_conversation(&self, session: &Session) -> bool;

    /// Why the call of iteration `n` is not made, for the model.
    fn objection(&self, _session: &Session, _n: u32) -> Option<String> {
        None
    }

    /// What is due after the observation of iteration `n` and before the next one.
    fn between(&self, _session: &Session, _n: u32) -> Option<Order> {
        None
    }
}

/// What is due in a turn.
pub(crate) fn decide(pattern: &dyn Iteration, session: &Session, turn: &Turn) -> Vec<Order> {
    let Some(n) = turn.name.as_iteration() else {
        let error = format!("a session in iterations has no turn `{}`", turn.name);
        return vec![Order::End(Ending::failed(Termination::Error, error))];
    };
    let most = session.limits().max_iterations;
    if n > most && n - overflows(session, n) > most {
        return vec![Order::End(out_of_iterations(session, n - 1))];
    }
    let Some(replied) = reply_of(session, n) else {
        return vec![Order::Perform(Name::iteration(n), Effect::AskModel(Box::new(pattern.prompt(session, n))))];
    };
    let effects = match &replied.reading {
        Reading::Answered { text, .. } => {
            let empty_handed = session.has_only_failed_calls();
            let reason = if empty_handed { Termination::AnswerPartial } else { Termination::FinalAnswer };
            return vec![Order::End(Ending::answered(reason, text.text()))];
        }
        Reading::Failed { reason } if replied.was_declined() => {
            return vec![Order::End(out_of_budget(session, n, reason))];
        }
        Reading::Failed { reason } => {
            return vec![Order::End(Ending::failed(Termination::Error, reason.clone()))];
        }
        Reading::Unusable { .. } if replied.was_too_long() => {
            if !can_show_less(pattern, session, n) {
                return vec![Order::End(Ending::failed(Termination::Error, too_long(replied)))];
            }
            vec![Effect::Report { error: SHORTENED.to_owned() }]
        }
        Reading::Acted { tool, .. } => {
            // Once everything has come back, it no longer matters what was made.
            let is_done =
                (1..).zip(replied.reading.calls()).all(|(call, _)| session.has(&Name::observation_of(n, call)));
            let course = if is_done { Course::New } else { course(session, n) };
            if course == Course::Circle && was_offered(replied, tool) {
                return vec![Order::End(going_in_circles(session, n, tool))];
            }
            let objection = pattern.objection(session, n);
            let effect = |(tool, arguments)| {
                let repeated = (course != Course::New).then(|| repeated(session, tool));
                effect_of(replied, (tool, arguments), repeated.or_else(|| objection.clone()))
            };
            replied.reading.calls().map(effect).collect()
        }
        Reading::Unusable { .. } if same_unreadable(session, n) >= LOOP => {
            return vec![Order::End(saying_the_same(session, n))];
        }
        Reading::Unusable { reason } if same_unreadable(session, n) > 1 => {
            vec![Effect::Report {
                error: format!("{reason} (this was the same reply as before: write something else)"),
            }]
        }
        Reading::Unusable { reason } => vec![Effect::Report { error: reason.clone() }],
        Reading::Decided { .. } => vec![Effect::Report { error: "the reply was read in another way".to_owned() }],
    };
    let named = effects.into_iter().zip(1..).map(|(effect, call)| (Name::observation_of(n, call), effect));
    let due: Vec<_> = named.filter(|(name, _)| !session.has(name)).collect();
    if !due.is_empty() {
        return due.into_iter().map(|(name, effect)| Order::Perform(name, effect)).collect();
    }
    vec![pattern.between(session, n).unwrap_or_else(|| Order::Open(Name::iteration(n + 1)))]
}

/// Whether less can be shown after iteration `n`, which was too long: of a conversation again and again, of a prompt that
/// tells everything once.
fn can_show_less(pattern: &dyn Iteration, session: &Session, n: u32) -> bool {
    if pattern.is_conversation(session) {
        return can_be_shortened(session, n);
    }
    session.revision() >= room::SINCE && overflows(session, n) == 0
}

/// What comes of one call of a reply: it is made, or the model is told why not.
fn effect_of(
    replied: &Replied,
    (tool, arguments): (&ToolName, &Map<String, Value>),
    objection: Option<String>,
) -> Effect {
    let error = match objection {
        _ if !was_offered(replied, tool) => unknown_tool(replied, tool),
        Some(objection) => objection,
        None => return Effect::CallTool { tool: tool.clone(), arguments: arguments.clone() },
    };
    Effect::Report { error }
}

/// What a record of an iteration follows from. Calls of one reply are made side by side, and none follows from another.
pub(crate) fn causes(session: &Session, name: &Name) -> Vec<Name> {
    let reply = name.as_observation().and(name.iteration_of()).map(Name::iteration);
    let has_several = |reply: &Name| session.replied(reply).is_some_and(|it| it.reading.calls().count() > 1);
    reply.filter(has_several).map_or_else(|| session.tips().to_vec(), |reply| vec![reply])
}

/// How often in a row, up to iteration `n`, the model gave the same reply that could not be read. Sessions that began by
/// older rules do not count.
fn same_unreadable(session: &Session, n: u32) -> u32 {
    let reply = |i: u32| reply_of(session, i);
    let Some(last) = reply(n).filter(|_| session.revision() > 0) else { return 1 };
    let is_same = |replied: &Replied| {
        matches!(replied.reading, Reading::Unusable { .. })
            && (&replied.raw, &replied.parts) == (&last.raw, &last.parts)
    };
    u32::try_from((1..=n).rev().take_while(|i| reply(*i).is_some_and(is_same)).count()).unwrap_or(u32::MAX)
}

fn saying_the_same(session: &Session, n: u32) -> Ending {
    let answer =
        found_so_far(session, n - 1, "No final answer: the model gave the same unreadable reply again and again.");
    let error = format!("the model gave the same unreadable reply {LOOP} times in a row");
    Ending { error: Some(error), ..Ending::answered(Termination::Limit, answer) }
}

/// What is noted of a prompt that the model found too long.
const SHORTENED: &str = "the conversation was too long for the model; it is asked again with older steps shortened";

/// Why a session ends whose prompt cannot be made shorter.
fn too_long(replied: &Replied) -> String {
    let reasons: Vec<_> = replied.failures.iter().map(|attempt| attempt.reason.as_str()).collect();
    format!("the prompt is too long for the model, and cannot be shortened: {}", reasons.join("; then "))
}

fn repeated(session: &Session, tool: &ToolName) -> String {
    let how = times(session, "before", LOOP);
    format!(
        "you named `{tool}` with the same arguments {how}, so it was not called again; \
         its result is above: use another tool or other arguments, or answer with what you know"
    )
}

/// A model that goes on after it was told ends the session with what it found out.
fn going_in_circles(session: &Session, n: u32, tool: &ToolName) -> Ending {
    let answer = found_so_far(
        session,
        n - 1,
        &format!("No final answer: `{tool}` was named again and again with the same arguments."),
    );
    let how = times(session, "again and again", LOOP + 1);
    let error = format!("the model called `{tool}` with the same arguments {how}");
    Ending { error: Some(error), ..Ending::answered(Termination::Limit, answer) }
}

/// Sessions that began by older rules say what they always said.
fn times(session: &Session, now: &str, by_older_rules: u32) -> String {
    if counts_idle(session) { now.to_owned() } else { format!("{by_older_rules} times in a row") }
}

/// The model can only call what it was offered in this turn.
fn was_offered(replied: &Replied, tool: &ToolName) -> bool {
    replied.decision.iter().any(|decision| decision.chosen.iter().any(|chosen| *tool == chosen.as_str()))
}

fn unknown_tool(replied: &Replied, tool: &ToolName) -> String {
    let options: Vec<_> = replied.decision.iter().flat_map(|decision| &decision.options).map(String::as_str).collect();
    if options.is_empty() {
        return format!("there is no tool `{tool}`, and no other; answer from what you know");
    }
    format!("there is no tool `{tool}`; available tools: {}", options.join(", "))
}

/// The limit ends the session with what it found out, not in silence.
fn out_of_iterations(session: &Session, n: u32) -> Ending {
    let heading = format!("No final answer after {}, which is the limit.", counted(n, "iteration"));
    let answer = found_so_far(session, n, &heading);
    let error = Some("Too many agent iterations".to_owned());
    Ending { error, ..Ending::answered(Termination::MaxIterations, answer) }
}

fn out_of_budget(session: &Session, n: u32, reason: &str) -> Ending {
    let answer = found_so_far(session, n, &format!("No final answer: {reason}."));
    Ending { error: Some(reason.to_owned()), ..Ending::answered(Termination::Limit, answer) }
}

/// The last things that tools brought, as the answer of a session that has none. What only the model was told is no
/// finding.
fn found_so_far(session: &Session, n: u32, why: &str) -> String {
    const KEPT: usize = 3;
    let found = (1..=n).rev().flat_map(|i| done(session, i).into_iter().rev());
    let found = found.filter(|done| done.observed.idempotency_key.is_some()).take(KEPT);
    let mut lines: Vec<_> = found.map(|done| finding(&done)).collect();
    if lines.is_empty() {
        return format!("{why} Nothing was found so far.");
    }
    lines.reverse();
    format!("{why} Found so far:{}", lines.concat())
}

/// One thing that an iteration did, and what came back.
pub(crate) struct Done<'s> {
    /// Of several things that were done at once, only the first has the thought.
    pub(crate) thought: &'s str,
    /// The tool that was named, or the stand-in for a reply that named none.
    pub(crate) action: &'s str,
    pub(crate) arguments: Option<&'s Map<String, Value>>,
    pub(crate) observed: &'s Observed,
}

/// What iteration `n` did, as far as it has come back.
pub(crate) fn done(session: &Session, n: u32) -> Vec<Done<'_>> {
    reply_of(session, n).into_iter().flat_map(|replied| done_of(session, n, replied)).collect()
}

/// The same, of a reply that is at hand.
pub(super) fn done_of<'s>(session: &'s Session, n: u32, replied: &'s Replied) -> impl Iterator<Item = Done<'s>> {
    let calls = replied.reading.calls().map(|(tool, arguments)| (tool.as_str(), Some(arguments)));
    let none = replied.reading.calls().next().is_none().then(|| (action_of(replied), None));
    calls.chain(none).zip(1..).filter_map(move |((action, arguments), call)| {
        let thought = replied.thought.as_ref().filter(|_| call == 1).map_or("", Document::text);
        Some(Done { thought, action, arguments, observed: observation_of(session, n, call)? })
    })
}

/// The iterations before one, looked up once for all that has to be found out about them.
pub(crate) struct Past<'s> {
    /// Each reply, and where what it did begins.
    replies: Vec<(Option<&'s Replied>, usize)>,
    done: Vec<Done<'s>>,
}

impl<'s> Past<'s> {
    /// The iterations before `n`.
    pub(crate) fn before(session: &'s Session, n: u32) -> Self {
        let room = n.saturating_sub(1) as usize;
        let mut past = Self { replies: Vec::with_capacity(room), done: Vec::with_capacity(room) };
        for i in 1..n {
            let replied = reply_of(session, i);
            past.replies.push((replied, past.done.len()));
            past.done.extend(replied.into_iter().flat_map(|replied| done_of(session, i, replied)));
        }
        past
    }

    /// Each iteration with its number, its reply, and what it did.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Option<&'s Replied>, &[Done<'s>])> {
        (1..).zip(&self.replies).map(|(i, (replied, _))| (i, *replied, self.done(i)))
    }

    /// The reply of an iteration, and what it did.
    pub(super) fn get(&self, i: u32) -> Option<(&'s Replied, &[Done<'s>])> {
        let (replied, _) = self.replies.get((i as usize).checked_sub(1)?)?;
        Some(((*replied)?, self.done(i)))
    }

    /// What an iteration did, as far as it has come back.
    fn done(&self, i: u32) -> &[Done<'s>] {
        let begins = |place: usize| self.replies.get(place).map_or(self.done.len(), |(_, begins)| *begins);
        &self.done[begins(i as usize - 1)..begins(i as usize)]
    }
}

fn finding(Done { action, observed, .. }: &Done<'_>) -> String {
    let text: String = observed.result.as_ref().map_or("nothing", Document::text).chars().take(500).collect();
    format!("\n- {action}: {text}")
}

/// The tool that a reply named, or the stand-in for a reply that named none.
pub fn action_of(replied: &Replied) -> &str {
    match &replied.reading {
        Reading::Acted { tool, .. } => tool,
        Reading::Unusable { .. } => PARSE_ERROR,
        Reading::Answered { .. } | Reading::Decided { .. } | Reading::Failed { .. } => "",
    }
}
