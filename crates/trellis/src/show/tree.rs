//! A run as a tree of steps, read from its graph.

use super::{Marks, clean, excerpt, print_line, seconds, tokens};
use owo_colors::OwoColorize;
use std::collections::BTreeMap;
use trellis_provenance::trace::{Cost, Decision, DocumentLink, Mark, SessionTrace, Step, Thought, Trace, Word};

/// Texts of documents by id.
pub(crate) type Texts = BTreeMap<String, String>;

pub(crate) struct Tree<'a> {
    pub(crate) texts: &'a Texts,
    /// Whole texts instead of their beginnings.
    pub(crate) full: bool,
    pub(crate) marks: &'a Marks,
}

const WIDTH: usize = 100;

impl Tree<'_> {
    pub(crate) fn print(&self, trace: &Trace) -> std::io::Result<()> {
        trace.sessions.iter().try_for_each(|session| self.session(session))
    }

    fn session(&self, session: &SessionTrace) -> std::io::Result<()> {
        let question = if self.full { clean(&session.question) } else { excerpt(&session.question, WIDTH) };
        line(&format!("{}  {question}", "Question".bold()))?;
        for (index, step) in session.steps.iter().enumerate() {
            let last = index + 1 == session.steps.len();
            let marks = self.marks;
            let (branch, under) = if last { (marks.last, "   ") } else { (marks.branch, marks.beside) };
            let (title, details) = self.step(step);
            line(&format!("{branch} {title}"))?;
            for detail in details {
                for part in detail.lines() {
                    line(&format!("{under}  {part}"))?;
                }
            }
        }
        let totals = &session.totals;
        let spent = tokens(totals.in_token, totals.out_token);
        let ended = session.ended.as_deref().unwrap_or("not yet");
        let started = format!("started {}", session.started.as_deref().unwrap_or("?"));
        line(&[started, format!("ended {ended}"), spent].join(self.marks.between))
    }

    fn step(&self, step: &Step) -> (String, Vec<String>) {
        match step {
            Step::Routing(routing) => {
                // The task type is chosen first, then a pattern among those it allows.
                let mut decisions: Vec<_> = routing.decisions.iter().collect();
                decisions.sort_by_key(|decision| decision.id.ends_with("/pattern"));
                let details = decisions.into_iter().flat_map(|decision| self.options(decision)).collect();
                ("Routing".bold().to_string() + &marked(routing.mark), details)
            }
            Step::Analysis(analysis) => {
                let title = format!("{} {}  {}", analysis.n, clean(&analysis.tool).bold(), spent(&analysis.cost));
                let mut details = self.thought(analysis.thought.as_ref());
                details.push(format!("arguments  {}", self.cut(&analysis.arguments.to_string())));
                details.extend(analysis.decisions.iter().flat_map(|decision| self.options(decision)));
                (title + &marked(analysis.mark), details)
            }
            Step::Observation(observation) => {
                let failed = observation.error.is_some();
                let word = if failed {
                    format!("{} Observation", self.marks.bad).red().to_string()
                } else {
                    "Observation".to_owned()
                };
                let ms = observation.tool_ms.map(seconds).unwrap_or_default();
                let text = self.document(observation.document.as_ref());
                let title = format!("{} {word}  {ms}  {}", observation.n, spent(&observation.cost));
                (title.trim_end().to_owned() + &marked(observation.mark), text.into_iter().collect())
            }
            Step::LateReply(reply) => {
                let title = format!("{} Late reply  {}{}", reply.n, spent(&reply.cost), marked(reply.mark));
                (title, self.thought(reply.thought.as_ref()))
            }
            Step::Conclusion(conclusion) => {
                let reason = match &conclusion.reason {
                    Some(Word::Known(reason)) => reason.as_str().to_owned(),
                    Some(Word::Unknown(word)) => clean(word),
                    None => "not recorded".to_owned(),
                };
                let mark = match conclusion.error {
                    Some(_) => self.marks.bad.red().to_string(),
                    None => self.marks.good.green().to_string(),
                };
                let cost = spent(&conclusion.cost);
                let title = format!("{mark} {}  {reason}  {cost}{}", "Conclusion".bold(), marked(conclusion.mark));
                let mut details = self.thought(conclusion.thought.as_ref());
                details.extend(conclusion.error.as_ref().map(|error| format!("reason  {}", clean(error))));
                details.extend(self.document(conclusion.document.as_ref()));
                (title, details)
            }
        }
    }

    fn thought(&self, thought: Option<&Thought>) -> Vec<String> {
        let text = self.document(thought.and_then(|thought| thought.document.as_ref()));
        text.map(|text| format!("thought    {text}")).into_iter().collect()
    }

    fn document(&self, link: Option<&DocumentLink>) -> Option<String> {
        let link = link?;
        Some(
            self.texts
                .get(&link.id)
                .map_or_else(|| format!("(document {} is missing)", link.id), |text| self.cut(text)),
        )
    }

    fn cut(&self, text: &str) -> String {
        if self.full { clean(text) } else { excerpt(text, WIDTH) }
    }

    /// `pattern    ● react ○ supervisor   by only-option, from agent-task-type:general v3`
    fn options(&self, decision: &Decision) -> Vec<String> {
        let mark =
            |option: &String| if decision.chosen.contains(option) { self.marks.chosen } else { self.marks.offered };
        let options: Vec<_> =
            decision.options.iter().map(|option| format!("{} {}", mark(option), clean(option))).collect();
        let kind = decision.kind.as_ref().map_or("choice", |kind| match kind {
            Word::Known(kind) => kind.as_str(),
            Word::Unknown(word) => word,
        });
        let by = decision.decided_by.as_ref().map_or("?", |by| match by {
            Word::Known(by) => by.as_str(),
            Word::Unknown(word) => word,
        });
        let outside = if decision.chosen.is_empty() { "  (the reply named none of them)" } else { "" };
        let source = decision.source.as_deref().unwrap_or("").trim_start_matches("urn:trellis:config:");
        let version = decision.config_version.map(|version| format!(" v{version}")).unwrap_or_default();
        let origin = format!("by {}, from {}{version}", clean(by), clean(source));
        let first = format!("{:<10} {}{outside}   {}", clean(kind), options.join(" "), origin.dimmed());
        let excluded = decision
            .excluded
            .iter()
            .map(|option| format!("           not offered: {} ({})", clean(&option.name), clean(&option.reason)));
        std::iter::once(first).chain(excluded).collect()
    }
}

fn line(text: &str) -> std::io::Result<()> {
    if anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never {
        return print_line(&anstream::adapter::strip_str(text).to_string());
    }
    print_line(text)
}

fn spent(cost: &Cost) -> String {
    let ms = cost.model_ms.map(seconds).unwrap_or_default();
    format!("{ms}  {}", tokens(cost.in_token, cost.out_token)).trim().to_owned()
}

fn marked(mark: Mark) -> String {
    let attempt = if mark.attempt > 1 { format!("  attempt {}", mark.attempt) } else { String::new() };
    let late = if mark.late { "  (late: after the end)" } else { "" };
    format!("{attempt}{late}")
}
