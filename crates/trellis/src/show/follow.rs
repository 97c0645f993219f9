//! A run on screen while it happens: steps on stderr, the answer on stdout.

use super::{Marks, clean, excerpt, note, seconds, tokens};
use crate::cli::{Global, Output};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use owo_colors::OwoColorize;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::RunId;
use trellis_domain::decision::Decision;
use trellis_domain::document::Document;
use trellis_domain::record::{Body, Ended, Observed, Reading, Record, Replied};
use trellis_orchestrator::hub::{Item, TextKind};

/// How much of a result or a call is shown on its line.
const WIDTH: usize = 96;
/// How much of a thought is shown on its line.
const THOUGHT: usize = 400;
const THINKING: &str = "thinking (Ctrl-C stops watching)";

pub(crate) struct Follow {
    run: RunId,
    marks: &'static Marks,
    quiet: bool,
    /// The answer goes to stdout only in text mode.
    prints_answer: bool,
    /// Text is shown while it is written: only to a person who watches.
    live_answer: bool,
    bar: ProgressBar,
    /// Columns of the terminal, if there is one.
    columns: Option<usize>,
    /// The thought being written; empty once it has its line.
    thought: (Option<Arc<str>>, String),
    /// The answer being written, and how much of it was shown.
    answer: (Option<Arc<str>>, usize),
}

impl Follow {
    pub(crate) fn new(global: &Global, run: RunId, streaming: bool) -> Self {
        let text = global.output == Output::Text;
        let watched = std::io::stderr().is_terminal() && !global.quiet && text;
        let target = if watched { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let ticks = if global.ascii { "-\\|/ " } else { "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ " };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style.tick_chars(ticks));
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar.set_message(THINKING);
        Self {
            run,
            marks: Marks::of(global.ascii),
            quiet: global.quiet || global.output == Output::Ndjson,
            prints_answer: text,
            live_answer: text && streaming && std::io::stdout().is_terminal(),
            bar,
            columns: watched.then(terminal_columns).flatten(),
            thought: (None, String::new()),
            answer: (None, 0),
        }
    }

    pub(crate) fn show(&mut self, item: &Item) -> std::io::Result<()> {
        match item {
            Item::Text { message_id, kind: TextKind::Thought, text, .. } => {
                if self.thought.0.as_ref() != Some(message_id) {
                    self.thought = (Some(Arc::clone(message_id)), String::new());
                }
                self.thought.1.push_str(text);
                self.bar.set_message(excerpt(&self.thought.1, WIDTH));
                Ok(())
            }
            Item::Text { message_id, kind: TextKind::Answer, text, session } => {
                if self.live_answer && *session == self.run { self.live(message_id, text) } else { Ok(()) }
            }
            Item::Record(record) => self.step(record),
        }
    }

    /// Nothing more will come.
    pub(crate) fn finish(&self) -> std::io::Result<()> {
        self.bar.finish_and_clear();
        std::io::stdout().flush()
    }

    fn live(&mut self, id: &Arc<str>, text: &str) -> std::io::Result<()> {
        if self.answer.0.as_ref() != Some(id) {
            self.bar.finish_and_clear();
            if self.answer.0.is_some() {
                note("\n(the answer was begun again)");
            }
            // The thought comes before the answer that rests on it.
            let thought = std::mem::take(&mut self.thought.1);
            if !thought.is_empty() {
                self.line(self.marks.thought, "thought", &excerpt(&thought, THOUGHT), "");
            }
            note("");
            self.answer = (Some(Arc::clone(id)), 0);
        }
        self.answer.1 += text.len();
        let mut out = std::io::stdout().lock();
        out.write_all(clean(text).as_bytes())?;
        out.flush()
    }

    fn step(&mut self, record: &Record) -> std::io::Result<()> {
        match &record.body {
            Body::Accepted(_) => {}
            Body::Routed(routed) => {
                let choices: Vec<_> = routed.decisions.iter().map(choice).collect();
                self.line(self.marks.routing, "routing", &choices.join(self.marks.then), "");
            }
            Body::Replied(replied) => self.reply(record, replied),
            Body::Observed(observed) => self.observation(observed),
            Body::Ended(ended) => return self.end(record, ended),
        }
        Ok(())
    }

