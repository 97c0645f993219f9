//! What each record looks like.

use super::Follow;
use super::cast::Label;
use super::screen::{Line, THOUGHT, WIDTH};
use super::team::Standing;
use crate::show::markdown::Markdown;
use crate::show::{clean, excerpt, note, seconds, short, tokens};
use serde_json::{Map, Value, json};
use trellis_domain::document::Document;
use trellis_domain::park::{Parked, Settled};
use trellis_domain::record::{Accepted, Body, Ended, Observed, Reading, Record, Replied};
use trellis_domain::run::RunState;
use trellis_domain::told::Told;
use trellis_domain::{SessionId, ToolName, counted};
use trellis_patterns::describe::{Notice, Part, Shown, ShownLine, Tone};
use trellis_patterns::notice;

const THINKING: &str = "thinking";

impl Follow {
    pub(super) fn accepted(&mut self, session: &SessionId, accepted: &Accepted) {
        let who = self.cast.agent(session);
        if let (Some(conversation), false) = (&accepted.conversation, accepted.earlier.is_empty()) {
            let text = format!("{} of conversation {conversation}", counted(accepted.earlier.len(), "question"));
            self.screen.line(&Line::new(self.screen.marks.thought, "earlier").text(text));
        }
        self.cast.is_doing(&who, THINKING);
    }

    pub(super) fn replied(&mut self, record: &Record, replied: &Replied) {
        let session = &record.header.session;
        let who = self.cast.owner(session, &record.header.name);
        let cost = cost(record, replied);
        self.cast.spends(&who, replied.in_token, replied.out_token);
        let Notice { shown, calls, parts, .. } = notice(&record.header.name, replied);
        match shown {
            Shown::Plain => self.plain(record, replied, &who, &calls, cost),
            Shown::Call => self.calls(&who, &calls, cost),
            Shown::Later => self.cast.defer_cost(session, record.header.name.clone(), cost),
            Shown::Line(line) => return self.own_line(record, replied, &who, line, &parts, cost),
        }
        for part in parts {
            self.cast.add_part(session, &part.goal);
        }
    }

    /// A line in the words of the reply's pattern.
    fn own_line(
        &mut self,
        record: &Record,
        replied: &Replied,
        who: &Label,
        shown: ShownLine,
        parts: &[Part],
        cost: String,
    ) {
        let session = &record.header.session;
        let mark = match shown.tone {
            Tone::Choice => self.screen.marks.choice,
            Tone::Many => self.screen.marks.many,
            Tone::Good => self.screen.marks.good,
        };
        let missing = self.cast.missing(session);
        let text = match shown.if_missing.filter(|_| missing > 0) {
            Some(text) => format!("{text}, {missing} missing"),
            None => excerpt(&shown.text, WIDTH),
        };
        if shown.tone == Tone::Good && !who.is_root() {
            self.cast.ends(who, Standing::Good);
        }
        self.screen.line(&Line::new(mark, shown.word).of(who.clone()).text(text).cost(cost));
        for part in parts {
            let number = self.cast.add_part(session, &part.goal);
            self.screen.entry(who, &format!("{number} {}", part.goal), &part.aside);
        }
        self.repairs(who, &shown.repairs);
        if shown.with_reasons {
            self.reasons(who, replied);
        }
    }

    /// Its thought, then the call, the answer, or the problem.
    fn plain(
        &mut self,
        record: &Record,
        replied: &Replied,
        who: &Label,
        calls: &[(&ToolName, &Map<String, Value>)],
        cost: String,
    ) {
        let (session, marks) = (&record.header.session, self.screen.marks);
        if let Reading::Failed { reason } = &replied.reading {
            self.screen.line(&Line::new(marks.bad, "model").of(who.clone()).text(excerpt(reason, WIDTH)).cost(cost));
            return;
        }
        self.thought(who, session, replied);
        if !calls.is_empty() {
            self.calls(who, calls, cost);
            self.repairs(who, &replied.repairs);
        } else if let Reading::Unusable { reason } = &replied.reading {
            if self.has_begun_to_answer(session) {
                // What is on screen does not count: the next answer begins anew.
                note("\n(the answer above was cut short)");
                self.answer = (None, String::new());
                self.rendered = self.rendered.as_ref().map(Markdown::fresh);
            }
            let text = format!("could not be read: {}", excerpt(reason, WIDTH));
            self.screen.line(&Line::new(marks.bad, "reply").of(who.clone()).text(text).cost(cost));
        } else if who.is_root() && !self.has_begun_to_answer(session) {
            // A subagent's answer has a line where the subagent ends; one on screen already needs none.
            self.screen.line(&Line::new(marks.good, "answer").cost(cost));
        }
    }

    /// The thought of an answer that is on screen has its line above it.
    fn thought(&self, who: &Label, session: &SessionId, replied: &Replied) {
        let Some(thought) = replied.thought.as_ref().filter(|_| !self.has_begun_to_answer(session)) else { return };
        let line = Line::new(self.screen.marks.thought, "thought").of(who.clone());
        self.screen.line(&line.text(excerpt(thought.text(), THOUGHT)));
    }

    /// The model's own reasons for its choices: claims, not facts.
    pub(super) fn reasons(&self, who: &Label, replied: &Replied) {
        for reason in replied.decision.iter().filter_map(|decision| decision.rationale.as_ref()) {
            self.screen.under(who, &format!("stated reason: {}", reason.text()));
        }
    }

