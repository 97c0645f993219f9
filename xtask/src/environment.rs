//! Private environments of Python and Node, made from the project's own lists.

use crate::{root, run};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The oldest Python that is enough.
const PYTHON: (u32, u32) = (3, 11);

/// Where packages come from is set on each machine, so that only the usual place has a name here.
const UNREACHABLE: &str = "what is to be installed are packages of PyPI; is there a network?";

/// What a list of packages names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    /// Also what packages say that they need.
    Everything,
    /// Only what is imported.
    Imported,
}

/// Makes `target/NAME` from a list of packages, unless it is there and was made from the same list. Gives its Python.
pub(crate) fn install(name: &str, list: &str) -> Result<PathBuf> {
    make(name, list, Listed::Everything)
}

/// The same from a list that leaves out what is never imported.
pub(crate) fn install_in_part(name: &str, list: &str) -> Result<PathBuf> {
    make(name, list, Listed::Imported)
}

fn make(name: &str, list: &str, listed: Listed) -> Result<PathBuf> {
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
    if listed == Listed::Everything {
        pip(&["check"]).with_context(|| format!("{list} lacks something that one of its packages needs"))?;
    }
    fs::write(&made_from, wanted).with_context(|| format!("cannot write {}", made_from.display()))?;
    Ok(python)
}

/// Makes `target/node` from the lists in `acceptance/node`, unless it is there and was made from the same lists. It has a
/// Node of its own, so that any Node is enough to install it.
pub(crate) fn install_node() -> Result<()> {
    const LISTS: [&str; 2] = ["package.json", "package-lock.json"];
    let (from, folder) = (root()?.join("acceptance/node"), root()?.join("target/node"));
    let same = |list: &str| Some(fs::read(from.join(list)).ok()? == fs::read(folder.join(list)).ok()?);
    // Taken away first: an environment that was left half made has no mark.
    let made = folder.join("made");
    if made.exists() && LISTS.iter().all(|list| same(list) == Some(true)) {
        return Ok(());
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if made.exists() {
        fs::remove_file(&made).with_context(|| format!("cannot remove {}", made.display()))?;
    }
    for list in LISTS {
        fs::copy(from.join(list), folder.join(list)).with_context(|| format!("cannot copy {list}"))?;
    }
    let prefix = folder.display().to_string();
    run("npm", &["ci", "--prefix", &prefix, "--no-audit", "--no-fund", "--loglevel", "error"])
        .context("npm cannot install its packages: is it there, with Node 18 or newer, and is there a network?")?;
    fs::write(&made, "").with_context(|| format!("cannot write {}", made.display()))
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
