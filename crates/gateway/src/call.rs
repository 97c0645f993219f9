//! One request to a service, whichever surface it came from.

use crate::access::Identity;
use crate::members::Members;
use serde_json::{Map, Value};
use trellis_domain::{Flow, Scope, Workspace};

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) identity: Identity,
    pub(crate) workspace: Workspace,
    /// The flow it is addressed to; None for services of the workspace.
    pub(crate) flow: Option<Flow>,
    pub(crate) request: Map<String, Value>,
}

impl Call {
    pub(crate) fn members(&self) -> Members<'_> {
        Members::new(&self.request)
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope { workspace: self.workspace.clone(), flow: self.flow.clone().unwrap_or_default() }
    }
}
