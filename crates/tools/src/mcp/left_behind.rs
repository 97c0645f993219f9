//! Programs must not go on when this process is killed. A process of its own sees to that: it waits for the end of its
//! input, which nobody but us keeps open, and ends the group that it shares with the program.
//!
//! The signal that Linux sends to the children of a thread that ends is no way: threads of the runtime may end before us,
//! and what a program has started would not hear of it.

use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// How a process is started that calls [`stand_guard`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    pub path: PathBuf,
    pub argument: &'static str,
}

impl Guard {
    /// The process, first of a group that the program is to be started in. While it is there, the number of the group is
    /// nobody else's.
    pub(super) fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(&self.path);
        command.arg(self.argument).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }
}

/// Waits until whoever started this process is gone, and ends everything in its group, this process included. It has to be
/// the first of its group: whoever types its name in a script must not lose the script.
pub fn stand_guard() {
    if rustix::process::getpgrp() != rustix::process::getpid() {
        return;
    }
    // If it cannot be read, it is as good as over.
    _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    _ = rustix::process::kill_current_process_group(rustix::process::Signal::KILL);
}
