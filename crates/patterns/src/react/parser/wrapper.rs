//! The code fence around a whole reply.

/// Takes away the code fence that some models put around the whole reply.
#[derive(Debug, Default)]
pub(super) struct Wrapper {
    presence: Presence,
    /// The line that may open the wrapper, later the line that may close it.
    held: String,
    line: LineShape,
    fence_lines: usize,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Presence {
    #[default]
    Unknown,
    Absent,
    Present,
}

impl Wrapper {
    pub(super) fn push(&mut self, text: &str) -> String {
        let mut unwrapped = String::with_capacity(text.len());
        for c in text.chars() {
            match self.presence {
                Presence::Unknown => self.look_for_opening(c, &mut unwrapped),
                Presence::Absent => unwrapped.push(c),
                Presence::Present => self.look_for_closing(c, &mut unwrapped),
            }
        }
        unwrapped
    }

    /// What was held back, unless it closes the wrapper.
    pub(super) fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        if held.starts_with("```") { String::new() } else { held }
    }

    pub(super) fn saw_no_text(&self) -> bool {
        matches!(self.presence, Presence::Unknown) && matches!(self.line, LineShape::Blank)
    }

    /// Only the first line with text in it can open the wrapper; blank lines before it mean nothing.
    pub(super) fn look_for_opening(&mut self, c: char, unwrapped: &mut String) {
        if self.held.is_empty() && c.is_whitespace() {
            return;
        }
        let line_before = self.line;
        self.line = line_before.followed_by(c);
        self.held.push(c);
        if c == '\n' && line_before.is_fence() {
            self.held.clear();
            self.presence = Presence::Present;
        } else if c == '\n' || matches!(self.line, LineShape::Plain) {
            unwrapped.push_str(&std::mem::take(&mut self.held));
            self.presence = Presence::Absent;
        }
    }

    /// Holds back a bare fence that would be the odd one, until text shows that it is not the last line.
    pub(super) fn look_for_closing(&mut self, c: char, unwrapped: &mut String) {
        if c == '\n' && self.line.is_fence() {
            self.fence_lines += 1;
        }
        self.line = self.line.followed_by(c);
        let may_close = match self.line {
            LineShape::Ticks(_) => self.fence_lines.is_multiple_of(2),
            LineShape::Blank | LineShape::Labelled => c.is_whitespace() && self.held.starts_with("```"),
            LineShape::Plain => false,
        };
        if may_close {
            self.held.push(c);
        } else {
            unwrapped.push_str(&std::mem::take(&mut self.held));
            unwrapped.push(c);
        }
    }
}

/// What a line looks like as far as it has been read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum LineShape {
    #[default]
    Blank,
    /// So many backticks and nothing else.
    Ticks(usize),
    /// A fence and more: a language or white space.
    Labelled,
    Plain,
}

impl LineShape {
    pub(super) fn of(line: &str) -> Self {
        line.chars().fold(Self::Blank, Self::followed_by)
    }

    pub(super) fn followed_by(self, c: char) -> Self {
        match (self, c) {
            (_, '\n') => Self::Blank,
            (Self::Blank, '`') => Self::Ticks(1),
            (Self::Blank, c) if c.is_whitespace() => Self::Blank,
            (Self::Blank, _) => Self::Plain,
            (Self::Ticks(ticks), '`') => Self::Ticks(ticks + 1),
            (Self::Ticks(ticks), _) if ticks >= 3 => Self::Labelled,
            (Self::Ticks(_), _) => Self::Plain,
            // Backticks at both ends are code within a line, as in Markdown.
            (Self::Labelled, '`') => Self::Plain,
            (Self::Labelled, _) => Self::Labelled,
            (Self::Plain, _) => Self::Plain,
        }
    }

    pub(super) fn is_fence(self) -> bool {
        match self {
            Self::Ticks(ticks) => ticks >= 3,
            Self::Labelled => true,
            Self::Blank | Self::Plain => false,
        }
    }
}
