//! Real providers over real connections, to servers that do what a script says.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod ask;
mod chosen;
mod contract;
mod fallback;
mod kept;
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
