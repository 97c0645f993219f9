//! `cargo xtask dist`: what is handed to people who do not build, made in `target/dist` and tried there.
//!
//! An archive and a Debian package, both with a program that needs no library of the machine, and what belongs beside it:
//! completions, manual pages, a container file, checksums.

use crate::{root, run, run_with};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TARGET: &str = "x86_64-unknown-linux-musl";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const SHELLS: [(&str, &str); 3] = [("bash", "trellis.bash"), ("zsh", "_trellis"), ("fish", "trellis.fish")];

/// Of the base image only the certificates are needed, to speak to providers.
const CONTAINER: &str = "\
FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY trellis /usr/local/bin/trellis
USER 65534
ENTRYPOINT [\"trellis\"]
";

pub(crate) fn make() -> Result<()> {
    find_compiler()?;
    run_with(
        "cargo",
        &[
            "build",
            "--profile",
            "dist",
            "--target",
            TARGET,
            "--package",
            "trellis",
            "--features",
            "parquet",
            "--locked",
        ],
        &[("CC_x86_64_unknown_linux_musl", "musl-gcc")],
    )?;
    let program = root()?.join("target").join(TARGET).join("dist/trellis");
    let dist = root()?.join("target/dist");
    if dist.exists() {
        fs::remove_dir_all(&dist).with_context(|| format!("cannot empty {}", dist.display()))?;
    }
    let (name, archive, package) = names();
    let folder = dist.join(&name);
    gather(&program, &folder)?;
    // The same files give the same archive, whoever makes it and when.
    let same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"];
    command("tar", &[&["--create", "--gzip", "--file", &archive][..], &same, &[&name]].concat(), &dist)?;
    pack(&folder, &dist.join(&package))?;
    let sums = command("sha256sum", &[&archive, &package], &dist)?;
    fs::write(dist.join("SHA256SUMS"), &sums).context("cannot write the checksums")?;
    try_archive(&dist, &archive, &name)?;
    try_package(&dist, &package)?;
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    println!("{}:\n{sums}", dist.display());
    Ok(())
}

/// The folder in the archive, the archive, and the package.
fn names() -> (String, String, String) {
    let name = format!("trellis-{VERSION}-x86_64-linux");
    (name.clone(), format!("{name}.tar.gz"), format!("trellis_{VERSION}_amd64.deb"))
}

/// What builds for any Linux: Rust's part of it, and a compiler for the C in dependencies.
fn find_compiler() -> Result<()> {
    run("rustup", &["target", "add", TARGET])
        .with_context(|| format!("Rust's library for {TARGET} is needed: with rustup it is fetched"))?;
    let there = || Command::new("musl-gcc").arg("--version").stdout(Stdio::null()).status().is_ok();
    ensure!(there(), "musl-gcc is needed: `apt-get install musl-tools`");
    Ok(())
}

/// Everything that belongs into the archive.
fn gather(program: &Path, folder: &Path) -> Result<()> {
    let (completions, manual) = (folder.join("completions"), folder.join("man"));
    fs::create_dir_all(&completions).with_context(|| format!("cannot make {}", completions.display()))?;
    copy(program, &folder.join("trellis"))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE", "examples/deploy/trellis@.service"] {
        let from = root()?.join(file);
        copy(&from, &folder.join(from.file_name().context("a file has a name")?))?;
    }
    fs::write(folder.join("Containerfile"), CONTAINER).context("cannot write the container file")?;
    let program = program.display().to_string();
    for (shell, file) in SHELLS {
        let script = command(&program, &["completions", shell], folder)?;
        fs::write(completions.join(file), script).with_context(|| format!("cannot write {file}"))?;
    }
    command(&program, &["man", &manual.display().to_string()], folder)?;
    Ok(())
}

