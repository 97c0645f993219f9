//! All questions of a workspace, newest run first, without projecting whole runs.

use crate::graph::reading::Reading;
use tokio_postgres::types::ToSql;
use trellis_domain::Workspace;
use trellis_domain::rdf::Quad;
use trellis_orchestrator::ports::QuadPattern;
use trellis_patterns::project;
use trellis_queries::{Bounds, QueryError, Size};

/// Where a run stands in the list: when it was started, and its id.
type RunPlace = (i64, String);

/// Runs that are looked at together.
const TOGETHER: i64 = 64;

/// The quads of accepted questions that match: of callers first, then of subagents. It reads hardly more runs than it
/// needs for the first `max_rows` of them.
pub(crate) fn all(
    reading: &Reading,
    workspace: &Workspace,
    pattern: &QuadPattern,
    bounds: &Bounds,
) -> Result<Vec<Quad>, QueryError> {
    let (mut found, mut size) = (Vec::new(), Size::default());
    for of_caller in [true, false] {
        let mut behind: Option<RunPlace> = None;
        while found.len() < bounds.max_rows {
            let (runs, last) = page(reading, workspace, behind)?;
            let condition = if of_caller {
                "workspace = $1 AND run = ANY ($2) AND session = run AND version = 1 \
                 ORDER BY array_position($2, run), seq"
            } else {
                "workspace = $1 AND run = ANY ($2) AND session <> run AND version = 1 \
                 ORDER BY array_position($2, run), session, seq"
            };
            let mut records = reading.records(workspace, condition, &[&workspace.as_str(), &runs])?;
            records.retain(|record| record.body.as_accepted().is_some());
            for record in &records {
                let asked = project(std::slice::from_ref(record));
                let asked: Vec<_> = asked.into_iter().filter(|quad| pattern.matches(quad)).collect();
                if !size.admits(asked.iter().flat_map(|quad| [&quad.s, &quad.p, &quad.o]), bounds.max_bytes) {
                    return Err(QueryError::AnswerTooLarge { max: bounds.max_bytes });
                }
                found.extend(asked);
            }
            behind = last;
            if behind.is_none() {
                break;
            }
        }
    }
    found.truncate(bounds.max_rows);
    Ok(found)
}

/// The next runs of a workspace, newest first, and behind which one to go on.
fn page(
    reading: &Reading,
    workspace: &Workspace,
    behind: Option<RunPlace>,
) -> Result<(Vec<String>, Option<RunPlace>), QueryError> {
    let (started, run) = behind.clone().unwrap_or_default();
    let workspace = workspace.as_str();
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&workspace, &TOGETHER];
    let mut condition = "";
    if behind.is_some() {
        condition = "AND (started, run) < ($3, $4)";
        parameters.extend([&started as &(dyn ToSql + Sync), &run]);
    }
    let query = format!(
        "SELECT started, run FROM runs WHERE workspace = $1 {condition} ORDER BY started DESC, run DESC LIMIT $2"
    );
    let rows = reading.rows(&query, &parameters)?;
    let runs: Vec<RunPlace> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let last = runs.last().filter(|_| i64::try_from(runs.len()) == Ok(TOGETHER)).cloned();
    Ok((runs.into_iter().map(|(_, run)| run).collect(), last))
}
