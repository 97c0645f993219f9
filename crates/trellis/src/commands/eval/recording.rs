//! What models replied in the runs of an earlier evaluation.

use crate::app::App;
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::show::note;
use crate::state::Purpose;
use std::path::Path;
use trellis_models::RecordedRun;
use trellis_orchestrator::ports::{RunFilter, UnreadableRun};

/// How many runs are listed at a time.
const PAGE: usize = 1000;

/// All runs of the workspace whose replies can be used again, the oldest first.
pub(super) async fn read(global: &Global, folder: &Path) -> Result<Vec<RecordedRun>, Failure> {
    let global = Global { data: Some(folder.to_owned()), ..global.clone() };
    let app = App::open_existing(&global, "eval", Purpose::Read).map_err(Failure::from)?;
    let service = app.runs();
    let (mut ids, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = service.list(app.workspace(), RunFilter::default(), cursor.as_deref(), PAGE).await?;
        ids.extend(page.runs.into_iter().map(|run| run.run_id));
        for UnreadableRun { run, reason } in page.unreadable {
            note(&format!("run {run} cannot be read and is left out: {reason}"));
        }
        let Some(next) = page.next else { break };
        cursor = Some(next);
    }
    let mut recorded = Vec::new();
    for id in ids.iter().rev() {
        recorded.extend(RecordedRun::of(&service.all_records(app.workspace(), id).await?));
    }
    if recorded.is_empty() {
        let (workspace, folder) = (app.workspace(), folder.display());
        let message = format!(
            "no run of the workspace `{workspace}` in {folder} has replies that can be used again; record some with \
             `trellis eval SUITE --data {folder}` (runs of older versions do not say what was asked)"
        );
        return Err(Failure::new(Exit::NotFound, message));
    }
    Ok(recorded)
}
