//! `GET /api/v1/runs` and `GET /api/v1/runs/{id}`: runs and how they ended.

use super::{ApiError, Entered, FoundRun, Place, Placed, Usual, limit};
use axum::Json;
use serde::Deserialize;
use trellis_domain::run::RunState;
use trellis_domain::{ConversationId, PatternName, Since, TaskTypeName, Timestamp};
use trellis_orchestrator::ports::RunFilter;
use trellis_orchestrator::schema;
use trellis_orchestrator::summary::{ListedRuns, WholeRun};
use utoipa::IntoParams;

const USUAL: usize = 20;
const MOST: usize = 500;

/// Which runs are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// The workspace; the caller's own if none is named
    workspace: Option<String>,
    /// Only runs in this state
    #[param(value_type = Option<schema::State>, inline)]
    state: Option<String>,
    /// Only runs of this pattern
    pattern: Option<String>,
    /// Only runs of this task type
    task_type: Option<String>,
    /// Only runs that began then or later: a span back from now (`90s`, `30m`, `2h`, `7d`, `4w`), a day (`2026-11-01`) or a
    /// moment in UTC (`2026-11-01T10:30Z`)
    since: Option<String>,
    /// Only runs of this conversation
    #[param(min_length = 1, max_length = 200, pattern = "^[A-Za-z0-9._~:@+=,-]+$")]
    conversation: Option<String>,
    /// Only runs whose question contains this in its first 300 characters
    search: Option<String>,
    /// Only runs whose id begins so: sorted by id, the first `limit` of them. Not together with `cursor`
    prefix: Option<String>,
    /// How many; 20 if left out
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500)]
    limit: Option<String>,
    /// Go on where an earlier page ended: its `next`
    cursor: Option<String>,
}

impl Wanted {
    /// What is empty is as if it were left out, as forms send it.
    fn without_empty(mut self) -> Self {
        let Self { workspace, state, pattern, task_type, since, conversation, search, prefix, limit, cursor } =
            &mut self;
        for member in [workspace, state, pattern, task_type, since, conversation, search, prefix, limit, cursor] {
            member.take_if(|text| text.is_empty());
        }
        self
    }
}

impl Placed for Wanted {
    fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }
}

/// List runs, newest first
///
/// What is rare is looked for in portions: a page may have fewer runs than `limit` and yet a `next`.
#[utoipa::path(
    get, path = "/api/v1/runs", tag = "runs", operation_id = "listRuns",
    params(Wanted),
    responses((status = 200, description = "A page of runs", body = ListedRuns), Usual),
)]
pub(crate) async fn list(
    Entered { inside, parameters: wanted }: Entered<Wanted>,
) -> Result<Json<ListedRuns>, ApiError> {
    let wanted = wanted.without_empty();
    let limit = limit(wanted.limit.as_deref(), USUAL, MOST)?;
    let (runs, workspace, filter) = (inside.runs(), inside.workspace(), filter(&wanted, inside.world().now())?);
    let page = match (&wanted.prefix, &wanted.cursor) {
        (Some(_), Some(_)) => return Err(ApiError::request("give `prefix` or `cursor`, not both")),
        (Some(prefix), None) => runs.list_with_prefix(workspace, prefix, filter, limit).await?,
        (None, cursor) => runs.list(workspace, filter, cursor.as_deref(), limit).await?,
    };
    Ok(Json(page))
}

fn filter(wanted: &Wanted, now: Timestamp) -> Result<RunFilter, ApiError> {
    let state = |word: &String| {
        let known = || ApiError::request(format!("`state` must be one of {}", RunState::WORDS.join(", ")));
        word.parse().map_err(|_| known())
    };
    let since = wanted.since.as_deref().map(str::parse::<Since>).transpose();
    let since = since.map_err(|error| ApiError::request(format!("`since`: {error}")))?;
    let conversation = wanted.conversation.as_deref().map(ConversationId::new).transpose();
    Ok(RunFilter {
        state: wanted.state.as_ref().map(state).transpose()?,
        pattern: wanted.pattern.as_deref().and_then(PatternName::given),
        task_type: wanted.task_type.as_deref().and_then(TaskTypeName::given),
        since: since.map(|since| since.seen_at(now)),
        conversation: conversation.map_err(|error| ApiError::request(error.to_string()))?,
        search: wanted.search.clone(),
        ..RunFilter::default()
    })
}

/// Look at one run
#[utoipa::path(
    get, path = "/api/v1/runs/{id}", tag = "runs", operation_id = "getRun",
    params(("id" = String, Path, description = "The whole id of a run"), Place),
    responses((status = 200, description = "The run, with its answer if it has one", body = WholeRun), Usual),
)]
pub(crate) async fn one(FoundRun { inside, run, .. }: FoundRun) -> Result<Json<WholeRun>, ApiError> {
    Ok(Json(inside.runs().whole(&run).await?))
}