    fn reply(&mut self, record: &Record, replied: &Replied) {
        // The thought of an answer that is on screen has its line above it.
        if let Some(thought) = replied.thought.as_ref().filter(|_| self.answer.0.is_none()) {
            self.line(self.marks.thought, "thought", &excerpt(thought.text(), THOUGHT), "");
        }
        let again =
            if record.header.attempt > 1 { format!("  attempt {}", record.header.attempt) } else { String::new() };
        let cost = format!("{}  {}{again}", seconds(replied.ms), tokens(replied.in_token, replied.out_token));
        match &replied.reading {
            Reading::Action { tool, arguments } => {
                let named = |(name, value): (&String, &serde_json::Value)| format!("{name}: {value}");
                let arguments: Vec<_> = arguments.iter().map(named).collect();
                let call = excerpt(&format!("{tool}({})", arguments.join(", ")), WIDTH);
                self.line(self.marks.tool, "tool", &call, &cost);
                self.bar.set_message(format!("{} is at work (Ctrl-C stops watching)", excerpt(tool, WIDTH)));
            }
            Reading::Unreadable { reason } => {
                if self.answer.0.is_some() {
                    // What is on screen does not count: the next answer begins anew.
                    note("\n(the answer above was cut short)");
                    self.answer = (None, 0);
                }
                self.line(self.marks.bad, "reply", &format!("could not be read: {}", excerpt(reason, WIDTH)), &cost);
            }
            Reading::Failed { reason } => self.line(self.marks.bad, "model", &excerpt(reason, WIDTH), &cost),
            // An answer that is on screen already needs no line; its cost is in the closing one.
            Reading::Answer { .. } if self.answer.0.is_some() => {}
            Reading::Answer { .. } => self.line(self.marks.good, "answer", "", &cost),
        }
    }

    fn observation(&self, observed: &Observed) {
        let text = observed.result.as_ref().map_or("", Document::text);
        let mark = if observed.error.is_some() { self.marks.bad } else { self.marks.good };
        let spent = tokens(observed.usage.in_token, observed.usage.out_token);
        self.line(mark, "result", &excerpt(text, WIDTH), &format!("{}  {spent}", seconds(observed.ms)));
        self.bar.set_message(THINKING);
    }

    /// What of the answer was not shown yet.
    fn end(&mut self, record: &Record, ended: &Ended) -> std::io::Result<()> {
        if record.header.session != self.run || !self.prints_answer {
            return Ok(());
        }
        self.bar.finish_and_clear();
        let text = ended.answer.as_ref().map_or("", Document::text);
        if self.answer.0.is_none() && !self.quiet {
            note("");
        }
        let rest = text.get(self.answer.1..).unwrap_or(text);
        let mut out = std::io::stdout().lock();
        out.write_all(clean(rest).as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    fn line(&self, mark: &str, word: &str, text: &str, cost: &str) {
        if self.quiet {
            return;
        }
        let mark = if mark == self.marks.bad { mark.red().to_string() } else { mark.cyan().to_string() };
        let cost = cost.trim();
        let mut line = format!("{mark} {:<8} ", word.bold());
        if cost.is_empty() {
            line.push_str(&clean(text));
        } else {
            // A line with a cost is one line: what does not fit beside the cost is cut.
            const MARK_AND_WORD: usize = 13;
            let room = self.columns.map_or(usize::MAX, |columns| columns.saturating_sub(cost.len() + MARK_AND_WORD));
            line.extend([excerpt(text, room.max(20)), "  ".to_owned(), cost.dimmed().to_string()]);
        }
        self.bar.suspend(|| note(&line));
    }
}

fn terminal_columns() -> Option<usize> {
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(std::io::stderr())?;
    Some(usize::from(columns))
}

/// `pattern react (1 of 2, model)`.
fn choice(decision: &Decision) -> String {
    let chosen = decision.chosen.join(", ");
    let by = decision.decided_by.as_str().replace('-', " ");
    format!("{} {chosen} (1 of {}, {by})", decision.kind.as_str().replace('-', " "), decision.options.len())
}
