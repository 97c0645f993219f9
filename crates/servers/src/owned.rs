//! A server process that belongs to a test: it goes with it, whatever becomes of the test.

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How a server is started, again and again in the same place.
pub(crate) trait Recipe: Send + Sync + 'static {
    fn command(&self, folder: &Path) -> Command;

    /// Whether it serves.
    fn is_ready(&self, folder: &Path) -> bool;
}

/// A server in a folder of its own.
///
/// It is stopped when this is dropped. A keeper, a small shell script, stops it and removes its folder also if the test
/// process ends without dropping anything: it sees its input end.
pub struct Server {
    name: &'static str,
    folder: PathBuf,
    recipe: Box<dyn Recipe>,
    running: Mutex<Option<Child>>,
    keeper: Option<(Child, ChildStdin)>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("name", &self.name).field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Every process whose id lies in the folder is killed, then the folder removed.
const KEEPER: &str = r#"
read -r nothing
for file in "$1"/*.pid; do test -f "$file" && kill -9 "$(cat "$file")" 2>/dev/null; done
for try in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" 2>/dev/null && exit 0; sleep 0.1; done
"#;

/// RabbitMQ needs five seconds on a quiet machine.
const START: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(300);

impl Server {
    /// Starts it and waits until it serves.
    pub(crate) fn start(name: &'static str, folder: TempDir, recipe: Box<dyn Recipe>) -> Self {
        let folder = folder.keep();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is a shell");
        let input = keeper.stdin.take().expect("its input is a pipe");
        let server = Self { name, folder, recipe, running: Mutex::new(None), keeper: Some((keeper, input)) };
        server.start_again();
        server
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it has written to its outputs.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Starts a server that was killed, in the same folder and on the same ports.
    pub fn start_again(&self) {
        let mut running = self.running.lock();
        assert!(running.is_none(), "{} runs already", self.name);
        let started = (0..ATTEMPTS).find_map(|attempt| {
            // Processes of a killed server may need a moment to notice that they are alone.
            std::thread::sleep(BETWEEN_ATTEMPTS * attempt);
            self.attempt()
        });
        *running = Some(started.unwrap_or_else(|| panic!("{} ends at once: {}", self.name, self.log())));
    }

    /// None if it ends before it serves.
    fn attempt(&self) -> Option<Child> {
        let log = File::options().create(true).append(true).open(self.folder.join("log"));
        let log = log.expect("a log can be written");
        let errors = log.try_clone().expect("a file can be shared");
        let child = self.recipe.command(&self.folder).stdin(Stdio::null()).stdout(log).stderr(errors).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{} cannot be started: {error}", self.name));
        note(&self.folder, "server", &child);
        let mut waited = Duration::ZERO;
        while !self.recipe.is_ready(&self.folder) {
            if child.try_wait().expect("a child can be asked whether it runs").is_some() {
                return None;
            }
            assert!(waited < START, "{} does not start: {}", self.name, self.log());
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        Some(child)
    }

    /// Ends it at once, as a crash does: nothing is written any more.
    pub fn kill(&self) {
        if let Some(mut child) = self.running.lock().take() {
            child.kill().expect("a child can be killed");
            child.wait().expect("a killed child ends");
            std::fs::remove_file(self.folder.join("server.pid")).expect("its id was noted");
        }
    }

    /// It stands still: connections stay open, and nothing is answered.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        // On a busy machine some of its threads may answer for a while after the signal; this is told when all stand still.
        let running = self.running.lock();
        let child = Pid::from_child(running.as_ref().expect("it runs"));
        waitid(WaitId::Pid(child), WaitIdOptions::STOPPED).expect("a child can be waited for");
    }

    /// It goes on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let running = self.running.lock();
        let child = running.as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("a child can be signalled");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that stands still is killed as well.
        if let Some(mut child) = self.running.lock().take() {
            drop(child.kill());
            drop(child.wait());
        }
        if let Some((mut keeper, input)) = self.keeper.take() {
            drop(input);
            drop(keeper.wait());
        }
    }
}

/// Tells the keeper what to stop.
pub(crate) fn note(folder: &Path, name: &str, child: &Child) {
    std::fs::write(folder.join(format!("{name}.pid")), child.id().to_string())
        .expect("a folder of ours can be written");
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}

pub(crate) fn answers(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}
