//! Apache Pulsar: the server that tests start, and the compiler of its protocol's description, which only builds with the
//! feature `pulsar` need.

use crate::maven::Artifact;
use crate::root;
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// The newest that runs on Java 17.
const SERVER: Artifact<'_> = Artifact {
    name: "Pulsar 3.3.6 (217 MB)",
    path: "org/apache/pulsar/pulsar-server-distribution/3.3.6/pulsar-server-distribution-3.3.6-bin.tar.gz",
    sha256: "d364d0a85b46b91b210bfe7dc73d42587704b8905bcf0443c84344bccdd1390a",
};

/// Gets the server's libraries below that folder, once.
pub(crate) fn fetch_server(root: &Path) -> Result<()> {
    let made = root.join("usr/share/pulsar");
    if made.exists() {
        return Ok(());
    }
    let share = made.parent().context("it lies in a folder")?;
    let archive = share.join("pulsar.tar.gz");
    SERVER.fetch(&archive)?;
    // Has its name only once it is whole.
    let part = share.join(".pulsar.part");
    if part.exists() {
        fs::remove_dir_all(&part).with_context(|| format!("cannot empty {}", part.display()))?;
    }
    fs::create_dir_all(&part).with_context(|| format!("cannot make {}", part.display()))?;
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(&part).arg("--strip-components=1");
    let unpacked = tar.args(["--wildcards", "*/lib/*", "*/LICENSE", "*/NOTICE"]).status();
    if !unpacked.context("cannot start tar")?.success() {
        bail!("{} cannot be unpacked: is the disk full?", archive.display());
    }
    fs::rename(&part, &made).with_context(|| format!("cannot write {}", made.display()))?;
    fs::remove_file(&archive).with_context(|| format!("cannot remove {}", archive.display()))
}

/// Gets `protoc` to where `.cargo/config.toml` says that it is, once. Other machines name their own in `PROTOC`.
pub(crate) fn fetch_protoc() -> Result<()> {
    if std::env::var_os("PROTOC").is_some_and(|own| Path::new(&own).is_absolute() && Path::new(&own).exists()) {
        return Ok(());
    }
    let protoc = match std::env::consts::ARCH {
        "x86_64" => Artifact {
            name: "protoc 25.8",
            path: "com/google/protobuf/protoc/3.25.8/protoc-3.25.8-linux-x86_64.exe",
            sha256: "e34121274da8409bc86c093b868e05df198cbe1f5017202a560866390ae3d6ec",
        },
        "aarch64" => Artifact {
            name: "protoc 25.8",
            path: "com/google/protobuf/protoc/3.25.8/protoc-3.25.8-linux-aarch_64.exe",
            sha256: "4e4d9f8a17b2d0f3aa5eb6e668e2a9b36be95e6f6900e73ae9776aa20f958450",
        },
        other => bail!("there is no protoc for {other} at hand: install one and set PROTOC to where it is"),
    };
    let file = root()?.join("target/protoc");
    protoc.fetch(&file)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).context("protoc cannot be made a program")
}
