//! How a run ended, in a few lines.

use super::{Marks, clean, seconds, short, tokens};
use owo_colors::OwoColorize;
use trellis_domain::Timestamp;
use trellis_domain::record::Ended;
use trellis_domain::run::{RunState, RunSummary, Termination};

/// What it was, and what it does without. How to look further depends on who asks.
pub(crate) fn footer(summary: &RunSummary, ended: &Ended, now: Timestamp, marks: &Marks) -> Vec<String> {
    let parts = [
        format!("run {}", short(&summary.run).bold()),
        state(summary.state),
        seconds(summary.ms(now)),
        tokens(summary.usage.in_token, summary.usage.out_token),
        clean(summary.usage.model.as_deref().unwrap_or_default()),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let mut lines = vec![parts.join(marks.between)];
    lines.extend(ended.error.as_ref().map(|error| format!("{} {}", "reason:".red(), clean(error))));
    if !ended.missing.is_empty() {
        let missing: Vec<_> = ended.missing.iter().map(u32::to_string).collect();
        let what = if ended.reason == Termination::PlanPartial { "step" } else { "finding" };
        let plural = if missing.len() == 1 { "" } else { "s" };
        lines.push(format!("{} {what}{plural} {}", "answered without".yellow(), missing.join(", ")));
    }
    if ended.reason == Termination::AnswerPartial {
        lines.push("answered without a result of any tool: all calls failed".yellow().to_string());
    }
    let lacks_nothing = ended.missing.is_empty() && ended.left_out.is_empty() && ended.error.is_none();
    if ended.reason == Termination::SubagentsPartial && lacks_nothing {
        lines.push("answered from partial answers only".yellow().to_string());
    }
    lines
}

fn state(state: RunState) -> String {
    let word = state.as_str();
    match state {
        RunState::Answered => word.green().to_string(),
        RunState::Failed => word.red().to_string(),
        RunState::AnsweredPartial | RunState::Limit | RunState::Cancelled => word.yellow().to_string(),
        RunState::Queued | RunState::Running | RunState::Waiting => word.cyan().to_string(),
    }
}
