//! A run from its question to its end, as `run show` prints it and as other agents are told it.

use super::tree::Tree;
use super::wrap::{pieces, wrap};
use super::{Marks, clean, seconds, tokens};
use std::sync::Arc;
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_domain::{RequestId, Timestamp};
use trellis_gateway::RunText;
use trellis_orchestrator::ports::{RealWorld, World};
use trellis_orchestrator::summary::{end_of, texts};
use trellis_patterns::project;
use trellis_provenance::trace;

/// How a run is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunStyle {
    /// Whole texts instead of their beginnings.
    pub(crate) full: bool,
    pub(crate) marks: &'static Marks,
    /// How much of a text is shown if not all of it.
    pub(crate) width: usize,
    /// No line is longer, if there is such a limit.
    pub(crate) columns: Option<usize>,
}

/// The lines of a run, coloured.
pub(crate) fn lines(run: &RunSummary, records: &[Arc<Record>], now: Timestamp, style: RunStyle) -> Vec<String> {
    let RunStyle { full, marks, width, columns } = style;
    let mut lines = vec![heading(run, now).join(marks.between)];
    lines.extend(asked_by(records));
    let canceller = end_of(records, &run.run).and_then(|ended| ended.by.as_ref());
    lines.extend(canceller.map(|by| format!("cancelled by {}", clean(&by.to_string()))));
    let (trace, texts) = (trace(&project(records)), texts(records));
    let fits = |line: String| columns.map_or_else(|| vec![line.clone()], |columns| wrap(&pieces(&line), columns));
    let mut lines: Vec<_> = lines.into_iter().flat_map(fits).collect();
    lines.extend(Tree { trace: &trace, texts: &texts, full, marks, width, columns }.lines());
    lines
}

/// Runs as other agents are told them: without colours, and as wide as a good line.
#[derive(Debug)]
pub(crate) struct PlainRunText;

impl RunText for PlainRunText {
    fn of(&self, run: &RunSummary, records: &[Arc<Record>], full: bool) -> String {
        const WIDTH: usize = 160;
        let style = RunStyle { full, marks: Marks::of(/* ascii */ false), width: WIDTH, columns: None };
        let coloured = lines(run, records, RealWorld.now(), style).join("\n");
        anstream::adapter::strip_str(&coloured).to_string()
    }
}

/// The run in one line.
fn heading(summary: &RunSummary, now: Timestamp) -> Vec<String> {
    let usage = &summary.usage;
    let conversation = summary.conversation.as_ref().map(|id| format!("conversation {}", id.as_str()));
    let parts = [
        format!("run {}", summary.run),
        summary.state.to_string(),
        seconds(summary.ms(now)),
        tokens(usage.in_token, usage.out_token),
        clean(usage.model.as_deref().unwrap_or_default()),
        conversation.unwrap_or_default(),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// Who asked, where and with which request, if that is on record.
fn asked_by(records: &[Arc<Record>]) -> Option<String> {
    let first = records.first()?;
    let accepted = first.body.as_accepted()?;
    let (by, workspace) = (accepted.by.as_ref()?, &first.header.workspace);
    let configured = accepted
        .configured
        .as_ref()
        .map(|made| format!("; configuration {} made by {}", made.version, clean(&made.by.to_string())));
    let request = clean(accepted.request_id.as_ref().map_or("", RequestId::as_str));
    let by = clean(&by.to_string());
    Some(format!("asked by {by} in {workspace}, request {request}{}", configured.unwrap_or_default()))
}
