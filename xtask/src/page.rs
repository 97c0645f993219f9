//! The web page: its types and tests, whether what is committed is what its sources give, its size, and the page in a browser.

use crate::{root, run, run_with};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Everything. The browser looks at the page of `target/debug/trellis`, which has to be built.
pub(crate) fn check() -> Result<()> {
    fetch()?;
    let ui = root()?.join("ui");
    npm(&ui, &["run", "check"])?;
    npm(&ui, &["run", "test"])?;
    rebuild(&ui)?;
    npm(&ui, &["run", "budget"])?;
    npm(&ui, &["run", "e2e"])
}

/// Figures of the page in a browser. They are those of `target/release/trellis`, which has to be built.
pub(crate) fn measure() -> Result<()> {
    fetch()?;
    let (ui, program) = (root()?.join("ui"), root()?.join("target/release/trellis"));
    let (ui, program) = (ui.display().to_string(), program.display().to_string());
    run_with("npm", &["--prefix", &ui, "run", "--silent", "speed"], &[("TRELLIS_BIN", &program)])
}

/// What the tests of the page need, once.
pub(crate) fn fetch() -> Result<()> {
    install(&root()?.join("ui"))?;
    find_browser()
}

/// Packages as the lock file names them, unless they are there.
fn install(ui: &Path) -> Result<()> {
    let (lock, made) = (ui.join("package-lock.json"), ui.join("node_modules/made-from.json"));
    let wanted = fs::read(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    if fs::read(&made).is_ok_and(|made| made == wanted) {
        return Ok(());
    }
    npm(ui, &["ci", "--no-audit", "--no-fund", "--loglevel", "error"])
        .context("npm cannot install its packages: is it there, with Node 20.19 or newer, and is there a network?")?;
    fs::write(&made, wanted).with_context(|| format!("cannot write {}", made.display()))
}

/// Builds the page once more, beside what is committed, and compares.
fn rebuild(ui: &Path) -> Result<()> {
    let fresh = root()?.join("target/page");
    npm(ui, &["run", "build", "--", "--outDir", &fresh.display().to_string(), "--emptyOutDir", "--logLevel", "warn"])?;
    let (committed, fresh) = (files(&ui.join("dist"))?, files(&fresh)?);
    let differ = |name: &&String| committed.get(*name) != fresh.get(*name);
    let names: Vec<_> = committed.keys().chain(fresh.keys()).filter(differ).map(String::as_str).collect();
    ensure!(
        names.is_empty(),
        "ui/dist is not what the sources of the page give; `npm run build` in `ui` makes it anew. These differ: {}",
        names.join(", ")
    );
    println!("the page is built from its sources, byte for byte: {} files", committed.len());
    Ok(())
}

/// All files below a folder, by their path in it.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("cannot read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder)?.display().to_string();
                found.insert(name, fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

/// A browser, installed if this machine lets us.
fn find_browser() -> Result<()> {
    const PLACES: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let there = || std::env::var_os("CHROMIUM").is_some() || PLACES.iter().any(|place| Path::new(place).exists());
    if there() {
        return Ok(());
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["--yes", "--quiet"]).args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let install = || apt(&["install", "--no-install-recommends", "chromium"]) && there();
    // A new machine may not know yet which packages there are.
    if install() || (apt(&["update"]) && install()) {
        return Ok(());
    }
    bail!("the tests of the page need Chromium: install the package `chromium`, or name a program with CHROMIUM")
}

fn npm(folder: &Path, arguments: &[&str]) -> Result<()> {
    let folder = folder.display().to_string();
    run("npm", &[&["--prefix", &folder], arguments].concat())
}
