//! `explain_run`, `list_decisions` and `list_runs`: what is on record.

use super::arguments::Arguments;
use super::reply::ToolReply;
use super::server::McpServer;
use super::tools::{MOST_RUNS, USUAL_RUNS};
use super::words;
use crate::api::ApiError;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trellis_domain::ConversationId;
use trellis_domain::record::Record;
use trellis_domain::run::{RunState, RunSummary};
use trellis_orchestrator::Item;
use trellis_orchestrator::events::RunEvent;
use trellis_orchestrator::ports::RunFilter;

/// Bytes of a run's texts that are told at once. Clients show them to models.
const WHOLE: usize = 4 << 20;

pub(super) const EXPLAIN: [&str; 2] = ["run_id", "full"];
pub(super) const RUNS: [&str; 5] = ["limit", "search", "state", "conversation_id", "cursor"];

/// The steps of a run, as `trellis run show` tells them.
pub(super) async fn explain_run(server: &McpServer, given: &Map<String, Value>) -> Result<ToolReply, ApiError> {
    let arguments = Arguments::new("explain_run", given, &EXPLAIN)?;
    let (run, full) = (arguments.run(&server.inside).await?, arguments.0.flag("full")?);
    let _turn = server.gateway.capacity().make().await;
    let records = records(server, &run).await?;
    let whole = server.inside.runs().whole(&run).await?;
    let inside = server.inside.clone();
    let text = tokio::task::spawn_blocking(move || inside.run_text().of(&run, &records, full)).await;
    let text = text.map_err(ApiError::internal)?;
    let value = json!({
        "run_id": whole.run_id, "state": whole.state, "reason": whole.reason, "question": whole.question,
        "answer": whole.answer, "error": whole.error, "asked_by": whole.asked_by, "explanation": text,
    });
    Ok(ToolReply { text, value, is_error: false })
}

/// Every choice of a run, with what could have been chosen.
pub(super) async fn list_decisions(server: &McpServer, given: &Map<String, Value>) -> Result<ToolReply, ApiError> {
    let run = Arguments::new("list_decisions", given, &["run_id"])?.run(&server.inside).await?;
    let _turn = server.gateway.capacity().make().await;
    let (mut decisions, mut lines) = (Vec::new(), Vec::new());
    for record in records(server, &run).await? {
        let header = &record.header;
        let event = RunEvent::of(&run.run, &Item::Record(Arc::clone(&record)));
        for set in words::option_sets(&event) {
            let mut told = json!(set);
            told["session_id"] = json!(header.session);
            told["record"] = json!(header.name.as_str());
            told["at"] = json!(header.time.to_string());
            decisions.push(told);
            lines.push(words::decision(set));
        }
    }
    let text = if lines.is_empty() { "Nothing has been decided yet.".to_owned() } else { lines.join("\n") };
    Ok(ToolReply { text, value: json!({"run_id": run.run, "decisions": decisions}), is_error: false })
}

pub(super) async fn list_runs(server: &McpServer, given: &Map<String, Value>) -> Result<ToolReply, ApiError> {
    let arguments = Arguments::new("list_runs", given, &RUNS)?;
    let limit = arguments.count("limit", USUAL_RUNS, 1, MOST_RUNS)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let given = |name: &str| arguments.text(name).map(|text| Some(text).filter(|text| !text.is_empty()));
    let unknown = |_| ApiError::request(format!("`state` must be one of {}", RunState::WORDS.join(", ")));
    let conversation = given("conversation_id")?.as_deref().map(ConversationId::new).transpose();
    let filter = RunFilter {
        state: given("state")?.map(|word| word.parse().map_err(unknown)).transpose()?,
        search: given("search")?,
        conversation: conversation.map_err(|error| ApiError::request(error.to_string()))?,
        ..RunFilter::default()
    };
    let (inside, cursor) = (&server.inside, given("cursor")?);
    let listed = inside.runs().list(inside.workspace(), filter, cursor.as_deref(), limit).await?;
    let line = |run: &trellis_orchestrator::summary::ListedRun| {
        format!("{} {} {}: {}", run.started, run.run_id, run.state, run.question.replace('\n', " "))
    };
    let lines: Vec<_> = listed.runs.iter().map(line).collect();
    let text = if lines.is_empty() { "There are no such runs.".to_owned() } else { lines.join("\n") };
    Ok(ToolReply { text, value: json!(listed), is_error: false })
}

async fn records(server: &McpServer, run: &RunSummary) -> Result<Vec<Arc<Record>>, ApiError> {
    let records = server.inside.runs().records_within(server.inside.workspace(), &run.run, WHOLE).await?;
    let too_large = || ApiError::too_large(format!("the texts of run {} have more than {} MiB", run.run, WHOLE >> 20));
    records.ok_or_else(too_large)
}