/// The same files where Debian has them.
fn pack(from: &Path, package: &Path) -> Result<()> {
    let tree = package.with_extension("tree");
    let places = [
        ("trellis", "usr/bin/trellis"),
        ("completions/trellis.bash", "usr/share/bash-completion/completions/trellis"),
        ("completions/_trellis", "usr/share/zsh/vendor-completions/_trellis"),
        ("completions/trellis.fish", "usr/share/fish/vendor_completions.d/trellis.fish"),
        ("LICENSE", "usr/share/doc/trellis/copyright"),
        ("README.md", "usr/share/doc/trellis/README.md"),
        ("trellis@.service", "usr/share/doc/trellis/examples/trellis@.service"),
    ];
    for (name, place) in places {
        copy(&from.join(name), &tree.join(place))?;
    }
    let pages = fs::read_dir(from.join("man")).context("manual pages were written")?;
    for page in pages {
        let page = page?.path();
        let name = page.file_name().context("a page has a name")?;
        copy(&page, &tree.join("usr/share/man/man1").join(name))?;
    }
    command("gzip", &["--no-name", "--best", "--recursive", "usr/share/man"], &tree)?;
    let size: u64 = fs::metadata(from.join("trellis")).context("the program is there")?.len() / 1024;
    let control = format!(
        "Package: trellis\nVersion: {VERSION}\nArchitecture: amd64\nSection: net\nPriority: optional\n\
         Maintainer: The Trellis developers <maintainers@users.noreply.invalid>\nInstalled-Size: {size}\nRecommends: ca-certificates\n\
         Description: agent orchestrator whose every decision can be audited\n \
         Patterns of agents over a journal that survives crashes. Every choice is on record with\n \
         the options that it was made from, as PROV-O in a graph, in a log that can be verified.\n"
    );
    let about = tree.join("DEBIAN");
    fs::create_dir_all(&about).with_context(|| format!("cannot make {}", about.display()))?;
    fs::write(about.join("control"), control).context("cannot write what the package says of itself")?;
    let (tree_name, package) = (tree.display().to_string(), package.display().to_string());
    command("dpkg-deb", &["--root-owner-group", "--build", &tree_name, &package], from)?;
    fs::remove_dir_all(&tree).with_context(|| format!("cannot remove {}", tree.display()))
}

/// Unpacked somewhere else, it does the main job.
fn try_archive(dist: &Path, archive: &str, name: &str) -> Result<()> {
    let elsewhere = fresh(&dist.join("tried"))?;
    command("tar", &["--extract", "--file", &dist.join(archive).display().to_string()], &elsewhere)?;
    let folder = elsewhere.join(name);
    command("bash", &["-n", "completions/trellis.bash"], &folder)?;
    try_program(&folder.join("trellis"), &elsewhere)?;
    fs::remove_dir_all(&elsewhere).with_context(|| format!("cannot remove {}", elsewhere.display()))
}

/// Installed by Debian's own tool, below a folder that stands for the machine.
fn try_package(dist: &Path, package: &str) -> Result<()> {
    let machine = fresh(&dist.join("machine"))?;
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"] {
        fs::create_dir_all(machine.join(folder)).with_context(|| format!("cannot make {folder}"))?;
    }
    fs::write(machine.join("var/lib/dpkg/status"), "").context("cannot write the list of packages")?;
    let root = format!("--root={}", machine.display());
    let package = dist.join(package).display().to_string();
    command("dpkg", &[&root, "--force-not-root", "--force-bad-path", "--install", &package], dist)?;
    let listed = command("dpkg", &[&root, "--listfiles", "trellis"], dist)?;
    ensure!(listed.contains("/usr/share/man/man1/trellis.1.gz"), "the package lacks its manual page:\n{listed}");
    try_program(&machine.join("usr/bin/trellis"), &machine)?;
    fs::remove_dir_all(&machine).with_context(|| format!("cannot remove {}", machine.display()))
}

/// Asks, looks and verifies, with nothing of this machine but its kernel.
fn try_program(program: &Path, folder: &Path) -> Result<()> {
    let data = folder.join("data").display().to_string();
    let program = program.display().to_string();
    let trellis = |arguments: &[&str]| {
        // Neither keys nor settings of whoever builds.
        command("env", &[&["--ignore-environment", &program][..], arguments].concat(), folder)
    };
    let version = trellis(&["--version"])?;
    ensure!(version.contains(VERSION), "this is {version}, not {VERSION}");
    let answer = trellis(&["--data", &data, "ask", "Assess the risk profile of Company X as a potential partner"])?;
    ensure!(!answer.trim().is_empty(), "the program has nothing to say");
    trellis(&["--data", &data, "verify", "last"])?;
    let found = trellis(&["--data", &data, "sparql", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"])?;
    ensure!(found.chars().any(|c| c.is_ascii_digit()), "nothing is in the graph: {found}");
    Ok(())
}

fn fresh(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.to_owned())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn command(program: &str, arguments: &[&str], folder: &Path) -> Result<String> {
    let output = Command::new(program).args(arguments).current_dir(folder).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {} failed: {}", arguments.join(" "), error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_on_installing_names_what_is_made() {
        let page = fs::read_to_string(root().unwrap().join("docs/install.md")).unwrap();
        let (name, archive, package) = names();
        for made in [format!("{name}/trellis"), archive, package] {
            assert!(page.contains(&made), "{made} is missing");
        }
    }
}
