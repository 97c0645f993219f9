//! The stock clients, as programs that are started and listened to.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;

/// No client may take longer: one that waits for ever is a failure of the server.
const PATIENCE: Duration = Duration::from_mins(2);

/// Variables of the caller's own environment that must not lead a program elsewhere.
const FOREIGN: [&str; 11] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "OLLAMA_HOST",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_MODEL",
    "RUST_LOG",
    "TRELLIS_TOKEN",
    "TRUSTGRAPH_TOKEN",
    "TRUSTGRAPH_URL",
    "TRUSTGRAPH_WORKSPACE",
];

/// The environment that `cargo xtask test` makes.
#[derive(Debug)]
pub(crate) struct Clients {
    programs: PathBuf,
    /// Where they may leave things lying about.
    room: TempDir,
}

/// What a client said and how it ended.
#[derive(Debug)]
pub struct Output {
    /// The command line, for messages.
    pub command: String,
    pub stdout: String,
    pub stderr: String,
    pub succeeded: bool,
}

impl Clients {
    /// The environment, which must be there and belong to today's list of packages.
    pub(crate) fn installed() -> Self {
        let folder = environment("clients", "requirements.txt");
        let room = TempDir::new().expect("a temporary folder can be made");
        Self { programs: folder.join("bin"), room }
    }

    /// The environment with what stands around an orchestrator of TrustGraph's.
    pub(crate) fn of_trustgraph() -> Self {
        let room = TempDir::new().expect("a temporary folder can be made");
        Self { programs: environment("trustgraph", "trustgraph.txt").join("bin"), room }
    }

    /// Starts one of the installed programs.
    pub(crate) fn command(&self, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
        command(&self.program(program), arguments, environment, self.room.path())
    }

    /// Runs a program of Node's to its end, with the packages that `cargo xtask test` installs.
    pub(crate) async fn node(&self, arguments: &[&str]) -> Output {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/node");
        let read = |path: PathBuf| std::fs::read_to_string(path).ok();
        let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("node/package-lock.json");
        assert!(
            folder.join("made").exists() && read(folder.join("package-lock.json")) == read(lists),
            "the packages of Node are not installed in target/node, or are others than acceptance/node names: run `cargo \
             xtask test`"
        );
        let packages = folder.join("node_modules");
        let environment = packages.to_str().expect("the project lies in a folder with a plain name");
        run(&packages.join("node/bin/node"), "node", arguments, &[("NODE_PATH", environment)], self.room.path()).await
    }

    /// Where an installed program lies.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// Runs one of the installed programs to its end.
    pub(crate) async fn run(&self, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        run(&self.program(program), program, arguments, environment, self.room.path()).await
    }

    /// The same, if it ends in time.
    pub(crate) async fn run_within(
        &self,
        program: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
        patience: Duration,
    ) -> Option<Output> {
        end_within(&self.program(program), program, arguments, environment, (self.room.path(), patience)).await
    }

    /// The installed programs whose names begin so.
    pub(crate) fn names(&self, start: &str) -> Vec<String> {
        let entries = std::fs::read_dir(&self.programs).expect("the clients are installed");
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.starts_with(start)).collect()
    }
}

/// An environment of Python's in `target`, which was made from today's list.
fn environment(name: &str, list: &str) -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = project.join("../target").join(name);
    let read = |path: PathBuf| std::fs::read_to_string(path).ok();
    let (made_from, wanted) = (read(folder.join("requirements.txt")), read(project.join(list)));
    assert!(
        made_from.is_some() && made_from == wanted,
        "the stock clients are not installed in target/{name}, or are others than acceptance/{list} names: run \
         `cargo xtask test`"
    );
    folder
}

/// A program that is not led elsewhere by the caller's own environment, in a folder where it may leave things lying about.
pub(crate) fn command(program: &Path, arguments: &[&str], environment: &[(&str, &str)], folder: &Path) -> Command {
    let mut command = Command::new(program);
    for name in FOREIGN {
        command.env_remove(name);
    }
    command
        .args(arguments)
        .current_dir(folder)
        .env("PYTHONUTF8", "1")
        .env("NO_PROXY", "*")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs a program to its end.
pub(crate) async fn run(
    program: &Path,
    shown: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
    folder: &Path,
) -> Output {
    let ended = end_within(program, shown, arguments, environment, (folder, PATIENCE)).await;
    ended.unwrap_or_else(|| panic!("`{shown}` did not end within {PATIENCE:?}"))
}

pub(crate) async fn end_within(
    program: &Path,
    shown: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
    (folder, patience): (&Path, Duration),
) -> Option<Output> {
    let shown = [&[shown], arguments].concat().join(" ");
    let mut command = command(program, arguments, environment, folder);
    let ended = tokio::time::timeout(patience, command.output()).await.ok()?;
    let output = ended.unwrap_or_else(|error| panic!("`{shown}` cannot be started: {error}"));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Some(Output {
        command: shown,
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        succeeded: output.status.success(),
    })
}

impl Output {
    fn tells_an_error(&self) -> bool {
        let words = ["Exception:", "Traceback (most recent call last)", "Error:"];
        self.stdout.lines().chain(self.stderr.lines()).any(|line| words.iter().any(|word| line.starts_with(word)))
    }

    /// That the client got what it wanted: it ended well and speaks of no exception, which most of them only print.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.succeeded && !self.tells_an_error(), "`{}` failed:\n{self}", self.command);
        self
    }

    /// That the client tells its user of an error in words, and does not stumble over the reply itself.
    #[track_caller]
    pub fn refused(self, words: &str) -> Self {
        let said = format!("{}{}", self.stdout, self.stderr);
        let stumbled = ["Traceback", "TypeError", "KeyError", "object is not", "indices must be", "NoneType"];
        let stumbled = stumbled.iter().find(|word| said.contains(**word));
        assert!(stumbled.is_none(), "`{}` stumbled over the reply:\n{self}", self.command);
        assert!(self.tells_an_error(), "`{}` told no error:\n{self}", self.command);
        assert!(said.contains(words), "`{}` did not say {words:?}:\n{self}", self.command);
        self
    }

    /// That all of these stand in what the client printed.
    #[track_caller]
    pub fn says(self, wanted: &[&str]) -> Self {
        for words in wanted {
            assert!(self.stdout.contains(words), "`{}` did not print {words:?}:\n{self}", self.command);
        }
        self
    }

    /// That all of these stand in what the client printed about its work.
    #[track_caller]
    pub fn notes(self, wanted: &[&str]) -> Self {
        for words in wanted {
            assert!(self.stderr.contains(words), "`{}` did not note {words:?}:\n{self}", self.command);
        }
        self
    }

    /// That this does not stand in what the client printed.
    #[track_caller]
    pub fn never_says(self, words: &str) -> Self {
        assert!(!self.stdout.contains(words), "`{}` printed {words:?}:\n{self}", self.command);
        self
    }

    /// What the client printed, which is JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let read = serde_json::from_str(&self.stdout);
        read.unwrap_or_else(|error| panic!("`{}` printed no JSON ({error}):\n{self}", self.command))
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr)
    }
}
