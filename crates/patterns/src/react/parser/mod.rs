//! Reads the reply of a model that thinks and acts in turns, at once or while it arrives.
//!
//! Owns the grammar of the reply: keywords, the thought, the tool name, its arguments, the answer,
//! and the code fence that some models put around all of it. Does not own what follows from a
//! reply: whether the tool exists, and who is shown the text, is decided elsewhere.
//!
//! Every character is looked at once and passes through three stages: `Wrapper` takes away the
//! fence around the whole reply, `ReplyParser` looks for keywords at the start of a line, and
//! `ShownText` or `Arguments` collects. No stage knows how the text was cut into pieces, so a
//! streamed reply cannot be read differently from a whole one.

mod arguments;
mod wrapper;

use arguments::Arguments;
pub(super) use arguments::is_flat_enough;
use trellis_domain::ToolName;
use trellis_domain::reply::ReactReply;
use wrapper::{LineShape, Wrapper};

const NO_TEXT: &str = r#"the reply is empty; write "Thought:" and then "Action:" with "Args:", or "Final Answer:""#;
const NO_KEYWORD: &str =
    r#"no line starts with a keyword; write "Thought:" and then "Action:" with "Args:", or "Final Answer:""#;
const ONLY_THOUGHT: &str = r#"the reply has a thought but neither "Action:" nor "Final Answer:"; end with one of them"#;
const NO_DECISION: &str = r#"the reply has neither "Action:" nor "Final Answer:"; end with one of them"#;
const NO_TOOL: &str = r#"no tool is named; write "Action:" and the name of one tool before "Args:""#;
const NO_ANSWER: &str = r#"nothing follows "Final Answer:"; write the answer after it"#;

/// What a piece of streamed text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    Thought,
    Answer,
}

/// Text that may be shown. It is never empty and never taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    pub channel: Channel,
    pub text: String,
}

/// Reads one reply as its text arrives.
///
/// The fragments of a channel, put together, are exactly the thought or the answer of the decision.
///
/// ```
/// use trellis_domain::reply::ReactReply;
/// use trellis_patterns::react::parser::ReplyParser;
///
/// let mut parser = ReplyParser::new();
/// let shown = parser.push("Thought: The sum is known.\nFin");
/// assert_eq!(shown[0].text, "The sum is known.");
///
/// assert_eq!(parser.push("al Answer: 4")[0].text, "4");
/// let (shown, reply) = parser.finish();
/// assert!(shown.is_empty());
/// let thought = "The sum is known.".to_owned();
/// assert_eq!(reply, ReactReply::Answer { thought, answer: "4".to_owned() });
/// ```
#[derive(Debug, Default)]
pub struct ReplyParser {
    wrapper: Wrapper,
    section: Section,
    /// The start of the current line, kept back while it may still become a keyword.
    line_head: String,
    past_line_head: bool,
    keyword_seen: bool,
    thought: ShownText,
    answer: ShownText,
    name_line: String,
    /// Set by `Action:`, empty until a name was found.
    tool: Option<String>,
    arguments: Arguments,
}

/// Reads a reply that is already complete.
///
/// ```
/// use trellis_domain::reply::ReactReply;
///
/// let reply = trellis_patterns::react::parser::read("Action: search\nArgs: {\"query\": \"moss\"}");
/// let ReactReply::Action { tool, arguments, .. } = reply else { panic!("an action was written") };
/// assert_eq!((tool.as_str(), &arguments["query"]), ("search", &"moss".into()));
/// ```
pub fn read(reply: &str) -> ReactReply {
    let mut parser = ReplyParser::new();
    parser.push(reply);
    parser.finish().1
}

impl ReplyParser {
    pub fn new() -> Self {
        Self::default()
    }

    /// Feeds text as it arrives and gives back what may be shown now.
    pub fn push(&mut self, text: &str) -> Vec<Fragment> {
        let unwrapped = self.wrapper.push(text);
        self.read_text(&unwrapped);
        self.fragments()
    }

