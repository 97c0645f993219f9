//! Apache Jena Fuseki, the SPARQL endpoint that tests start: one file of Maven Central, whose hash is known.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const VERSION: &str = "4.10.0";
const SHA256: &str = "2bf863649dd5ead4f69988203c491a01b59cccd83f1f29752cd93e401430d9c2";

/// Gets it below that folder, once, and says what else the machine needs for it.
pub(crate) fn fetch(root: &Path) -> Result<()> {
    if !Path::new("/usr/bin/java").exists() {
        bail!("Fuseki needs Java 17 or newer: `apt-get install openjdk-17-jre-headless`");
    }
    let name = format!("jena-fuseki-server-{VERSION}.jar");
    let folder = root.join("usr/share/java");
    let jar = folder.join(&name);
    if jar.exists() {
        return Ok(());
    }
    let url = format!("https://repo1.maven.org/maven2/org/apache/jena/jena-fuseki-server/{VERSION}/{name}");
    println!("Fuseki {VERSION} is fetched from Maven Central");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // Has its name only once it is whole and the right one.
    let part = folder.join(format!(".{name}.part"));
    let script = "import sys, urllib.request; urllib.request.urlretrieve(sys.argv[1], sys.argv[2])";
    let fetched = Command::new("python3").args(["-c", script, &url]).arg(&part).stdin(Stdio::null()).status();
    if !fetched.context("cannot start python3")?.success() {
        bail!("Fuseki cannot be had from {url}: is there a network?");
    }
    let sum = Command::new("sha256sum").arg(&part).output().context("cannot start sha256sum")?;
    let sum = String::from_utf8_lossy(&sum.stdout);
    if sum.split_whitespace().next() != Some(SHA256) {
        bail!("what came from {url} is not Fuseki {VERSION}: its SHA-256 is not {SHA256}; try again later");
    }
    fs::rename(&part, &jar).with_context(|| format!("cannot write {}", jar.display()))
}
