//! The list of runs.

use crate::app::App;
use crate::cli::{Global, Output, Runs};
use crate::failure::{Exit, Failure};
use crate::show::{aligned, clean, columns, note, one_line, print_json, print_line, seconds, short};
use serde_json::json;
use trellis_domain::Timestamp;
use trellis_domain::run::RunSummary;
use trellis_domain::{ConversationId, RunId};
use trellis_orchestrator::ports::{Journal, RunFilter};
use trellis_orchestrator::summary::listed;

pub(crate) async fn run(app: &App, global: &Global, runs: &Runs) -> Result<Exit, Failure> {
    let conversation = runs.conversation.as_deref().map(ConversationId::new).transpose();
    let filter = RunFilter {
        state: runs.state,
        pattern: runs.pattern.clone(),
        conversation: conversation.map_err(|error| Failure::usage(error.to_string()))?,
        search: runs.search.clone(),
    };
    if let Some(cursor) = &runs.cursor {
        let known = RunId::new(cursor).ok();
        let known = match &known {
            Some(run) => app.store.journal.run(app.workspace(), run).await?,
            None => None,
        };
        if known.is_none() {
            return Err(Failure::usage(format!("`{cursor}` is no cursor; use the `next` of an earlier list")));
        }
    }
    let page = app.store.journal.runs(app.workspace(), &filter, runs.cursor.as_deref(), runs.limit).await?;
    let now = app.world.now();
    if global.output == Output::Json {
        let mut list = Vec::with_capacity(page.runs.len());
        for run in &page.runs {
            list.push(listed(&*app.store.journal, run, now).await?);
        }
        print_json(&json!({"runs": list, "next": page.next}).to_string())?;
        return Ok(Exit::Ok);
    }
    if page.runs.is_empty() {
        note("no runs match; `trellis ask QUESTION` starts one");
    }
    lines(&page.runs, now, columns()).iter().try_for_each(|line| print_line(line))?;
    if let Some(next) = page.next {
        note(&format!("more with --cursor {next}"));
    }
    Ok(Exit::Ok)
}

/// One line per run. A terminal that is too narrow for all goes without the pattern and the seconds; only there
/// are questions cut.
fn lines(runs: &[RunSummary], now: Timestamp, columns: Option<usize>) -> Vec<String> {
    const WIDE: usize = 110;
    let narrow = columns.is_some_and(|columns| columns < WIDE);
    let cells = |run: &RunSummary| {
        let started = run.started.to_string();
        let started = started.get(..if narrow { 16 } else { 19 }).unwrap_or(&started).to_owned() + "Z";
        let mut cells = vec![short(&run.run), run.state.to_string(), started];
        cells.push(format!("{:>8}", seconds(run.ms(now))));
        cells.extend((!narrow).then(|| clean(&run.pattern)));
        cells.push(one_line(&run.question));
        cells
    };
    aligned(&runs.iter().map(cells).collect::<Vec<_>>(), columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::Workspace;
    use trellis_domain::run::RunState;
    use trellis_domain::usage::Usage;

    #[test]
    fn a_line_fits_a_terminal_of_80_columns_and_is_whole_elsewhere() {
        let started = Timestamp::from_micros(0);
        let run = RunSummary {
            workspace: Workspace::new("default").unwrap(),
            run: RunId::new("0123456789abcdef").unwrap(),
            state: RunState::AnsweredPartial,
            question: "why ".repeat(60),
            pattern: "plan-then-execute".to_owned(),
            task_type: "general".to_owned(),
            conversation: None,
            started,
            ended: Some(started.plus_ms(59_999)),
            seq: 1,
            usage: Usage::default(),
        };
        let line = |columns| lines(std::slice::from_ref(&run), started, columns).concat();
        let narrow = line(Some(80));
        assert_eq!((narrow.chars().count(), narrow.ends_with('…')), (80, true), "{narrow}");
        assert!(narrow.starts_with("01234567  answered-partial  1970-01-01T00:00Z    59.9 s  why why"), "{narrow}");
        let wide = line(None);
        assert!(wide.contains("  plan-then-execute  why why") && wide.ends_with("why"), "{wide}");
    }
}
