//! Runs and changes of the configuration as objects for programs: the same for the command line and for whoever asks
//! over HTTP.

mod listed;
mod traced;
mod whole;

pub use listed::{ListedRun, ListedRuns};
pub use traced::{RunTrace, texts};
pub(crate) use whole::Read;
pub use whole::{OpenQuestion, RunOutcome, WholeRun};

use crate::ports::HistoryEntry;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trellis_domain::record::{Ended, Record};
use trellis_domain::{Caller, RunId};
use utoipa::ToSchema;

/// The end of the run itself, not of a subagent.
pub fn end_of<'a>(records: &'a [Arc<Record>], run: &RunId) -> Option<&'a Ended> {
    let mut own = records.iter().filter(|record| record.header.session == *run);
    own.find_map(|record| record.body.as_ended())
}

/// Who asked, where and with which request, if the first record of a run says so.
#[derive(Debug, Default)]
struct Asker {
    by: Option<Caller>,
    workspace: Option<String>,
    request_id: Option<String>,
    configured: Option<ConfiguredBy>,
}

impl Asker {
    fn of(first: Option<&Record>) -> Self {
        let Some((record, accepted)) = first.and_then(|record| Some((record, record.body.as_accepted()?))) else {
            return Self::default();
        };
        // A run of an earlier version says nothing of all this.
        let known = accepted.by.is_some();
        Self {
            by: accepted.by.clone(),
            workspace: known.then(|| record.header.workspace.as_str().to_owned()),
            request_id: known.then(|| accepted.request_id.as_ref().map(ToString::to_string).unwrap_or_default()),
            configured: accepted.configured.as_ref().map(|configured| ConfiguredBy {
                version: configured.version,
                time: configured.time.to_string(),
                by: configured.by.clone(),
            }),
        }
    }
}

/// The configuration that a run began with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ConfiguredBy {
    pub version: u64,
    #[schema(format = DateTime)]
    pub time: String,
    /// By whom it was made
    #[schema(value_type = Object)]
    pub by: Caller,
}

/// One change of one configuration item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub version: u64,
    pub time: String,
    pub deleted: bool,
    pub value: Option<String>,
    /// Who made it, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
}

impl From<HistoryEntry> for Change {
    fn from(entry: HistoryEntry) -> Self {
        let HistoryEntry { version, time, value, by } = entry;
        Self { version, time: time.to_string(), deleted: value.is_none(), value, by }
    }
}