    /// A line for each call. What asking for them took stands behind the first.
    fn calls(&mut self, who: &Label, calls: &[(&ToolName, &Map<String, Value>)], mut cost: String) {
        let tools: Vec<_> = calls.iter().map(|(tool, _)| tool.as_str()).collect();
        self.cast.is_doing(who, &tools.join(", "));
        for (tool, arguments) in calls {
            let named = |(name, value): (&String, &Value)| format!("{name}: {value}");
            let arguments: Vec<_> = arguments.iter().map(named).collect();
            let call = excerpt(&format!("{tool}({})", arguments.join(", ")), WIDTH);
            let line = Line::new(self.screen.marks.tool, "tool").of(who.clone());
            self.screen.line(&line.text(call).cost(std::mem::take(&mut cost)));
        }
    }

    pub(super) fn observed(&mut self, record: &Record, observed: &Observed) {
        let who = self.cast.owner(&record.header.session, &record.header.name);
        self.cast.spends(&who, observed.usage.in_token, observed.usage.out_token);
        if self.cast.part(&record.header.session, &record.header.name).is_some() {
            self.cast.ends(&who, if observed.error.is_some() { Standing::Bad } else { Standing::Good });
        } else {
            self.cast.is_doing(&who, THINKING);
        }
        let text = observed.result.as_ref().map_or("", Document::text);
        let mark = if observed.error.is_some() { self.screen.marks.bad } else { self.screen.marks.good };
        let spent = tokens(observed.usage.in_token, observed.usage.out_token);
        let cost = format!("{}  {spent}", seconds(observed.ms));
        self.screen.line(&Line::new(mark, "result").of(who).text(excerpt(text, WIDTH)).cost(cost));
    }

    pub(super) fn agent_ended(&mut self, session: &SessionId, ended: &Ended) {
        let who = self.cast.agent(session);
        let marks = self.screen.marks;
        let total = ended.total();
        let spent = tokens(total.in_token, total.out_token);
        let is_whole = ended.reason.run_state() == RunState::Answered && ended.missing.is_empty();
        let (mark, text) = match &ended.error {
            Some(error) => (marks.bad, format!("{}: {error}", ended.reason)),
            None if is_whole && ended.left_out.is_empty() => (marks.good, ended.reason.to_string()),
            None if ended.left_out.is_empty() => (marks.partly, ended.reason.to_string()),
            None => (marks.partly, format!("{}: {}", ended.reason, ended.left_out.join("; "))),
        };
        let standing = match mark {
            mark if mark == marks.good => Standing::Good,
            mark if mark == marks.partly => Standing::Partly,
            _ => Standing::Bad,
        };
        self.cast.ends(&who, standing);
        let cost = format!(
            "{}  {}  {spent}",
            counted(total.model_calls, "model call"),
            counted(total.tool_calls, "tool call")
        );
        self.screen.line(&Line::new(mark, "ended").of(who).text(text).cost(cost));
    }

    /// A question to whoever may answer it, and how.
    pub(super) fn parked(&mut self, session: &SessionId, parked: &Parked) {
        let who = self.cast.agent(session);
        let line = Line::new(self.screen.marks.choice, "waits").of(who.clone());
        self.screen.line(&line.text(clean(parked.question.text())));
        let content = if parked.forms.is_empty() { "" } else { "; with `answer`: --content '{\"FIELD\": …}'" };
        let how = format!("trellis run decide {} {}{content}", short(&self.run), parked.offered.options.join("|"));
        self.screen.under(&who, &format!("until {}, then {}: {how}", parked.expires, parked.otherwise));
    }

    pub(super) fn settled(&mut self, session: &SessionId, settled: &Settled) {
        let who = self.cast.agent(session);
        let by = settled.by.as_ref().map_or_else(|| "nobody in time".to_owned(), ToString::to_string);
        let line = Line::new(self.screen.marks.choice, "decided").of(who.clone());
        self.screen.line(&line.text(format!("{}, by {by}", self.options(&settled.decision))));
        if let Some(reason) = &settled.decision.rationale {
            self.screen.under(&who, &format!("stated reason: {}", reason.text()));
        }
        if let Some(content) = &settled.content {
            self.screen.under(&who, &clean(&json!(content).to_string()));
        }
    }

    /// What somebody said to an agent at work.
    pub(super) fn told(&mut self, session: &SessionId, told: &Told) {
        let who = self.cast.agent(session);
        let line = Line::new(self.screen.marks.choice, "told").of(who);
        self.screen.line(&line.text(format!("{}, by {}", clean(told.text.text()), told.by)));
    }

    /// Kept, never acted on.
    pub(super) fn late(&self, record: &Record) {
        let what = match &record.body {
            Body::Replied(_) => "a reply",
            Body::Observed(_) => "a result",
            Body::Accepted(_)
            | Body::Routed(_)
            | Body::FannedOut(_)
            | Body::Joined(_)
            | Body::Intended(_)
            | Body::InputRequired(_)
            | Body::Parked(_)
            | Body::Settled(_)
            | Body::Told(_)
            | Body::Ended(_) => return,
        };
        let who = self.cast.owner(&record.header.session, &record.header.name);
        let text = format!("{what} came after the end; kept, not used");
        self.screen.line(&Line::new(self.screen.marks.thought, "late").of(who).text(text).dimmed());
    }
}

fn cost(record: &Record, replied: &Replied) -> String {
    let again = if record.header.attempt > 1 { format!("  attempt {}", record.header.attempt) } else { String::new() };
    format!("{}  {}{again}", seconds(replied.ms), tokens(replied.in_token, replied.out_token))
}
