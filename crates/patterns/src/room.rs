//! How much material a prompt shows: no more than the model can read, shared by all of its parts.

use crate::text::cut;

/// Runs under earlier rules have a limit for each text and none for all of them.
pub(crate) const SINCE: u32 = 3;
/// A prompt that was too long is asked again with this part of the room.
const NARROWED: usize = 16;
/// However little room there is, so much is shown.
const LEAST: usize = 4_000;

/// What a prompt has for its material.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// For all of it.
    pub(crate) bytes: usize,
    /// For each text.
    pub(crate) each: usize,
    /// Whether `bytes` counts.
    pub(crate) is_shared: bool,
}

impl Room {
    /// What is left if the same was too long for the model before.
    pub(crate) fn narrowed(self) -> Self {
        Self { bytes: self.bytes / NARROWED, ..self }
    }

    /// What is left beside so many bytes that are shown whole.
    pub(crate) fn beside(self, told: usize) -> Self {
        Self { bytes: self.bytes.saturating_sub(told), ..self }
    }

    /// The part for what is told besides the question.
    pub(crate) fn for_context(self) -> Self {
        Self { bytes: self.bytes / 4, ..self }
    }

    /// Short texts stay whole; what they leave is shared evenly by the long ones.
    pub(crate) fn shared_by<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> TextShare {
        let lengths = texts.into_iter().map(str::len).collect();
        let each = if self.is_shared { share(self.bytes.max(LEAST), lengths) } else { usize::MAX };
        TextShare { each: each.min(self.each) }
    }
}

/// What each of the texts in a prompt may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextShare {
    each: usize,
}

impl TextShare {
    pub(crate) fn shown(self, text: &str) -> String {
        cut(text, self.each)
    }
}

/// The most that each of these may have for all of them to fit.
fn share(room: usize, mut lengths: Vec<usize>) -> usize {
    lengths.sort_unstable();
    let (mut room, mut others) = (room, lengths.len());
    for length in lengths {
        let each = room / others;
        if length > each {
            return each;
        }
        (room, others) = (room - length, others - 1);
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, question, settings};
    use crate::synthesis::SynthesisName;
    use trellis_domain::Caller;
    use trellis_domain::record::{Accepted, Body, Name, Routed};
    use trellis_domain::told::Told;

    #[test]
    fn short_texts_stay_whole_and_long_ones_share_the_rest() {
        for (room, lengths, each) in [
            (100, vec![], usize::MAX),
            (100, vec![40, 60], usize::MAX),
            (100, vec![10, 200], 90),
            (100, vec![200, 10, 200], 45),
            (3, vec![200; 5], 0),
        ] {
            assert_eq!(share(room, lengths.clone()), each, "{lengths:?}");
            let shown: usize = lengths.iter().map(|length| each.min(*length)).sum();
            assert!(shown <= room, "{lengths:?}: {shown}");
        }
    }

    #[test]
    fn a_text_has_its_own_limit_and_its_share_and_less_after_an_overflow() {
        let texts = ["x".repeat(300_000), "short".to_owned()];
        let each = |room: Room| room.shared_by(texts.iter().map(String::as_str)).each;
        let room = Room { bytes: 256 << 10, each: 64 << 10, is_shared: true };
        assert_eq!(each(room), 64 << 10);
        assert_eq!(each(Room { bytes: 12_000, ..room }), 12_000 - 5);
        assert_eq!(each(room.narrowed()), (256 << 10) / NARROWED - 5);
        assert_eq!(each(Room { bytes: 12_000, ..room }.narrowed()), LEAST - 5);
        assert_eq!(each(Room { is_shared: false, bytes: 12_000, ..room }), 64 << 10, "by the rules before");
    }

    /// What people said is shown whole, so it is for the rest to become shorter.
    #[test]
    fn what_people_said_takes_room_from_the_material() {
        for (revision, counts) in [(4, false), (5, true)] {
            let mut fixture = Fixture::routed(settings(&[]), Accepted { revision, ..question("why?") });
            let (name, whole) = (Name::synthesis(), fixture.session.room().bytes);
            let said = Told { text: "x".repeat(1_000).into(), by: Caller::program() };
            fixture.record(Name::told(1), Body::Told(said));
            let message = fixture.session.messages(0, u32::MAX).unwrap().len();
            let taken = whole - fixture.session.room_for(&name).bytes;
            assert_eq!(taken, if counts { message } else { 0 }, "revision {revision}");
            assert_eq!(fixture.session.room().bytes, whole, "a conversation counts messages where they stand");
            let routed = fixture.session.routed().unwrap().clone();
            let mut below = Fixture::begun(settings(&[]), Accepted { revision, ..question("why?") });
            below.become_routed(Routed { told: "y".repeat(500).into(), ..routed });
            assert_eq!(whole - below.session.room().bytes, if counts { 500 } else { 0 }, "what those above were told");
        }
    }
}
