//! What graphs at the endpoint are called.

use trellis_domain::ids::iri_part;
use trellis_domain::{RunId, Workspace};

/// Graphs of one store. Several stores may share a dataset, and none touches what is another's.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    store: String,
}

const GRAPH: &str = "urn:trellis:graph:";

impl Names {
    pub(crate) fn new(store: &str) -> Self {
        Self { store: iri_part(store) }
    }

    /// The graph that says how far the view is, and its only node.
    pub(crate) fn mark(&self) -> String {
        format!("urn:trellis:mark:{}", self.store)
    }

    /// What all graphs of the store begin with.
    pub(crate) fn all(&self) -> String {
        format!("{GRAPH}{}:", self.store)
    }

    /// What the graphs of a workspace begin with. No name of a workspace has a colon once it is written as a part.
    pub(crate) fn of_workspace(&self, workspace: &Workspace) -> String {
        format!("{}{}:", self.all(), iri_part(workspace.as_str()))
    }

    pub(crate) fn of_run(&self, workspace: &Workspace, run: &RunId) -> String {
        format!("{}{}", self.of_workspace(workspace), iri_part(run.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_workspace_is_the_beginning_of_another() {
        let names = Names::new("trellis/12ab");
        let of = |name: &str| names.of_workspace(&Workspace::new(name).unwrap());
        assert_eq!(of("a"), "urn:trellis:graph:trellis%2F12ab:a:");
        assert!(!of("ab").starts_with(&of("a")) && !of("a-b").starts_with(&of("a")));
        assert!(!names.mark().starts_with(&names.all()));
        assert!(!Names::new("one-two").all().starts_with(&Names::new("one").all()));
    }
}