    /// The reply is complete: the rest of what may be shown, and what the reply says.
    pub fn finish(mut self) -> (Vec<Fragment>, ReactReply) {
        let unwrapped = self.wrapper.finish();
        self.read_text(&unwrapped);
        self.end_line();
        (self.fragments(), self.decide())
    }

    fn read_text(&mut self, text: &str) {
        for c in text.chars() {
            match self.section {
                Section::Skipped | Section::Thought | Section::ToolName => self.read_in_line(c),
                Section::Arguments => self.read_in_arguments(c),
                Section::Answer => self.answer.push(c),
                Section::Complete => {}
            }
        }
    }

    fn read_in_line(&mut self, c: char) {
        if c == '\n' {
            self.end_line();
        } else if self.past_line_head {
            self.read_past_line_head(c);
        } else if !(self.line_head.is_empty() && c.is_whitespace()) {
            self.line_head.push(c);
            self.settle_line_head();
        }
    }

    fn settle_line_head(&mut self) {
        if let Some(keyword) = keyword_spelled(&self.line_head) {
            self.line_head.clear();
            self.past_line_head = true;
            self.start_section(keyword);
        } else if !may_become_keyword(&self.line_head) {
            self.release_line_head();
        }
    }

    fn release_line_head(&mut self) {
        self.past_line_head = true;
        for c in std::mem::take(&mut self.line_head).chars() {
            self.read_past_line_head(c);
        }
    }

    fn read_past_line_head(&mut self, c: char) {
        match self.section {
            Section::Thought => self.thought.push(c),
            Section::ToolName => self.read_in_name_line(c),
            Section::Skipped | Section::Arguments | Section::Answer | Section::Complete => {}
        }
    }

    fn end_line(&mut self) {
        self.release_line_head();
        self.past_line_head = false;
        match self.section {
            Section::Thought => self.thought.end_line(),
            Section::ToolName => self.end_name_line(),
            Section::Skipped | Section::Arguments | Section::Answer | Section::Complete => {}
        }
    }

    fn start_section(&mut self, keyword: Keyword) {
        self.keyword_seen = true;
        self.section = match keyword {
            // A thought after the action belongs to a step that has not happened yet.
            Keyword::Thought if self.tool.is_some() => Section::Skipped,
            Keyword::Thought => Section::Thought,
            Keyword::Action => {
                self.tool = Some(String::new());
                Section::ToolName
            }
            Keyword::Args => {
                self.arguments.start();
                Section::Arguments
            }
            Keyword::FinalAnswer => Section::Answer,
            // The model invents what the tool would say: from here on nothing can be trusted.
            Keyword::Observation if self.tool.is_some() => Section::Complete,
            Keyword::Observation => Section::Skipped,
        };
    }

    /// `Args:` may follow the name on the same line, but only as a word of its own.
    fn read_in_name_line(&mut self, c: char) {
        self.name_line.push(c);
        if let Some(name) = self.name_line.strip_suffix("Args:")
            && (name.is_empty() || name.ends_with(char::is_whitespace))
        {
            self.tool = Some(bare_name(name));
            self.start_section(Keyword::Args);
        }
    }

    /// An empty line or a fence is not a name yet: the name is on a later line.
    fn end_name_line(&mut self) {
        let line = std::mem::take(&mut self.name_line);
        if !line.trim().is_empty() && !LineShape::of(&line).is_fence() {
            self.tool = Some(bare_name(&line));
            self.section = Section::Skipped;
        }
    }

    fn read_in_arguments(&mut self, c: char) {
        self.arguments.push(c);
        if self.arguments.are_settled() {
            self.section = Section::Complete;
        }
    }

    /// No thought text can follow answer text, so this order is the order of arrival.
    fn fragments(&mut self) -> Vec<Fragment> {
        let thought = self.thought.fragment(Channel::Thought);
        let answer = self.answer.fragment(Channel::Answer);
        thought.into_iter().chain(answer).collect()
    }

