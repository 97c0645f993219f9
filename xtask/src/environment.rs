//! Private Python environments, made from the project's own lists.

use crate::{root, run};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The oldest Python that is enough.
const PYTHON: (u32, u32) = (3, 11);

/// Where packages come from is set on each machine, so that only the usual place has a name here.
const UNREACHABLE: &str = "what is to be installed are packages of PyPI; is there a network?";

/// Makes `target/NAME` from a list of packages, unless it is there and was made from the same list. Gives its Python.
pub(crate) fn install(name: &str, list: &str) -> Result<PathBuf> {
    let wanted_file = root()?.join(list);
    let wanted = fs::read_to_string(&wanted_file).with_context(|| format!("cannot read {}", wanted_file.display()))?;
    let folder = root()?.join("target").join(name);
    let python = folder.join("bin/python");
    // Written last: an environment that was left half made has none.
    let made_from = folder.join("requirements.txt");
    if fs::read_to_string(&made_from).is_ok_and(|made| made == wanted) {
        return Ok(python);
    }
    check_python()?;
    let environment = folder.display().to_string();
    run("python3", &["-m", "venv", "--clear", &environment])
        .context("python3 cannot make an environment: the package `python3-venv` may be missing")?;
    let program = python.display().to_string();
    let pip = |arguments: &[&str]| {
        run(&program, &[&["-m", "pip", "--disable-pip-version-check", "--quiet"], arguments].concat())
    };
    // Every package is named in the list, so nothing else is fetched; the check tells whether one was forgotten.
    pip(&["install", "--no-deps", "--requirement", &wanted_file.display().to_string()]).context(UNREACHABLE)?;
    pip(&["check"]).with_context(|| format!("{list} lacks something that one of its packages needs"))?;
    fs::write(&made_from, wanted).with_context(|| format!("cannot write {}", made_from.display()))?;
    Ok(python)
}

/// That `python3` is new enough.
pub(crate) fn check_python() -> Result<()> {
    let (major, minor) = PYTHON;
    let probe = format!("import sys; sys.exit(sys.version_info < ({major}, {minor}))");
    let status = Command::new("python3").args(["-c", &probe]).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!("python3 {major}.{minor} or newer is needed; this one is older"),
        Err(error) => bail!("python3 {major}.{minor} or newer is needed: cannot start it ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::UNREACHABLE;

    #[test]
    fn an_installation_that_fails_names_no_address() {
        assert!(UNREACHABLE.contains("PyPI") && !UNREACHABLE.contains("://"), "{UNREACHABLE}");
    }
}
