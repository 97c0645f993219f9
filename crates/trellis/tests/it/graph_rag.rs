//! Loaded knowledge that is asked about: by an agent, by tools, over the API, with a scripted model and without one.

use crate::served::Served;
use crate::{json, ok, trellis};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const PEOPLE: &str = r#"
@prefix ex: <http://ex.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:mc rdfs:label "Marie Curie" ; ex:bornIn ex:Warsaw ; ex:spouse ex:pc .
ex:pc rdfs:label "Pierre Curie" ; ex:bornIn ex:Paris .
ex:Warsaw rdfs:label "Warsaw" ; ex:capitalOf ex:Poland .
"#;
const TOOL: &str = r#"{"type": "knowledge-query", "name": "people", "description": "Ask the graph of people"}"#;
const SPARQL: &str =
    r#"{"type": "sparql-query", "name": "sparql", "description": "Query the graph of people", "limit": 2}"#;
const QUESTION: &str = "Where was Marie Curie born?";

fn loaded(data: &Path) {
    let file = data.join("people.ttl");
    std::fs::write(&file, PEOPLE).unwrap();
    ok(data, &["load", file.to_str().unwrap()]);
}

/// A model server. Each prompt is known by its first words.
fn answer(stream: TcpStream) -> Option<()> {
    crate::documents::serve(stream, reply)
}

fn reply(request: &Value) -> String {
    let said = request["messages"].to_string();
    let text = if said.contains("You prepare a search") {
        "Marie Curie\nborn in".to_owned()
    } else if said.contains("You choose the facts") {
        let facts = said.split(r"\n").find(|line| line.contains("| born In |")).unwrap_or("e1:");
        let id = facts.split(':').next().unwrap_or_default();
        json!({"edges": [{"id": id, "score": 9, "reason": "the place of birth"}]}).to_string()
    } else if said.contains("You answer a question from facts") {
        assert!(said.contains("Marie Curie | born In | Warsaw"), "{said}");
        "She was born in Warsaw.".to_owned()
    } else if said.contains("She was born in Warsaw.") {
        "Thought: I know it.\nFinal Answer: In Warsaw [1].".to_owned()
    } else {
        format!("Thought: I look.\nAction: people\nArgs: {{\"question\": \"{QUESTION}\"}}")
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 3});
    let chunk = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}], "usage": usage});
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

fn with_model<'c>(command: &'c mut Command, address: &str) -> &'c mut Command {
    command.env("TRELLIS_MODEL", "openai/m").env("OPENAI_BASE_URL", format!("http://{address}/v1"));
    command.env("TRELLIS_MODELS_NATIVE_TOOLS", "false").env("TRELLIS_MODELS_PROBE", "false")
}

