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

    /// Whether something was refused that can be left out from now on, and was not before this request was made: of
    /// several that are refused at once, each is asked again.
    pub(super) fn learn(&self, names: &[MemberName], refusal: &Refusal, before: LeftOut) -> bool {
        let meant = names.iter().filter(|(name, _)| refusal.names(name));
        let refused = meant.fold(0, |all, (_, member)| all | member);
        let until = Instant::now() + KEPT;
        for (bit, place) in self.0.lock().iter_mut().enumerate() {
            if refused >> bit & 1 == 1 {
                *place = Some(until);
            }
        }
        refused & !before.0 != 0
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
        assert!(!refused.learn(&NAMES, &refusal("no such model", None), LeftOut::default()));
        assert!(refused.learn(&NAMES, &refusal("'temperature' is not supported", None), LeftOut::default()));
        assert_eq!(refused.left_out(), LeftOut(TEMPERATURE));
        let again = refusal("'temperature' is not supported", None);
        assert!(refused.learn(&NAMES, &again, LeftOut::default()), "another one had sent it, too");
        assert!(!refused.learn(&NAMES, &again, refused.left_out()), "it was left out already");
        tokio::time::advance(KEPT).await;
        assert_eq!(refused.left_out(), LeftOut::default());
    }

    #[tokio::test]
    async fn an_error_that_names_the_parameter_is_believed() {
        let refused = Refused::default();
        let words = "temperature, tool_choice and others are fine, but not this";
        assert!(!refused.learn(&NAMES, &refusal(words, Some("messages")), LeftOut::default()));
        assert!(refused.learn(&NAMES, &refusal("unsupported", Some("tool_choice.type")), LeftOut::default()));
        assert_eq!(refused.left_out(), LeftOut(FORCES));
    }
}
