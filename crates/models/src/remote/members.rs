//! Members of a request that some models refuse. What was refused is left out, or said in another way, for an hour.

use super::Refusal;
use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// A server may be updated, and a refusal misread: after so long everything is tried once more.
pub(super) const KEPT: Duration = Duration::from_hours(1);

/// Members, one bit each.
pub(crate) type Members = u16;

/// Counts the tokens of a stream.
pub(crate) const COUNTS: Members = 1;
/// Makes sure that something is called.
pub(crate) const FORCES: Members = 1 << 1;
/// Only one thing at a time.
pub(crate) const ONE_CALL: Members = 1 << 2;
/// Standing instructions in a message of their own.
pub(crate) const SYSTEM: Members = 1 << 3;
pub(crate) const TEMPERATURE: Members = 1 << 4;
pub(crate) const TOP_P: Members = 1 << 5;
/// The limit of tokens under its usual name: it has two.
pub(crate) const LIMIT: Members = 1 << 6;
/// Thinking before a call.
pub(crate) const EFFORT: Members = 1 << 7;
/// Asks to keep what was computed for the conversation so far.
pub(crate) const CACHE: Members = 1 << 8;
/// A schema for the reply itself, and not for a function that takes it.
pub(crate) const FORMAT: Members = 1 << 9;
/// Thoughts of earlier replies, as their provider signed them.
pub(crate) const THOUGHTS: Members = 1 << 13;

/// The limit of tokens that nobody set.
pub(crate) const CAP: Members = 1 << 10;

/// A JSON schema for the reply, in any form.
pub(crate) const SCHEMA: Members = 1 << 11;
/// Functions whose schemas are enforced.
pub(crate) const STRICT_CALLS: Members = 1 << 12;

/// How refusals name a member.
pub(crate) type MemberName = (&'static str, Members);

/// What a request is made without.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeftOut(pub(crate) Members);

impl LeftOut {
    pub(crate) fn sends(self, member: Members) -> bool {
        self.0 & member == 0
    }
}

/// What one model has refused, and until when that counts.
#[derive(Debug, Default)]
pub(super) struct Refused(Mutex<[Option<Instant>; Members::BITS as usize]>);

impl Refused {
    /// What is left out now.
    pub(super) fn left_out(&self) -> LeftOut {
        let now = Instant::now();
        let members = self.0.lock();
        let counts = members.iter().map(|until| until.is_some_and(|until| until > now));
        LeftOut(counts.rev().fold(0, |all, counts| all << 1 | Members::from(counts)))
    }

    /// A request was taken after these had been left out of it.
    pub(super) fn learn(&self, members: Members) {
        let until = Instant::now() + KEPT;
        for (bit, place) in self.0.lock().iter_mut().enumerate() {
            if members >> bit & 1 == 1 {
                *place = Some(until);
            }
        }
    }
}

/// What one request is made without: what is known, and what it learns itself. An error may quote names out of somebody's
/// schema, so that nothing counts for others before the request was taken.
#[derive(Debug)]
pub(super) struct Trying {
    pub(super) left_out: LeftOut,
    learned: Members,
}

impl Trying {
    /// What the provider is known to lack is not even tried.
    pub(super) fn new(refused: &Refused, lacks: Members) -> Self {
        Self { left_out: LeftOut(refused.left_out().0 | lacks), learned: 0 }
    }

    /// Whether something was refused that can be left out and was not. What is named although it was left out was not
    /// the reason, and is sent again.
    pub(super) fn leaves_out(&mut self, names: &[MemberName], refusal: &Refusal) -> bool {
        let meant = names.iter().filter(|(name, _)| refusal.names(name));
        let mut accused = meant.fold(0, |all, (_, member)| all | member);
        // A limit that is refused under both of its names can only be left out.
        if accused & self.left_out.0 & LIMIT != 0 {
            accused = accused & !LIMIT | CAP;
        }
        let new = accused & !self.left_out.0;
        let innocent = if new == 0 { accused & self.learned } else { 0 };
        self.learned = (self.learned | new) & !innocent;
        self.left_out.0 = (self.left_out.0 | new) & !innocent;
        new != 0
    }

    /// Tries without the limit that nobody set, if it was sent: there may be room for the prompt, and not for both. That
    /// is no refusal, and teaches nothing.
    pub(super) fn leaves_out_the_cap(&mut self) -> bool {
        let was_sent = self.left_out.sends(CAP);
        self.left_out.0 |= CAP;
        was_sent
    }

    pub(super) fn was_taken(self, refused: &Refused) {
        refused.learn(self.learned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(words: &str, parameter: Option<&str>) -> Refusal {
        Refusal { status: Some(400), words: words.to_owned(), parameter: parameter.map(str::to_owned) }
    }

    const NAMES: [MemberName; 2] = [("temperature", TEMPERATURE), ("tool_choice", FORCES)];

    #[tokio::test(start_paused = true)]
    async fn what_was_refused_is_left_out_for_an_hour() {
        let refused = Refused::default();
        let mut trying = Trying::new(&refused, 0);
        assert!(!trying.leaves_out(&NAMES, &refusal("no such model", None)));
        assert!(trying.leaves_out(&NAMES, &refusal("'temperature' is not supported", None)));
        assert_eq!((trying.left_out, refused.left_out()), (LeftOut(TEMPERATURE), LeftOut::default()));
        trying.was_taken(&refused);
        assert_eq!(refused.left_out(), LeftOut(TEMPERATURE));
        tokio::time::advance(KEPT).await;
        assert_eq!(refused.left_out(), LeftOut::default());
    }

    #[tokio::test]
    async fn a_name_in_somebodys_schema_teaches_nothing() {
        let refused = Refused::default();
        let mut trying = Trying::new(&refused, 0);
        let odd = refusal("invalid schema: property temperature", None);
        assert!(trying.leaves_out(&NAMES, &odd));
        assert!(!trying.leaves_out(&NAMES, &odd), "it was left out, and is named all the same");
        assert_eq!(trying.left_out, LeftOut::default());
        trying.was_taken(&refused);
        assert_eq!(refused.left_out(), LeftOut::default());
    }

    #[tokio::test]
    async fn a_limit_that_is_refused_under_both_names_is_left_out() {
        let names = [("max_tokens", LIMIT), ("max_completion_tokens", LIMIT)];
        let refused = Refused::default();
        let mut trying = Trying::new(&refused, 0);
        assert!(trying.leaves_out(&names, &refusal("max_tokens is too large", None)));
        assert_eq!(trying.left_out, LeftOut(LIMIT));
        assert!(trying.leaves_out(&names, &refusal("max_completion_tokens is too large", None)));
        assert_eq!(trying.left_out, LeftOut(LIMIT | CAP));
        assert!(!trying.leaves_out(&names, &refusal("max_completion_tokens is too large", None)));
        let mut trying = Trying::new(&refused, 0);
        assert!(trying.leaves_out_the_cap() && !trying.leaves_out_the_cap());
        trying.was_taken(&refused);
        assert_eq!(refused.left_out(), LeftOut::default(), "a long prompt is no refusal");
    }

    #[tokio::test]
    async fn an_error_that_names_the_parameter_is_believed() {
        let mut trying = Trying::new(&Refused::default(), 0);
        let words = "temperature, tool_choice and others are fine, but not this";
        assert!(!trying.leaves_out(&NAMES, &refusal(words, Some("messages"))));
        assert!(trying.leaves_out(&NAMES, &refusal("unsupported", Some("tool_choice.type"))));
        assert_eq!(trying.left_out, LeftOut(FORCES));
    }
}
