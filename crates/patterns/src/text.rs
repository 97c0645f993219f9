//! Texts for models.

/// At most so many bytes, with a note that there was more: the model should know that it sees a part.
pub(crate) fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = (0..=bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}\n[cut: {} of {} bytes shown]", &text[..end], end, text.len())
}
