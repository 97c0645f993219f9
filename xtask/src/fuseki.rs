//! Apache Jena Fuseki, the SPARQL endpoint that tests start: one file of Maven Central.

use crate::maven::Artifact;
use anyhow::{Result, bail};
use std::path::Path;

const JAR: &str = "jena-fuseki-server-4.10.0.jar";

/// Gets it below that folder, once, and says what else the machine needs for it.
pub(crate) fn fetch(root: &Path) -> Result<()> {
    if !Path::new("/usr/bin/java").exists() {
        bail!("Fuseki and Pulsar need Java 17 or newer: `apt-get install openjdk-17-jre-headless`");
    }
    let fuseki = Artifact {
        name: "Fuseki 4.10.0",
        path: "org/apache/jena/jena-fuseki-server/4.10.0/jena-fuseki-server-4.10.0.jar",
        sha256: "2bf863649dd5ead4f69988203c491a01b59cccd83f1f29752cd93e401430d9c2",
    };
    fuseki.fetch(&root.join("usr/share/java").join(JAR))
}
