//! Servers that a chore starts and stops again.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a server may take to answer for the first time: LiteLLM needs half a minute on a busy machine.
const TRIES: u32 = 600;
const BETWEEN: Duration = Duration::from_millis(500);

/// A server on this machine; it is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    name: String,
    pub(crate) port: u16,
    child: Child,
}

impl Served {
    /// Starts a program that listens on the port that it is told, and waits until this path is answered with 200. What it
    /// says goes into a file.
    pub(crate) fn start(
        name: &str,
        program: &Path,
        arguments: impl FnOnce(u16) -> Vec<String>,
        environment: &[(&str, &str)],
        path: &str,
        log: &Path,
    ) -> Result<Self> {
        let port = free_port()?;
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let errors = file.try_clone().with_context(|| format!("cannot write {}", log.display()))?;
        println!("{name} is started on port {port}; what it says: {}", log.display());
        let child = Command::new(program)
            .args(arguments(port))
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut served = Self { name: name.to_owned(), port, child };
        for _ in 0..TRIES {
            if let Some(status) = served.child.try_wait().context("a child can be asked whether it runs")? {
                bail!("{name} ended at once ({status}): see {}", log.display());
            }
            if answers(port, path) {
                return Ok(served);
            }
            std::thread::sleep(BETWEEN);
        }
        bail!("{name} does not answer: see {}", log.display())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            println!("{} cannot be stopped: {error}", self.name);
        }
    }
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("this machine has no free port")?;
    Ok(listener.local_addr().context("a bound socket has an address")?.port())
}

/// Whether a GET of this path is answered with 200.
fn answers(port: u16, path: &str) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(status.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}
