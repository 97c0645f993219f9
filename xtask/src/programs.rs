//! The programs that cargo makes of the tests, several at once: most tests wait, for servers, for processes that end, for a disk.

use crate::root;
use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const AT_ONCE: usize = 3;

/// They take the longest, so they begin first: the last one that begins keeps all others waiting.
const LONG: [(&str, &str); 5] =
    [("trellis", "it"), ("acceptance", "acceptance"), ("postgres", "it"), ("torture", "share"), ("brokers", "it")];

/// What cargo says while it builds.
#[derive(Debug, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact(Artifact),
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// A program of tests.
#[derive(Debug)]
pub(crate) struct Program {
    /// The folder of its package.
    package: PathBuf,
    target: Target,
    executable: PathBuf,
}

/// Builds the tests of the whole workspace.
pub(crate) fn build() -> Result<Vec<Program>> {
    const BUILD: [&str; 5] =
        ["test", "--workspace", "--all-features", "--no-run", "--message-format=json-render-diagnostics"];
    println!("$ cargo {}", BUILD.join(" "));
    let built = Command::new("cargo").args(BUILD).current_dir(root()?).stderr(Stdio::inherit()).output();
    let built = built.context("cannot start cargo")?;
    ensure!(built.status.success(), "the tests cannot be built: {}", built.status);
    of(&String::from_utf8(built.stdout).context("cargo writes UTF-8")?)
}

/// Those that cargo tells of, the longest first.
fn of(told: &str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for line in told.lines().filter(|line| line.starts_with('{')) {
        let message: Message =
            serde_json::from_str(line).with_context(|| format!("cargo says what nobody expects: {line}"))?;
        let Message::CompilerArtifact(Artifact { mut manifest_path, target, profile, executable }) = message else {
            continue;
        };
        let Some(executable) = executable.filter(|_| profile.test) else { continue };
        manifest_path.pop();
        programs.push(Program { package: manifest_path, target, executable });
    }
    ensure!(!programs.is_empty(), "cargo has built no tests");
    let place = |program: &Program| LONG.iter().position(|long| *long == program.names()).unwrap_or(LONG.len());
    programs.sort_by_key(place);
    Ok(programs)
}

/// Runs all of them, also the tests that only the right environment can pass. One that fails stops no other.
pub(crate) fn run(programs: &[Program], environment: &[(&str, &str)]) -> Result<()> {
    let folder = root()?.join("target/test-output");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let next = AtomicUsize::new(0);
    let in_turn = || {
        let mut failed = Vec::new();
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let ran = program.run(environment, &folder);
            failed.extend(ran.unwrap_or_else(|error| vec![format!("{}: {error:#}", program.title())]));
        }
        failed
    };
    let ends = thread::scope(|scope| {
        let turns: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(in_turn)).collect();
        turns.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut failed = Vec::new();
    for end in ends {
        failed.extend(end.map_err(|_| anyhow!("running tests ended with a panic, told above"))?);
    }
    ensure!(failed.is_empty(), "these failed, and say why above:\n{}", failed.join("\n"));
    Ok(())
}

impl Program {
    /// The names of its package's folder and of its target.
    fn names(&self) -> (&str, &str) {
        (self.package.file_name().and_then(OsStr::to_str).unwrap_or_default(), &self.target.name)
    }

    fn title(&self) -> String {
        let (package, target) = self.names();
        format!("{package}, {} {target}", self.target.kind.join(" "))
    }

    /// Runs it as cargo does, and gives what failed. What it says is shown when it ends, so that it stays together; one that
    /// never ends has it in a file.
    fn run(&self, environment: &[(&str, &str)], folder: &Path) -> Result<Vec<String>> {
        let title = self.title();
        let name = self.executable.file_name().context("a program has a name")?;
        let path = folder.join(name).with_extension("txt");
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let errors = file.try_clone().with_context(|| format!("cannot write {}", path.display()))?;
        println!("{title}: begins, and writes to {}", path.display());
        let status = Command::new(&self.executable)
            .args(self.arguments())
            .current_dir(&self.package)
            .env("CARGO_MANIFEST_DIR", &self.package)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .status()
            .with_context(|| format!("cannot start {}", self.executable.display()))?;
        let said = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let said = String::from_utf8_lossy(&said);
        println!("\n{title}: {status}\n{said}");
        Ok(if status.success() { Vec::new() } else { failures(&title, &said) })
    }

    /// What needs clients of others is ignored by plain `cargo test`, which has not fetched them.
    fn arguments(&self) -> &'static [&'static str] {
        let needs_clients = self.target.kind == ["test"] && self.names() == ("acceptance", "acceptance");
        if needs_clients { &["--include-ignored"] } else { &[] }
    }
}

/// Which tests failed. One that takes the whole program with it is not named.
fn failures(title: &str, said: &str) -> Vec<String> {
    let failed = said.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    let failed: Vec<_> = failed.map(|test| format!("{title}: {test}")).collect();
    if failed.is_empty() { vec![title.to_owned()] } else { failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_are_run_and_the_longest_first() {
        let artifact = |package: &str, kind: &str, name: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/p/{package}/Cargo.toml","target":{{"kind":["{kind}"],
                "name":"{name}"}},"profile":{{"opt_level":"0","test":{test}}},"executable":{executable}}}"#
            )
            .replace('\n', " ")
        };
        let told = [
            artifact("store", "lib", "trellis_store", false, "null"),
            artifact("store", "lib", "trellis_store", true, r#""/t/trellis_store-1""#),
            artifact("trellis", "bin", "trellis", false, r#""/t/trellis""#),
            r#"{"reason":"build-script-executed","package_id":"x"}"#.to_owned(),
            artifact("acceptance", "lib", "acceptance", true, r#""/t/acceptance-1""#),
            artifact("acceptance", "test", "acceptance", true, r#""/t/acceptance-2""#),
            artifact("trellis", "test", "it", true, r#""/t/it-1""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let programs = of(&told.join("\n")).unwrap();
        let titles: Vec<_> = programs.iter().map(Program::title).collect();
        let wanted = [
            "trellis, test it",
            "acceptance, lib acceptance",
            "acceptance, test acceptance",
            "store, lib trellis_store",
        ];
        assert_eq!(titles, wanted);
        let all = programs.iter().filter(|program| !program.arguments().is_empty()).map(Program::title);
        assert_eq!(all.collect::<Vec<_>>(), ["acceptance, test acceptance"]);
        assert_eq!(programs[0].package, Path::new("/p/trellis"));
        assert!(of("").is_err());
    }

    #[test]
    fn failed_tests_are_named() {
        let said = "test a::b ... ok\ntest a::c ... FAILED\n\nfailures:\n    a::c\n";
        assert_eq!(failures("store, test it", said), ["store, test it: a::c"]);
        assert_eq!(failures("store, test it", "killed"), ["store, test it"]);
    }
}
