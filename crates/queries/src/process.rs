//! A query's process, from its start to its end.

use crate::workers::Program;
use parking_lot::Mutex;
use std::io::{self, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;

/// Bytes of its last words that are read.
const LAST_WORDS: u64 = 4096;
/// Bytes of what it says that are read at once.
const BUFFER: usize = 64 << 10;

/// A process that does not outlive this.
#[derive(Debug)]
struct Running(Child);

impl Running {
    /// Ends it; it may have ended by itself.
    fn end(&mut self) {
        drop(self.0.kill());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
        drop(self.0.wait());
    }
}

/// A worker that has no query yet.
#[derive(Debug)]
pub(crate) struct Process {
    running: Running,
    pipes: Pipes,
}

/// The ways to a process and from it.
#[derive(Debug)]
pub struct Pipes {
    pub to: ChildStdin,
    pub from: BufReader<ChildStdout>,
    errors: ChildStderr,
}

impl Process {
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).envs(program.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // Ctrl-C at a terminal is for the owner, who ends its queries in its own way.
            command.process_group(0);
        }
        let mut running = Running(command.spawn()?);
        let child = &mut running.0;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(to), Some(from), Some(errors)) => {
                Ok(Self { running, pipes: Pipes { to, from: BufReader::with_capacity(BUFFER, from), errors } })
            }
            _ => Err(io::Error::other("a process without pipes")),
        }
    }

    /// Whether it has not ended: somebody may end processes that seem to do nothing.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.running.0.try_wait(), Ok(None))
    }

    /// Gives the process to whoever may end it while its pipes are in use. None if that was wished already.
    pub(crate) fn under(self, leash: &Leash) -> Option<Pipes> {
        let mut held = leash.0.lock();
        match &*held {
            HeldProcess::Nothing => {
                *held = HeldProcess::Process(self.running);
                Some(self.pipes)
            }
            HeldProcess::Process(_) | HeldProcess::Cut => None,
        }
    }
}

impl Pipes {
    /// What a process that has ended, or is about to, left on standard error.
    pub(crate) fn last_words(mut self) -> String {
        drop((self.to, self.from));
        let mut words = Vec::new();
        // What cannot be read says nothing.
        drop(self.errors.by_ref().take(LAST_WORDS).read_to_end(&mut words));
        String::from_utf8_lossy(&words).trim().to_owned()
    }
}

/// Holds a process while another thread uses its pipes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leash(Arc<Mutex<HeldProcess>>);

#[derive(Debug, Default)]
enum HeldProcess {
    /// Not yet.
    #[default]
    Nothing,
    Process(Running),
    /// And nothing is taken any more.
    Cut,
}

impl Leash {
    /// Ends the process, now or as soon as there is one. Whoever reads from it notices.
    pub(crate) fn cut(&self) {
        let mut held = self.0.lock();
        match &mut *held {
            HeldProcess::Process(running) => running.end(),
            HeldProcess::Nothing | HeldProcess::Cut => *held = HeldProcess::Cut,
        }
    }

    /// Lets go of a process that has ended, or is about to: how?
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        let held = std::mem::replace(&mut *self.0.lock(), HeldProcess::Cut);
        match held {
            HeldProcess::Process(mut running) => running.0.wait().ok(),
            HeldProcess::Nothing | HeldProcess::Cut => None,
        }
    }
}
