//! What a database does not keep yet: it says so, and finds nothing.

use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::ports::{
    FoundPassages, IndexedDocument, Search, SearchDocument, SearchError, SearchFuture, SearchQuery,
};

/// There is no index of words, and nothing can be put into it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Absent;

const DOCUMENTS: &str = "documents cannot be searched with --state postgres yet; load them into a data folder";

fn ready<'a, T: Send + 'a>(value: Result<T, SearchError>) -> SearchFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

fn no_documents<'a, T: Send + 'a>() -> SearchFuture<'a, T> {
    ready(Err(SearchError::Invalid(DOCUMENTS.to_owned())))
}

impl Search for Absent {
    fn put<'a>(&'a self, _: &'a Workspace, _: &'a Collection, _: Vec<SearchDocument>) -> SearchFuture<'a, ()> {
        no_documents()
    }

    fn remove<'a>(&'a self, _: &'a Workspace, _: &'a Collection, _: &'a str) -> SearchFuture<'a, bool> {
        ready(Ok(false))
    }

    fn remove_collection<'a>(&'a self, _: &'a Workspace, _: &'a Collection) -> SearchFuture<'a, ()> {
        ready(Ok(()))
    }

    fn find<'a>(&'a self, _: &'a Workspace, _: &'a Collection, _: SearchQuery) -> SearchFuture<'a, FoundPassages> {
        no_documents()
    }

    fn document<'a>(
        &'a self,
        _: &'a Workspace,
        _: &'a Collection,
        _: &'a str,
    ) -> SearchFuture<'a, Option<IndexedDocument>> {
        ready(Ok(None))
    }

    fn documents<'a>(
        &'a self,
        _: &'a Workspace,
        _: &'a Collection,
        _: Option<&'a str>,
        _: usize,
    ) -> SearchFuture<'a, Vec<IndexedDocument>> {
        ready(Ok(Vec::new()))
    }
}
