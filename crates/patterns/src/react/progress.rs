//! Whether iterations bring anything new, and what comes of it if they do not.
//!
//! An iteration is idle if all that it called was called before with the same result, or was therefore not called again.
//! A model that is shown its own repeated call tends to repeat it once more. So an idle iteration is not shown: a note
//! below the last result says what was asked for again, and where its result stands.

use super::iterations::{Done, Past};
use super::names::reply_of;
use crate::session::Session;
use crate::text::cut;
use foldhash::fast::FixedState;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::iter::successors;
use trellis_domain::record::{Observed, Reading, Replied};

/// By the rules before revision 2, so many equal calls in a row are a loop.
pub(super) const LOOP: u32 = 3;
/// After so many idle iterations in a row, the next one ends the session.
const MOST_IDLE: u32 = 3;

/// So much of a repeated call's arguments is repeated in the note about it.
const SHOWN_OF_ARGUMENTS: usize = 400;

/// Whether idle iterations count. Sessions that began by older rules count equal calls in a row, whatever they brought.
pub(super) fn counts_idle(session: &Session) -> bool {
    session.revision() > 1
}

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
    let Some(replied) = reply_of(session, n).filter(|replied| were_all_named(session, n, replied)) else {
        return Course::New;
    };
    let progress = Progress::of(session, &Past::before(session, n));
    let idle = progress.idle_before(session, n);
    if idle == 0 || !progress.were_all_made(replied) {
        return Course::New;
    }
    if idle < MOST_IDLE { Course::Again } else { Course::Circle }
}

/// How often in a row, up to iteration `n`, the same tools were named with the same arguments.
fn times_in_a_row(session: &Session, n: u32) -> u32 {
    let calls = |i: u32| reply_of(session, i).into_iter().flat_map(|replied| replied.reading.calls());
    let equal = (1..=n).rev().take_while(|i| calls(n).next().is_some() && calls(*i).eq(calls(n)));
    u32::try_from(equal.count()).unwrap_or(u32::MAX)
}

/// Whether each call of a reply was named in an iteration before. Mostly one was not, and nothing else is to be found out.
fn were_all_named(session: &Session, n: u32, replied: &Replied) -> bool {
    let named =
        |call| (1..n).rev().any(|i| reply_of(session, i).is_some_and(|it| it.reading.calls().any(|it| it == call)));
    replied.reading.calls().all(named)
}

type Call<'s> = (&'s str, &'s Map<String, Value>);

/// Equal calls have equal fingerprints, also if their members stand in another order.
fn fingerprint((tool, arguments): Call<'_>) -> (&str, u64) {
    let sum =
        |text: &str| text.bytes().fold(text.len() as u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let of_value = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(value) => 1 + u64::from(*value),
        Value::Number(number) => number.as_f64().map_or(3, f64::to_bits),
        Value::String(text) => sum(text),
        Value::Array(members) => members.len() as u64,
        Value::Object(members) => members.len() as u64,
    };
    let member = |(name, value): (&String, &Value)| sum(name).wrapping_mul(of_value(value).wrapping_add(1));
    (tool, arguments.iter().map(member).fold(0, u64::wrapping_add))
}

/// What the iterations so far called, and which of them were idle.
#[derive(Debug, Default)]
pub(super) struct Progress<'s> {
    calls: Vec<Made<'s>>,
    /// Where the latest call of each fingerprint stands.
    latest: HashMap<(&'s str, u64), usize, FixedState>,
    /// For each idle iteration, where the results of its calls stand.
    idle: BTreeMap<u32, Vec<u32>>,
}

/// A call, and what came of it.
#[derive(Debug)]
struct Made<'s> {
    iteration: u32,
    arguments: &'s Map<String, Value>,
    observed: &'s Observed,
    /// Where the one before it with the same fingerprint stands.
    before: Option<usize>,
}

impl<'s> Progress<'s> {
    pub(super) fn of(session: &Session, past: &Past<'s>) -> Self {
        let mut progress = Self::default();
        if counts_idle(session) {
            past.iter().for_each(|(i, replied, done)| progress.add(i, replied, done));
        }
        progress
    }

    fn add(&mut self, i: u32, replied: Option<&Replied>, done: &[Done<'s>]) {
        let named = replied.map_or(0, |replied| replied.reading.calls().count());
        let made = || done.iter().filter_map(|done| Some(((done.action, done.arguments?), done.observed)));
        if named > 0 && named == made().count() {
            let places: Option<Vec<_>> = made().map(|(call, observed)| self.known(call, observed)).collect();
            self.idle.extend(places.map(|places| (i, places)));
        }
        for (call, observed) in made() {
            let before = self.latest.insert(fingerprint(call), self.calls.len());
            self.calls.push(Made { iteration: i, arguments: call.1, observed, before });
        }
    }

    /// How often this was called, the latest first.
    fn made<'c>(&'c self, call: Call<'c>) -> impl Iterator<Item = &'c Made<'s>> {
        let latest = self.latest.get(&fingerprint(call)).copied();
        let like_it = successors(latest.map(|place| &self.calls[place]), |made| Some(&self.calls[made.before?]));
        like_it.filter(move |made| made.arguments == call.1)
    }

    /// The iteration that first brought what a call brings; none if that is something new.
    fn known(&self, call: Call<'_>, observed: &Observed) -> Option<u32> {
        let mut made = self.made(call).filter(|made| was_made(made.observed));
        let last = made.next()?;
        let has_changed = was_made(observed) && last.observed.result != observed.result;
        let first = made.take_while(|made| made.observed.result == last.observed.result).last();
        (!has_changed).then(|| first.unwrap_or(last).iteration)
    }

    /// So many idle iterations stand directly before `n`. A reply that could not be read is no step in any direction.
    fn idle_before(&self, session: &Session, n: u32) -> u32 {
        let is_step = |i: &u32| reply_of(session, *i).is_some_and(|it| !matches!(it.reading, Reading::Unusable { .. }));
        let idle = (1..n).rev().filter(is_step).take_while(|i| self.idle.contains_key(i));
        u32::try_from(idle.count()).unwrap_or(u32::MAX)
    }

    /// Whether all calls of a reply were made before. One that failed may be tried once more.
    fn were_all_made(&self, replied: &Replied) -> bool {
        replied.reading.calls().all(|(tool, arguments)| {
            let mut before = self.made((tool.as_str(), arguments));
            before.next().is_some_and(|last| last.observed.error.is_none() || before.next().is_some())
        })
    }

    /// What stands in the place of iteration `i`, if that is idle; none if it is shown.
    pub(super) fn note(&self, session: &Session, i: u32) -> Option<String> {
        let places = self.idle.get(&i)?;
        let asked = reply_of(session, i)?.reading.calls().zip(places).map(|((tool, arguments), place)| {
            let arguments = cut(&Value::Object(arguments.clone()).to_string(), SHOWN_OF_ARGUMENTS);
            format!("You asked for {tool} {arguments} again. Its result is observation [{place}] and has not changed. ")
        });
        let asked: String = asked.collect();
        let told_before = i > 1 && self.idle.contains_key(&(i - 1));
        let instead = if told_before {
            "Give the final answer now."
        } else {
            "Take another step: calculate with what was found, look up something else, or give the final answer."
        };
        Some(format!("({asked}{instead})"))
    }
}

/// Whether a tool was called, and the model not only told something.
fn was_made(observed: &Observed) -> bool {
    observed.idempotency_key.is_some()
}
