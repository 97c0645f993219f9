//! What a person is told whose cluster is set up wrongly.

use crate::cluster::Cluster;
use crate::{fails, somewhere, stderr};
use tempfile::TempDir;

/// The exit code and the message of a command with these variables.
fn told(variables: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String) {
    let home = TempDir::new().unwrap();
    let mut command = somewhere(home.path(), arguments);
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let message = stderr(&output);
    assert!(!message.contains("s3cret"), "a password is told: {message}");
    (output.status.code(), message)
}

const NOBODY: (&str, &str) = ("TRELLIS_STATE", "postgres://ann:s3cret@127.0.0.1:9/x");

#[test]
fn what_is_missing_or_misspelt_is_named() {
    let (code, message) = told(&[("TRELLIS_BUS", "amqp://ann:s3cret@mq")], &["worker"]);
    assert!(code == Some(2) && message.contains("--state"), "{message}");
    let (code, message) = told(&[], &["aggregator"]);
    assert!(code == Some(2) && message.contains("TRELLIS_STATE"), "{message}");
    let (code, message) = told(&[("TRELLIS_STATE", "mysql://ann:s3cret@db/x")], &["serve", "--listen", "127.0.0.1:0"]);
    assert!(code == Some(2) && message.contains("no state can be kept at mysql"), "{message}");
    let (code, message) = told(&[NOBODY], &["runs", "--data", "/nowhere"]);
    assert!(code == Some(5) && message.contains("/nowhere"), "a folder that is named is meant: {message}");
    let (code, message) = told(&[], &["status", "--data", "/nowhere", "--state", NOBODY.1]);
    assert!(code == Some(2) && message.contains("two places"), "{message}");
    for arguments in [&["doctor"][..], &["erase", "x", "--reason", "y"], &["graph", "rebuild"], &["resume"]] {
        let (code, message) = told(&[NOBODY], arguments);
        assert!(code == Some(2) && message.contains("data folder"), "{arguments:?}: {message}");
    }
    let data = TempDir::new().unwrap();
    let (code, message) = fails(data.path(), &["serve", "--listen", "127.0.0.1:0", "--no-workers"]);
    assert!(code == 2 && message.contains("--no-workers"), "{message}");
}

#[test]
fn what_cannot_be_reached_is_told_with_its_address() {
    let (code, message) = told(&[NOBODY], &["worker"]);
    assert!(code == Some(3) && message.contains("127.0.0.1:9/x") && message.contains("refused"), "{message}");
    let cluster = Cluster::new(None);
    for bus in ["amqp://ann:s3cret@127.0.0.1:9", "nats://ann:s3cret@127.0.0.1:9", "postgres://ann:s3cret@127.0.0.1:9/x"]
    {
        let output = cluster.command(&["worker"]).env("TRELLIS_BUS", bus).output().unwrap();
        let message = stderr(&output);
        assert!(output.status.code() == Some(3) && message.contains("127.0.0.1:9"), "{bus}: {message}");
        assert!(!message.contains("s3cret"), "{message}");
    }
    let output = cluster.command(&["worker"]).env("TRELLIS_BUS", "pulsar://ann:s3cret@127.0.0.1:9").output().unwrap();
    let (code, message) = (output.status.code(), stderr(&output));
    let (expected, said) = if cfg!(feature = "pulsar") { (3, "127.0.0.1:9") } else { (2, "built without Pulsar") };
    assert!(code == Some(expected) && message.contains(said) && !message.contains("s3cret"), "{message}");
    let output = cluster.command(&["worker"]).env("TRELLIS_BUS", "kafka://k").output().unwrap();
    assert!(output.status.code() == Some(2) && stderr(&output).contains("no broker for kafka"), "{}", stderr(&output));
}

#[test]
fn what_a_database_keeps_is_there() {
    let cluster = Cluster::new(None);
    let asked = cluster.ok(&["ask", "What is a trellis?", "--session", "one"]);
    assert!(!asked.trim().is_empty());
    assert!(cluster.ok(&["run", "show", "one"]).contains("What is a trellis?"));
    assert!(cluster.ok(&["run", "export", "one"]).contains("urn:trustgraph"));
    assert!(cluster.ok(&["log", "checkpoint"]).contains("trellis"));
    assert!(cluster.ok(&["config", "list"]).contains("tool"));
    cluster.ok(&["verify", "one"]);
    let file = cluster.home().join("a.ttl");
    std::fs::write(&file, "<urn:a> <urn:b> <urn:c> .").unwrap();
    cluster.ok(&["load", file.to_str().unwrap()]);
    assert!(cluster.ok(&["sparql", "SELECT ?o WHERE { <urn:a> <urn:b> ?o }"]).contains("urn:c"));
    assert!(cluster.ok(&["sparql", "SELECT ?q WHERE { ?s tg:query ?q }"]).contains("What is a trellis?"));
    let file = cluster.home().join("a.csv");
    std::fs::write(&file, "name,height\nBell Rock,36\n").unwrap();
    cluster.ok(&["load", file.to_str().unwrap()]);
    assert!(cluster.ok(&["tables", "query", "{ a { name height } }"]).contains("Bell Rock"));
    let tools = cluster.ok(&["tools", "list"]);
    assert!(tools.contains("financial-data"), "{tools}");
}
