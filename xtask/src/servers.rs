//! `cargo xtask servers`: the servers that tests start, out of Debian's packages, and two of Maven Central.
//!
//! Packages are unpacked into `target/servers` instead of being installed: that needs no root, and nothing starts by itself.

use crate::{fuseki, pulsar, root};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Wanted {
    name: &'static str,
    package: &'static str,
    /// What is there if the machine has it installed.
    installed: &'static str,
    /// Which packages below the first come with it: those by these beginnings. The rest is part of every Debian.
    with: &'static [&'static str],
}

const WANTED: [Wanted; 4] = [
    Wanted {
        name: "RabbitMQ",
        package: "rabbitmq-server",
        installed: "/usr/lib/rabbitmq/bin/rabbitmq-server",
        with: &["erlang-"],
    },
    Wanted { name: "NATS", package: "nats-server", installed: "/usr/sbin/nats-server", with: &[] },
    Wanted {
        name: "PostgreSQL",
        package: "postgresql",
        installed: "/usr/lib/postgresql",
        with: &["postgresql-1", "postgresql-2", "postgresql-client-1", "postgresql-client-2", "libpq5", "libllvm"],
    },
    // No server of others, but a terminal whose screen can be read.
    Wanted { name: "tmux", package: "tmux", installed: "/usr/bin/tmux", with: &["libevent-core", "libutempter"] },
];

/// Gets what the machine has not, once.
pub(crate) fn install() -> Result<()> {
    let folder = root()?.join("target/servers");
    pulsar::fetch_protoc()?;
    unpack_missing(&folder)?;
    fuseki::fetch(&folder.join("root"))?;
    pulsar::fetch_server(&folder.join("root"))
}

fn unpack_missing(folder: &Path) -> Result<()> {
    let missing: Vec<_> = WANTED.iter().filter(|wanted| !Path::new(wanted.installed).exists()).collect();
    let packages: Vec<_> = missing.iter().map(|wanted| wanted.package).collect();
    // Written last: a folder that was left half made has no mark.
    let made = folder.join("made");
    if missing.is_empty() || fs::read_to_string(&made).is_ok_and(|made| made == packages.join("\n")) {
        return Ok(());
    }
    println!("{} are fetched into {}", packages.join(", "), folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    let apt = Apt::new(&folder.join("apt"))?;
    for wanted in &missing {
        apt.fetch(wanted).with_context(|| {
            format!(
                "{} cannot be had from Debian's packages: is there a network? Else install it: `apt-get install {}`",
                wanted.name, wanted.package
            )
        })?;
    }
    apt.unpack(&folder.join("root"))?;
    apt.remove()?;
    fs::write(&made, packages.join("\n")).with_context(|| format!("cannot write {}", made.display()))
}

/// Debian's package tools with lists and files of their own.
struct Apt {
    folder: PathBuf,
    options: Vec<String>,
}

impl Apt {
    fn new(folder: &Path) -> Result<Self> {
        for inner in ["lists/partial", "cache/archives/partial", "packages"] {
            fs::create_dir_all(folder.join(inner)).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let settings = [
            format!("Dir::State::lists={}", folder.join("lists").display()),
            format!("Dir::Cache={}", folder.join("cache").display()),
            "Debug::NoLocking=true".to_owned(),
            // As root, the lists would be read as a user who may not enter this folder.
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Retries=3".to_owned(),
        ];
        let options = settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]).collect();
        let apt = Self { folder: folder.to_owned(), options };
        // Another source of the machine may be out of reach; whether Debian's was is seen when packages are looked for.
        if let Err(error) = apt.run("apt-get", &["--quiet", "update"]) {
            println!("{error:#}");
        }
        Ok(apt)
    }

    fn fetch(&self, wanted: &Wanted) -> Result<()> {
        let names = self.below(wanted)?;
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        self.run("apt-get", &[&["--quiet", "download"], &*names].concat()).map(drop)
    }

    /// The package and those that come with it.
    fn below(&self, wanted: &Wanted) -> Result<BTreeSet<String>> {
        const ONLY_NEEDED: [&str; 8] = [
            "depends",
            "--recurse",
            "--no-recommends",
            "--no-suggests",
            "--no-conflicts",
            "--no-breaks",
            "--no-replaces",
            "--no-enhances",
        ];
        let listed = self.run("apt-cache", &[&ONLY_NEEDED, &[wanted.package][..]].concat())?;
        // Names of packages begin their lines; virtual ones are in angle brackets.
        let names = listed.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_alphanumeric()));
        let mine = |name: &&str| *name == wanted.package || wanted.with.iter().any(|begin| name.starts_with(begin));
        let names: BTreeSet<_> = names.filter(mine).map(str::to_owned).collect();
        if names.is_empty() {
            bail!("there is no package {}", wanted.package);
        }
        Ok(names)
    }

    fn unpack(&self, into: &Path) -> Result<()> {
        fs::create_dir_all(into).with_context(|| format!("cannot make {}", into.display()))?;
        for file in fs::read_dir(self.folder.join("packages")).context("packages were fetched into a folder")? {
            let file = file.context("the folder of packages can be read")?.path();
            let (file, into) = (file.display().to_string(), into.display().to_string());
            command("dpkg-deb", &["--extract", &file, &into], &self.folder)?;
        }
        Ok(())
    }

    fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.folder).with_context(|| format!("cannot remove {}", self.folder.display()))
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let options = self.options.iter().map(String::as_str);
        let all: Vec<_> = options.chain(arguments.iter().copied()).collect();
        command(program, &all, &self.folder.join("packages"))
    }
}

fn command(program: &str, arguments: &[&str], folder: &Path) -> Result<String> {
    let output = Command::new(program).args(arguments).current_dir(folder).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {program}: this works on Debian and its relatives"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
