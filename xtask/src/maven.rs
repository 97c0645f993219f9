//! Files of Maven Central whose hash is known.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) struct Artifact<'a> {
    /// For people.
    pub(crate) name: &'a str,
    /// Below the repository.
    pub(crate) path: &'a str,
    pub(crate) sha256: &'a str,
}

impl Artifact<'_> {
    /// Gets it under that name, once.
    pub(crate) fn fetch(&self, file: &Path) -> Result<()> {
        if file.exists() {
            return Ok(());
        }
        let (Self { name, path, sha256 }, url) = (self, format!("https://repo1.maven.org/maven2/{}", self.path));
        let folder = file.parent().context("a file lies in a folder")?;
        let last = path.rsplit('/').next().unwrap_or(path);
        println!("{name} is fetched from Maven Central");
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // Has its name only once it is whole and the right one.
        let part = folder.join(format!(".{last}.part"));
        // A server that says nothing any more is not waited for.
        let script = "import socket, sys, urllib.request; socket.setdefaulttimeout(60); \
                      urllib.request.urlretrieve(sys.argv[1], sys.argv[2])";
        let fetched = Command::new("python3").args(["-c", script, &url]).arg(&part).stdin(Stdio::null()).status();
        if !fetched.context("cannot start python3")?.success() {
            bail!("{name} cannot be had from {url}: is there a network?");
        }
        let sum = Command::new("sha256sum").arg(&part).output().context("cannot start sha256sum")?;
        let sum = String::from_utf8_lossy(&sum.stdout);
        if sum.split_whitespace().next() != Some(sha256) {
            bail!("what came from {url} is not {name}: its SHA-256 is not {sha256}; try again later");
        }
        fs::rename(&part, file).with_context(|| format!("cannot write {}", file.display()))
    }
}
