//! The graph of runs at any SPARQL 1.1 endpoint: query, update and graph store protocol over HTTP.
//!
//! The endpoint keeps the view: finished runs, a named graph for each, and a mark that says how far it follows the store.
//! What is newer is laid over it, and queries are evaluated here (`trellis-queries`), so that answers are those of every
//! other store, nobody's query reaches the endpoint, and workspaces see nothing of each other. What was loaded stays in
//! the store.

mod absorbing;
mod address;
mod client;
mod error;
mod graph;
mod mark;
mod names;
mod newer;
mod reading;
mod results;
mod terms;

pub use address::{Address, AddressError, Credentials};
pub use error::RemoteError;
pub use graph::{Followed, RemoteGraph};
pub use trellis_queries::EndedRuns;