    /// An answer wins over an action; an action is there once its name or its arguments are.
    fn decide(self) -> ReactReply {
        match self.section {
            Section::Answer => self.decide_answer(),
            Section::Arguments | Section::Complete => self.decide_action(),
            Section::Skipped | Section::Thought | Section::ToolName if self.tool.is_some() => self.decide_action(),
            Section::Skipped | Section::Thought | Section::ToolName => {
                let reason = self.missing_decision().to_owned();
                ReactReply::Unreadable { thought: self.thought.text, reason }
            }
        }
    }

    fn decide_answer(self) -> ReactReply {
        let (thought, answer) = (self.thought.text, self.answer.text);
        if answer.is_empty() {
            ReactReply::Unreadable { thought, reason: NO_ANSWER.to_owned() }
        } else {
            ReactReply::Answer { thought, answer }
        }
    }

    fn decide_action(self) -> ReactReply {
        let thought = self.thought.text;
        let Some(tool) = self.tool.and_then(|name| ToolName::given(&name)) else {
            return ReactReply::Unreadable { thought, reason: NO_TOOL.to_owned() };
        };
        match self.arguments.read() {
            Ok(arguments) => ReactReply::Action { thought, tool, arguments, also: Vec::new() },
            Err(reason) => ReactReply::Unreadable { thought, reason },
        }
    }

    fn missing_decision(&self) -> &'static str {
        if self.wrapper.saw_no_text() {
            NO_TEXT
        } else if !self.keyword_seen {
            NO_KEYWORD
        } else if self.thought.text.is_empty() {
            NO_DECISION
        } else {
            ONLY_THOUGHT
        }
    }
}

/// What the text being read is part of.
#[derive(Debug, Clone, Copy, Default)]
enum Section {
    /// Before the first keyword, behind the tool name, or in an observation: of no interest.
    #[default]
    Skipped,
    Thought,
    ToolName,
    Arguments,
    Answer,
    Complete,
}

#[derive(Debug, Clone, Copy)]
enum Keyword {
    Thought,
    Action,
    Args,
    FinalAnswer,
    Observation,
}

const KEYWORDS: [(&str, Keyword); 5] = [
    ("Thought:", Keyword::Thought),
    ("Action:", Keyword::Action),
    ("Args:", Keyword::Args),
    ("Final Answer:", Keyword::FinalAnswer),
    ("Observation:", Keyword::Observation),
];

fn keyword_spelled(line_head: &str) -> Option<Keyword> {
    KEYWORDS.iter().find(|(spelling, _)| *spelling == line_head).map(|(_, keyword)| *keyword)
}

fn may_become_keyword(line_head: &str) -> bool {
    KEYWORDS.iter().any(|(spelling, _)| spelling.starts_with(line_head))
}

fn bare_name(name: &str) -> String {
    name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`')).to_owned()
}

/// Text that is shown while it grows; white space is kept back until something follows it.
#[derive(Debug, Default)]
pub(super) struct ShownText {
    pub(super) text: String,
    shown_bytes: usize,
    gap: Gap,
}

/// What stands between the text so far and the next word.
#[derive(Debug, Default)]
enum Gap {
    #[default]
    LineStart,
    Spaces(String),
}

impl ShownText {
    pub(super) fn push(&mut self, c: char) {
        if !c.is_whitespace() {
            self.fill_gap();
            self.text.push(c);
        } else if let Gap::Spaces(spaces) = &mut self.gap {
            spaces.push(c);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    fn fill_gap(&mut self) {
        match std::mem::replace(&mut self.gap, Gap::Spaces(String::new())) {
            Gap::LineStart if self.text.is_empty() => {}
            Gap::LineStart => self.text.push(' '),
            Gap::Spaces(spaces) => self.text.push_str(&spaces),
        }
    }

    /// The next word starts a new line, which is joined to this one with a single space.
    pub(super) fn end_line(&mut self) {
        self.gap = Gap::LineStart;
    }

    pub(super) fn fragment(&mut self, channel: Channel) -> Option<Fragment> {
        let text = self.text[self.shown_bytes..].to_owned();
        self.shown_bytes = self.text.len();
        (!text.is_empty()).then_some(Fragment { channel, text })
    }
}

#[cfg(test)]
#[path = "../parser_tests.rs"]
mod tests;