#[test]
fn an_agent_asks_the_graph_and_the_run_shows_the_edges_that_it_rests_on() {
    let data = TempDir::new().unwrap();
    loaded(data.path());
    ok(data.path(), &["tools", "add", "people", TOOL]);
    let address = crate::listen(answer);
    let mut ask = trellis(data.path(), &["ask", QUESTION, "--pattern", "react"]);
    let output = with_model(&mut ask, &address).output().unwrap();
    assert!(output.status.success() && crate::stdout(&output).contains("In Warsaw"), "{}", crate::stderr(&output));
    assert!(ok(data.path(), &["verify", "last"]).starts_with("ok"));

    let quads = ok(data.path(), &["run", "export", "last", "--format", "nquads"]);
    let derived = "<http://www.w3.org/ns/prov#wasDerivedFrom>";
    let parent = |node: &str| {
        let line = quads.lines().find(|line| line.starts_with(&format!("<{node}> {derived}")));
        let line = line.unwrap_or_else(|| panic!("{node} derives from nothing: {quads}"));
        line.split(['<', '>']).nth(5).unwrap().to_owned()
    };
    let class = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <https://trustgraph.ai/ns/GraphRagQuestion>";
    let question = quads.lines().find(|line| line.contains(class)).unwrap().split(['<', '>']).nth(1).unwrap();
    let id = question.strip_prefix("urn:trustgraph:question:").unwrap();
    let step = |name: &str| format!("urn:trustgraph:prov:{name}:{id}");
    let called = parent(question);
    assert!(called.starts_with("urn:trustgraph:agent:") && called.ends_with("/i1"), "{called}");
    assert_eq!(parent(&step("grounding")), question);
    assert_eq!(parent(&step("exploration")), step("grounding"));
    assert_eq!(parent(&step("focus")), step("exploration"));
    assert_eq!(parent(&step("synthesis")), step("focus"));
    assert_eq!(parent(&format!("{called}/observation")), step("synthesis"), "the observation rests on the answer");
    let says = |text: &str| assert!(quads.lines().any(|line| line.contains(text)), "no {text} in {quads}");
    says(&format!("<{}> <https://trustgraph.ai/ns/document> <{called}/observation>", step("synthesis")));
    says(&format!("<{}> <https://trustgraph.ai/ns/selectedEdge> <urn:trustgraph:prov:edge:{id}:0>", step("focus")));
    says(&format!("<urn:trustgraph:prov:edge:{id}:0> <https://trustgraph.ai/ns/edge> <<"));
    says(&format!("<urn:trustgraph:prov:edge:{id}:0> <https://trustgraph.ai/ns/reasoning> \"the place of birth\""));
    let decision = format!("{}/decision/edges", step("focus"));
    says(&format!("<urn:trustgraph:prov:edge:{id}:0> <urn:trellis:ns:decision> <{decision}>"));
    says(&format!("<{decision}> <urn:trellis:ns:decidedBy> \"model\""));

    let shown = json(data.path(), &["run", "show", "last"]);
    let usage = shown["usage"].to_string();
    // Two of the agent, and four of the tool: concepts, two hops, the answer.
    assert!(usage.contains(r#""model_calls":6"#) || shown.to_string().contains(r#""model_calls":6"#), "{usage}");
}

#[test]
fn without_a_model_the_rehearsal_answers_from_the_graph() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["tools", "add", "people", TOOL]);
    let empty = ok(data.path(), &["tools", "test", "people", &format!("question={QUESTION}")]);
    assert!(empty.contains("The collection `default` has no knowledge."), "{empty}");
    loaded(data.path());
    let told = ok(data.path(), &["tools", "test", "people", &format!("question={QUESTION}")]);
    assert!(told.contains("- Marie Curie born In Warsaw"), "{told}");
    assert!(ok(data.path(), &["tools", "list"]).contains("people"));
    ok(data.path(), &["knowledge", "remove", "default"]);
    let gone = ok(data.path(), &["tools", "test", "people", &format!("question={QUESTION}")]);
    assert!(gone.contains("has no knowledge"), "{gone}");
}

#[test]
fn sparql_sees_one_collection_and_no_runs() {
    let data = TempDir::new().unwrap();
    loaded(data.path());
    ok(data.path(), &["tools", "add", "sparql", SPARQL]);
    ok(data.path(), &["ask", "What is new?"]);
    let query = |sparql: &str| ok(data.path(), &["tools", "test", "sparql", &format!("query={sparql}")]);
    let born = query("SELECT ?who { ?who <http://ex.org/bornIn> <http://ex.org/Warsaw> }");
    assert!(born.contains("?who\n<http://ex.org/mc>"), "{born}");
    let runs = query("SELECT ?q { ?s <https://trustgraph.ai/ns/query> ?q }");
    assert!(runs.contains("No rows."), "{runs}");
    let many = query("SELECT ?s ?p ?o { ?s ?p ?o }");
    assert!(many.contains("There are more than these 2 rows"), "{many}");
    let (_, wrong) = crate::fails(data.path(), &["tools", "test", "sparql", "query=DELETE WHERE { ?s ?p ?o }"]);
    assert!(wrong.contains("cannot be answered"), "{wrong}");
}

#[test]
fn the_service_answers_with_steps_and_sources_and_after_a_restart() {
    let data = TempDir::new().unwrap();
    loaded(data.path());
    let address = crate::listen(answer);
    let server = Served::start_at(data.path(), "127.0.0.1:0", |command| with_model(command, &address));
    let ask = |body: &Value| server.json("POST", "/api/v1/flow/default/service/graph-rag", &body.to_string());
    let answered = ask(&json!({"query": QUESTION, "collection": "default", "entity-limit": 50, "streaming": false}));
    assert_eq!(answered["response"], "She was born in Warsaw.", "{answered}");
    assert_eq!((&answered["message_type"], &answered["end_of_stream"]), (&json!("chunk"), &json!(true)));
    assert_eq!((&answered["end_of_session"], &answered["in_token"]), (&json!(true), &json!(40)));
    let both = ask(&json!({"query": QUESTION, "grounding-seeds": ["a"], "graph-seeds": ["b"]}));
    assert!(both.to_string().contains("mutually exclusive"), "{both}");
    let elsewhere = ask(&json!({"query": QUESTION, "collection": "other"}));
    assert_eq!(elsewhere["response"], "The collection `other` has no knowledge.");
    server.kill();
}
