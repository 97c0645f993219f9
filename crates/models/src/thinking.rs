//! What a model thinks before it speaks, where the server leaves that in the text.
//!
//! Models that reason put it between tags at the beginning of their reply. A server that knows them sends it apart; one
//! that does not sends it as the reply, and what was only considered would be read as what was decided.

/// What a reply may begin with, and what ends it.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// So much space at the beginning is no beginning of anything.
const LONGEST_START: usize = 1024;

/// Tells apart what stands between the tags and what is spoken, however the text is cut into pieces.
#[derive(Debug, Default)]
pub(crate) struct Thinking {
    state: State,
    /// What was thought and not taken yet.
    thought: String,
}

#[derive(Debug)]
enum State {
    /// What came so far may still be the beginning of a tag.
    Begin(String),
    /// Between the tags: the end of what came, which may be the beginning of the tag that closes.
    Inside {
        close: &'static str,
        tail: String,
    },
    /// Behind the tag, where space means nothing.
    After,
    Over,
}

impl Default for State {
    fn default() -> Self {
        Self::Begin(String::new())
    }
}

impl Thinking {
    /// What is spoken of the next piece.
    pub(crate) fn spoken(&mut self, text: String) -> String {
        match &mut self.state {
            State::Over => text,
            State::Begin(begun) => {
                begun.push_str(&text);
                let start = begun.trim_start();
                if let Some((open, close)) = TAGS.into_iter().find(|(open, _)| start.starts_with(open)) {
                    let inside = start[open.len()..].to_owned();
                    self.state = State::Inside { close, tail: String::new() };
                    return self.spoken(inside);
                }
                if begun.len() < LONGEST_START && TAGS.iter().any(|(open, _)| open.starts_with(start)) {
                    return String::new();
                }
                let begun = std::mem::take(begun);
                self.state = State::Over;
                begun
            }
            State::Inside { close, tail } => {
                tail.push_str(&text);
                let Some((thought, spoken)) = tail.split_once(*close) else {
                    // Only as much is held back as can be the beginning of the tag.
                    let end = tail.ceil_char_boundary(tail.len().saturating_sub(close.len() - 1));
                    self.thought.extend(tail.drain(..end));
                    return String::new();
                };
                self.thought.push_str(thought);
                let spoken = spoken.to_owned();
                self.state = State::After;
                self.spoken(spoken)
            }
            State::After => {
                let spoken = text.trim_start().to_owned();
                if !spoken.is_empty() {
                    self.state = State::Over;
                }
                spoken
            }
        }
    }

    /// What was thought since the last time.
    pub(crate) fn take_thought(&mut self) -> String {
        std::mem::take(&mut self.thought)
    }

    /// The text is complete: what was held back of it.
    pub(crate) fn rest(&mut self) -> String {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Begin(begun) => begun,
            State::Inside { tail, .. } => {
                self.thought.push_str(&tail);
                String::new()
            }
            State::After | State::Over => String::new(),
        }
    }
}

/// What is said of a reply that begins in the middle of thinking.
pub(crate) const UNMARKED: &str = "what stood before the end of its thinking was left out";
/// What is said of a reply with more thoughts than are kept.
pub(crate) const CUT_THOUGHT: &str = "of what it thought, only the beginning was kept";

/// What is spoken in a text in which only the end of the thinking is marked, alone on its line: some servers take the
/// beginning for a part of the prompt.
pub(crate) fn behind_thinking(text: &str) -> Option<&str> {
    let closed = TAGS.iter().find_map(|(open, close)| {
        let (thought, spoken) = text.split_once(close)?;
        let alone =
            (thought.is_empty() || thought.ends_with('\n')) && (spoken.is_empty() || spoken.starts_with(['\n', '\r']));
        (alone && !thought.contains(open)).then_some(spoken)
    });
    closed.map(str::trim_start)
}

#[cfg(test)]
#[path = "thinking_tests.rs"]
mod tests;
