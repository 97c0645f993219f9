//! Replies that repeat what the model was told instead of answering.

use crate::reader::ReadReply;
use trellis_domain::decision::Decision;
use trellis_domain::record::Reading;

/// Shorter texts may well be an answer and stand in a prompt, too.
const SHORTEST: usize = 16;

/// The reply, unless its answer is nothing but words of the template: what a template says is never an answer, because
/// everything that belongs to a question comes in its variables.
pub(crate) fn refused(read: ReadReply, template: &str, offered: Vec<Decision>) -> ReadReply {
    let Reading::Answered { text, .. } = &read.reading else { return read };
    if !repeats(text.text(), template) {
        return read;
    }
    let reason = "the answer repeats words of the instructions instead of answering; answer the question itself";
    ReadReply { thought: read.thought, ..ReadReply::unusable(reason, offered) }
}

fn repeats(answer: &str, template: &str) -> bool {
    let answer = plain(answer);
    answer.len() >= SHORTEST && plain(template).contains(&answer)
}

/// The words without marks and line breaks around them.
fn plain(text: &str) -> String {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '"' | '`' | '*' | '<' | '>' | '.' | '#');
    text.split(is_mark).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str =
        "To answer:\n\nThought: why what you know is enough\nFinal Answer: the complete answer\n\n{{ question }}";

    fn read(answer: &str) -> Reading {
        refused(ReadReply::new("", Reading::answered(answer), Vec::new()), TEMPLATE, Vec::new()).reading
    }

    #[test]
    fn words_of_the_template_are_no_answer() {
        for echo in ["the complete answer", "**The complete answer.**", "why what you know\nis enough"] {
            assert!(matches!(read(echo), Reading::Unusable { .. }), "{echo}");
        }
    }

    #[test]
    fn answers_are() {
        for answer in ["42", "answer", "The complete answer is 42.", "Moss is green because of chlorophyll."] {
            assert_eq!(read(answer), Reading::answered(answer));
        }
    }
}
