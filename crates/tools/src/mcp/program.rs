//! A server that is a program: started, spoken to over its input and output, and ended.

use super::left_behind::Guard;
use super::servers::Program;
use super::web::{MOST_BYTES, too_much};
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// What a program inherits. Keys of models and tools are none of its business.
const INHERITED: [&str; 10] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ"];
/// So much of what a program said last is kept, and so many lines of it are told when it fails.
const KEPT: usize = 1_000;
const TOLD_LINES: usize = 3;
/// Programs greet, although they should not. One that writes so many lines in a row that are no messages is no server.
const MOST_STRAY_LINES: usize = 1_000;
/// So many lines and bytes may come for one request, with everything that a server tells or asks besides.
const MOST_LINES: usize = 10_000;
const MOST_IN_ALL: usize = 64 << 20;

/// A program, and what it says on the side. It and whatever it started end with this.
#[derive(Debug)]
pub(super) struct Running {
    /// The first of its group, if there is one: it ends the group if we are killed.
    guard: Option<Child>,
    child: Child,
    said: Arc<Mutex<Said>>,
    listening: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Said {
    words: String,
    /// Why it is not listened to any more.
    cut: Option<String>,
    /// Lines and bytes since something was asked.
    lines: usize,
    bytes: usize,
}

type Pipes = AsyncRwTransport<RoleClient, Lines, ChildStdin>;

impl Running {
    pub(super) fn start(program: &Program) -> Result<(Self, Pipes), String> {
        let mut command = Command::new(&program.command);
        let inherited = INHERITED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        command.args(&program.arguments).env_clear().envs(inherited).envs(&program.variables);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = &program.folder {
            if !folder.is_dir() {
                return Err(format!(
                    "`{}` cannot be started in {}: there is no such folder",
                    program.command,
                    folder.display()
                ));
            }
            command.current_dir(folder);
        }
        let cannot = |error: std::io::Error| format!("`{}` cannot be started: {error}", program.command);
        let unguarded = |error: std::io::Error| {
            format!("`{}` is not started, as nothing would end it with us: {error}", program.command)
        };
        let guard = program.guard.as_ref().map(Guard::start).transpose().map_err(unguarded)?;
        // A group of its own: what a terminal sends to us is not for it, and its children end with it.
        let group = guard.as_ref().and_then(|guard| i32::try_from(guard.id()?).ok()).unwrap_or(0);
        command.process_group(group).kill_on_drop(true);
        let mut child = command.spawn().map_err(cannot)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(side)) = pipes else {
            return Err(format!("`{}` was started without pipes", program.command));
        };
        let said = Arc::default();
        let listening = tokio::spawn(listen(side, Arc::clone(&said)));
        let output = Lines { output, since: 0, stray: 0, said: Arc::clone(&said) };
        // Lines end what is too long; the transport itself would go on and let the caller wait.
        let transport = AsyncRwTransport::new(output, input).with_max_line_length(usize::MAX);
        Ok((Self { guard, child, said, listening }, transport))
    }

    /// Something is asked: what comes now may be for that.
    pub(super) fn expect_more(&self) {
        let mut said = self.said.lock();
        (said.lines, said.bytes) = (0, 0);
    }

    /// It and whatever it started end now.
    pub(super) fn kill(&self) {
        // Only as long as it is ours: afterwards the number may be somebody else's.
        let first = self.guard.as_ref().unwrap_or(&self.child);
        let group = first.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(group) = group {
            // It may have ended by itself.
            _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }

    /// Why it is not listened to any more, or what it said last; in brackets, if there is anything.
    pub(super) async fn last_words(&self) -> String {
        // It may have ended a moment ago, and its words are still on their way.
        for _ in 0..20 {
            if self.listening.is_finished() || self.said.lock().cut.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let said = self.said.lock();
        if let Some(why) = &said.cut {
            return format!(" ({why})");
        }
        let mut lines: Vec<_> = said.words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.drain(..lines.len().saturating_sub(TOLD_LINES));
        if lines.is_empty() { String::new() } else { format!(" ({})", lines.join("; ")) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.listening.abort();
        self.kill();
    }
}

/// What a program says, until it says something that can be no answer.
#[derive(Debug)]
pub(super) struct Lines {
    output: ChildStdout,
    /// Bytes since the line began.
    since: usize,
    /// Lines that were no messages.
    stray: usize,
    said: Arc<Mutex<Said>>,
}

impl Lines {
    /// Why this is not to be read, if it is not.
    fn look_at(&mut self, read: &[u8]) -> Option<String> {
        let mut ended = 0;
        for line in read.split_inclusive(|byte| *byte == b'\n') {
            match line {
                [b'{' | b'[', ..] if self.since == 0 => self.stray = 0,
                [b'\n' | b'\r', ..] => {}
                _ => self.stray += usize::from(self.since == 0),
            }
            ended += usize::from(line.ends_with(b"\n"));
            self.since = if line.ends_with(b"\n") { 0 } else { self.since + line.len() };
        }
        let mut said = self.said.lock();
        said.lines += ended;
        said.bytes += read.len();
        if self.since > MOST_BYTES {
            return Some(too_much());
        }
        if said.lines > MOST_LINES || said.bytes > MOST_IN_ALL {
            return Some("it says more than anybody asked for".to_owned());
        }
        (self.stray > MOST_STRAY_LINES).then(|| "what it writes are no messages of this protocol".to_owned())
    }
}

impl AsyncRead for Lines {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.said.lock().cut.is_some() {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(cx, buffer))?;
        let cut = self.look_at(&buffer.filled()[before..]);
        if cut.is_some() {
            // As if it had ended.
            buffer.set_filled(before);
            self.said.lock().cut = cut;
        }
        Poll::Ready(Ok(()))
    }
}

/// Keeps the last of what a program says on the side, so that it neither waits for a reader nor fills our memory.
async fn listen(mut side: ChildStderr, said: Arc<Mutex<Said>>) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = side.read(&mut bytes).await {
        let text = String::from_utf8_lossy(&bytes[..length]);
        let words = &mut said.lock().words;
        words.extend(text.chars().filter(|c| !c.is_control() || *c == '\n'));
        let begins = words.ceil_char_boundary(words.len().saturating_sub(KEPT));
        words.drain(..begins);
    }
}
