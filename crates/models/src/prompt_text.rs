//! Rendered texts that share what they have in common.
//!
//! Thousands of calls wait for a model at once, and each holds its prompt in case it has to be sent again. Prompts of
//! one template differ in little more than the question.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Longer texts are mostly about their own session.
const LONGEST_SHARED: usize = 64 << 10;

/// A rendered text: the beginning and the end of another one, with something else between them.
///
/// ```
/// use trellis_models::PromptText;
///
/// let text = PromptText::from("Why is moss green?");
/// assert_eq!(text.to_string(), "Why is moss green?");
/// assert_eq!(text.len(), 18);
/// ```
#[derive(Clone)]
pub struct PromptText {
    shared: Arc<str>,
    before: usize,
    own: Box<str>,
    after: usize,
}

impl PromptText {
    /// The text, of which as much is shared as both have in common. A text that is mostly different is shared from now
    /// on.
    pub(crate) fn sharing(text: String, shared: &mut Option<Arc<str>>) -> Self {
        if text.len() > LONGEST_SHARED {
            return text.into();
        }
        let base = shared.get_or_insert_with(|| text.as_str().into());
        let before = common_start(base, &text);
        let after = common_end(&base[before..], &text[before..]);
        if 2 * (before + after) >= text.len().max(base.len()) {
            let own = text[before..text.len() - after].into();
            return Self { shared: Arc::clone(base), before, own, after };
        }
        let base: Arc<str> = text.into();
        *shared = Some(Arc::clone(&base));
        Self { before: base.len(), shared: base, own: "".into(), after: 0 }
    }

    pub fn len(&self) -> usize {
        self.before + self.own.len() + self.after
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole text, copied only if it has several pieces.
    pub(crate) fn whole(&self) -> Cow<'_, str> {
        match self.pieces() {
            [text, "", ""] | ["", text, ""] => Cow::Borrowed(text),
            pieces => Cow::Owned(pieces.concat()),
        }
    }

    /// The text in pieces, none of them copied.
    pub fn pieces(&self) -> [&str; 3] {
        let Self { shared, before, own, after } = self;
        [&shared[..*before], own, &shared[shared.len() - after..]]
    }
}

/// How many bytes are compared at once.
const STRIDE: usize = 64;

/// How many bytes both begin with.
fn common_start(one: &str, other: &str) -> usize {
    let (first, second) = (one.as_bytes(), other.as_bytes());
    let strides = first.chunks_exact(STRIDE).zip(second.chunks_exact(STRIDE));
    let alike = STRIDE * strides.take_while(|(one, other)| one == other).count();
    let rest = first[alike..].iter().zip(&second[alike..]);
    let mut length = alike + rest.take_while(|(one, other)| one == other).count();
    while !(one.is_char_boundary(length) && other.is_char_boundary(length)) {
        length -= 1;
    }
    length
}

/// How many bytes both end with.
fn common_end(one: &str, other: &str) -> usize {
    let (first, second) = (one.as_bytes(), other.as_bytes());
    let strides = first.rchunks_exact(STRIDE).zip(second.rchunks_exact(STRIDE));
    let alike = STRIDE * strides.take_while(|(one, other)| one == other).count();
    let rest = first[..first.len() - alike].iter().rev().zip(second[..second.len() - alike].iter().rev());
    let mut length = alike + rest.take_while(|(one, other)| one == other).count();
    while !(one.is_char_boundary(one.len() - length) && other.is_char_boundary(other.len() - length)) {
        length -= 1;
    }
    length
}

impl From<String> for PromptText {
    fn from(text: String) -> Self {
        Self { shared: "".into(), before: 0, own: text.into(), after: 0 }
    }
}

impl From<&str> for PromptText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for PromptText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().iter().try_for_each(|piece| f.write_str(piece))
    }
}

impl fmt::Debug for PromptText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl serde::Serialize for PromptText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever came before, a text says what it says.
        #[test]
        fn sharing_changes_nothing(texts in prop::collection::vec("(a{100}|ä{40}|)[aäß€]{0,12}(€{30}|a{70}|)", 1..8)) {
            let mut shared = None;
            for text in texts {
                let kept = PromptText::sharing(text.clone(), &mut shared);
                prop_assert_eq!(kept.to_string(), text.clone());
                prop_assert_eq!(kept.len(), text.len());
            }
        }
    }

    #[test]
    fn prompts_of_one_template_hold_only_their_question() {
        let prompt = |question: &str| format!("{}\n\n{question}\n\nAnswer now.", "Rules. ".repeat(100));
        let mut shared = None;
        let texts = ["first", "second", "third"].map(|text| PromptText::sharing(prompt(text), &mut shared));
        assert!(texts.iter().all(|text| text.own.len() < 10), "{texts:?}");
        assert_eq!(texts[1].to_string(), prompt("second"));
    }

    #[test]
    fn a_text_that_is_different_is_shared_from_then_on() {
        let mut shared = None;
        PromptText::sharing("short".to_owned(), &mut shared);
        PromptText::sharing("quite another text".to_owned(), &mut shared);
        assert_eq!(shared.as_deref(), Some("quite another text"));
        PromptText::sharing("x".repeat(LONGEST_SHARED + 1), &mut shared);
        assert_eq!(shared.as_deref(), Some("quite another text"));
    }
}
