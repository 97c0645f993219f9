//! One request to a service, whichever surface it came from.

use crate::inside::Inside;
use crate::members::Members;
use crate::request_memory::BodyPlace;
use serde_json::{Map, Value};
use trellis_domain::{Caller, Flow, Scope, Surface, Workspace};

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) inside: Inside,
    pub(crate) surface: Surface,
    /// The flow it is addressed to; None for services of the workspace.
    pub(crate) flow: Option<Flow>,
    pub(crate) request: Map<String, Value>,
    /// What the request takes of the memory for large ones.
    pub(crate) memory: Option<BodyPlace>,
}

impl Call {
    pub(crate) fn members(&self) -> Members<'_> {
        Members::new(&self.request)
    }

    /// Forgets what was asked, and makes room for others: for what goes on for hours without it.
    pub(crate) fn forget_request(&mut self) {
        self.request = Map::new();
        if let Some(place) = self.memory.take() {
            place.give_back();
        }
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        self.inside.workspace()
    }

    pub(crate) fn caller(&self) -> Caller {
        self.inside.caller(self.surface)
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope { workspace: self.workspace().clone(), flow: self.flow.clone().unwrap_or_default() }
    }
}
