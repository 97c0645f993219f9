//! How a long conversation is shown: the newest steps whole, older ones as excerpts, the oldest only in a list.
//!
//! It follows from the records alone. What was shown once stays as it is until there is too much again; then half of the
//! room is made free at once, so that providers can reuse what they have computed for the steps that follow.

use super::conversation::messages_after;
use super::done;
use super::iterations::{Done, Past};
use super::names::reply_of;
use super::progress::Progress;
use crate::room::Room;
use crate::session::Session;
use crate::text::cut;
use serde_json::{Value, json};
use std::fmt::Write as _;
use trellis_domain::document::Document;
use trellis_domain::parts::ReplyPart;
use trellis_domain::record::Replied;

/// So much of a reply or an observation is left in an excerpt.
pub(super) const EXCERPT: usize = 400;
/// A conversation that is shorter than this cannot be the reason why a model finds its prompt too long.
const LEAST: usize = 2_000;
/// In the list, a step is one line.
const LINE: usize = 120;

/// How the steps before an iteration are shown.
#[derive(Debug)]
pub(super) struct Fold {
    /// Iterations up to this one are only listed.
    listed: u32,
    /// Those after them and up to this one are excerpts.
    excerpted: u32,
    /// So much of an observation is shown in the others.
    pub(super) shown: usize,
    /// How many bytes all of it may have.
    room: usize,
    /// How many what people said has: it is shown whole, whatever becomes of the steps.
    told: usize,
    /// How many the steps have.
    taken: usize,
    steps: Vec<Step>,
}

/// The bytes of an iteration.
#[derive(Debug, Default)]
struct Step {
    said: usize,
    observed: Vec<usize>,
}

impl Step {
    /// If so much is shown of each thing.
    fn size(&self, said: usize, observed: usize) -> usize {
        self.said.min(said) + self.observed.iter().map(|bytes| bytes.min(&observed)).sum::<usize>()
    }
}

impl Fold {
    /// What is shown in the iteration after these.
    pub(super) fn of(
        session: &Session,
        past: &Past<'_>,
        after: &dyn Fn(u32) -> Option<String>,
        told: &dyn Fn(u32) -> Option<String>,
        progress: &Progress<'_>,
    ) -> Self {
        let Room { bytes: room, each: shown, .. } = session.room();
        let (shown, steps) = (shown.min(room / 4), Vec::new());
        let counts = session.counts_messages();
        let told = |i| told(i).filter(|_| counts).map_or(0, |message| message.len());
        let mut fold = Self { listed: 0, excerpted: 0, shown, room, told: told(0), taken: 0, steps };
        for (i, replied, done) in past.iter() {
            fold.told += told(i);
            match replied {
                Some(replied) if replied.was_too_long() => fold.narrow(),
                Some(_) if let Some(note) = progress.note(session, i) => {
                    fold.add(Step { said: note.len(), observed: Vec::new() });
                }
                Some(replied) => fold.add(step(i, replied, done, after)),
                None => fold.add(Step::default()),
            }
        }
        fold
    }

    /// The iterations before `n` that are shown, and how.
    pub(super) fn shown_before(&self, n: u32) -> impl Iterator<Item = (u32, bool)> {
        (self.listed + 1..n).map(|i| (i, i > self.excerpted))
    }

    /// The steps that are only listed, in a few words; none if there are none.
    pub(super) fn list(&self, session: &Session) -> Option<String> {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        for i in (1..=self.listed).rev() {
            let line = line(session, i);
            bytes += line.len();
            if bytes > self.room_for_steps() / 8 {
                break;
            }
            lines.push(line);
        }
        lines.reverse();
        let which = if self.listed == 1 { "Step 1 is".to_owned() } else { format!("Steps 1 to {} are", self.listed) };
        let list = if lines.is_empty() { "." } else { ". The latest of them:" };
        (self.listed > 0).then(|| format!("{which} no longer shown{list}{}", lines.concat()))
    }

    fn add(&mut self, step: Step) {
        self.taken += step.size(usize::MAX, self.shown);
        self.steps.push(step);
        if self.taken > self.room_for_steps() {
            self.make_room();
        }
    }

    fn room_for_steps(&self) -> usize {
        self.room.saturating_sub(self.told)
    }

