//! Faults done to the real program on purpose: files are damaged, processes are killed, disks fill up and fail, memory
//! is short, callers flood. Nothing that was acknowledged may be lost without a word, and nothing ends the server.
//!
//! `cargo xtask torture --minutes N` goes on for that long and writes a report; the tests of this crate are a share of
//! it. Chance has a seed, so that a trial can be repeated.
#![allow(clippy::disallowed_methods, reason = "real processes live in real time")]

pub mod attacks;
mod chance;
pub mod cluster;
pub mod damage;
pub mod disk;
pub mod folder;
pub mod kills;
pub mod loaded;
pub mod loading;
mod program;
pub mod read_back;

pub use chance::Chance;
pub use program::{Ended, Programs, Server};
