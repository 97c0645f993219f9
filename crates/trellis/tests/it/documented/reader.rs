//! Somebody who types what a page says, on a machine with nothing of its own.

use super::pages::{self, Page};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// What they have beside the program: the project's cargo in its place, and no way to install anything.
const CARGO: &str = r#"#!/bin/sh
case "$1 $2" in
"run --release") shift 3; exec trellis "$@" ;;
"install --path") test -f "$3/Cargo.toml" ;;
"xtask test") ;;
*) echo "no such chore: $*"; exit 1 ;;
esac
"#;
const NOTHING: &str = "#!/bin/sh\n";

/// A home, a copy of the project's examples, and the program on the path.
#[derive(Debug)]
pub(crate) struct Reader {
    folder: TempDir,
    path: String,
    environment: Vec<(String, String)>,
}

/// What was printed.
#[derive(Debug)]
pub(crate) struct Told {
    /// Where the page is, and what was typed.
    what: String,
    pub(crate) stdout: String,
    stderr: String,
}

impl Reader {
    /// With this program as `trellis`.
    pub(crate) fn of(program: &Path) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let (bin, project) = (folder.path().join("bin"), pages::project());
        std::fs::create_dir_all(&bin).expect("a temporary folder can be written to");
        std::os::unix::fs::symlink(program, bin.join("trellis")).expect("a temporary folder can be written to");
        for (name, text) in [("cargo", CARGO), ("pip", NOTHING), ("npm", NOTHING)] {
            let file = bin.join(name);
            std::fs::write(&file, text).expect("a temporary folder can be written to");
            let status = Command::new("chmod").arg("+x").arg(file).status();
            assert!(status.is_ok_and(|status| status.success()), "a file can be made a program");
        }
        for part in ["examples", "clients", "crates/trellis/Cargo.toml"] {
            copy(&project.join(part), &folder.path().join("project").join(part));
        }
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("there is a path"));
        Self { folder, path, environment: Vec::new() }
    }

    /// With a variable.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With programs of this folder before all others but `trellis` itself.
    pub(crate) fn finding(mut self, folder: &Path) -> Self {
        let (own, rest) = self.path.split_once(':').expect("the own programs come first");
        self.path = format!("{own}:{}:{rest}", folder.display());
        self
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Types, in a folder of the project, everything that a page says under a heading. Lines can be told from others by
    /// how they begin, and something else be done in their place.
    pub(crate) fn follows(&self, page: &str, heading: &str, folder: &str, instead: &[(&str, &str)]) -> Told {
        let blocks = Page::read(Path::new(page)).blocks();
        let blocks: Vec<_> = blocks.into_iter().filter(|block| block.is_shell() && block.heading == heading).collect();
        for (start, _) in instead {
            let is_there = blocks.iter().any(|block| block.text.lines().any(|line| line.starts_with(start)));
            assert!(is_there, "{page} has no line under {heading:?} that begins with {start}");
        }
        let mut told = Told { what: format!("{page}: {heading}"), stdout: String::new(), stderr: String::new() };
        for block in blocks {
            let mut script = "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n".to_owned();
            for line in block.text.lines() {
                let other = instead.iter().find(|(start, _)| line.starts_with(start)).map(|(_, other)| *other);
                writeln!(script, "{}", other.unwrap_or(line)).expect("a text can always be written to");
            }
            let output = self.shell(&script, folder);
            write!(told.what, "\n--- line {}\n{script}", block.line).expect("a text can always be written to");
            told.stdout += &String::from_utf8_lossy(&output.stdout);
            told.stderr += &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}\n{told}", output.status);
        }
        assert!(told.what.contains("--- line"), "{page} has nothing to type under {heading:?}");
        told
    }

    /// Does it as one script that ends with the first command that fails.
    fn shell(&self, script: &str, folder: &str) -> std::process::Output {
        let home = self.home();
        std::fs::create_dir_all(&home).expect("a temporary folder can be written to");
        let mut command = Command::new("bash");
        command.args(["-e", "-o", "pipefail", "-c", script]).current_dir(self.project().join(folder));
        command.env_clear().env("PATH", &self.path).env("HOME", home).env("TRELLIS_REHEARSAL_DELAY_MS", "0");
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONUTF8", "1").env("LANG", "C.UTF-8");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(std::process::Stdio::null()).output().expect("a shell can be started")
    }
}

impl Told {
    /// That all of these were printed: as results, or as news of the work.
    #[track_caller]
    pub(crate) fn says(&self, wanted: &[&str]) {
        for words in wanted {
            assert!(self.stdout.contains(words) || self.stderr.contains(words), "it does not say {words:?}: {self}");
        }
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n--- stdout\n{}\n--- stderr\n{}", self.what, self.stdout, self.stderr)
    }
}

fn copy(from: &Path, to: &Path) {
    let above = to.parent().expect("it is below a temporary folder");
    std::fs::create_dir_all(above).expect("a temporary folder can be written to");
    let status = Command::new("cp").arg("-R").arg(from).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()), "{} cannot be copied", from.display());
}
