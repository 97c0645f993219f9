//! Numbers with their words.

use std::fmt::Display;

/// `1 round`, `2 rounds`: a message that gets its plural wrong reads as if nobody had checked its number either.
pub fn counted(count: impl Display, word: &str) -> String {
    let count = count.to_string();
    match word.strip_suffix('y') {
        _ if count == "1" => format!("{count} {word}"),
        Some(stem) => format!("{count} {stem}ies"),
        None => format!("{count} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_has_no_plural() {
        assert_eq!(
            [counted(0, "round"), counted(1, "round"), counted(2, "round")],
            ["0 rounds", "1 round", "2 rounds"]
        );
        assert_eq!(counted("1,200", "statement"), "1,200 statements");
        assert_eq!([counted(1, "entry"), counted(3, "entry")], ["1 entry", "3 entries"]);
    }
}
