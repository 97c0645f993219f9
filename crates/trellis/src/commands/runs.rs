//! The list of runs.

use crate::cli::{Global, Output, Runs};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{aligned, clean, columns_for, note, one_line, print_json, print_line, seconds, short};
use serde_json::json;
use trellis_domain::run::RunState;
use trellis_domain::{ConversationId, PatternName, TaskTypeName};
use trellis_orchestrator::ports::{RealWorld, RunFilter, UnreadableRun, World};
use trellis_orchestrator::summary::ListedRun;

pub(crate) async fn run(desk: &Desk, global: &Global, runs: &Runs) -> Result<Exit, Failure> {
    let conversation = runs.conversation.as_deref().map(ConversationId::new).transpose();
    let filter = RunFilter {
        state: runs.state,
        pattern: runs.pattern.as_deref().and_then(PatternName::given),
        task_type: runs.task_type.as_deref().and_then(TaskTypeName::given),
        since: runs.since.map(|since| since.seen_at(RealWorld.now())),
        conversation: conversation.map_err(|error| Failure::usage(error.to_string()))?,
        search: runs.search.clone(),
        ..RunFilter::default()
    };
    let page = desk.runs(&filter, runs.cursor.as_deref(), runs.limit).await?;
    if global.output == Output::Json {
        print_json(&json!(page).to_string())?;
        return Ok(Exit::Ok);
    }
    if page.runs.is_empty() {
        note("no runs match; `trellis ask QUESTION` starts one");
    }
    // A folder is opened by one process at a time: by this one, which works on nothing.
    let alone = matches!(desk, Desk::Local(_));
    lines(&page.runs, columns_for(global), alone).iter().try_for_each(|line| print_line(line))?;
    if page.runs.iter().any(|run| is_interrupted(run.state, alone)) {
        note(
            "interrupted: nobody is at work; `trellis resume RUN` goes on with one, `trellis resume` with all of them",
        );
    }
    for UnreadableRun { run, reason } in &page.unreadable {
        note(&format!("run {run} cannot be read: {reason}; `trellis doctor` looks for more"));
    }
    if let Some(next) = page.next {
        note(&format!("more with --cursor {next}"));
    }
    Ok(Exit::Ok)
}

/// One line per run. A terminal that is too narrow for all goes without the pattern and the seconds; only there
/// are questions cut.
fn lines(runs: &[ListedRun], columns: Option<usize>, alone: bool) -> Vec<String> {
    const WIDE: usize = 110;
    let narrow = columns.is_some_and(|columns| columns < WIDE);
    let cells = |run: &ListedRun| {
        let started = run.started.get(..if narrow { 16 } else { 19 }).unwrap_or(&run.started).to_owned() + "Z";
        let mut cells = vec![short(&run.run_id), state(run.state, alone), started];
        cells.push(format!("{:>8}", seconds(run.ms)));
        cells.extend((!narrow).then(|| clean(&run.pattern)));
        cells.push(one_line(&run.question));
        cells
    };
    aligned(&runs.iter().map(cells).collect::<Vec<_>>(), columns)
}

/// Open, and nobody is there who could go on with it.
pub(super) fn is_interrupted(state: RunState, alone: bool) -> bool {
    alone && matches!(state, RunState::Queued | RunState::Running)
}

fn state(state: RunState, alone: bool) -> String {
    if is_interrupted(state, alone) { "interrupted".to_owned() } else { state.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::RunId;

    #[test]
    fn a_line_fits_a_terminal_of_80_columns_and_is_whole_elsewhere() {
        let run = ListedRun {
            run_id: RunId::new("0123456789abcdef").unwrap(),
            state: RunState::AnsweredPartial,
            question: "why ".repeat(60),
            pattern: "plan-then-execute".to_owned(),
            task_type: "general".to_owned(),
            conversation_id: None,
            started: "1970-01-01T00:00:00Z".to_owned(),
            ms: 59_999,
            in_token: None,
            out_token: None,
            question_truncated: false,
        };
        let line = |columns| lines(std::slice::from_ref(&run), columns, /* alone */ false).concat();
        let narrow = line(Some(80));
        assert_eq!((narrow.chars().count(), narrow.ends_with('…')), (80, true), "{narrow}");
        assert!(narrow.starts_with("01234567  answered-partial  1970-01-01T00:00Z    59.9 s  why why"), "{narrow}");
        let wide = line(None);
        assert!(wide.contains("  plan-then-execute  why why") && wide.ends_with("why"), "{wide}");
    }
}
