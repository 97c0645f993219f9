//! What a planner wrote, put right. Whatever comes in, what goes out is a graph without cycles in which every
//! reference leads somewhere, and notes say what was changed.

use super::{PlanRules, PlannedStep};
use crate::taken_up::GOAL_CHARS;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use trellis_domain::counted;
use trellis_domain::reading::left_out_note;

/// A reply that is wrong all over needs no longer list.
const MOST_NOTES: usize = 20;

pub(super) const GOALS: [&str; 4] = ["goal", "step", "description", "task"];
const HINTS: [&str; 3] = ["tool_hint", "tool-hint", "tool"];
const DEPENDENCIES: [&str; 3] = ["depends_on", "depends-on", "dependencies"];

/// Steps that can be run, and what had to be put right for it.
pub(super) fn mend(entries: &[Value], rules: &PlanRules) -> (Vec<PlannedStep>, Vec<String>) {
    let mut notes = Notes::default();
    let mut drafts = read_all(entries, rules.first, &mut notes);
    drop_unknown(&mut drafts, &rules.finished, &mut notes);
    merge_twins(&mut drafts, &mut notes);
    cut(&mut drafts, rules.most, &mut notes);
    drop_unknown(&mut drafts, &rules.finished, &mut notes);
    break_cycles(&mut drafts, &mut notes);
    (numbered(drafts, rules.first), notes.into_list())
}

/// A step under the number that it has in the reply.
#[derive(Debug)]
struct Draft {
    number: u32,
    goal: String,
    tool_hint: String,
    depends_on: BTreeSet<u32>,
}

#[derive(Debug, Default)]
struct Notes {
    kept: Vec<String>,
    more: usize,
    /// What the end of the session tells of, too; never one of those that are too many.
    cut: Option<String>,
}

impl Notes {
    fn add(&mut self, number: u32, note: &str) {
        if self.kept.len() < MOST_NOTES {
            self.kept.push(format!("step {number}: {note}"));
        } else {
            self.more += 1;
        }
    }

    fn into_list(mut self) -> Vec<String> {
        if self.more > 0 {
            self.kept.push(format!("and {} more", self.more));
        }
        self.kept.extend(self.cut);
        self.kept
    }
}

fn read_all(entries: &[Value], first: u32, notes: &mut Notes) -> Vec<Draft> {
    let numbers = first..=u32::MAX;
    numbers.zip(entries).filter_map(|(number, entry)| read(number, entry, notes)).collect()
}

fn read(number: u32, entry: &Value, notes: &mut Notes) -> Option<Draft> {
    let text = |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let in_member = || GOALS.iter().find_map(|name| text(entry.get(name)?));
    let Some(goal) = text(entry).or_else(in_member) else {
        notes.add(number, "dropped, it has no goal");
        return None;
    };
    let depends_on = read_dependencies(number, member(entry, &DEPENDENCIES), notes);
    Some(Draft { number, goal: short(number, &goal, notes), tool_hint: read_hint(number, entry, notes), depends_on })
}

fn member<'v>(entry: &'v Value, names: &[&str]) -> &'v Value {
    names.iter().find_map(|name| entry.get(name)).unwrap_or(&Value::Null)
}

fn short(number: u32, goal: &str, notes: &mut Notes) -> String {
    match goal.char_indices().nth(GOAL_CHARS) {
        Some((end, _)) => {
            notes.add(number, &format!("the goal was cut to {GOAL_CHARS} characters"));
            goal[..end].to_owned()
        }
        None => goal.to_owned(),
    }
}

fn read_hint(number: u32, entry: &Value, notes: &mut Notes) -> String {
    match member(entry, &HINTS) {
        Value::Null => String::new(),
        Value::String(hint) => hint.trim().chars().take(GOAL_CHARS).collect(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            notes.add(number, "the tool hint is not text and was ignored");
            String::new()
        }
    }
}

