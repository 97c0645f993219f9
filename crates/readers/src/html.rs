//! A web page as text in Markdown: headings, paragraphs, lists and tables. Scripts, styles and the like are left out.
//!
//! Tokens are read one after the other and no tree is made of them, so that no nesting is too deep.

use html5ever::TokenizerResult;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use std::cell::RefCell;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
}

/// Elements whose content nobody reads.
const LEFT_OUT: [&str; 9] = ["script", "style", "noscript", "template", "svg", "math", "iframe", "object", "head"];
/// Elements that begin a new line.
const LINES: [&str; 11] = ["br", "div", "tr", "dt", "dd", "option", "figcaption", "summary", "caption", "hr", "li"];
/// Elements with space around them.
const PARAGRAPHS: [&str; 17] = [
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "dl",
    "table",
    "pre",
    "blockquote",
    "section",
    "article",
    "header",
    "footer",
];

pub(crate) fn read(html: &str) -> Page {
    let tokenizer = Tokenizer::new(Writing::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    // In pieces: the tokenizer keeps what it has not looked at.
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
        input.push_back(StrTendril::from_slice(piece));
        rest = behind;
        // It stops after each script, which is left out like everything that waits for one.
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
    }
    tokenizer.end();
    tokenizer.sink.0.into_inner().finish()
}

const PIECE: usize = 64 << 10;

#[derive(Debug, Default)]
struct Writing(RefCell<Writer>);

#[derive(Debug, Default)]
struct Writer {
    text: String,
    title: String,
    in_title: bool,
    /// The element that is left out, and how often it was begun inside of itself.
    left_out: Option<(String, usize)>,
    preformatted: usize,
    /// What has to stand before the next word.
    pending: Space,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    #[default]
    None,
    Word,
    Line,
    Paragraph,
}

impl TokenSink for Writing {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut writer = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => writer.tag(&tag),
            Token::CharacterTokens(text) => {
                writer.words(&text);
                TokenSinkResult::Continue
            }
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => TokenSinkResult::Continue,
        }
    }
}

