//! A run as a tree of steps, read from its graph: the root's session, and below each fan-out the sessions it began.

mod agents;
mod choices;
mod node;
mod plans;
mod steps;

use super::{Marks, clean, excerpt, grouped, padded, seconds, tokens};
use node::{TreeNode, lines};
use owo_colors::OwoColorize;
use std::collections::BTreeMap;
use trellis_provenance::trace::{Cost, DocumentLink, Mark, SessionTrace, Totals, Trace};

/// Texts of documents by id.
pub(crate) type Texts = BTreeMap<String, String>;

pub(crate) struct Tree<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) texts: &'a Texts,
    /// Whole texts instead of their beginnings.
    pub(crate) full: bool,
    pub(crate) marks: &'a Marks,
    /// How much of a text is shown if not all of it.
    pub(crate) width: usize,
    /// No line is longer, if there is such a limit; then what was not offered is only counted, too.
    pub(crate) columns: Option<usize>,
}

/// As much as fits beside what stands around it; a good line where nothing limits it.
pub(crate) fn text_width(columns: Option<usize>) -> usize {
    const AROUND: usize = 45;
    let (least, most) = (40, 100);
    columns.map_or(most, |columns| columns.saturating_sub(AROUND).clamp(least, most))
}

impl Tree<'_> {
    /// Coloured, whoever reads them.
    pub(crate) fn lines(&self) -> Vec<String> {
        let roots = self.trace.sessions.iter().filter(|session| !self.hangs(session));
        roots.flat_map(|session| lines(&self.root(session), self.marks, self.columns)).collect()
    }

    /// Whether a session is drawn below the decomposition that began it.
    fn hangs(&self, session: &SessionTrace) -> bool {
        let Some(above) = session.parent.as_ref().and_then(|parent| parent.decomposition.as_ref()) else {
            return false;
        };
        self.trace.sessions.iter().flat_map(|session| &session.steps).any(|step| step.id() == above)
    }

    fn root(&self, session: &SessionTrace) -> TreeNode {
        let mut node = TreeNode::new(format!("{}  {}", "Question".bold(), self.cut(&session.question)));
        node.details.extend(self.document(session.history.as_ref()).map(|text| labelled("brought", &text)));
        node.children = self.steps(session, "");
        let ended = session.ended.as_deref().unwrap_or("not yet");
        let started = session.started.as_deref().unwrap_or("?");
        node.tail.push([format!("started {started}"), format!("ended {ended}")].join(self.marks.between));
        node.tail.extend(self.summed("its own part", &session.totals));
        let with_agents = session.totals_with_subagents.as_ref();
        node.tail.extend(with_agents.and_then(|totals| self.summed("with its agents", totals)));
        node
    }

    /// `with its agents  12 model calls 4.1 s · 5 tool calls 1.2 s · 9,120 in / 1,804 out`.
    fn summed(&self, what: &str, totals: &Totals) -> Option<String> {
        let text = self.totals(totals);
        (!text.is_empty()).then(|| format!("{what:<16} {text}").dimmed().to_string())
    }

    fn totals(&self, totals: &Totals) -> String {
        let calls = |count: Option<u64>, word: &str, ms: Option<u64>| {
            let plural = if count == Some(1) { "" } else { "s" };
            let ms = ms.filter(|_| count > Some(0)).map(|ms| format!(" {}", seconds(ms))).unwrap_or_default();
            count.map(|count| format!("{} {word}{plural}{ms}", grouped(count)))
        };
        let spent = tokens(totals.in_token, totals.out_token);
        let parts = [
            calls(totals.model_calls, "model call", totals.model_ms),
            calls(totals.tool_calls, "tool call", totals.tool_ms),
            Some(spent).filter(|spent| !spent.is_empty()),
            calls(totals.agents, "subagent", None),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(self.marks.between)
    }

    /// The calls that brought no reply before one did.
    fn failures(&self, cost: &Cost) -> Vec<String> {
        cost.failures.iter().map(|why| labelled("no reply", &self.cut(why)).yellow().to_string()).collect()
    }

    fn document(&self, link: Option<&DocumentLink>) -> Option<String> {
        link.map(|link| self.text(&link.id))
    }

    fn text(&self, id: &str) -> String {
        self.texts.get(id).map_or_else(|| format!("(document {} is missing)", clean(id)), |text| self.cut(text))
    }

    fn cut(&self, text: &str) -> String {
        if self.full { clean(text) } else { excerpt(text, self.width) }
    }
}

fn spent(cost: &Cost) -> String {
    let ms = cost.model_ms.map(seconds).unwrap_or_default();
    format!("{ms}  {}", tokens(cost.in_token, cost.out_token)).trim().to_owned()
}

/// A cost behind a title.
fn behind(cost: &Cost) -> String {
    match spent(cost) {
        spent if spent.is_empty() => spent,
        spent => format!("  {}", spent.dimmed()),
    }
}

/// `thought    the text`, further lines below its beginning.
fn labelled(label: &str, text: &str) -> String {
    let mut lines = text.lines();
    let first = format!("{} {}", padded(label, 10), lines.next().unwrap_or_default()).trim_end().to_owned();
    std::iter::once(first).chain(lines.map(|line| format!("{:<10} {line}", ""))).collect::<Vec<_>>().join("\n")
}

fn marked(mark: &Mark) -> String {
    let attempt = if mark.attempt > 1 { format!("  attempt {}", mark.attempt) } else { String::new() };
    let late = if mark.late { "  (late: after the end)" } else { "" };
    let brought = if mark.brought { "  (by others, before this session)" } else { "" };
    format!("{attempt}{late}{brought}")
}

/// The last part of an IRI: the number of a step or finding.
fn number_of(iri: &str) -> &str {
    iri.rsplit('/').next().unwrap_or(iri)
}

#[cfg(test)]
mod tests {
    use super::labelled;

    #[test]
    fn texts_begin_in_the_same_column_whatever_their_labels_are_written_in() {
        assert_eq!(labelled("why", "a\nb"), "why        a\n           b");
        assert_eq!(labelled("天気", "晴れ\n曇り"), "天気       晴れ\n           曇り");
    }
}
