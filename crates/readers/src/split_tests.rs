use super::*;
use crate::{Syntax, sections};
use proptest::prelude::*;

fn split(text: &str, syntax: Syntax) -> Vec<Passage> {
    passages(text, &sections::of(text, syntax))
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// What must hold of the passages of any text.
fn check(text: &str, passages: &[Passage]) {
    let mut covered = 0;
    let mut line_starts = vec![0];
    line_starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    for passage in passages {
        let (start, end) =
            (usize::try_from(passage.place.bytes.start).unwrap(), usize::try_from(passage.place.bytes.end).unwrap());
        assert_eq!(&text[start..end], passage.text, "a passage is what stands at its place");
        assert!(!passage.text.trim_matches(is_space).is_empty());
        assert!(passage.text.chars().count() <= MOST, "{} characters", passage.text.chars().count());
        assert!(start >= covered || !text[start..covered].is_empty());
        assert!(covered >= start || text[covered..start].chars().all(is_space), "nothing is left out");
        covered = covered.max(end);
        let (first, last) = passage.place.lines;
        let line = |number: u64| line_starts[usize::try_from(number).unwrap() - 1];
        assert!(line(first) <= start && line(last) < end, "lines {first} to {last}");
        let behind = line_starts.get(usize::try_from(first).unwrap()).copied().unwrap_or(usize::MAX);
        assert!(start < behind, "it begins in its first line");
        let behind = line_starts.get(usize::try_from(last).unwrap()).copied().unwrap_or(usize::MAX);
        assert!(end <= behind, "it ends in its last line");
    }
    assert!(text[covered..].chars().all(is_space), "nothing is left out at the end");
}

proptest! {
    #[test]
    fn any_text_is_covered_by_passages_that_stand_where_they_say(text in ".{0,4000}", markdown: bool) {
        let syntax = if markdown { Syntax::Markdown } else { Syntax::Plain };
        check(&text, &split(&text, syntax));
    }

    #[test]
    fn so_is_any_document(parts in prop::collection::vec(
        prop_oneof![
            "\n{1,900}", Just("\r\n\r\n".to_owned()), Just("```\n".to_owned()), Just("\u{feff}".to_owned()),
            "#{1,7} [a-zäé東]{0,8}\n", "[a-z🌱. \n]{0,900}", "[東京。]{0,1700}", "(==|---)\n", "x{0,3000}",
        ],
        0..30,
    )) {
        let text = parts.concat();
        check(&text, &split(&text, Syntax::Markdown));
        check(&text, &split(&text, Syntax::Plain));
    }
}

#[test]
fn small_sections_are_joined_and_large_ones_are_not() {
    let long = "A sentence of some words. ".repeat(30);
    let text = format!("# Guide\n\n## One\n\nshort\n\n## Two\n\nshort too\n\n## Three\n\n{long}\n\n## Four\n\n{long}");
    let found = split(&text, Syntax::Markdown);
    let paths: Vec<_> = found.iter().map(|passage| passage.place.headings.join("/")).collect();
    assert_eq!(paths, ["Guide", "Guide/Four"], "{found:#?}");
    check(&text, &found);
}

#[test]
fn a_heading_stays_with_what_it_is_the_heading_of() {
    let long = "word ".repeat(220);
    let text = format!("# Title\n\n{long}\n\n## Part\n\n{long}");
    let found = split(&text, Syntax::Markdown);
    assert_eq!(found.len(), 2);
    assert!(found[1].text.starts_with("## Part") && found[1].place.headings == ["Title", "Part"]);
}

#[test]
fn long_paragraphs_are_cut_at_sentences_and_overlap() {
    let text = (0..200).map(|n| format!("This is the sentence number {n}. ")).collect::<Vec<_>>().concat();
    let found = split(&text, Syntax::Plain);
    assert!(found.len() > 4);
    assert!(found[..found.len() - 1].iter().all(|passage| passage.text.ends_with('.')), "{found:#?}");
    for pair in found.windows(2) {
        assert!(pair[1].place.bytes.start < pair[0].place.bytes.end, "pieces overlap");
    }
    check(&text, &found);
}

#[test]
fn whole_paragraphs_do_not_overlap() {
    let text = format!("{}\n\n{}\n", "word ".repeat(180), "other ".repeat(180));
    let found = split(&text, Syntax::Plain);
    assert_eq!(found.len(), 2);
    assert!(found[1].place.bytes.start > found[0].place.bytes.end);
    assert_eq!((found[0].place.lines, found[1].place.lines), ((1, 1), (3, 3)));
}
