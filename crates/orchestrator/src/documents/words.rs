//! Text as words that are looked for. Index and question go through the same rules, so that they meet.

use std::ops::Range;

/// Longer words are cut: hashes and the like are still found by their beginning.
const LONGEST: usize = 64;

/// A word in the form that it is looked for, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub bytes: Range<usize>,
}

/// The words of a text: runs of letters and digits in lower case, English plurals as singulars. Scripts that do not
/// separate words count by character and by pairs of characters.
///
/// ```
/// use trellis_orchestrator::documents::words;
///
/// let found: Vec<_> = words("Refund-Policies, §2: 東京都").map(|word| word.text).collect();
/// assert_eq!(found, ["refund", "policy", "2", "東", "東京", "京", "京都", "都"]);
/// ```
pub fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    runs(text).flat_map(move |run| {
        let separated = !text[run.clone()].starts_with(is_unseparated);
        let whole = separated.then(|| Word { text: normal(&text[run.clone()]), bytes: run.clone() });
        let parts = (!separated).then(|| characters_and_pairs(text, run));
        whole.into_iter().chain(parts.into_iter().flatten())
    })
}

/// Runs of letters and digits, either all of scripts that separate words or none.
fn runs(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(char::is_alphanumeric)?;
        let unseparated = text[start..].starts_with(is_unseparated);
        let goes_on = |c: char| (c.is_alphanumeric() || is_mark(c)) && is_unseparated(c) == unseparated;
        at = text[start..].find(|c| !goes_on(c)).map_or(text.len(), |length| start + length);
        Some(start..at)
    })
}

/// Marks that change the letter before them.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

fn is_unseparated(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{3040}'..='\u{30ff}' // Japanese syllables
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' // Chinese characters
        | '\u{ac00}'..='\u{d7af}' // Korean, whose words have endings
        | '\u{20000}'..='\u{3ffff}')
}

fn characters_and_pairs(text: &str, run: Range<usize>) -> impl Iterator<Item = Word> + '_ {
    let word = move |bytes: Range<usize>| Word { text: text[bytes.clone()].to_owned(), bytes };
    text[run.clone()].char_indices().flat_map(move |(offset, c)| {
        let start = run.start + offset;
        let next = start + c.len_utf8();
        let pair = text[next..run.end].chars().next().map(|c| word(start..next + c.len_utf8()));
        std::iter::once(word(start..next)).chain(pair)
    })
}

fn normal(word: &str) -> String {
    let lower: String = word.chars().flat_map(char::to_lowercase).take(LONGEST).collect();
    singular(lower)
}

/// Only the endings of plurals, by the rules of Harman's S stemmer: more would damage other languages.
fn singular(word: String) -> String {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word;
    }
    if word.ends_with("ies") && !ends(&["eies", "aies"]) {
        return format!("{}y", &word[..word.len() - 3]);
    }
    if word.ends_with('s') && !ends(&["us", "ss", "aes", "ees", "oes"]) {
        return word[..word.len() - 1].to_owned();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        words(text).map(|word| word.text).collect()
    }

    #[test]
    fn words_are_lower_case_and_singular() {
        assert_eq!(found("The Companies' CASES, status: 12.5%"), ["the", "company", "case", "status", "12", "5"]);
        assert_eq!(found("Straße ÉTÉ naïve"), ["straße", "été", "naïve"]);
        assert!(found(" …!? \n").is_empty());
    }

    #[test]
    fn scripts_without_spaces_count_by_character_and_pair() {
        assert_eq!(found("AI東京"), ["ai", "東", "東京", "京"]);
    }

    #[test]
    fn endless_words_are_cut() {
        assert_eq!(found(&"x".repeat(1000)), ["x".repeat(64)]);
    }

    #[test]
    fn a_word_knows_where_it_stands() {
        let text = "été: 東京 cars";
        for word in words(text) {
            let stands = text[word.bytes].to_lowercase();
            assert!(stands.starts_with(&word.text), "{stands} is {}", word.text);
        }
    }
}
