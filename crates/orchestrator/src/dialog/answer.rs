//! The answer as the caller hears it: in pieces while it is written, and again if its model broke off.
//!
//! Stock clients join whatever comes as an answer. A reply that takes the place of a broken one goes on where that one
//! stopped if it says the same, and is sent apart from it otherwise.

use std::collections::HashSet;

/// Ends what broke off, so that nobody takes it for the beginning of what follows.
const BROKEN_OFF: &str = " […]\n\n";

/// A piece of the answer, under the id that it is sent under.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) id: String,
    pub(super) text: String,
    /// Nothing more comes under this id.
    pub(super) ends: bool,
}

/// What the caller was sent.
#[derive(Debug, Default)]
pub(super) struct DialogAnswer {
    sent: Option<SentText>,
    /// The id of a reply that so far only repeats what was sent of another, and its text.
    repeating: (String, String),
}

#[derive(Debug)]
struct SentText {
    /// The reply that it comes from.
    reply: String,
    shown: String,
    text: String,
}

impl DialogAnswer {
    /// More of a reply. What only repeats an earlier one is held back.
    pub(super) fn more(&mut self, reply: &str, text: &str, taken: &mut HashSet<String>) -> Vec<Piece> {
        let sent = match &mut self.sent {
            None => return self.begin(reply, text.to_owned(), taken),
            Some(sent) if sent.reply == reply => {
                sent.text.push_str(text);
                return piece(&sent.shown, text);
            }
            Some(sent) => sent,
        };
        let (repeating, mut so_far) = std::mem::take(&mut self.repeating);
        if repeating != reply {
            so_far.clear();
        }
        so_far.push_str(text);
        if sent.text.len() > so_far.len() && sent.text.starts_with(&so_far) {
            self.repeating = (reply.to_owned(), so_far);
            return Vec::new();
        }
        self.replace(reply, so_far, taken)
    }

    /// Another process sent this, of a reply that nobody writes on.
    pub(super) fn sent_before(&mut self, id: &str, text: &str) {
        match &mut self.sent {
            Some(sent) if sent.shown == id => sent.text.push_str(text),
            _ => self.sent = Some(SentText { reply: String::new(), shown: id.to_owned(), text: text.to_owned() }),
        }
    }

    /// What was sent so far was no answer: whatever comes next takes its place, even under the same id.
    pub(super) fn break_off(&mut self) {
        self.repeating = Default::default();
        if let Some(sent) = &mut self.sent {
            sent.reply.clear();
        }
    }

    /// A reply is the answer: what is left of it, and the id that it was sent under.
    pub(super) fn whole(&mut self, reply: &str, text: &str, taken: &mut HashSet<String>) -> (Vec<Piece>, String) {
        let pieces = match &self.sent {
            None => self.begin(reply, text.to_owned(), taken),
            // What came behind the answer itself was sent, too.
            Some(sent) if sent.reply == reply && sent.text.starts_with(text) => Vec::new(),
            Some(_) => self.replace(reply, text.to_owned(), taken),
        };
        (pieces, self.sent.as_ref().map(|sent| sent.shown.clone()).unwrap_or_default())
    }

    /// Another reply takes the place of the one that was sent.
    fn replace(&mut self, reply: &str, text: String, taken: &mut HashSet<String>) -> Vec<Piece> {
        let Some(sent) = self.sent.take() else { return self.begin(reply, text, taken) };
        if let Some(rest) = text.strip_prefix(&sent.text) {
            let pieces = piece(&sent.shown, rest);
            self.sent = Some(SentText { reply: reply.to_owned(), shown: sent.shown, text });
            return pieces;
        }
        let end = Piece { id: sent.shown, text: BROKEN_OFF.to_owned(), ends: true };
        std::iter::once(end).chain(self.begin(reply, text, taken)).collect()
    }

    fn begin(&mut self, reply: &str, text: String, taken: &mut HashSet<String>) -> Vec<Piece> {
        let shown = super::free_id(taken, reply);
        let pieces = piece(&shown, &text);
        self.sent = Some(SentText { reply: reply.to_owned(), shown, text });
        pieces
    }
}

