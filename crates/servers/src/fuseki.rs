//! Apache Jena Fuseki: a SPARQL endpoint with a dataset on disk.

use crate::owned::{Recipe, Server, answers, free_port};
use crate::programs::find;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

/// A Fuseki server with one dataset, which lies in its folder.
#[derive(Debug)]
pub struct Fuseki {
    server: Server,
    port: u16,
}

struct FusekiRecipe {
    java: PathBuf,
    jar: PathBuf,
    port: u16,
}

const USER: &str = "trellis";
/// Characters that an address has to escape are part of it on purpose.
const PASSWORD: &str = "p@ss/w:rd";

/// A dataset as its documentation has it: query, update and graph store protocol, each under the usual name.
const SETTINGS: &str = r#"
PREFIX fuseki: <http://jena.apache.org/fuseki#>
PREFIX tdb2: <http://jena.apache.org/2016/tdb#>
PREFIX : <#>
[] a fuseki:Server .
:service a fuseki:Service ; fuseki:name "ds" ; fuseki:dataset :dataset ;
    fuseki:endpoint [ fuseki:operation fuseki:query ; fuseki:name "query" ] ,
        [ fuseki:operation fuseki:update ; fuseki:name "update" ] ,
        [ fuseki:operation fuseki:gsp-rw ; fuseki:name "data" ] .
:dataset a tdb2:DatasetTDB2 ; tdb2:location "data" .
"#;

impl Fuseki {
    /// The server that all tests of this process share. It goes with the process.
    pub fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Arc<Fuseki>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(|| Arc::new(Self::start())))
    }

    pub fn start() -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        let port = free_port();
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text);
        write("fuseki.ttl", SETTINGS).expect("a folder of ours can be written");
        write("users", &format!("{USER}: {PASSWORD}\n")).expect("a folder of ours can be written");
        std::fs::create_dir(folder.path().join("data")).expect("a folder of ours can be written");
        let recipe = FusekiRecipe { java: java(), jar: find("Fuseki", "usr/share/java/jena-fuseki-server-*"), port };
        Self { server: Server::start("Fuseki", folder, Box::new(recipe)), port }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn user(&self) -> &'static str {
        USER
    }

    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// The address of the dataset without credentials, at another port if there is something in between.
    pub fn open_address_at(&self, port: u16) -> String {
        format!("http://127.0.0.1:{port}/ds")
    }

    /// The address of the dataset, with the user and without the password.
    pub fn address(&self) -> String {
        format!("http://{USER}@127.0.0.1:{}/ds", self.port)
    }
}

impl Deref for Fuseki {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// The machine's: what Debian has of it cannot be unpacked elsewhere.
pub(crate) fn java() -> PathBuf {
    let java = PathBuf::from("/usr/bin/java");
    assert!(java.exists(), "Fuseki and Pulsar need Java 17 or newer: `apt-get install openjdk-17-jre-headless`");
    java
}

impl Recipe for FusekiRecipe {
    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.java);
        // What a killed server leaves behind is opened by the next one; a database in another place is never looked for.
        command
            .current_dir(folder)
            .env("FUSEKI_BASE", folder)
            .args(["-Xmx512m", "-XX:+UseSerialGC", "-jar"])
            .arg(&self.jar);
        command.args(["--localhost", "--port", &self.port.to_string(), "--auth=basic"]);
        command.arg("--passwd").arg(folder.join("users")).arg("--conf").arg(folder.join("fuseki.ttl"));
        command
    }

    fn is_ready(&self, _: &Path) -> bool {
        answers(self.port)
    }
}
