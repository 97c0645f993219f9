//! Whether iterations bring anything new, and what comes of it if they do not.
//!
//! An iteration is idle if all that it called was called before with the same result, or was therefore not called again.
//! A model that is shown its own repeated call tends to repeat it once more. So an idle iteration is not shown: a note
//! below the last result says what was asked for again, and where its result stands.

use super::IterationNames as _;
use super::iterations::{Done, done, done_of};
use crate::session::Session;
use serde_json::{Map, Value};
use trellis_domain::ToolName;
use trellis_domain::record::{Name, Reading, Replied};

/// Whether idle iterations count. Sessions that began by older rules count equal calls in a row, whatever they brought.
pub(super) fn counts_idle(session: &Session) -> bool {
    session.revision() > 1
}

/// By those rules, so many equal calls in a row are a loop.
pub(super) const LOOP: u32 = 3;
/// After so many idle iterations in a row, the next one ends the session.
const MOST_IDLE: u32 = 3;

/// What becomes of the calls of a reply, as far as they were made before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// They are made.
    New,
    /// They are not made again, and the model is told.
    Again,
    /// The model was told often enough.
    Circle,
}

/// What becomes of the calls of iteration `n`.
pub(super) fn course(session: &Session, n: u32) -> Course {
    if !counts_idle(session) {
        return match times_in_a_row(session, n) {
            times if times > LOOP => Course::Circle,
            times if times == LOOP => Course::Again,
            _ => Course::New,
        };
    }
    let idle = idle_before(session, n);
    if idle == 0 || !was_all_called_before(session, n) {
        return Course::New;
    }
    if idle < MOST_IDLE { Course::Again } else { Course::Circle }
}

/// How often in a row, up to iteration `n`, the same tools were named with the same arguments.
fn times_in_a_row(session: &Session, n: u32) -> u32 {
    let calls = |i: u32| session.replied(&Name::iteration(i)).into_iter().flat_map(|replied| replied.reading.calls());
    let equal = (1..=n).rev().take_while(|i| calls(n).next().is_some() && calls(*i).eq(calls(n)));
    u32::try_from(equal.count()).unwrap_or(u32::MAX)
}

/// So many idle iterations stand directly before `n`. A reply that could not be read is no step in any direction.
fn idle_before(session: &Session, n: u32) -> u32 {
    let is_step = |i: &u32| {
        session.replied(&Name::iteration(*i)).is_some_and(|it| !matches!(it.reading, Reading::Unusable { .. }))
    };
    let idle = (1..n).rev().filter(is_step).take_while(|i| is_idle(session, *i));
    u32::try_from(idle.count()).unwrap_or(u32::MAX)
}

/// A failed call may be tried once more.
fn was_all_called_before(session: &Session, n: u32) -> bool {
    let Some(replied) = session.replied(&Name::iteration(n)) else { return false };
    replied.reading.calls().all(|call| {
        let mut before = earlier(session, n, call);
        before.next().is_some_and(|(_, last)| last.observed.error.is_none() || before.next().is_some())
    })
}

/// Whether iteration `i` brought nothing that an earlier one had not brought.
pub(super) fn is_idle(session: &Session, i: u32) -> bool {
    let replied = session.replied(&Name::iteration(i)).filter(|_| counts_idle(session));
    replied.is_some_and(|replied| repeats(session, i, replied).is_some())
}

/// For each call of an idle iteration, the iteration that brought its result; none if it is not idle.
fn repeats(session: &Session, i: u32, replied: &Replied) -> Option<Vec<u32>> {
    let done = done_of(session, i, replied);
    let calls: Vec<_> = replied.reading.calls().collect();
    if calls.is_empty() || calls.len() != done.len() {
        return None;
    }
    let first = |(call, done): (&(&ToolName, &Map<String, Value>), &Done<'_>)| {
        let mut made = earlier(session, i, *call).filter(|(_, then)| was_made(then));
        let (last, before) = made.next()?;
        let has_changed = was_made(done) && before.observed.result != done.observed.result;
        let first = made.take_while(|(_, then)| then.observed.result == before.observed.result).last();
        (!has_changed).then(|| first.map_or(last, |(first, _)| first))
    };
    calls.iter().zip(&done).map(first).collect()
}

/// Whether the tool was called, and the model not only told something.
fn was_made(done: &Done<'_>) -> bool {
    done.observed.idempotency_key.is_some()
}

/// Where the same was called before iteration `n`, the latest first.
fn earlier<'s>(
    session: &'s Session,
    n: u32,
    (tool, arguments): (&'s ToolName, &'s Map<String, Value>),
) -> impl Iterator<Item = (u32, Done<'s>)> {
    (1..n)
        .rev()
        .flat_map(move |i| done(session, i).into_iter().map(move |done| (i, done)))
        .filter(move |(_, done)| done.action == tool.as_str() && done.arguments == Some(arguments))
}

/// What stands in the place of an idle iteration; none if it is shown.
pub(super) fn note(session: &Session, i: u32) -> Option<String> {
    let replied = session.replied(&Name::iteration(i)).filter(|_| counts_idle(session))?;
    let places = repeats(session, i, replied)?;
    let asked = replied.reading.calls().zip(places).map(|((tool, arguments), place)| {
        let arguments = Value::Object(arguments.clone());
        format!("You asked for {tool} {arguments} again. Its result is observation [{place}] and has not changed. ")
    });
    Some(format!(
        "({}Do something else: calculate with what was found, look up what is missing, or give the final answer.)",
        asked.collect::<String>()
    ))
}