fn piece(id: &str, text: &str) -> Vec<Piece> {
    let piece = || Piece { id: id.to_owned(), text: text.to_owned(), ends: false };
    if text.is_empty() { Vec::new() } else { vec![piece()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sent of replies that arrive in these pieces; the last reply is the answer.
    fn sent(replies: &[(&str, &[&str])], answer: &str) -> Vec<(String, String)> {
        let (mut received, mut taken) = (DialogAnswer::default(), HashSet::new());
        let mut pieces = Vec::new();
        for (reply, texts) in replies {
            pieces.extend(texts.iter().flat_map(|text| received.more(reply, text, &mut taken)));
        }
        let (last, _) = replies.last().unwrap();
        pieces.extend(received.whole(last, answer, &mut taken).0);
        pieces.into_iter().map(|piece| (piece.id, piece.text)).collect()
    }

    fn of(pieces: &[(&str, &str)]) -> Vec<(String, String)> {
        pieces.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_reply_that_arrives_is_told_as_it_comes() {
        assert_eq!(sent(&[("a", &["Forty", "-two"])], "Forty-two."), of(&[("a", "Forty"), ("a", "-two"), ("a", ".")]));
        assert_eq!(sent(&[("a", &[])], "Forty-two."), of(&[("a", "Forty-two.")]));
        assert_eq!(sent(&[("a", &[])], ""), []);
    }

    #[test]
    fn a_reply_that_says_the_same_goes_on_where_the_broken_one_stopped() {
        let twice: &[(&str, &[&str])] = &[("a", &["Forty"]), ("a#2", &["For", "ty-t"]), ("a#3", &["F"])];
        assert_eq!(sent(twice, "Forty-two."), of(&[("a", "Forty"), ("a", "-t"), ("a", "wo.")]));
        assert_eq!(sent(&[("a", &["Forty"]), ("a#2", &[])], "Forty"), of(&[("a", "Forty")]));
    }

    /// A reply that was cut short does not count, and the next one of the session has the same id.
    #[test]
    fn what_was_no_answer_is_told_apart_even_under_the_same_id() {
        let (mut received, mut taken) = (DialogAnswer::default(), HashSet::new());
        let mut pieces = received.more("a", "Half of th", &mut taken);
        received.break_off();
        pieces.extend(["Sho", "rt."].iter().flat_map(|text| received.more("a", text, &mut taken)));
        pieces.extend(received.whole("a", "Short.", &mut taken).0);
        let sent: Vec<_> = pieces.into_iter().map(|piece| (piece.id, piece.text)).collect();
        assert_eq!(sent, of(&[("a", "Half of th"), ("a", BROKEN_OFF), ("a#2", "Sho"), ("a#2", "rt.")]));
    }

    /// A process that takes over has only what the other one noted.
    #[test]
    fn an_answer_goes_on_where_another_process_stopped() {
        let begun = |second: &str| {
            let (mut received, mut taken) = (DialogAnswer::default(), HashSet::from(["a".to_owned()]));
            received.sent_before("a", "For");
            received.sent_before("a", "ty");
            let mut pieces = received.more("a", second, &mut taken);
            pieces.extend(received.whole("a", &format!("{second}-two."), &mut taken).0);
            pieces.into_iter().map(|piece| (piece.id, piece.text)).collect::<Vec<_>>()
        };
        assert_eq!(begun("Forty"), of(&[("a", "-two.")]));
        assert_eq!(begun("Fifty"), of(&[("a", BROKEN_OFF), ("a#2", "Fifty"), ("a#2", "-two.")]));
    }

    #[test]
    fn a_reply_that_says_something_else_is_told_apart() {
        let other: &[(&str, &[&str])] = &[("a", &["Half of th"]), ("a#2", &["Half", "-way"])];
        assert_eq!(
            sent(other, "Half-way."),
            of(&[("a", "Half of th"), ("a", BROKEN_OFF), ("a#2", "Half-way"), ("a#2", ".")])
        );
        let shorter: &[(&str, &[&str])] = &[("a", &["Half of th"]), ("a#2", &["Half"])];
        assert_eq!(sent(shorter, "Half"), of(&[("a", "Half of th"), ("a", BROKEN_OFF), ("a#2", "Half")]));
    }
}
