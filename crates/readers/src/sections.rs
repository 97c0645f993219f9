//! Where headings stand in a text.

use crate::Syntax;
use std::ops::Range;

/// Most bytes of a heading that are kept.
const LONGEST_HEADING: usize = 200;

/// A part of a text under the same headings. Its own heading is part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) bytes: Range<usize>,
    pub(crate) headings: Vec<String>,
    /// Where the text behind its own heading begins.
    pub(crate) body: usize,
}

/// A line without its end.
struct Line<'a> {
    start: usize,
    /// With what ends it.
    end: usize,
    text: &'a str,
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut end = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = end;
        end += line.len();
        Line { start, end, text: line.trim_end_matches(['\n', '\r']) }
    })
}

/// The sections of a text, which cover it whole.
pub(crate) fn of(text: &str, syntax: Syntax) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut current = Section { bytes: 0..text.len(), headings: Vec::new(), body: 0 };
    if syntax == Syntax::Markdown {
        for heading in headings(text) {
            current.bytes.end = heading.bytes.start;
            path.retain(|(level, _)| *level < heading.level);
            path.push((heading.level, heading.title));
            let headings = path.iter().map(|(_, title)| title.clone()).collect();
            let next = Section { bytes: heading.bytes.start..text.len(), headings, body: heading.bytes.end };
            sections.push(std::mem::replace(&mut current, next));
        }
    }
    sections.push(current);
    sections.retain(|section| !section.bytes.is_empty());
    sections
}

pub(crate) fn first_heading(text: &str) -> Option<String> {
    headings(text).next().map(|heading| heading.title)
}

struct Heading {
    level: usize,
    title: String,
    bytes: Range<usize>,
}

/// Headings with `#`, and those that are underlined. Nothing in a fenced block is one.
fn headings(text: &str) -> impl Iterator<Item = Heading> + '_ {
    let mut fence: Option<&str> = None;
    let mut paragraph: Option<Line<'_>> = None;
    lines(text).filter_map(move |line| {
        let before = paragraph.take();
        let bare = line.text.trim_start_matches('\u{feff}');
        let indent = bare.len() - bare.trim_start_matches(' ').len();
        let words = bare.trim();
        if let Some(open) = fence {
            if words.starts_with(open) && words.trim_matches(['`', '~']).is_empty() {
                fence = None;
            }
            return None;
        }
        fence = ["```", "~~~"].into_iter().find(|mark| words.starts_with(mark));
        if fence.is_some() || indent > 3 || words.is_empty() {
            return None;
        }
        let level = words.len() - words.trim_start_matches('#').len();
        let title = words[level..].trim().trim_end_matches('#').trim_end();
        if (1..=6).contains(&level) && (words.len() == level || words[level..].starts_with([' ', '\t'])) {
            return heading(level, title, line.start..line.end);
        }
        let underline = match words.as_bytes() {
            [b'=', b'=', rest @ ..] if rest.iter().all(|byte| *byte == b'=') => Some(1),
            [b'-', b'-', rest @ ..] if rest.iter().all(|byte| *byte == b'-') => Some(2),
            _ => None,
        };
        match (before, underline) {
            (Some(before), Some(level)) => heading(level, before.text.trim(), before.start..line.end),
            // Only one line can be underlined: others are a paragraph before a rule.
            (Some(_), None) => None,
            (None, _) => {
                paragraph = underline.is_none().then_some(line);
                None
            }
        }
    })
}

fn heading(level: usize, title: &str, bytes: Range<usize>) -> Option<Heading> {
    let title = title[..title.floor_char_boundary(LONGEST_HEADING)].trim();
    (!title.is_empty()).then(|| Heading { level, title: title.to_owned(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        let sections = of(text, Syntax::Markdown);
        sections.into_iter().map(|section| (section.headings.join("/"), text[section.bytes].to_owned())).collect()
    }

    #[test]
    fn sections_know_the_headings_above_them() {
        let text = "intro\n# A #\none\n### B\ntwo\n## C\r\n# D\n";
        let expected =
            [("", "intro\n"), ("A", "# A #\none\n"), ("A/B", "### B\ntwo\n"), ("A/C", "## C\r\n"), ("D", "# D\n")];
        assert_eq!(found(text), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
        assert_eq!(first_heading("\u{feff}# Title\n"), Some("Title".to_owned()));
    }

    #[test]
    fn underlined_lines_are_headings_and_rules_are_not() {
        let text = "Title\n=====\ntext\n\nPart\n---\nmore\n\n---\n\ntwo\nlines\n---\n";
        let paths: Vec<_> = found(text).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["Title", "Title/Part"]);
    }

    #[test]
    fn nothing_in_a_fence_is_a_heading() {
        assert_eq!(found("```sh\n# no\n```\n#hashtag\n    # code\n####### seven\n").len(), 1);
        assert_eq!(found("~~~\n```\n# no\n~~~\n# yes\n").len(), 2);
        assert_eq!(found("```\n# never closed\n").len(), 1);
    }

    #[test]
    fn plain_text_is_one_section() {
        assert_eq!(of("# a\n# b\n", Syntax::Plain).len(), 1);
        assert!(of("", Syntax::Plain).is_empty());
    }
}
