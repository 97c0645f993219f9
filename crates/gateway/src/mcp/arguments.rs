//! Arguments of a tool, read with errors that a model can mend.

use crate::api::ApiError;
use crate::api::runs::create::refuse_unknown;
use crate::error::ServiceError;
use crate::inside::Inside;
use crate::members::Members;
use serde_json::{Map, Value};
use std::time::Duration;
use trellis_domain::run::RunSummary;
use trellis_domain::{Collection, RunId};

/// The arguments of a call of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arguments<'a>(pub(super) Members<'a>);

impl<'a> Arguments<'a> {
    /// What the tool does not know is refused: it may be a name that is misspelled.
    pub(super) fn new(tool: &str, given: &'a Map<String, Value>, known: &[&str]) -> Result<Self, ApiError> {
        refuse_unknown(given, known, &format!("`{tool}`"))?;
        Ok(Self(Members::new(given)))
    }

    /// A text; empty if it is left out.
    pub(super) fn text(self, name: &str) -> Result<String, ApiError> {
        Ok(self.0.text(name)?.unwrap_or_default().trim().to_owned())
    }

    /// A text that must be there.
    pub(super) fn required(self, name: &str) -> Result<String, ApiError> {
        let missing = || ApiError::request(format!("the argument `{name}` is missing; it must be a text"));
        Some(self.text(name)?).filter(|text| !text.is_empty()).ok_or_else(missing)
    }

    /// A number of something, within its bounds.
    pub(super) fn count(self, name: &str, usual: u64, least: u64, most: u64) -> Result<u64, ApiError> {
        let wanted = self.0.count(name)?.unwrap_or(usual);
        if (least..=most).contains(&wanted) {
            return Ok(wanted);
        }
        Err(ApiError::request(format!("`{name}` must be from {least} to {most}, found {wanted}")))
    }

    /// For how long the caller waits.
    pub(super) fn wait(self) -> Result<Duration, ApiError> {
        Ok(Duration::from_secs(self.count("wait", super::tools::USUAL_WAIT, 0, super::tools::LONGEST_WAIT)?))
    }

    pub(super) fn collection(self) -> Result<Collection, ApiError> {
        let named = Some(self.text("collection")?).filter(|name| !name.is_empty());
        let named = named.as_deref().map(Collection::new).transpose();
        Ok(named.map_err(|error| ServiceError::request(error.to_string()))?.unwrap_or_default())
    }

    /// The run that is named, in the caller's workspace.
    pub(super) async fn run(self, inside: &Inside) -> Result<RunSummary, ApiError> {
        find(inside, &self.required("run_id")?).await
    }
}

/// The run of that id.
pub(super) async fn find(inside: &Inside, id: &str) -> Result<RunSummary, ApiError> {
    let missing =
        || ApiError::request(format!("there is no run `{id}` in this workspace; list_runs tells the whole ids"));
    let run = RunId::new(id).map_err(|_| missing())?;
    inside.runs().find(inside.workspace(), &run).await?.ok_or_else(missing)
}
