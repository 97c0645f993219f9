//! The gateway as clients meet it: real sockets, a scripted model, everything else in memory.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod bad_input;
mod dialogs;
mod doors;
mod house;
mod models;
mod services;
