//! Real providers over real connections, to servers that do what a script says.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod ask;
mod chosen;
mod contract;
mod examined;
mod fallback;
mod kept;
mod named;
#[path = "../../../../acceptance/src/recording.rs"]
mod recording;
mod replies;
mod run;
mod schemas;
mod speech;
mod stub;
mod timeouts;
mod tools;
mod trouble;
