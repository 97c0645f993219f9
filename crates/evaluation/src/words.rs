//! Texts as their words, so that spelling habits do not decide whether an answer is right.

use std::collections::BTreeMap;

/// The runs of letters and digits, in lower case.
pub(crate) fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

/// Lower case, with one blank wherever there was any white space, and none at the ends.
pub(crate) fn folded(text: &str) -> String {
    text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The same without quotation marks, emphasis and punctuation around it.
pub(crate) fn bare(text: &str) -> String {
    let around = |c: char| c.is_whitespace() || "\"'`*_.,;:!?…“”„‘’«»()[]{}".contains(c);
    folded(text.trim_matches(around))
}

/// How far the words of two texts are the same, from 0 to 1; each word counts as often as it occurs.
pub(crate) fn f1(one: &str, other: &str) -> f64 {
    let (one, other) = (words(one), words(other));
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for word in &other {
        *left.entry(word).or_default() += 1;
    }
    let mut common = 0_usize;
    for word in &one {
        if let Some(count) = left.get_mut(word.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    if common == 0 {
        return 0.0;
    }
    2.0 * crate::statistics::float(common) / crate::statistics::float(one.len() + other.len())
}

/// Whether an answer is only the question again: it has most of the question's words and none besides. An answer that
/// restates the question and then answers it has others.
pub(crate) fn echoes(question: &str, answer: &str) -> bool {
    const MOST: f64 = 0.8;
    let (asked, said) = (words(question), words(answer));
    let repeated = asked.iter().filter(|word| said.contains(word)).count();
    !said.is_empty()
        && said.iter().all(|word| asked.contains(word))
        && crate::statistics::float(repeated) >= MOST * crate::statistics::float(asked.len())
}

/// Whether an answer is nothing but words of an instruction. Short ones may be answers all the same.
pub(crate) fn is_part_of(instruction: &str, answer: &str) -> bool {
    const SHORTEST: usize = 16;
    let (instruction, answer) = (words(instruction).join(" "), words(answer).join(" "));
    answer.len() >= SHORTEST && format!(" {instruction} ").contains(&format!(" {answer} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_says_nothing_new_is_an_echo() {
        let question = "Who founded Tarnwick Kettleworks?";
        assert!(echoes(question, "who founded **Tarnwick Kettleworks**"));
        assert!(!echoes(question, "Odile Farrant founded Tarnwick Kettleworks."));
        assert!(!echoes(question, "Who founded Tarnwick Kettleworks? Odile Farrant."));
        assert!(!echoes(question, "Tarnwick"), "that may be an answer");
        assert!(!echoes("?", "") && !echoes(question, ""));
    }

    #[test]
    fn words_that_occur_twice_count_twice() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(f1("a b", "B, a!"), 1.0) && close(f1("a", "b"), 0.0) && close(f1("", ""), 0.0));
        assert!(close(f1("a a a b", "a b"), 4.0 / 6.0));
    }
}
