//! Real providers over real connections, to servers that do what a script says.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod ask;
mod bedrock;
mod chosen;
mod configured;
mod contract;
mod examined;
mod fallback;
mod gemini;
mod kept;
mod named;
#[path = "../../../../acceptance/src/recording.rs"]
mod recording;
mod replies;
mod responses;
mod run;
mod schemas;
mod sizes;
mod speech;
mod stub;
mod thoughts;
mod timeouts;
mod tools;
mod trouble;
