//! The real program: its commands, and a server of it.

use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;
use serde_json::Value;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// No command may take longer, whatever was done to its folder.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(3);

/// Where the programs under trial are.
#[derive(Debug, Clone)]
pub struct Programs {
    pub trellis: PathBuf,
    /// This crate's own, which reads a folder back in a process of its own.
    pub torture: PathBuf,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    status: ExitStatus,
    /// Both streams.
    pub said: String,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signal = self.status.signal().map(|signal| format!("signal {signal}"));
        let how = signal.or_else(|| Some(format!("exit {}", self.status.code()?))).unwrap_or_default();
        let said: String = self.said.chars().take(2000).collect();
        write!(f, "{how}: {}", said.trim())
    }
}

impl Programs {
    /// Those that were built into the same folder.
    pub fn beside(folder: &Path) -> Result<Self> {
        let [trellis, torture] = ["trellis", "torture"].map(|name| folder.join(name));
        for program in [&trellis, &torture] {
            ensure!(program.exists(), "{} is not built: `cargo xtask torture` builds it", program.display());
        }
        Ok(Self { trellis, torture })
    }

    /// A command on this folder, with nobody's own keys and settings.
    pub fn command(&self, data: &Path, arguments: &[&str]) -> Command {
        let mut command = self.anywhere(arguments);
        command.arg("--data").arg(data);
        command
    }

    /// A command that knows its place from elsewhere.
    pub fn anywhere(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.trellis);
        command.args(arguments);
        command.env_clear().env("TRELLIS_MODEL", "rehearsal").env("TRELLIS_REHEARSAL_DELAY_MS", "0");
        command.env("TRELLIS_SETTINGS", "/dev/null").env("NO_COLOR", "1").env("RUST_BACKTRACE", "0");
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, data: &Path, arguments: &[&str]) -> Result<Ended> {
        finish(self.command(data, arguments))
    }

    /// Runs a command that has to go well, and gives what it said.
    pub fn ok(&self, data: &Path, arguments: &[&str]) -> Result<String> {
        let ended = self.run(data, arguments)?;
        ensure!(ended.code() == Some(0), "`trellis {}`: {ended}", arguments.join(" "));
        Ok(ended.said)
    }

    /// `trellis serve` on this folder, not started yet.
    pub fn serve(&self, data: &Path) -> Command {
        let mut command =
            self.command(data, &["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--drain", "5"]);
        command.env("TRELLIS_REHEARSAL_DELAY_MS", "2");
        command
    }
}

/// Waits for a command; one that does not end is killed and is a fault.
pub(crate) fn finish(mut command: Command) -> Result<Ended> {
    let said = tempfile::NamedTempFile::new()?;
    let output = |file: &tempfile::NamedTempFile| -> Result<File> { Ok(file.as_file().try_clone()?) };
    command.stdin(Stdio::null()).stdout(output(&said)?).stderr(output(&said)?);
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > COMMAND_TIMEOUT {
            child.kill()?;
            child.wait()?;
            bail!("{command:?} did not end within {} s", COMMAND_TIMEOUT.as_secs());
        }
        thread::sleep(Duration::from_millis(2));
    };
    Ok(Ended { status, said: String::from_utf8_lossy(&std::fs::read(said.path())?).into_owned() })
}

/// The same command with no more than so much address space, in bytes.
pub(crate) fn within(command: &Command, bytes: u64) -> Command {
    let mut limited = Command::new("sh");
    limited.arg("-c").arg(format!("ulimit -v {}; exec \"$0\" \"$@\"", bytes / 1024)).arg(command.get_program());
    limited.args(command.get_args()).env_clear();
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited
}

/// A server that runs. It is killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    /// Host and port.
    pub address: String,
    log: Arc<Mutex<Vec<String>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Server {
    /// Waits until it serves; an error if it ends instead.
    pub fn start(mut command: Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let stderr = process.stderr.take().context("stderr is piped")?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let (tell, told) = mpsc::channel();
        let lines = Arc::clone(&log);
        let reader = thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some(address) = address_in(&line) {
                    drop(tell.send(address));
                }
                lines.lock().push(line);
            }
        });
        let mut server = Self { process, address: String::new(), log, reader: Some(reader) };
        let Ok(address) = told.recv_timeout(COMMAND_TIMEOUT) else {
            let code = server.wait()?.map_or_else(|| "a signal".to_owned(), |code| format!("exit {code}"));
            bail!("the server does not serve ({code}): {}", server.log().join("\n"))
        };
        server.address = address;
        Ok(server)
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// What it logged last.
    pub fn last_words(&self) -> String {
        let log = self.log.lock();
        log.iter().rev().take(5).rev().cloned().collect::<Vec<_>>().join("\n")
    }

    /// Without warning. Gives what it logged.
    pub fn kill(mut self) -> Result<Vec<String>> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(self.log())
    }

    /// As a service manager does it. Gives the exit code.
    pub fn stop(mut self) -> Result<Option<i32>> {
        let asked = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status()?;
        ensure!(asked.success(), "the server cannot be asked to stop");
        self.wait()
    }

    /// Waits until it ends by itself.
    pub fn ended(mut self) -> Result<(Option<i32>, Vec<String>)> {
        let code = self.wait()?;
        Ok((code, self.log()))
    }

    fn wait(&mut self) -> Result<Option<i32>> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status.code());
            }
            ensure!(begun.elapsed() < COMMAND_TIMEOUT, "the server does not stop: {}", self.last_words());
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn log(&mut self) -> Vec<String> {
        // Whatever it wrote before it ended is in the pipe.
        drop(self.reader.take().map(thread::JoinHandle::join));
        std::mem::take(&mut self.log.lock())
    }

    /// Begins a request; the reply is for the caller to read, or not.
    pub fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        // A small server may have to work off first what others have left.
        stream.set_read_timeout(Some(Duration::from_mins(3)))?;
        stream.set_write_timeout(Some(Duration::from_secs(20)))?;
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
        )?;
        stream.write_all(body.as_bytes())?;
        Ok(stream)
    }

    /// The status and the body of a reply.
    pub fn reply(&self, method: &str, path: &str, headers: &str, body: &str) -> Result<(u16, Value)> {
        let mut reply = Vec::new();
        self.request(method, path, headers, body)?.read_to_end(&mut reply)?;
        let reply = String::from_utf8_lossy(&reply);
        let (head, body) = reply.split_once("\r\n\r\n").with_context(|| format!("no reply: {reply:?}"))?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("a status")?;
        Ok((status, serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()))))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The address in the line that says that it serves. Workers have none.
fn address_in(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields")?;
    if fields["message"] == "working" {
        return Some(String::new());
    }
    (fields["message"] == "serving").then_some(())?;
    Some(fields["url"].as_str()?.trim_start_matches("http://").trim_end_matches('/').to_owned())
}
