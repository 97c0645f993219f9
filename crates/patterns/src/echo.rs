//! Replies that repeat what the model was told instead of answering.

use crate::reader::ReadReply;
use std::collections::BTreeSet;
use trellis_domain::decision::Decision;
use trellis_domain::record::Reading;

/// Shorter texts may well be an answer and stand in a prompt, too.
const SHORTEST: usize = 16;

/// The reply, unless its answer consists of nothing but whole lines of the template: forms and rules are no answer. A fact
/// that stands somewhere in a prompt may well be one.
pub(crate) fn refused(read: ReadReply, template: &str, offered: Vec<Decision>) -> ReadReply {
    let Reading::Answered { text, .. } = &read.reading else { return read };
    if !repeats(text.text(), template) {
        return read;
    }
    let reason = "the answer repeats words of the instructions instead of answering; answer the question itself";
    ReadReply { thought: read.thought, ..ReadReply::unusable(reason, offered) }
}

/// Each line of the answer is a line of the template, or what such a line says behind its keyword.
fn repeats(answer: &str, template: &str) -> bool {
    if !may_repeat(answer, template) {
        return false;
    }
    let said: Vec<_> = answer.lines().map(plain).filter(|line| !line.is_empty()).collect();
    if said.iter().map(String::len).sum::<usize>() < SHORTEST {
        return false;
    }
    let lines: BTreeSet<_> = template.lines().flat_map(|line| [plain(line), plain(behind_keyword(line))]).collect();
    said.iter().all(|line| lines.contains(line))
}

/// Whether the first line of the answer is one of the template. Most answers end here, before anything is copied.
fn may_repeat(answer: &str, template: &str) -> bool {
    let Some(first) = answer.lines().find(|line| words(line).next().is_some()) else { return false };
    template.lines().any(|line| is_alike(line, first) || is_alike(behind_keyword(line), first))
}

fn is_alike(line: &str, other: &str) -> bool {
    let is_same = |one: &str, other: &str| {
        if one.is_ascii() && other.is_ascii() {
            return one.eq_ignore_ascii_case(other);
        }
        one.to_lowercase() == other.to_lowercase()
    };
    let (mut words, mut others) = (words(line), words(other));
    loop {
        match (words.next(), others.next()) {
            (Some(word), Some(other)) if is_same(word, other) => {}
            (end, other) => return end.is_none() && other.is_none(),
        }
    }
}

fn behind_keyword(line: &str) -> &str {
    const KEYWORDS: [&str; 4] = ["Thought:", "Action:", "Args:", "Final Answer:"];
    let line = line.trim_start_matches(['-', ' ']);
    KEYWORDS.iter().find_map(|keyword| line.strip_prefix(keyword)).unwrap_or(line)
}

/// The words without marks and line breaks around them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '"' | '`' | '*' | '<' | '>' | '.' | '#');
    text.split(is_mark).filter(|word| !word.is_empty())
}

fn plain(text: &str) -> String {
    words(text).collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "To answer:\n\nThought: why what you know is enough\nFinal Answer: the complete answer\nOpening hours: Monday to Friday, 9 to 17.\n\n{{ question }}";

    fn read(answer: &str) -> Reading {
        refused(ReadReply::new("", Reading::answered(answer), Vec::new()), TEMPLATE, Vec::new()).reading
    }

    #[test]
    fn words_of_the_template_are_no_answer() {
        for echo in [
            "the complete answer",
            "**The complete answer.**",
            "why what you know is enough",
            "To answer:\n\nThought: why what you know is enough",
        ] {
            assert!(matches!(read(echo), Reading::Unusable { .. }), "{echo}");
        }
    }

    #[test]
    fn answers_are() {
        for answer in [
            "42",
            "answer",
            "The complete answer is 42.",
            "Moss is green because of chlorophyll.",
            "Monday to Friday, 9 to 17",
        ] {
            assert_eq!(read(answer), Reading::answered(answer));
        }
    }
}
