//! Apache Pulsar with its storage in one process.

use crate::fuseki::java;
use crate::owned::{Recipe, Server, free_port};
use crate::programs::find;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;

/// A Pulsar whose topics and metadata lie in its folder.
#[derive(Debug)]
pub struct Pulsar {
    server: Server,
    ports: Ports,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    broker: u16,
    web: u16,
}

struct PulsarRecipe {
    java: PathBuf,
    libraries: PathBuf,
    ports: Ports,
}

/// Characters that an address has to escape are part of it on purpose. Pulsar takes no password with a colon.
const PASSWORD: &str = "p@ss/w";
/// The same as Apache's password files have it.
const HASH: &str = "$apr1$trellis1$0E6RlzPAJ4RRt/GJ31xqo0";
/// `trellis:p@ss/w` in base64.
const CREDENTIALS: &str = "dHJlbGxpczpwQHNzL3c=";

/// It is quiet: warnings only, on the console.
const LOGGING: &str = r#"<Configuration status="WARN"><Appenders><Console name="console">
<PatternLayout pattern="%d{HH:mm:ss.SSS} %p %c{1} %m%n%throwable{5}"/></Console></Appenders>
<Loggers><Root level="warn"><AppenderRef ref="console"/></Root></Loggers></Configuration>
"#;

/// As its own script starts it on a Java that is new enough, with a small heap and without what only helps over hours.
const JAVA: [&str; 26] = [
    "-Xmx512m",
    "-XX:MaxDirectMemorySize=256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dlog4j.configurationFile=log4j2.xml",
    "-Djava.net.preferIPv4Stack=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "--add-opens",
    "java.base/java.io=ALL-UNNAMED",
    "--add-opens",
    "java.base/java.util.zip=ALL-UNNAMED",
    "--add-opens",
    "java.base/java.nio=ALL-UNNAMED",
    "--add-opens",
    "java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-opens",
    "java.base/sun.net=ALL-UNNAMED",
    "--add-opens",
    "java.management/sun.management=ALL-UNNAMED",
    "--add-opens",
    "jdk.management/com.sun.management.internal=ALL-UNNAMED",
    "--add-opens",
    "java.base/jdk.internal.platform=ALL-UNNAMED",
    "-Dbookkeeper.metadata.bookie.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataBookieDriver",
    "-Dbookkeeper.metadata.client.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataClientDriver",
    "-Dlog4j.shutdownHookEnabled=false",
];

impl Pulsar {
    /// The server that all tests of this process share. It goes with the process.
    pub fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Arc<Pulsar>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(|| Arc::new(Self::start())))
    }

    pub fn start() -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        let ports = Ports { broker: free_port(), web: free_port() };
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text);
        write("standalone.conf", &settings(folder.path(), ports)).expect("a folder of ours can be written");
        write("htpasswd", &format!("trellis:{HASH}\n")).expect("a folder of ours can be written");
        write("log4j2.xml", LOGGING).expect("a folder of ours can be written");
        let recipe = PulsarRecipe { java: java(), libraries: find("Pulsar", "usr/share/pulsar/lib"), ports };
        Self { server: Server::start("Pulsar", folder, Box::new(recipe)), ports }
    }

    pub fn port(&self) -> u16 {
        self.ports.broker
    }

    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// The address of this server, at another port if there is something in between.
    pub fn address_at(&self, port: u16) -> String {
        format!("pulsar://trellis:p%40ss%2Fw@127.0.0.1:{port}")
    }

    pub fn address(&self) -> String {
        self.address_at(self.ports.broker)
    }

    /// Asks for something that operators ask for, as `DELETE /admin/v2/…`. Gives the whole answer.
    pub fn admin(&self, method: &str, path: &str) -> String {
        asked(self.ports.web, method, path).expect("the server answers")
    }
}

/// What is not named here is as Pulsar has it where nobody says anything.
fn settings(folder: &Path, ports: Ports) -> String {
    let (Ports { broker, web }, folder) = (ports, folder.display());
    format!(
        "brokerServicePort={broker}\nwebServicePort={web}\nbindAddress=127.0.0.1\nadvertisedAddress=127.0.0.1\n\
         clusterName=standalone\nauthenticationEnabled=true\n\
         authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderBasic\n\
         basicAuthConf=file://{folder}/htpasswd\n\
         brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationBasic\n\
         brokerClientAuthenticationParameters={{\"userId\":\"trellis\",\"password\":\"{PASSWORD}\"}}\n\
         managedLedgerDefaultEnsembleSize=1\nmanagedLedgerDefaultWriteQuorum=1\nmanagedLedgerDefaultAckQuorum=1\n\
         loadBalancerEnabled=false\nsystemTopicEnabled=false\ntopicLevelPoliciesEnabled=false\n\
         numIOThreads=2\nnumHttpServerThreads=8\nnumOrderedExecutorThreads=2\nnumExecutorThreadPoolSize=2\n\
         numCacheExecutorThreadPoolSize=2\nmanagedLedgerNumSchedulerThreads=1\nbookkeeperClientNumWorkerThreads=1\n\
         bookkeeperNumberOfChannelsPerBookie=1\nallowLoopback=true\nlisteningInterface=lo\ndiskUsageThreshold=0.9999\n\
         diskUsageWarnThreshold=0.999\njournalMaxSizeMB=64\ndbStorage_writeCacheMaxSizeMb=16\n\
         dbStorage_readAheadCacheMaxSizeMb=4\ndbStorage_rocksDB_blockCacheSize=4194304\n\
         ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage\n"
    )
}

/// An answer of the server's web side. None if it does not answer.
fn asked(web: u16, method: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, web)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let head = format!("{method} {path} HTTP/1.0\r\nAuthorization: Basic {CREDENTIALS}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

impl Deref for Pulsar {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Recipe for PulsarRecipe {
    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.java);
        let data = folder.join("data");
        command.current_dir(folder).args(JAVA).arg("-classpath").arg(format!("{}/*", self.libraries.display()));
        command.arg("org.apache.pulsar.PulsarStandaloneStarter").arg("--config").arg(folder.join("standalone.conf"));
        command.arg("--bookkeeper-dir").arg(data.join("bookkeeper")).arg("--metadata-dir").arg(data.join("metadata"));
        // Its storage finds a port and keeps it.
        command.args(["--no-functions-worker", "--no-stream-storage", "--num-bookies", "1"]);
        command
    }

    /// The first topic takes long, so it is one that nobody waits for.
    fn is_ready(&self, _: &Path) -> bool {
        let made = |answer: &str| answer.contains(" 204 ") || answer.contains(" 409 ");
        asked(self.ports.web, "PUT", "/admin/v2/persistent/public/default/first").is_some_and(|answer| made(&answer))
    }
}
