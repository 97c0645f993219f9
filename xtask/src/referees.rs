//! Material that others have made to judge agents: tasks of tau2-bench and attacks of `AgentDojo` (PyPI `inspect_evals`), calls
//! of the Berkeley Function Calling Leaderboard (PyPI `bfcl-eval`). It goes to `target/referees`.

use crate::{environment, pulsar, root, run, run_with};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// A published package, by its exact content.
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    pub(crate) hash: &'static str,
}

/// tau2-bench and `AgentDojo`, among others; MIT License.
const INSPECT_EVALS: Package = Package {
    name: "inspect-evals==0.26.0",
    file: "inspect_evals-0.26.0-py3-none-any.whl",
    hash: "sha256:b76d15813182807da141a0f06bb6f18a5f82d1f06291ec2633bb84cdf661f8d0",
};

/// Fetches everything, unless it is there and was made from the same packages by the same program. `python` has what the
/// acceptance tests need.
pub(crate) fn fetch(python: &Path) -> Result<()> {
    let folder = root()?.join("target/referees");
    let program = root()?.join("eval/referees.py");
    let read = fs::read_to_string(&program).with_context(|| format!("cannot read {}", program.display()))?;
    let made_from = format!("{}\n{}\n{read}", INSPECT_EVALS.hash, crate::corpus::BFCL.hash);
    // Written last: what was left half made has none.
    let made = folder.join("made");
    if fs::read_to_string(&made).is_ok_and(|made| made == made_from) {
        return Ok(());
    }
    if made.exists() {
        fs::remove_file(&made).with_context(|| format!("cannot remove {}", made.display()))?;
    }
    let (inspect, bfcl) = (INSPECT_EVALS.download(&folder)?, crate::corpus::BFCL.download(&folder)?);
    let [inspect, bfcl, shown] = [inspect, bfcl, folder].map(|path| path.display().to_string());
    run(&python.display().to_string(), &["eval/referees.py", &inspect, &bfcl, &shown])?;
    fs::write(&made, made_from).with_context(|| format!("cannot write {}", made.display()))
}

/// Everything that is judged with it, and not only a sample.
pub(crate) fn judge() -> Result<()> {
    pulsar::fetch_protoc()?;
    fetch(&environment::install("clients", "acceptance/requirements.txt")?)?;
    run("cargo", &["test", "--workspace", "--all-features", "--no-run", "--quiet"])?;
    let tests =
        ["test", "--workspace", "--all-features", "--test", "acceptance", "--", "--include-ignored", "--nocapture"];
    run_with("cargo", &[&tests[..], &["referees::"]].concat(), &[("TRELLIS_REFEREES", "all")])
}

impl Package {
    /// The file of the package in a folder.
    pub(crate) fn download(&self, folder: &Path) -> Result<PathBuf> {
        environment::check_python()?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let (wheel, list) = (folder.join(self.file), folder.join("requirements.txt"));
        if wheel.exists() {
            return Ok(wheel);
        }
        fs::write(&list, format!("{} --hash={}\n", self.name, self.hash))
            .with_context(|| format!("cannot write {}", list.display()))?;
        let [folder, list] = [folder, &list].map(|path| path.display().to_string());
        let pip = ["-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps", "--require-hashes"];
        run("python3", &[&pip[..], &["--dest", &folder, "--requirement", &list]].concat())
            .context("the benchmark is a package of PyPI; is there a network?")?;
        Ok(wheel)
    }
}
