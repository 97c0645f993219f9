//! The list of runs.

use crate::app::App;
use crate::cli::{Global, Output, Runs};
use crate::failure::{Exit, Failure};
use crate::show::{clean, note, print_json, print_line, seconds, short};
use serde_json::{Value, json};
use trellis_domain::Timestamp;
use trellis_domain::run::RunSummary;
use trellis_domain::{ConversationId, RunId};
use trellis_orchestrator::ports::{Journal, RunFilter};

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
        let list: Vec<_> = page.runs.iter().map(|run| as_json(run, now)).collect();
        print_json(&json!({"runs": list, "next": page.next}).to_string())?;
        return Ok(Exit::Ok);
    }
    if page.runs.is_empty() {
        note("no runs match; `trellis ask QUESTION` starts one");
    }
    for run in &page.runs {
        let question: String = clean(&run.question).replace('\n', " ").chars().take(70).collect();
        print_line(&format!(
            "{:<10} {:<17} {:<21} {:>8}  {:<18} {question}",
            short(&run.run),
            run.state.as_str(),
            &format!("{}Z", &run.started.to_string()[..19]),
            seconds(run.ms(now)),
            run.pattern,
        ))?;
    }
    if let Some(next) = page.next {
        note(&format!("more with --cursor {next}"));
    }
    Ok(Exit::Ok)
}

fn as_json(run: &RunSummary, now: Timestamp) -> Value {
    json!({
        "run_id": run.run.as_str(),
        "state": run.state,
        "question": run.question,
        "pattern": run.pattern,
        "task_type": run.task_type,
        "conversation_id": run.conversation.as_ref().map(ConversationId::as_str),
        "started": run.started.to_string(),
        "ms": run.ms(now),
        "in_token": run.usage.in_token,
        "out_token": run.usage.out_token,
    })
}
