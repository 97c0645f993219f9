use super::*;
use crate::contract;

const THOUGHT: &str = "urn:trustgraph:agent:r/i1/thought";

fn id(attempt: u32) -> Arc<str> {
    if attempt == 1 { THOUGHT.into() } else { format!("{THOUGHT}#{attempt}").into() }
}

fn chunk(attempt: u32, after: u64, offset: usize, text: &str) -> TextChunk {
    TextChunk {
        run: contract::id("r"),
        session: contract::id("r"),
        message_id: id(attempt),
        kind: TextKind::Thought,
        after,
        offset,
        text: text.to_owned(),
    }
}

fn hear(texts: &mut Texts, by: &str, chunk: &TextChunk) -> Fit {
    texts.hear(&by.into(), chunk, 0)
}

fn write(texts: &mut Texts, attempt: u32, after: u64, text: &str) -> Option<usize> {
    let message = OpenMessage::new(&contract::id("r"), TextKind::Thought, None, after);
    let begins = texts.get(&id(attempt)).is_none();
    texts.write(&id(attempt), message, begins, text)
}

/// One of several workers that write the same message, unknowingly.
fn write_as(texts: &mut Texts, writer: u64, begins: bool, text: &str) -> Option<usize> {
    let message = OpenMessage { writer, ..OpenMessage::new(&contract::id("r"), TextKind::Thought, None, 2) };
    texts.write(&id(1), message, begins, text)
}

#[test]
fn a_message_that_had_to_make_way_does_not_begin_again_in_its_middle() {
    let mut texts = Texts::default();
    assert_eq!(write_as(&mut texts, 1, true, "one "), Some(0));
    assert_eq!(hear(&mut texts, "a", &chunk(2, 2, 0, "newer")), Fit::Added);
    texts.close_heard(&id(2), &"a".into());
    assert_eq!(write_as(&mut texts, 1, false, "two"), None, "its beginning is not shown any more");
    assert!(texts.is_empty());
}

#[test]
fn two_writers_of_one_message_are_not_mixed() {
    let mut texts = Texts::default();
    assert_eq!(write_as(&mut texts, 1, true, "one "), Some(0));
    assert_eq!(write_as(&mut texts, 2, true, "uno "), None, "one of them is enough");
    assert_eq!(write_as(&mut texts, 1, false, "two"), Some(4));
    assert_eq!(write_as(&mut texts, 2, false, "dos"), None);
    assert_eq!(shown(&texts), [("", "one two")]);
    texts.close(&id(1));
    assert_eq!(write_as(&mut texts, 2, false, "tres"), None);
    assert_eq!(write_as(&mut texts, 3, true, "drei"), Some(0));
}

fn shown(texts: &Texts) -> Vec<(&str, &str)> {
    texts.iter().map(|(id, message)| (id.strip_prefix(THOUGHT).unwrap(), message.text.as_str())).collect()
}

/// Each order in which three chunks can arrive, with one of them doubled.
#[test]
fn text_in_any_order_is_a_beginning_of_the_message() {
    let whole = "ääbbcc";
    let chunks = [chunk(1, 2, 0, "ää"), chunk(1, 2, 4, "bb"), chunk(1, 2, 6, "cc")];
    for order in 0..81_usize {
        let mut texts = Texts::default();
        let places = [order % 3, order / 3 % 3, order / 9 % 3, order / 27];
        for place in places {
            hear(&mut texts, "a", &chunks[place]);
            assert!(shown(&texts).iter().all(|(_, text)| whole.starts_with(text)), "{places:?}");
        }
        if places[..3] == [0, 1, 2] {
            assert_eq!(shown(&texts), [("", whole)]);
        }
    }
}

#[test]
fn a_gap_is_told_and_mended_by_the_message_from_its_start() {
    let mut texts = Texts::default();
    assert_eq!(hear(&mut texts, "a", &chunk(1, 2, 4, "late")), Fit::Gap);
    assert!(texts.is_empty(), "nobody is shown a message without its start");
    assert_eq!(hear(&mut texts, "a", &chunk(1, 2, 0, "not late")), Fit::Added);
    assert_eq!(hear(&mut texts, "a", &chunk(1, 2, 4, "late")), Fit::Ignored);
    assert_eq!(hear(&mut texts, "a", &chunk(1, 2, 9, "!")), Fit::Gap);
    assert_eq!(hear(&mut texts, "a", &chunk(1, 2, 0, "not late, really!")), Fit::Added);
    assert_eq!(shown(&texts), [("", "not late, really!")]);
}

#[test]
fn an_offset_within_a_character_is_nobodys_text() {
    let mut texts = Texts::default();
    hear(&mut texts, "a", &chunk(1, 2, 0, "a"));
    assert_eq!(hear(&mut texts, "a", &chunk(1, 2, 0, "ä")), Fit::Ignored);
    assert_eq!(shown(&texts), [("", "a")]);
}

#[test]
fn of_two_that_write_the_same_the_later_attempt_is_shown_and_stays() {
    let mut texts = Texts::default();
    assert_eq!(write(&mut texts, 1, 2, "one"), Some(0));
    assert_eq!(hear(&mut texts, "b", &chunk(2, 2, 0, "two")), Fit::Added);
    assert_eq!(write(&mut texts, 1, 2, " more"), None, "its claim has expired");
    assert_eq!(shown(&texts), [("#2", "two")]);
    texts.close_heard(&id(2), &"c".into());
    assert_eq!(shown(&texts), [("#2", "two")], "that was somebody else's");
    texts.close_heard(&id(2), &"b".into());
    assert_eq!(write(&mut texts, 1, 2, " and more"), None, "no message begins in its middle");
    assert_eq!(hear(&mut texts, "a", &chunk(1, 2, 0, "one")), Fit::Ignored);
    assert!(texts.is_empty());
}

#[test]
fn two_that_write_under_the_same_id_are_not_mixed() {
    let mut texts = Texts::default();
    assert_eq!(hear(&mut texts, "a", &chunk(2, 2, 0, "one")), Fit::Added);
    assert_eq!(hear(&mut texts, "b", &chunk(2, 2, 0, "another")), Fit::Ignored);
    assert_eq!(write(&mut texts, 2, 2, "a third"), None);
    assert_eq!(shown(&texts), [("#2", "one")]);
}

#[test]
fn text_that_a_record_has_brought_whole_does_not_come_back() {
    let mut texts = Texts::default();
    hear(&mut texts, "a", &chunk(1, 2, 0, "one"));
    texts.bring_whole(&id(2), 3);
    assert!(texts.is_empty(), "whichever attempt it was");
    assert_eq!(hear(&mut texts, "a", &chunk(1, 2, 0, "one")), Fit::Ignored);
    assert_eq!(hear(&mut texts, "b", &chunk(3, 2, 0, "three")), Fit::Ignored);
    assert_eq!(write(&mut texts, 4, 2, "four"), None);
    // What is written after that record is another message, even under the same id.
    assert_eq!(hear(&mut texts, "a", &chunk(1, 3, 0, "next")), Fit::Added);
    assert_eq!(shown(&texts), [("", "next")]);
}
