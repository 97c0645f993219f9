//! A run on screen while it happens: steps on stderr, the answer on stdout.
//!
//! Only the root's answer is shown while it is written. Subagents work at the same time, so each of their lines is
//! whole and says whose it is.

mod acts;
mod cast;
mod screen;
mod steps;
mod team;

use super::live::beside;
use super::markdown::Markdown;
use super::{clean, columns_for, excerpt, note};
use crate::cli::{Global, Output};
use cast::{Cast, Label};
use screen::{Line, Screen, THOUGHT};
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use trellis_domain::document::Document;
use trellis_domain::record::{Body, Ended, Record};
use trellis_domain::{RunId, SessionId};
use trellis_orchestrator::hub::{Item, TextKind};
use trellis_orchestrator::ports::{RealWorld, World};

pub(crate) struct Follow {
    run: RunId,
    screen: Screen,
    cast: Cast,
    /// The answer goes to stdout only in text mode.
    prints_answer: bool,
    /// Text is shown while it is written: only to a person who watches.
    live_answer: bool,
    /// The root's thought being written; empty once it has its line.
    thought: (Option<Arc<str>>, String),
    /// The answer being written, and what of it was shown.
    answer: (Option<Arc<str>>, String),
    /// How a person reads it; none where it goes on as it was written.
    rendered: Option<Markdown>,
}

impl Follow {
    pub(crate) fn new(global: &Global, run: RunId, streaming: bool, hint: &'static str) -> Self {
        let text = global.output == Output::Text;
        let cast = Cast::default();
        Self {
            screen: Screen::new(global, hint, &cast.team),
            cast,
            run,
            rendered: rendered(global),
            prints_answer: text,
            live_answer: text && streaming && std::io::stdout().is_terminal(),
            thought: (None, String::new()),
            answer: (None, String::new()),
        }
    }

    pub(crate) fn show(&mut self, item: &Item) -> std::io::Result<()> {
        match item {
            Item::Text { message_id, kind, text, session } if *session == self.run => {
                self.live(message_id, *kind, text)
            }
            // Whole lines only: parallel texts would be glued together.
            Item::Text { session, .. } => {
                self.cast.at(RealWorld.now());
                self.cast.is_doing(&self.cast.agent(session), "thinking");
                Ok(())
            }
            Item::Record(record) => {
                self.cast.at(record.header.time);
                self.record(record)
            }
        }
    }

    /// Nothing more will come.
    pub(crate) fn finish(&mut self) -> std::io::Result<()> {
        self.screen.clear();
        std::io::stdout().flush()
    }

    fn live(&mut self, id: &Arc<str>, kind: TextKind, text: &str) -> std::io::Result<()> {
        self.cast.at(RealWorld.now());
        match kind {
            TextKind::Thought => {
                if self.thought.0.as_ref() != Some(id) {
                    self.thought = (Some(Arc::clone(id)), String::new());
                }
                self.thought.1.push_str(text);
                self.cast.is_doing(&Label::default(), &self.thought.1);
                Ok(())
            }
            TextKind::Answer if self.live_answer => self.live_text(id, text),
            TextKind::Answer => Ok(()),
        }
    }

    fn live_text(&mut self, id: &Arc<str>, text: &str) -> std::io::Result<()> {
        if self.answer.0.as_ref() != Some(id) {
            if self.answer.0.is_some() {
                self.begins_again()?;
            }
            // The thought comes before the answer that rests on it.
            let thought = std::mem::take(&mut self.thought.1);
            if !thought.is_empty() {
                let line = Line::new(self.screen.marks.thought, "thought").text(excerpt(&thought, THOUGHT));
                self.screen.line(&line);
            }
            note("");
            self.answer = (Some(Arc::clone(id)), String::new());
            self.cast.is_doing(&Label::default(), "answering");
        }
        self.answer.1.push_str(text);
        self.put(text)
    }

    /// What is on screen does not count.
    fn begins_again(&mut self) -> std::io::Result<()> {
        if let Some(rendered) = &mut self.rendered {
            let rest = rendered.finish();
            put_lines(&rest)?;
            *rendered = rendered.fresh();
        }
        note("\n(the answer was begun again)");
        Ok(())
    }

    /// More of the answer, as it was written or as people read it.
    fn put(&mut self, text: &str) -> std::io::Result<()> {
        if let Some(rendered) = &mut self.rendered {
            let lines = rendered.push(text);
            return put_lines(&lines);
        }
        let mut out = std::io::stdout().lock();
        out.write_all(clean(text).as_bytes())?;
        out.flush()
    }

    fn record(&mut self, record: &Record) -> std::io::Result<()> {
        let session = &record.header.session;
        match &record.body {
            // An answer on screen is not interrupted for what came too late for it.
            _ if record.header.late => {
                if self.answer.0.is_none() {
                    self.late(record);
                }
            }
            Body::Accepted(accepted) => self.accepted(session, accepted),
            Body::Routed(routed) => self.routed(session, routed),
            Body::Replied(replied) => self.replied(record, replied),
            Body::Observed(observed) => self.observed(record, observed),
            Body::FannedOut(fan_out) => self.fanned_out(session, fan_out),
            Body::Joined(joined) => self.joined(session, joined),
            // What comes of it follows.
            Body::Intended(_) | Body::InputRequired(_) => {}
            Body::Parked(parked) => self.parked(session, parked),
            Body::Settled(settled) => self.settled(session, settled),
            Body::Told(told) => self.told(session, told),
            Body::Ended(ended) if *session == self.run => return self.end(ended),
            Body::Ended(ended) => self.agent_ended(session, ended),
        }
        Ok(())
    }

    /// What of the answer was not shown yet.
    fn end(&mut self, ended: &Ended) -> std::io::Result<()> {
        if !self.prints_answer {
            return Ok(());
        }
        self.screen.clear();
        let text = ended.answer.as_ref().map_or("", Document::text);
        if self.answer.0.is_none() && !self.screen.quiet {
            note("");
        }
        let shown = std::mem::take(&mut self.answer.1);
        let rest = if let Some(rest) = text.strip_prefix(shown.as_str()) {
            rest
        } else {
            self.begins_again()?;
            text
        };
        self.put(rest)?;
        if let Some(rendered) = &mut self.rendered {
            return put_lines(&rendered.finish());
        }
        let mut out = std::io::stdout().lock();
        if !text.is_empty() && !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// The answer is on screen, or a part of it.
    fn has_begun_to_answer(&self, session: &SessionId) -> bool {
        *session == self.run && self.answer.0.is_some()
    }
}

/// For a person at a terminal, Markdown is read; everybody else gets it as it was written.
pub(crate) fn rendered(global: &Global) -> Option<Markdown> {
    let person = global.output == Output::Text && !global.plain && std::io::stdout().is_terminal();
    person.then(|| Markdown::new(columns_for(global).unwrap_or(usize::MAX), global.ascii))
}

/// Whole lines on stdout, above what is live on the same terminal.
pub(crate) fn put_lines(lines: &str) -> std::io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    beside(|| {
        let mut out = anstream::stdout().lock();
        out.write_all(lines.as_bytes())?;
        out.flush()
    })
}
