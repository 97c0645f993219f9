//! The programs that cargo makes of the tests, several at once: most tests wait, for servers, for processes that end, for a disk.

use crate::{lints, root};
use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const AT_ONCE: usize = 3;

/// More failures than this are no matter of a busy machine.
const MOST_AGAIN: usize = 4;

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
pub(crate) fn build(linted: &lints::Environment) -> Result<Vec<Program>> {
    const BUILD: [&str; 5] =
        ["test", "--workspace", "--all-features", "--no-run", "--message-format=json-render-diagnostics"];
    println!("$ cargo {}", BUILD.join(" "));
    let mut cargo = Command::new("cargo");
    cargo.args(BUILD).envs(linted.iter().map(|(name, value)| (*name, value)));
    let built = cargo.current_dir(root()?).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
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

/// What failed in a program: these tests, or all of it if it told of none.
#[derive(Debug)]
struct Failed<'a> {
    program: &'a Program,
    tests: Vec<String>,
}

/// Runs all of them, also the tests that only the right environment can pass. One that fails stops no other. A few tests
/// that failed beside all others are run again by themselves: those that pass then are named, but nothing fails for them,
/// since how long something takes on a machine that does five things at once is not what they are about.
pub(crate) fn run(programs: &[Program], environment: &[(&str, &str)]) -> Result<()> {
    let folder = root()?.join("target/test-output");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let next = AtomicUsize::new(0);
    let in_turn = || {
        let mut failed = Vec::new();
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            match program.run(&[], environment, &folder) {
                Ok(true) => {}
                Ok(false) => failed.push(Failed { program, tests: program.failures(&folder) }),
                Err(error) => {
                    println!("{}: {error:#}", program.title());
                    failed.push(Failed { program, tests: Vec::new() });
                }
            }
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
    again(failed, environment, &folder)
}

/// Runs what failed once more, one after the other.
fn again(failed: Vec<Failed<'_>>, environment: &[(&str, &str)], folder: &Path) -> Result<()> {
    let names = |failed: &[Failed<'_>]| failed.iter().flat_map(Failed::names).collect::<Vec<_>>().join("\n");
    let tests: usize = failed.iter().map(|failed| failed.tests.len().max(1)).sum();
    ensure!(tests <= MOST_AGAIN, "these failed, and say why above:\n{}", names(&failed));
    let (mut passed, mut left) = (Vec::new(), Vec::new());
    for failed in failed {
        match failed.program.run(&failed.tests, environment, folder) {
            Ok(true) => passed.push(failed),
            Ok(false) | Err(_) => left.push(failed),
        }
    }
    if !passed.is_empty() {
        eprintln!("warning: these failed beside the others and passed by themselves:\n{}", names(&passed));
    }
    ensure!(left.is_empty(), "these failed, also by themselves, and say why above:\n{}", names(&left));
    Ok(())
}

impl Failed<'_> {
    fn names(&self) -> Vec<String> {
        let title = self.program.title();
        if self.tests.is_empty() {
            return vec![title];
        }
        self.tests.iter().map(|test| format!("{title}: {test}")).collect()
    }
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

    /// Where what it says is written.
    fn output(&self, folder: &Path) -> PathBuf {
        folder.join(self.executable.file_name().unwrap_or_default()).with_extension("txt")
    }

    /// Runs it as cargo does: all of its tests, or those. True if they passed. What it says is shown when it ends, so that it
    /// stays together; one that never ends has it in a file.
    fn run(&self, tests: &[String], environment: &[(&str, &str)], folder: &Path) -> Result<bool> {
        let title = self.title();
        let path = self.output(folder);
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let errors = file.try_clone().with_context(|| format!("cannot write {}", path.display()))?;
        println!("{title}: begins, and writes to {}", path.display());
        let status = Command::new(&self.executable)
            .args(self.arguments())
            .args(tests)
            .args((!tests.is_empty()).then_some("--exact"))
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
        Ok(status.success())
    }

    /// Which of its tests failed. One that takes the whole program with it is not named.
    fn failures(&self, folder: &Path) -> Vec<String> {
        fs::read(self.output(folder)).map_or_else(|_| Vec::new(), |said| failures(&String::from_utf8_lossy(&said)))
    }

    /// What needs clients of others is ignored by plain `cargo test`, which has not fetched them.
    fn arguments(&self) -> &'static [&'static str] {
        let needs_clients = self.target.kind == ["test"] && self.names() == ("acceptance", "acceptance");
        if needs_clients { &["--include-ignored"] } else { &[] }
    }
}

fn failures(said: &str) -> Vec<String> {
    let failed = said.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    failed.map(str::to_owned).collect()
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
        assert_eq!(failures(said), ["a::c"]);
        assert!(failures("killed").is_empty());
    }

    /// A program that passes the second time it is run, and one that never does.
    #[test]
    fn what_fails_beside_others_may_pass_by_itself() {
        let folder = std::env::temp_dir().join(format!("trellis-programs-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let program = |name: &str, script: &str| {
            let executable = folder.join(name);
            fs::write(&executable, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&executable, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            let target = Target { kind: vec!["test".to_owned()], name: name.to_owned() };
            Program { package: folder.clone(), target, executable }
        };
        let busy = program("busy", "echo \"$@\" >> said; echo 'test a ... FAILED'; test \"$*\" = 'a --exact'");
        let wrong = program("wrong", "echo 'test b ... FAILED'; exit 1");
        let run = |program: &Program| {
            let ran = program.run(&[], &[], &folder).unwrap();
            assert!(!ran);
            again(vec![Failed { program, tests: program.failures(&folder) }], &[], &folder)
        };
        run(&busy).unwrap();
        assert_eq!(fs::read_to_string(folder.join("said")).unwrap(), "\na --exact\n");
        let error = run(&wrong).unwrap_err().to_string();
        assert!(error.contains("wrong: b"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