fn read_dependencies(number: u32, value: &Value, notes: &mut Notes) -> BTreeSet<u32> {
    let references = match value {
        Value::Array(references) => references.as_slice(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            std::slice::from_ref(value)
        }
    };
    let mut depends_on = BTreeSet::new();
    for reference in references.iter().filter(|reference| !reference.is_null()) {
        match read_reference(reference) {
            Some(other) if other == number => notes.add(number, "dropped the reference to itself"),
            Some(other) => {
                depends_on.insert(other);
            }
            None => notes.add(number, "dropped a reference that is not the number of a step"),
        }
    }
    depends_on
}

fn read_reference(reference: &Value) -> Option<u32> {
    match reference {
        Value::Number(number) => u32::try_from(number.as_u64()?).ok(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn drop_unknown(drafts: &mut [Draft], finished: &[u32], notes: &mut Notes) {
    let known: BTreeSet<u32> = drafts.iter().map(|draft| draft.number).chain(finished.iter().copied()).collect();
    for draft in drafts {
        for unknown in draft.depends_on.extract_if(.., |other| !known.contains(other)) {
            notes.add(draft.number, &format!("dropped the reference to step {unknown}, which cannot be built on"));
        }
    }
}

/// Steps that are alike in everything are one step.
fn merge_twins(drafts: &mut Vec<Draft>, notes: &mut Notes) {
    let mut seen = BTreeMap::new();
    let mut merged = BTreeMap::new();
    drafts.retain_mut(|draft| {
        redirect(draft, &merged);
        let twin = (draft.goal.clone(), draft.tool_hint.clone(), draft.depends_on.clone());
        let first = *seen.entry(twin).or_insert(draft.number);
        if first != draft.number {
            merged.insert(draft.number, first);
            notes.add(draft.number, &format!("merged with step {first}, which is the same"));
        }
        first == draft.number
    });
    for draft in drafts {
        redirect(draft, &merged);
    }
}

fn redirect(draft: &mut Draft, merged: &BTreeMap<u32, u32>) {
    if !merged.is_empty() {
        let other = |number: &u32| *merged.get(number).unwrap_or(number);
        draft.depends_on = draft.depends_on.iter().map(other).collect();
    }
}

fn cut(drafts: &mut Vec<Draft>, most: u32, notes: &mut Notes) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if drafts.len() > most {
        notes.cut = Some(left_out_note(&counted(drafts.len(), "step"), most));
        drafts.truncate(most);
    }
}

/// Drops each reference that closes a cycle with those before it.
fn break_cycles(drafts: &mut [Draft], notes: &mut Notes) {
    let mut kept: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for draft in drafts {
        let number = draft.number;
        draft.depends_on.retain(|other| {
            let closes = reaches(&kept, *other, number);
            if closes {
                notes.add(number, &format!("dropped the reference to step {other}, which depends on it"));
            } else {
                kept.entry(number).or_default().push(*other);
            }
            !closes
        });
    }
}

fn reaches(depends_on: &BTreeMap<u32, Vec<u32>>, from: u32, to: u32) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(number) = open.pop() {
        if number == to {
            return true;
        }
        if seen.insert(number) {
            open.extend(depends_on.get(&number).into_iter().flatten());
        }
    }
    false
}

/// Closes the gaps: what was dropped or merged leaves no number behind.
fn numbered(drafts: Vec<Draft>, first: u32) -> Vec<PlannedStep> {
    let numbers: BTreeMap<u32, u32> = drafts.iter().map(|draft| draft.number).zip(first..=u32::MAX).collect();
    let step = |draft: Draft| {
        let mut depends_on: Vec<_> =
            draft.depends_on.iter().map(|other| *numbers.get(other).unwrap_or(other)).collect();
        depends_on.sort_unstable();
        PlannedStep { goal: draft.goal, tool_hint: draft.tool_hint, depends_on }
    };
    drafts.into_iter().map(step).collect()
}
