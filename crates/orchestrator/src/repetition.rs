//! Notices a model that only repeats itself, so that it is stopped long before its limit of tokens.

/// Nothing but white space for so long is no reply.
const BLANK: usize = 256;
/// So much text that consists of nothing but copies of a short piece is none either.
const LOOKED_AT: usize = 2048;
const LONGEST_PIECE: usize = 128;
/// It is looked at again after so much more.
const EVERY: usize = 256;

/// The end of a reply while it arrives.
#[derive(Debug, Default)]
pub(crate) struct Repetition {
    tail: Vec<u8>,
    unseen: usize,
    blank: usize,
    /// Something was said before the blanks.
    has_words: bool,
}

/// Why a reply is not read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noticed {
    /// Only blanks follow: what was said before them counts.
    Blanks,
    /// Nothing was said, or the same again and again.
    Nothing,
}

impl Repetition {
    /// Takes more of the reply. Says if it does nothing but repeat itself by now.
    pub(crate) fn push(&mut self, text: &str) -> Option<Noticed> {
        let blank = text.len() - text.trim_end().len();
        self.has_words |= blank < text.len();
        self.blank = if blank == text.len() { self.blank + blank } else { blank };
        self.unseen += text.len();
        let bytes = text.as_bytes();
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(LOOKED_AT)..]);
        let too_much = self.tail.len().saturating_sub(LOOKED_AT);
        self.tail.drain(..too_much);
        if self.blank >= BLANK {
            return Some(if self.has_words { Noticed::Blanks } else { Noticed::Nothing });
        }
        if self.tail.len() < LOOKED_AT || self.unseen < EVERY {
            return None;
        }
        self.unseen = 0;
        (period(&self.tail) <= LONGEST_PIECE).then_some(Noticed::Nothing)
    }
}

/// The length of the shortest piece of which the text consists; the last copy may be cut.
fn period(text: &[u8]) -> usize {
    // For each place: how much of the beginning ends there once more.
    let mut borders = vec![0; text.len()];
    let mut border: usize = 0;
    for place in 1..text.len() {
        while border > 0 && text[place] != text[border] {
            border = borders[border - 1];
        }
        if text[place] == text[border] {
            border += 1;
        }
        borders[place] = border;
    }
    text.len() - borders.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn repeats(text: &str, at_once: usize) -> bool {
        let mut repetition = Repetition::default();
        let chars: Vec<_> = text.chars().collect();
        chars.chunks(at_once).any(|piece| repetition.push(&piece.iter().collect::<String>()).is_some())
    }

    #[test]
    fn line_breaks_and_loops_are_noticed_early() {
        assert!(repeats(&"\n".repeat(300), 1));
        assert!(repeats(&format!("Thought: hm.{}", " \n".repeat(200)), 3));
        assert!(repeats(&"I need to search again. ".repeat(120), 5));
        assert!(repeats(&format!("Well, {}", "no ".repeat(1_000)), 7));
    }

    #[test]
    fn what_was_said_before_blanks_counts() {
        assert_eq!(Repetition::default().push(&format!("Final Answer: 42{}", "\n".repeat(300))), Some(Noticed::Blanks));
        assert_eq!(Repetition::default().push(&"\n".repeat(300)), Some(Noticed::Nothing));
    }

    #[test]
    fn ordinary_texts_are_not() {
        let numbered: Vec<_> = (0..2_000).map(|n| format!("{n}. item")).collect();
        assert!(!repeats(&numbered.join("\n"), 9));
        assert!(!repeats(&format!("| a | b |\n{}\n", "-".repeat(1_000)), 4));
        assert!(!repeats(&format!("x{}y", " ".repeat(200)), 10));
        assert!(!repeats("", 1));
    }

    proptest! {
        /// However a text is cut into pieces, white space alone is noticed at the same length.
        #[test]
        fn blanks_are_counted_across_pieces(at_once in 1_usize..50) {
            prop_assert!(repeats(&" \n".repeat(160), at_once));
            prop_assert!(!repeats(&" \n".repeat(120), at_once));
        }
    }
}
