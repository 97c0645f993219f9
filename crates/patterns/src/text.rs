//! Texts for models.

/// At most so many bytes, with a note that there was more: the model should know that it sees a part.
pub(crate) fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = (0..=bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}\n[cut: {} of {} bytes shown]", &text[..end], end, text.len())
}

/// The beginning and the end, at most so many bytes of both, with a note that there was more between them.
pub(crate) fn ends(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let (first, last) = (text.floor_char_boundary(bytes / 2), text.ceil_char_boundary(text.len() - bytes / 2));
    let between = last - first;
    format!("{}\n[cut: {between} of {} bytes not shown]\n{}", &text[..first], text.len(), &text[last..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_text_both_ends_are_shown() {
        assert_eq!(ends("abcdef", 6), "abcdef");
        assert_eq!(ends("abcdefghij", 4), "ab\n[cut: 6 of 10 bytes not shown]\nij");
        assert_eq!(ends("äöüäöü", 6), "ä\n[cut: 8 of 12 bytes not shown]\nü", "characters stay whole");
    }
}
