//! The graph of runs at a SPARQL endpoint: a real Fuseki, asked by us and without us.

use crate::cluster::{Cluster, ask, state_of};
use crate::served::Served;
use crate::{PARTNER, somewhere, stderr, trellis, until};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use trellis_servers::Fuseki;

/// The runs whose questions Fuseki has.
const ASKED: &str = "SELECT DISTINCT ?s WHERE { GRAPH ?g { ?s <https://trustgraph.ai/ns/query> ?q } }";
/// The same, asked of us.
const RUNS: &str = "SELECT ?s WHERE { ?s tg:query ?q }";

/// What Fuseki itself answers, in CSV.
fn fuseki_says(fuseki: &Fuseki, sparql: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", fuseki.port())).unwrap();
    let credentials = BASE64.encode(format!("{}:{}", fuseki.user(), fuseki.password()));
    write!(
        stream,
        "POST /ds/query HTTP/1.0\r\nHost: localhost\r\nAuthorization: Basic {credentials}\r\nAccept: text/csv\r\n\
         Content-Type: application/sparql-query\r\nContent-Length: {}\r\n\r\n{sparql}",
        sparql.len()
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.lines().next().is_some_and(|line| line.contains(" 200 ")), "{reply}");
    reply
}

/// A command on a folder whose graph is there.
fn with_graph(data: &Path, fuseki: &Fuseki, arguments: &[&str]) -> Command {
    let mut command = trellis(data, arguments);
    command.env("TRELLIS_GRAPH", fuseki.address()).env("TRELLIS_GRAPH_PASSWORD", fuseki.password());
    command
}

fn is_answered(served: &Served, run: &str) -> bool {
    state_of(served, run).as_str().is_some_and(|state| state.starts_with("answered"))
}

fn ok(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_server_keeps_its_graph_at_an_endpoint() {
    let (data, fuseki) = (TempDir::new().unwrap(), Fuseki::start());
    let address = fuseki.address();
    let listen = ["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--graph", address.as_str()];
    let mut command = trellis(data.path(), &listen);
    command.env("TRELLIS_GRAPH_PASSWORD", fuseki.password());
    let served = Served::spawn(command, drop);
    ask(&served, PARTNER, "partner", "");
    until("it is answered", || is_answered(&served, "partner"));
    until("the endpoint has the run", || fuseki_says(&fuseki, ASKED).contains("urn:trustgraph:agent:partner"));
    let url = served.url();
    let found = ok(with_graph(data.path(), &fuseki, &["sparql", RUNS]));
    assert!(found.contains("partner"), "the server that has the folder is asked: {found}");
    // The endpoint is gone for a while: the run is not lost.
    fuseki.kill();
    ask(&served, "What is two plus two?", "second", "react");
    until("it is answered without the endpoint", || is_answered(&served, "second"));
    fuseki.start_again();
    until("the endpoint has it as well", || fuseki_says(&fuseki, ASKED).contains("urn:trustgraph:agent:second"));
    assert!(ok(somewhere(data.path(), &["sparql", RUNS, "--url", url.as_str()])).contains("second"));
    served.ask_to_stop();
    assert_eq!(served.stopped(), Some(0));

    // Without a server, commands on the folder read it there, too.
    let found = ok(with_graph(data.path(), &fuseki, &["sparql", RUNS]));
    assert!(found.contains("partner") && found.contains("second"), "{found}");
    let told = ok(with_graph(data.path(), &fuseki, &["doctor", "--output", "json"]));
    let told: Value = serde_json::from_str(&told).unwrap();
    let named = told["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "remote graph").unwrap();
    assert!(named["says"].as_str().unwrap().contains("answers; finished runs that wait to be taken in: 0"), "{named}");
    assert!(!told.to_string().contains(fuseki.password()), "{told}");
    let rebuilt = ok(with_graph(data.path(), &fuseki, &["graph", "rebuild", "--output", "json"]));
    assert_eq!(serde_json::from_str::<Value>(&rebuilt).unwrap()["finished_runs"], 2);

    // What is erased here is gone there.
    let question = "Assess the risk profile of Company X";
    let texts = format!("SELECT ?o {{ GRAPH ?g {{ ?s ?p ?o FILTER(CONTAINS(STR(?o), \"{question}\")) }} }}");
    assert!(fuseki_says(&fuseki, &texts).contains(question));
    ok(with_graph(data.path(), &fuseki, &["erase", "partner", "--reason", "asked for"]));
    assert!(!fuseki_says(&fuseki, &texts).contains(question));
}

#[test]
fn wrong_credentials_and_addresses_are_told() {
    let (data, fuseki) = (TempDir::new().unwrap(), Fuseki::shared());
    crate::ok(data.path(), &["ask", "What is two plus two?", "--pattern", "react"]);
    let mut wrong = with_graph(data.path(), &fuseki, &["sparql", RUNS]);
    wrong.env("TRELLIS_GRAPH_PASSWORD", "not-the-one");
    let output = wrong.output().unwrap();
    let told = stderr(&output);
    assert!(!output.status.success() && told.contains("HTTP 401"), "{told}");
    assert!(!told.contains("not-the-one"), "{told}");
    let mut wrong = trellis(data.path(), &["sparql", RUNS]);
    let output = wrong.env("TRELLIS_GRAPH", "fuseki").output().unwrap();
    assert!(!output.status.success() && stderr(&output).contains("no address of a SPARQL endpoint"), "{output:?}");
}

#[test]
fn processes_of_a_cluster_share_a_graph_at_an_endpoint() {
    let (cluster, fuseki) = (Cluster::new(None), Fuseki::shared());
    let mut command = cluster.command(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    command.env("TRELLIS_GRAPH", fuseki.address()).env("TRELLIS_GRAPH_PASSWORD", fuseki.password());
    let served = Served::spawn(command, drop);
    ask(&served, PARTNER, "of-a-cluster", "");
    until("it is answered", || is_answered(&served, "of-a-cluster"));
    until("the endpoint has the run", || fuseki_says(&fuseki, ASKED).contains("urn:trustgraph:agent:of-a-cluster"));
    let found = cluster.ok(&["sparql", RUNS, "--url", &served.url()]);
    assert!(found.contains("of-a-cluster"), "{found}");
}
