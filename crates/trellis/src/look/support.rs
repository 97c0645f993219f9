//! What a sentence of the answer rests on: the rules of the page (`ui/src/pages/run/support.ts`).
//!
//! The record says which findings and steps a passage cites; below that, sources that use the same words are looked up. The first
//! is on record, the second is only a comparison of texts, and both are called so.

use super::{Placed, RunView};
use std::collections::BTreeSet;
use trellis_provenance::trace::{SessionTrace, Step};

/// The part of a source that has most in common with the sentence.
#[derive(Debug)]
pub(crate) struct Passage<'a> {
    pub(crate) at: Placed<'a>,
    pub(crate) text: &'a str,
    /// How many of the telling words of the sentence it has, in percent.
    pub(crate) shared: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Support<'a> {
    /// What the sentence cites, or else what it stands in: the step, its label, and whether it was near only.
    pub(crate) cited: Vec<(Placed<'a>, String, bool)>,
    pub(crate) passages: Vec<Passage<'a>>,
    /// Whether the answer has the sentence.
    pub(crate) is_in_answer: bool,
}

pub(crate) fn support<'a>(view: &'a RunView, end: Placed<'a>, sentence: &str) -> Support<'a> {
    let answer = view.output(end.1);
    let context = context(answer, sentence);
    let mut found = Support { is_in_answer: context.is_some(), ..Support::default() };
    let all = std::iter::once((sentence, false)).chain(context.into_iter().flatten().map(|text| (text, true)));
    for (text, near) in all {
        if near && !found.cited.is_empty() {
            break;
        }
        for (kind, number, label) in citations(text) {
            let Some(step) = cited_step(view, end.0, kind, number) else { continue };
            if !found.cited.iter().any(|(other, ..)| other.1.id() == step.1.id()) {
                found.cited.push((step, label, near));
            }
        }
    }
    let below = view.ancestors(end.1.id());
    let is_source = |(_, step): &Placed<'a>| {
        let brings =
            matches!(step, Step::Observation(_)) || matches!(step, Step::StepResult(result) if result.tool.is_some());
        brings && below.contains(step.id()) && !view.output(step).is_empty()
    };
    let sources: Vec<_> = view.steps().filter(is_source).collect();
    // What the cited agents found comes first; everything else only if they have nothing.
    let is_cited = |source: &&Placed<'a>| {
        found.cited.iter().any(|(cited, ..)| {
            let same_agent = cited.0.session == source.0.session && cited.0.session != end.0.session;
            same_agent || cited.1.id() == source.1.id()
        })
    };
    let own: Vec<_> = sources.iter().filter(is_cited).copied().collect();
    let inside: BTreeSet<_> = found.cited.iter().flat_map(|(cited, ..)| view.ancestors(cited.1.id())).collect();
    let near = if own.is_empty() {
        sources.iter().filter(|source| inside.contains(source.1.id())).copied().collect()
    } else {
        own
    };
    found.passages = passages(view, &near, sentence);
    if found.passages.is_empty() {
        found.passages = passages(view, &sources, sentence);
    }
    found
}

/// `[finding 0]`, `[steps 1; 2]`, `[1]`: the kind, which may be missing, the number and a label for each.
fn citations(text: &str) -> Vec<(&'static str, u32, String)> {
    let mut found: Vec<(&'static str, u32, String)> = Vec::new();
    for part in text.split('[').skip(1) {
        // What is followed by a bracket of the other kind is a link.
        let cited = part.split_once(']').filter(|(_, behind)| !behind.starts_with('('));
        for (kind, number) in cited.and_then(|(inside, _)| cited_in(inside)).into_iter().flatten() {
            let label = format!("[{}]", format!("{kind} {number}").trim_start());
            if !found.iter().any(|(.., other)| *other == label) {
                found.push((kind, number, label));
            }
        }
    }
    found
}

/// What stands in one pair of brackets, if it is nothing but citations.
fn cited_in(inside: &str) -> Option<Vec<(&'static str, u32)>> {
    const DIGITS: usize = 4;
    let (mut found, mut before) = (Vec::new(), "");
    for part in inside.split([',', ';']) {
        let part = part.trim();
        let (word, number) = part.split_at(part.find(|c: char| c == '#' || c.is_ascii_digit())?);
        let kind = match word.trim().to_lowercase().as_str() {
            // `[findings 1, 2]` says the word once.
            "" => before,
            "finding" | "findings" => "finding",
            "step" | "steps" => "step",
            "observation" | "observations" => "observation",
            _ => return None,
        };
        before = kind;
        let number = number.strip_prefix('#').unwrap_or(number);
        found.push((kind, number.parse().ok().filter(|_| number.len() <= DIGITS)?));
    }
    Some(found)
}

/// What stands around a sentence, nearest first: its paragraph, then the headings above it. None if it is not there.
fn context<'a>(answer: &'a str, sentence: &str) -> Option<Vec<&'a str>> {
    let wanted = squeezed(sentence);
    let blocks: Vec<&str> = answer.split("\n\n").flat_map(parts).collect();
    let place = blocks.iter().position(|block| squeezed(block).contains(&wanted)).filter(|_| !wanted.is_empty())?;
    let (mut found, mut level) = (vec![blocks[place]], usize::MAX);
    for block in blocks[..place].iter().rev() {
        let depth = block.trim_start().bytes().take_while(|byte| *byte == b'#').count();
        if depth > 0 && depth < level {
            level = depth;
            found.push(block);
        }
    }
    Some(found)
}

/// Headings and items of lists stand alone; everything else is a paragraph.
fn parts(paragraph: &str) -> Vec<&str> {
    let alone = |line: &str| {
        let line = line.trim_start();
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let ordered = number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") "));
        line.starts_with(['#', '|']) || ordered || ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark))
    };
    if paragraph.lines().any(alone) { paragraph.lines().collect() } else { vec![paragraph] }
}

