//! A PostgreSQL cluster on a socket in its folder.

use crate::owned::{Recipe, Server};
use crate::programs::{find, libraries};
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

/// An empty cluster with the user `trellis`.
#[derive(Debug)]
pub struct Postgres(Server);

struct PostgresRecipe {
    programs: PathBuf,
    /// PostgreSQL refuses to run as root.
    as_nobody: bool,
}

const NOBODY: u32 = 65_534;

impl Postgres {
    /// The server that all tests of this process share. It goes with the process.
    pub fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Arc<Postgres>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(|| Arc::new(Self::start())))
    }

    pub fn start() -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        let recipe = PostgresRecipe::of(folder.path());
        let made = recipe
            .program("initdb", folder.path())
            .args(["-U", "trellis", "-A", "trust", "-E", "UTF8", "--no-sync", "-D"])
            .arg(folder.path().join("data"))
            .output()
            .expect("initdb can be started");
        assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        Self(Server::start("PostgreSQL", folder, Box::new(recipe)))
    }

    /// As a connection string of libpq.
    pub fn address(&self) -> String {
        format!("host={} user=trellis dbname=postgres", self.folder().display())
    }
}

impl Deref for Postgres {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

/// A program of PostgreSQL, run in this folder, which becomes that of a user whom PostgreSQL takes.
pub fn postgres_program(name: &str, folder: &Path) -> Command {
    PostgresRecipe::of(folder).program(name, folder)
}

impl PostgresRecipe {
    fn of(folder: &Path) -> Self {
        // Whoever is not root owns what he makes, and cannot give it away.
        let owner = std::fs::metadata(folder).expect("the folder is there").uid();
        let as_nobody = owner == 0 || owner == NOBODY;
        if owner == 0 {
            chown(folder, Some(NOBODY), Some(NOBODY)).expect("root gives away folders");
        }
        Self { programs: find("PostgreSQL", "usr/lib/postgresql/*/bin"), as_nobody }
    }

    fn program(&self, name: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(folder).stdin(Stdio::null());
        if let Ok(libraries) = std::env::join_paths(libraries()) {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        if self.as_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Recipe for PostgresRecipe {
    fn command(&self, folder: &Path) -> Command {
        let mut command = self.program("postgres", folder);
        command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
        command.args(["-c", "listen_addresses=", "-c", "max_connections=200"]);
        command
    }

    fn is_ready(&self, folder: &Path) -> bool {
        let asked = self
            .program("pg_isready", folder)
            .args(["-q", "-U", "trellis", "-d", "postgres", "-h"])
            .arg(folder)
            .status();
        asked.is_ok_and(|status| status.success())
    }
}
