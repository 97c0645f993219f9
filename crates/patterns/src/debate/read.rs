//! What the replies of a debate decide, and how they are read.

use super::FEWEST;
use crate::choice::{option_named, text};
use crate::reader::ReadReply;
use crate::synthesis;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;
use trellis_domain::counted;
use trellis_domain::decision::Decision;
use trellis_domain::decision::option::{AGAIN, ANSWER};
use trellis_domain::document::Document;
use trellis_domain::reading::left_out_note;
use trellis_domain::record::Reading;
use trellis_domain::reply::json_in;

/// One side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stance {
    /// A short name.
    pub(super) stance: String,
    /// What it argues for, and from what point of view.
    #[serde(default)]
    pub(super) brief: String,
}

/// Who argues for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stances {
    pub(super) stances: Vec<Stance>,
}

impl Stances {
    /// Where no model can say it.
    pub(super) fn usual() -> Self {
        let stance = |stance: &str, brief: &str| Stance { stance: stance.to_owned(), brief: brief.to_owned() };
        let stances = vec![
            stance("for", "Make the strongest honest case for a yes, or for the answer that lies nearest."),
            stance("against", "Make the strongest honest case for a no, or against the answer that lies nearest."),
        ];
        Self { stances }
    }
}

/// Whether there is another round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moderation {
    #[serde(default)]
    pub(super) again: bool,
}

/// What a verdict may cite, and whether its two sections have to be there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VerdictRules {
    pub(super) known: Vec<u32>,
    pub(super) strict: bool,
}

/// What all sides agree on, and where they do not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Verdict {
    #[serde(default)]
    pub(super) agreement: Vec<String>,
    #[serde(default)]
    pub(super) dissent: Vec<String>,
}

const STANCES_FORM: &str = r#"reply with {"stances": [{"stance": "...", "brief": "..."}]}"#;
const MODERATION_FORM: &str = r#"reply with {"decision": "answer" or "again", "reason": "..."}"#;
const CHARS: (usize, usize) = (80, 2_000);
/// So many points are kept of each section.
const POINTS: usize = 20;

pub(super) fn stances(raw: &str, most: u32, offered: Vec<Decision>) -> ReadReply {
    let value = match json_in(raw) {
        Ok(value) => value,
        Err(reason) => return ReadReply::unusable(format!("{reason}; {STANCES_FORM}"), offered),
    };
    let listed = value.get("stances").or(Some(&value)).and_then(Value::as_array);
    let cut = |text: &str, most: usize| text.trim().chars().take(most).collect::<String>();
    let stance = |value: &Value| {
        let name = value.as_str().map(str::to_owned).or_else(|| text(value, &["stance", "name", "position"]))?;
        let brief = text(value, &["brief", "description"]).unwrap_or_default();
        let stance = Stance { stance: cut(&name, CHARS.0), brief: cut(&brief, CHARS.1) };
        (!stance.stance.is_empty()).then_some(stance)
    };
    let mut stances: Vec<Stance> = listed.into_iter().flatten().filter_map(stance).collect();
    let mut met = HashSet::new();
    stances.retain(|stance| met.insert(stance.stance.to_lowercase()));
    if stances.len() < FEWEST as usize {
        return ReadReply::unusable(format!("a debate needs at least two stances; {STANCES_FORM}"), offered);
    }
    let (count, most) = (stances.len(), most.max(FEWEST) as usize);
    let repairs = if count > most { vec![left_out_note(&counted(count, "stance"), most)] } else { Vec::new() };
    stances.truncate(most);
    let names: Vec<_> = stances.iter().map(|stance| stance.stance.as_str()).collect();
    let thought = format!("{} argue: {}", counted(names.len(), "side"), names.join(", "));
    ReadReply::new(&thought, Reading::decided(Stances { stances }), offered).with_repairs(repairs)
}

pub(super) fn moderation(raw: &str, mut offered: Vec<Decision>) -> ReadReply {
    let Some(decision) = offered.first_mut() else { return ReadReply::unusable("nothing was offered", offered) };
    let value = json_in(raw).unwrap_or_else(|_| Value::String(raw.trim().to_owned()));
    let named = value.as_str().map(str::to_owned).or_else(|| text(&value, &["decision", "choice"]));
    decision.rationale = text(&value, &["reason", "rationale"]).and_then(Document::stored);
    let Some(chosen) = option_named(&[ANSWER.to_owned(), AGAIN.to_owned()], &named.unwrap_or_default()) else {
        decision.rejected = Document::stored(raw.trim());
        return ReadReply::unusable(format!("the reply decides nothing; {MODERATION_FORM}"), offered);
    };
    let again = chosen == AGAIN;
    decision.chosen = vec![chosen];
    ReadReply::new("", Reading::decided(Moderation { again }), offered)
}

/// The answer as it was streamed, and the points of its sections on agreement and dissent.
pub(super) fn verdict(raw: &str, rules: &VerdictRules, offered: Vec<Decision>) -> ReadReply {
    let read = synthesis::read(raw, &rules.known, offered);
    let Reading::Answered { text, .. } = &read.reading else { return read };
    let verdict = Verdict { agreement: points(raw, "agree"), dissent: points(raw, "dissent") };
    if rules.strict && verdict == Verdict::default() {
        let reason = "the answer has neither a section \"Agreement\" nor a section \"Dissent\"; write both, with one point per line";
        return ReadReply::unusable(reason, read.decisions);
    }
    ReadReply { reading: Reading::Answered { text: text.clone(), value: json!(verdict) }, ..read }
}

/// The points of the section whose heading begins with this word: its list, or its lines.
fn points(text: &str, word: &str) -> Vec<String> {
    let heading = |line: &str| {
        let title = line.trim().trim_start_matches('#').trim_matches(|c: char| c.is_whitespace() || "*:_".contains(c));
        (line.trim_start().starts_with('#') || line.trim().starts_with("**")).then(|| title.to_lowercase())
    };
    let is_meant = |line: &&str| heading(line).is_some_and(|title| title.starts_with(word));
    let section = text.lines().skip_while(|line| !is_meant(line)).skip(1);
    let lines = section.take_while(|line| heading(line).is_none());
    let point = |line: &str| line.trim().trim_start_matches(['-', '*', '•']).trim().to_owned();
    lines.map(point).filter(|point| !point.is_empty()).take(POINTS).collect()
}
