//! A call, written in the grammar that a model without functions writes.

use super::arguments::{Arguments, Part};
use super::{Does, Function, Functions};
use crate::thinking::{UNMARKED, behind_thinking};
use std::collections::BTreeSet;
use trellis_domain::counted;

/// More than the largest reply that any limit allows.
const LONGEST: usize = 4 << 20;
/// What a line of the grammar begins with.
const KEYWORDS: [&str; 4] = ["Thought:", "Action:", "Args:", "Final Answer:"];

/// A piece of a call, as providers send them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CallPiece {
    /// Which of several calls it belongs to.
    pub(crate) place: u64,
    /// The same in the provider's words. Some say it once, some always, some never.
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) arguments: String,
}

/// Writes a reply in the text grammar while it arrives: thought and answer at once, an action when it is whole. Only
/// the first call counts.
#[derive(Debug)]
pub(crate) struct Transcript<'f> {
    functions: &'f Functions,
    /// What was said without a call. It is a thought if a call follows, else it is the answer.
    words: String,
    call: Option<Call<'f>>,
    others: BTreeSet<(u64, Option<String>)>,
    line: Line,
}

#[derive(Debug)]
struct Call<'f> {
    place: u64,
    id: Option<String>,
    name: String,
    /// None if there is no such function.
    function: Option<&'f Function>,
    arguments: Arguments,
    /// The answer, as long as a thought may still come before it.
    answer: String,
}

/// What a reply came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplyEnd {
    /// The end of the text.
    pub(crate) rest: String,
    /// What had to be put right.
    pub(crate) mended: Vec<String>,
    /// A function was called that was offered, with what its schema allows.
    pub(crate) kept: bool,
}

impl<'f> Transcript<'f> {
    pub(crate) fn new(functions: &'f Functions) -> Self {
        Self { functions, words: String::new(), call: None, others: BTreeSet::new(), line: Line::default() }
    }

    /// It is longer than any limit allows.
    pub(crate) fn is_too_long(&self) -> bool {
        let call = self.call.as_ref().map_or(0, |call| call.arguments.len());
        self.words.len() + call > LONGEST || self.others.len() > 1000
    }

    /// Words outside of any call.
    pub(crate) fn words(&mut self, text: &str) {
        // Behind a call they are neither thought nor answer.
        if self.call.is_none() {
            self.words.push_str(text);
        }
    }

    /// A piece of a call. Gives the text that is certain now.
    pub(crate) fn call(&mut self, piece: CallPiece) -> String {
        let CallPiece { place, id, name, arguments } = piece;
        let mut text = String::new();
        let Some(call) = &mut self.call else {
            if name.is_none() && arguments.is_empty() {
                return text;
            }
            for c in std::mem::take(&mut self.words).trim().chars() {
                self.line.think(c, &mut text);
            }
            self.line.pause();
            let name = name.unwrap_or_default();
            let function = self.functions.meant(&name);
            let (thought, answers) = function
                .map_or(("thought", false), |function| (function.thought.as_str(), function.does == Does::Answer));
            let read = Arguments::new(thought, answers);
            let call = self.call.insert(Call { place, id, name, function, arguments: read, answer: String::new() });
            call.push(&arguments, &mut self.line, &mut text);
            return text;
        };
        let is_another = |known: &Option<String>, said: &Option<String>| match (known, said) {
            (Some(known), Some(said)) => known != said,
            (None, _) | (_, None) => false,
        };
        if call.place != place || is_another(&call.id, &id) {
            self.others.insert((place, id));
        } else {
            call.push(&arguments, &mut self.line, &mut text);
        }
        text
    }

    /// The reply is complete.
    pub(crate) fn finish(mut self) -> ReplyEnd {
        let mut rest = String::new();
        let Some(call) = self.call else {
            let mut mended = Vec::new();
            if let Some(spoken) = behind_thinking(&self.words).map(str::to_owned) {
                self.words = spoken;
                mended.push(UNMARKED.to_owned());
            }
            let in_the_grammar =
                self.words.lines().any(|line| KEYWORDS.iter().any(|keyword| line.trim_start().starts_with(keyword)));
            let words = self.words.trim();
            let rest = if in_the_grammar || words.is_empty() { self.words } else { format!("Final Answer: {words}") };
            return ReplyEnd { rest, mended, kept: false };
        };
        call.finish(&mut self.line, &mut rest);
        let others = self.others.len();
        let mended =
            (others > 0).then(|| format!("{} were made at once; only the first counts", counted(others + 1, "call")));
        ReplyEnd { rest, mended: mended.into_iter().collect(), kept: call.is_kept() }
    }
}

impl Call<'_> {
    fn push(&mut self, json: &str, line: &mut Line, text: &mut String) {
        let answer = &mut self.answer;
        self.arguments.push(json, &mut |part, c| match part {
            Part::Thought => line.think(c, text),
            // Once the answer has begun, no thought can be written any more.
            Part::Answer if line.has_thought() => line.answer(c, text),
            Part::Answer => answer.push(c),
            Part::Argument => {}
        });
    }

    fn finish(&self, line: &mut Line, text: &mut String) {
        let tool = match self.function.map(|function| &function.does) {
            Some(Does::Answer) => {
                line.begin_answer(text);
                text.push_str(&self.answer);
                return;
            }
            Some(Does::Call(tool)) => tool,
            // Whoever reads it finds that there is no such tool.
            None => &self.name,
        };
        let tool = tool.replace('\n', " ");
        line.end(text);
        text.extend(["Action: ", &tool, "\nArgs: ", &self.arguments.object()]);
    }

    fn is_kept(&self) -> bool {
        let Some(schema) = self.function.and_then(|function| function.strict.as_ref()) else { return false };
        let Ok(value) = serde_json::from_str(self.arguments.raw()) else { return false };
        self.arguments.is_clean() && jsonschema::validator_for(schema).is_ok_and(|validator| validator.is_valid(&value))
    }
}

/// Where in the grammar the text stands. A thought is written on one line, as it is read: no line of it can be taken
/// for something else.
#[derive(Debug, Default)]
struct Line {
    section: Section,
    /// White space that is only written if something follows it.
    gap: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Section {
    #[default]
    Nothing,
    Thought,
    Answer,
}

impl Line {
    fn has_thought(&self) -> bool {
        self.section != Section::Nothing
    }

    /// The next thought is another sentence.
    fn pause(&mut self) {
        self.gap.push('\n');
    }

    fn think(&mut self, c: char, text: &mut String) {
        match self.section {
            Section::Answer => {}
            Section::Nothing | Section::Thought if c.is_whitespace() => self.gap.push(c),
            Section::Nothing => {
                self.gap.clear();
                self.section = Section::Thought;
                text.push_str("Thought: ");
                text.push(c);
            }
            Section::Thought => {
                let gap = std::mem::take(&mut self.gap);
                text.push_str(if gap.contains('\n') { " " } else { &gap });
                text.push(c);
            }
        }
    }

    fn answer(&mut self, c: char, text: &mut String) {
        self.begin_answer(text);
        text.push(c);
    }

    fn begin_answer(&mut self, text: &mut String) {
        if self.section != Section::Answer {
            self.end(text);
            text.push_str("Final Answer: ");
            self.section = Section::Answer;
        }
    }

    /// The next keyword begins a line.
    fn end(&self, text: &mut String) {
        if self.section == Section::Thought {
            text.push('\n');
        }
    }
}