impl Writer {
    fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        let begins = tag.kind == TagKind::StartTag;
        if name == "title" && self.left_out.as_ref().is_none_or(|(element, _)| element == "head") {
            self.in_title = begins && self.title.is_empty();
            return if begins { TokenSinkResult::RawData(RawKind::Rcdata) } else { TokenSinkResult::Continue };
        }
        if name == "body" && begins {
            // Many pages do not end their head.
            self.left_out = self.left_out.take().filter(|(element, _)| element != "head");
        }
        if let Some((element, depth)) = &mut self.left_out {
            if *element == name {
                *depth = if begins { *depth + 1 } else { *depth - 1 };
            }
            if *depth == 0 {
                self.left_out = None;
            }
        } else if LEFT_OUT.contains(&name) {
            if begins && !tag.self_closing {
                self.left_out = Some((name.to_owned(), 1));
            }
        } else {
            self.structure(name, begins);
        }
        match name {
            "script" if begins => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "iframe" | "noscript" if begins => TokenSinkResult::RawData(RawKind::Rawtext),
            "textarea" if begins => TokenSinkResult::RawData(RawKind::Rcdata),
            _ => TokenSinkResult::Continue,
        }
    }

    fn structure(&mut self, name: &str, begins: bool) {
        if PARAGRAPHS.contains(&name) {
            self.pending = self.pending.max(Space::Paragraph);
        } else if LINES.contains(&name) {
            self.pending = self.pending.max(Space::Line);
        }
        match (name, begins) {
            ("pre", true) => self.preformatted += 1,
            ("pre", false) => self.preformatted = self.preformatted.saturating_sub(1),
            ("h1", true) => self.mark("# "),
            ("h2", true) => self.mark("## "),
            ("h3", true) => self.mark("### "),
            ("h4", true) => self.mark("#### "),
            ("h5", true) => self.mark("##### "),
            ("h6", true) => self.mark("###### "),
            ("li", true) => self.mark("- "),
            ("td" | "th", false) => self.mark(" | "),
            _ => {}
        }
    }

    /// Writes what stands for an element and is no word.
    fn mark(&mut self, mark: &str) {
        self.space();
        self.text.push_str(mark);
    }

    fn words(&mut self, text: &str) {
        if self.in_title {
            self.title.push_str(text);
            return;
        }
        if self.left_out.is_some() {
            return;
        }
        if self.preformatted > 0 {
            self.space();
            self.text.push_str(text);
            return;
        }
        for (index, word) in text.split(char::is_whitespace).enumerate() {
            if index > 0 {
                self.pending = self.pending.max(Space::Word);
            }
            if !word.is_empty() {
                self.space();
                self.text.push_str(word);
            }
        }
    }

    fn space(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let ends = self.text.len() - self.text.trim_end_matches('\n').len();
        match pending {
            _ if self.text.is_empty() => {}
            Space::None => {}
            Space::Word if self.text.ends_with([' ', '\n']) => {}
            Space::Word => self.text.push(' '),
            Space::Line if ends > 0 => {}
            Space::Line => self.text.push('\n'),
            Space::Paragraph => (ends..2).for_each(|_| self.text.push('\n')),
        }
    }

    fn finish(self) -> Page {
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        Page { title: (!title.is_empty()).then_some(title), text: self.text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_page_becomes_markdown() {
        let page = read(
            "<!doctype html><html><head><title>A &amp; B</title><style>p{}</style><script>if (a<b) '</p>'</script></head>\
             <body><h1>Top</h1><p>One  <b>two</b>,\n three &eacute;&#x1F331;.</p><ul><li>first<li>second</ul>\
             <table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table><h2>Next</h2>text<br>more\
             <!-- no --><script>no()</script><noscript>no</noscript><pre>a\n  b</pre></body></html>",
        );
        assert_eq!(page.title.as_deref(), Some("A & B"));
        let expected =
            "# Top\n\nOne two, three é🌱.\n\n- first\n- second\n\na | b | \nc | \n\n## Next\n\ntext\nmore\n\na\n  b";
        assert_eq!(page.text, expected);
    }

    /// Nothing behind them is fetched, and no address that a page hides gets into what models read.
    #[test]
    fn of_links_and_pictures_only_the_words_are_read() {
        let page = read(
            "<base href='http://evil/'><a href='javascript:steal()' onclick='steal()'>here</a> \
             <a href=\"http://evil/?q=secret\">there</a><img src='http://evil/x.png' alt='moss'>\
             <link rel=stylesheet href=//evil><form action=http://evil><input value=hidden></form>",
        );
        assert_eq!(page.text, "here there");
    }

    #[test]
    fn broken_pages_are_read_as_far_as_they_go() {
        for (html, text) in [
            ("", ""),
            ("just text", "just text"),
            ("<p>a<p>b", "a\n\nb"),
            ("<p>a</div></p></body>b", "a\n\nb"),
            ("<head><meta charset=x><body>here", "here"),
            ("a<script>never closed", "a"),
            ("a<script>x</script", "a"),
            ("<svg><svg></svg>no</svg>yes", "yes"),
            ("a < b &nosuch; &#xffffffff; <", "a < b &nosuch; \u{fffd} <"),
            ("<title>t", ""),
        ] {
            assert_eq!(read(html).text, text, "{html}");
        }
    }

    #[test]
    fn deep_nesting_and_endless_attributes_are_only_long() {
        let deep = format!("{}x{}", "<div>".repeat(200_000), "</div>".repeat(200_000));
        assert_eq!(read(&deep).text, "x");
        let long = format!("<p {}>x", "a=b ".repeat(2_000));
        assert_eq!(read(&long).text, "x");
    }

    proptest! {
        #[test]
        fn nothing_in_a_page_is_a_reason_to_fail(html in "(<[a-z/!]{0,6}|[a-z&#;\"'= >]{0,5}|é|-->|<script>|</script>){0,60}") {
            let page = read(&html);
            prop_assert!(page.text.len() <= html.len() * 4 + 16);
        }
    }
}
