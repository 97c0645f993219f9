//! The clients that the acceptance tests run: a private Python environment, made from the project's own list.

use crate::{root, run};
use anyhow::{Context, Result, bail};
use std::fs;
use std::process::{Command, Stdio};

/// The oldest Python that the clients run on.
const PYTHON: (u32, u32) = (3, 11);

/// Where packages come from is set on each machine, so that only the usual place has a name here.
const UNREACHABLE: &str = "the clients of the acceptance tests are packages of PyPI; is there a network?";

/// Makes `target/clients`, unless it is there and was made from the same list.
pub(crate) fn install() -> Result<()> {
    let wanted_file = root()?.join("acceptance/requirements.txt");
    let wanted = fs::read_to_string(&wanted_file).with_context(|| format!("cannot read {}", wanted_file.display()))?;
    let folder = root()?.join("target/clients");
    // Written last: an environment that was left half made has none.
    let made_from = folder.join("requirements.txt");
    if fs::read_to_string(&made_from).is_ok_and(|made| made == wanted) {
        return Ok(());
    }
    check_python()?;
    let environment = folder.display().to_string();
    run("python3", &["-m", "venv", "--clear", &environment])
        .context("python3 cannot make an environment: the package `python3-venv` may be missing")?;
    let python = folder.join("bin/python").display().to_string();
    let pip = [&python, "-m", "pip", "--disable-pip-version-check", "--quiet"].map(str::to_owned);
    let pip = |arguments: &[&str]| {
        let all: Vec<_> = pip[1..].iter().map(String::as_str).chain(arguments.iter().copied()).collect();
        run(&pip[0], &all)
    };
    // Every package is named in the list, so nothing else is fetched; the check tells whether one was forgotten.
    pip(&["install", "--no-deps", "--requirement", &wanted_file.display().to_string()]).context(UNREACHABLE)?;
    pip(&["check"]).context("acceptance/requirements.txt lacks something that one of its packages needs")?;
    fs::write(&made_from, wanted).with_context(|| format!("cannot write {}", made_from.display()))
}

fn check_python() -> Result<()> {
    let (major, minor) = PYTHON;
    let probe = format!("import sys; sys.exit(sys.version_info < ({major}, {minor}))");
    let status = Command::new("python3").args(["-c", &probe]).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!("the acceptance tests need python3 {major}.{minor} or newer; this one is older"),
        Err(error) => bail!("the acceptance tests need python3 {major}.{minor} or newer: cannot start it ({error})"),
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