/// Letters and digits alone: marks of Markdown and breaks of lines are no matter.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What a citation names in the session of an answer: what an agent found, the result of a plan's step, or that of a call.
fn cited_step<'a>(view: &'a RunView, answering: &'a SessionTrace, kind: &str, number: u32) -> Option<Placed<'a>> {
    let own = |is_it: fn(&Step, u32) -> bool| {
        let step = answering.steps.iter().rfind(|step| is_it(step, number))?;
        Some((answering, step))
    };
    let call = || own(|step, number| matches!(step, Step::Observation(result) if result.n == number));
    let planned = || own(|step, number| matches!(step, Step::StepResult(result) if result.number == number));
    let finding = || {
        let is_it = |session: &&SessionTrace| {
            let parent = session.parent.as_ref();
            parent.is_some_and(|parent| {
                parent.session.as_ref() == Some(&answering.id) && parent.index == Some(number.into())
            })
        };
        let agent = view.trace.sessions.iter().find(is_it)?;
        agent.steps.last().map(|step| (agent, step))
    };
    match kind {
        "finding" => finding(),
        "step" => planned().or_else(call),
        "observation" => call(),
        _ => call().or_else(planned).or_else(finding),
    }
}

fn passages<'a>(view: &'a RunView, sources: &[Placed<'a>], sentence: &str) -> Vec<Passage<'a>> {
    const LOOKED_AT: usize = 200_000;
    let wanted = words(&without_brackets(sentence));
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for at in sources {
        let text = view.output(at.1);
        let text = &text[..text.floor_char_boundary(LOOKED_AT)];
        let shared = |line: &str| words(line).intersection(&wanted).count() * 100 / wanted.len();
        // The first of those that have most in common.
        let best = lines(text).map(|line| (shared(line), line)).rev().max_by_key(|(shared, _)| *shared);
        if let Some((shared, line)) = best.filter(|(shared, _)| *shared >= 50) {
            found.push(Passage { at: *at, text: line.trim(), shared });
        }
    }
    found.sort_by_key(|passage| std::cmp::Reverse(passage.shared));
    found.truncate(4);
    found
}

/// What stands in brackets is no word of the sentence.
fn without_brackets(sentence: &str) -> String {
    let mut parts = sentence.split('[');
    let mut bare = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        bare.push(' ');
        bare.push_str(part.split_once(']').map_or(part, |(_, behind)| behind));
    }
    bare
}

/// Lines, and sentences of a line.
fn lines(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let mut parts = Vec::new();
    for line in text.split('\n').filter(|line| !line.trim().is_empty()) {
        let mut begin = 0;
        for (place, mark) in line.match_indices(['.', '!', '?']) {
            let end = place + mark.len();
            if line[end..].starts_with(char::is_whitespace) {
                parts.push(&line[begin..end]);
                begin = end;
            }
        }
        parts.push(&line[begin..]);
    }
    parts.into_iter()
}

/// The telling words: longer than two letters, or with a digit. A number keeps its fraction.
fn words(text: &str) -> BTreeSet<String> {
    let letters: Vec<char> = text.to_lowercase().chars().collect();
    let (mut found, mut word) = (BTreeSet::new(), String::new());
    for (place, letter) in letters.iter().enumerate() {
        let between = matches!(letter, '.' | ',')
            && word.chars().next_back().is_some_and(char::is_alphanumeric)
            && !word.contains(['.', ','])
            && letters.get(place + 1).is_some_and(|next| next.is_numeric());
        if letter.is_alphanumeric() || between {
            word.push(*letter);
        } else {
            keep(&mut found, &mut word);
        }
    }
    keep(&mut found, &mut word);
    found
}

fn keep(found: &mut BTreeSet<String>, word: &mut String) {
    let word = std::mem::take(word);
    if word.chars().count() > 2 || word.chars().any(char::is_numeric) {
        found.insert(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_are_read_as_on_the_page() {
        let labels = |text: &str| citations(text).into_iter().map(|(.., label)| label).collect::<Vec<_>>();
        let text = "a [finding 0] b [Steps 1; 2] c [1] d [finding x] [finding 0] e [observation #3, 4] [5](https://x) [a 6] [99999]";
        let expected =
            ["[finding 0]", "[step 1]", "[step 2]", "[1]", "[observation 3]", "[observation 4]"].map(str::to_owned);
        assert_eq!(labels(text), expected);
        assert_eq!(without_brackets("It is so [1] here [findings 2; 3]."), "It is so   here  .");
    }

    #[test]
    fn telling_words_are_long_or_have_a_digit() {
        let found: Vec<_> = words("It is 3.5 % of 7 in Köln, by 1,204.").into_iter().collect();
        assert_eq!(found, ["1,204", "3.5", "7", "köln"]);
    }

    #[test]
    fn a_sentence_is_found_with_its_paragraph_and_the_headings_above() {
        let answer = "# All\n\nIntro.\n\n## Money\n- It is **solid** here [finding 1]\n- other\n\n## Law\n\nNo suits.";
        assert_eq!(
            context(answer, "it is solid here"),
            Some(vec!["- It is **solid** here [finding 1]", "## Money", "# All"])
        );
        assert_eq!(context(answer, "No suits."), Some(vec!["No suits.", "## Law", "# All"]));
        assert_eq!(context(answer, "never said"), None);
    }

    #[test]
    fn lines_are_cut_where_sentences_end() {
        assert_eq!(lines("One. Two 3.5! Three?\nFour").collect::<Vec<_>>(), ["One.", " Two 3.5!", " Three?", "Four"]);
    }
}