    /// The model found what was shown too long.
    fn narrow(&mut self) {
        self.room = self.told + self.taken * 2 / 3;
        self.shown = self.shown.min(self.room_for_steps() / 4);
        self.steps.push(Step::default());
        self.make_room();
    }

    fn make_room(&mut self) {
        let room = self.room_for_steps();
        let whole = |fold: &Self, i: u32| fold.step(i).size(usize::MAX, fold.shown);
        let excerpt = |fold: &Self, i: u32| fold.step(i).size(EXCERPT, EXCERPT.min(fold.shown));
        let newest = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        self.taken = (self.listed + 1..=newest)
            .map(|i| if i <= self.excerpted { excerpt(self, i) } else { whole(self, i) })
            .sum();
        while self.taken > room / 2 && self.excerpted + 1 < newest {
            self.excerpted += 1;
            self.taken -= whole(self, self.excerpted) - excerpt(self, self.excerpted);
        }
        while self.taken > room / 2 && self.listed < self.excerpted {
            self.listed += 1;
            self.taken -= excerpt(self, self.listed);
        }
        if self.taken > room && self.excerpted < newest {
            self.excerpted = newest;
            self.taken -= whole(self, newest) - excerpt(self, newest);
        }
    }

    fn step(&self, i: u32) -> &Step {
        &self.steps[i as usize - 1]
    }
}

fn step(i: u32, replied: &Replied, done: &[Done<'_>], after: &dyn Fn(u32) -> Option<String>) -> Step {
    let said = replied.parts.iter().map(ReplyPart::len).sum::<usize>().max(replied.raw.text().len());
    let observed = done.iter().map(|done| done.observed.result.as_ref().map_or(0, |it| it.text().len()));
    Step { said, observed: observed.chain(after(i).map(|text| text.len())).collect() }
}

/// Whether less can be shown in iteration `n`.
pub(super) fn can_be_shortened(session: &Session, n: u32) -> bool {
    let past = Past::before(session, n);
    let told = |i| messages_after(session, &past, i, n);
    Fold::of(session, &past, &|_| None, &told, &Progress::of(session, &past)).taken > LEAST
}

/// So many of the iterations before `n` brought nothing but that the prompt was too long.
pub(super) fn overflows(session: &Session, n: u32) -> u32 {
    let count = (1..n).filter(|i| reply_of(session, *i).is_some_and(Replied::was_too_long)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// One step in a line.
fn line(session: &Session, i: u32) -> String {
    let mut line = String::new();
    for done in done(session, i) {
        let arguments = done.arguments.map(|arguments| Value::Object(arguments.clone()).to_string());
        let found = done.observed.result.as_ref().map_or("", Document::text);
        let (arguments, found) = (beginning(&arguments.unwrap_or_default(), LINE), beginning(found, LINE));
        write!(line, "\n- {i}: {} {arguments} gave: {found}", done.action).expect("a text takes what is written to it");
    }
    line
}

/// The beginning of a text, on one line.
fn beginning(text: &str, bytes: usize) -> String {
    let end = text.floor_char_boundary(bytes);
    let line: Vec<_> = text[..end].split_whitespace().collect();
    let more = if end < text.len() { "…" } else { "" };
    format!("{}{more}", line.join(" "))
}

/// What is left of an observation.
pub(super) fn excerpt(text: &str, i: u32, shown: usize) -> String {
    let shown = EXCERPT.min(shown);
    if text.len() <= shown {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(shown);
    format!("{}\n[step {i}, shortened: {end} of {} bytes shown]", &text[..end], text.len())
}

/// What is left of a reply. Calls stay, because their results follow; arguments have to stay JSON.
pub(super) fn excerpts(parts: Vec<ReplyPart>) -> Vec<ReplyPart> {
    let short = |part| match part {
        ReplyPart::Thought { .. } => None,
        ReplyPart::Text { text } => Some(ReplyPart::Text { text: cut(text.text(), EXCERPT).into() }),
        ReplyPart::Refusal { text } => Some(ReplyPart::Refusal { text: cut(text.text(), EXCERPT).into() }),
        ReplyPart::Call { id, function, arguments } if arguments.text().len() > EXCERPT => {
            let shortened = json!({ "shortened": beginning(arguments.text(), EXCERPT / 2) }).to_string();
            Some(ReplyPart::Call { id, function, arguments: shortened.into() })
        }
        ReplyPart::Call { .. } => Some(part),
    };
    parts.into_iter().filter_map(short).collect()
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
