//! The same commands on a folder and at a server: the same output.

use crate::served::Served;
use crate::{PARTNER, TRACE, ok, run, somewhere, stderr, stdout, trellis};
use serde_json::Value;
use std::path::Path;
use std::process::{Output, Stdio};
use tempfile::TempDir;

/// Exit code, stdout, stderr.
fn told(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), stdout(output), stderr(output))
}

fn at(server: &str, home: &Path, arguments: &[&str]) -> Output {
    somewhere(home, &[arguments, &["--url", server]].concat()).output().unwrap()
}

/// Commands that look at runs that have ended, and at the configuration.
const LOOKS: &[&[&str]] = &[
    &["runs"],
    &["runs", "--output", "json"],
    &["runs", "--limit", "1"],
    &["runs", "--state", "failed"],
    &["runs", "--since", "7d", "--task-type", "general", "--output", "json"],
    &["runs", "--since", "2999-01-01"],
    &["runs", "--search", "owners", "--output", "json"],
    &["runs", "--cursor", "nonsense"],
    &["run", "show", "last"],
    &["run", "show", "@2", "--full"],
    &["run", "show", "@2", "--output", "json"],
    &["run", "show", "team", "--output", "json"],
    &["run", "show", "team", "--step", "routing"],
    &["run", "show", "team", "--step", "#0 call 1", "--output", "json"],
    &["run", "show", "team", "--step", "nowhere"],
    &["run", "show", "@99"],
    &["run", "show", "nobody"],
    &["run", "show", "t"],
    &["run", "answer", "team"],
    &["run", "answer", "team", "--output", "json"],
    &["run", "answer", "thread", "--strict"],
    &["run", "export", "team"],
    &["run", "export", "thread", "--format", "nquads"],
    &["run", "export", "last", "--format", "jsonld"],
    &["run", "watch", "team"],
    &["run", "watch", "team", "--quiet"],
    &["run", "watch", "thread", "--strict", "--output", "json"],
    &["run", "watch", "thread", "--output", "ndjson"],
    &["run", "why", "team", "finding 0"],
    &["run", "why", "thread", "a sentence that it does not have"],
    &["run", "decisions", "team"],
    &["run", "diff", "team", "thread"],
    &["run", "slow", "team"],
    &["run", "cancel", "team"],
    &["run", "cancel", "nobody"],
    &["verify", "team"],
    &["verify", "long", "--output", "json"],
    &["sparql", "SELECT ?kind ?by WHERE { ?choice t:decisionKind ?kind ; t:decidedBy ?by } ORDER BY ?kind ?by ?choice"],
    &["sparql", "SELECT * WHERE { GRAPH ?g { ?s ?p ?o } } ORDER BY ?g ?s ?p ?o", "--output", "json"],
    &["sparql", "SELECT * WHERE { GRAPH ?g { ?s ?p ?o } } ORDER BY ?g ?s ?p ?o", "--output", "csv", "--limit", "7"],
    &["sparql", "ASK { ?choice t:decisionKind 'tool' }"],
    &["sparql", "CONSTRUCT { ?s tg:query ?q } WHERE { ?s tg:query ?q } ORDER BY ?s"],
    &["sparql", "CONSTRUCT { ?s tg:query ?q } WHERE { ?s tg:query ?q }", "--output", "json"],
    &["sparql", "SELECT ?s WHERE { ?s ?p }"],
    &["sparql", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", "--limit", "3"],
    &["config", "list"],
    &["config", "list", "tool", "--output", "json"],
    &["config", "get", "tool", "news-search"],
    &["config", "get", "tool", "news-search", "--at", "1"],
    &["config", "get", "tool", "news-search", "--at", "99"],
    &["config", "get", "tool", "zz"],
    &["config", "history", "tool", "news-search"],
    &["config", "history", "tool", "news-search", "--output", "json"],
    &["config", "history", "tool", "zz"],
    &["config", "matrix"],
    &["config", "log"],
    &["config", "export"],
    &["config", "validate"],
    &["config", "delete", "tool", "zz"],
];

#[test]
fn whatever_a_person_looks_at_is_the_same_on_the_folder_and_at_its_server() {
    let folder = TempDir::new().unwrap();
    let data = folder.path();
    let server = Served::start(data);
    let url = server.url();
    for (session, question) in
        [("team", PARTNER), ("thread", TRACE), ("long", &*format!("Why? {}", "x".repeat(40_000)))]
    {
        let asked = at(&url, data, &["ask", question, "--session", session, "--quiet"]);
        assert_eq!(asked.status.code(), Some(0), "{}", stderr(&asked));
    }
    let here = |arguments: &[&str]| told(&run(data, arguments));
    let named: Vec<_> = LOOKS.iter().map(|look| told(&at(&url, data, look))).collect();
    // The folder is in use: the command finds the server by itself.
    let followed: Vec<_> = LOOKS.iter().map(|look| here(look)).collect();
    server.kill();
    for ((look, named), followed) in LOOKS.iter().zip(named).zip(followed) {
        let local = here(look);
        assert_eq!(followed, local, "{look:?}");
        assert_eq!((named.0, named.1), (local.0, local.1), "{look:?}: {}", named.2);
    }
    assert_eq!(here(&["runs"]).1.lines().count(), 3);
}

#[test]
fn secrets_of_the_configuration_stay_with_the_server_and_verify_says_so() {
    let folder = TempDir::new().unwrap();
    let data = folder.path();
    let item = "{\"url\": \"https://a.example/mcp\", \"auth-token\": \"k7Qz9XvW3mLp0R\"}";
    ok(data, &["config", "put", "mcp", "far", item]);
    let server = Served::start(data);
    let asked = at(&server.url(), data, &["ask", "Why?", "--pattern", "react", "--session", "mine", "--quiet"]);
    assert_eq!(asked.status.code(), Some(0), "{}", stderr(&asked));
    let far = stdout(&at(&server.url(), data, &["verify", "mine"]));
    assert!(far.starts_with("ok: ") && far.contains("\nreplayed: ") && far.contains("\nnote: configuration "), "{far}");
    server.kill();
    let here = ok(data, &["verify", "mine"]);
    assert!(here.contains("\nreplayed: ") && !here.contains("note: "), "{here}");
}

/// What changes the configuration, in an order that makes every answer depend on those before.
const CHANGES: &[&[&str]] = &[
    &["config", "put", "agent", "additional-context", "Be brief."],
    &["config", "put", "agent", "additional-context", "Be long."],
    &["config", "put", "note", "a/b c", "not for agents"],
    &["config", "get", "note", "a/b c"],
    &["config", "put", "tool", "x", "{\"type\": \"prompt\"}"],
    &["config", "put", "tool", "odd", "{\"type\": \"prompt\", \"name\": \"odd\", \"template\": \"missing\"}"],
    &["config", "put", "prompt", "template.bad", "{\"prompt\":\"{{ unclosed\"}"],
    &["config", "put", "trellis", "seeds", "{}"],
    &["config", "validate"],
    &["config", "delete", "tool", "odd"],
    &["config", "delete", "note", "a/b c"],
    &["config", "delete", "note", "a/b c"],
    &["config", "get", "agent", "additional-context", "--at", "2"],
    &["config", "diff", "1"],
    &["config", "diff", "1", "3", "--output", "json"],
    &["config", "diff", "1", "99"],
    &["config", "list", "--output", "json"],
];

#[test]
fn the_configuration_is_changed_at_a_server_as_on_a_folder() {
    let (mine, theirs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = Served::start(theirs.path());
    for change in CHANGES {
        let (here, there) = (run(mine.path(), change), at(&server.url(), mine.path(), change));
        assert_eq!(told(&there), told(&here), "{change:?}");
    }
    let exported = mine.path().join("exported.json");
    let file = exported.to_str().unwrap();
    ok(mine.path(), &["config", "put", "agent", "additional-context", "Once more."]);
    ok(mine.path(), &["config", "export", file]);
    let imported = at(&server.url(), mine.path(), &["config", "import", file]);
    assert!(stderr(&imported).starts_with("items written: 1, configuration version "), "{}", stderr(&imported));
    let again = at(&server.url(), mine.path(), &["config", "import", file]);
    assert_eq!(stderr(&again), "nothing to change\n");
}

/// Without what differs from run to run: times and how long things took, and live text, which comes in pieces as it
/// can be had.
fn lasting(events: &str) -> Vec<Value> {
    fn timeless(value: Value) -> Value {
        match value {
            Value::Object(members) => {
                let kept = members.into_iter().filter(|(name, _)| !matches!(name.as_str(), "at" | "time" | "deadline"));
                let kept = kept.filter(|(name, _)| name != "ms" && !name.ends_with("_ms"));
                Value::Object(kept.map(|(name, value)| (name, timeless(value))).collect())
            }
            Value::Array(items) => Value::Array(items.into_iter().map(timeless).collect()),
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
        }
    }
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["type"] != "chunk").map(timeless).collect()
}

#[test]
fn a_question_is_answered_at_a_server_with_the_same_words_and_the_same_exit() {
    let (mine, theirs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = Served::start(theirs.path());
    let both = |arguments: &[&str]| (run(mine.path(), arguments), at(&server.url(), mine.path(), arguments));
    let react = ["ask", PARTNER, "--pattern", "react"];
    for (session, more) in [("a", &[][..]), ("b", &["--no-stream"]), ("c", &["--limit", "max-iterations=1"])] {
        let (here, there) = both(&[&react[..], &["--session", session, "--output", "ndjson"], more].concat());
        assert_eq!(lasting(&stdout(&there)), lasting(&stdout(&here)), "{more:?}");
        assert_eq!(there.status.code(), here.status.code(), "{}", stderr(&there));
    }
    let (here, there) = both(&[&react[..], &["--session", "d", "--output", "json", "--conversation", "talk"]].concat());
    assert_eq!(lasting(&stdout(&there)), lasting(&stdout(&here)));
    let (here, there) = both(&["ask", "What else?", "--session", "e", "--conversation", "last", "--quiet"]);
    assert_eq!(told(&there), told(&here));
    let (here, there) = both(&["ask", "What else?", "--session", "a", "--quiet"]);
    assert_eq!(told(&there), told(&here), "another question under a known id");
    for wrong in [&["ask", " "][..], &["ask", "Why?", "--pattern", "telepathy"], &["ask", "Why?", "--group", "zz"]] {
        let (here, there) = both(wrong);
        assert_eq!(told(&there), told(&here), "{wrong:?}");
        assert_eq!(there.status.code(), Some(2));
    }
}

#[test]
fn the_steps_of_an_answer_at_a_server_are_on_stderr_and_name_commands_that_find_it_again() {
    let (folder, url) = (TempDir::new().unwrap(), String::new());
    let server = Served::start(folder.path());
    let asked = at(&server.url(), folder.path(), &["ask", PARTNER]);
    let steps = stderr(&asked);
    for word in ["● supervisor", "4 agents", "join", "financial-data("] {
        assert!(steps.contains(word), "{word} is missing in {steps}");
    }
    assert!(stdout(&asked).starts_with("## Partner risk profile: Company X"));
    assert!(steps.contains(&format!("--url {}", server.url())), "{steps}");
    let followed = ok(folder.path(), &["ask", PARTNER]);
    assert_eq!(followed, stdout(&asked), "{url}");
}

#[test]
fn where_to_work_is_decided_by_flag_then_folder_then_environment() {
    let (theirs, mine, home) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = Served::start(theirs.path());
    let url = server.url();
    let asked = |command: &mut std::process::Command| {
        let output = command.env("TRUSTGRAPH_URL", &url).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let there = || at(&url, home.path(), &["runs"]);
    asked(&mut trellis(mine.path(), &["ask", "Mine?", "--quiet"]));
    assert_eq!(stdout(&there()), "", "a folder that is named counts before the environment");
    asked(&mut somewhere(home.path(), &["ask", "Theirs?", "--quiet"]));
    assert!(stdout(&there()).contains("Theirs?"), "the environment counts before the usual folder");
    asked(&mut trellis(mine.path(), &["ask", "Named?", "--quiet", "--url", &url]));
    assert!(stdout(&there()).contains("Named?"), "the flag counts before all");
    assert_eq!(ok(mine.path(), &["runs"]).lines().count(), 1);
    // Commands that are about a folder take no notice.
    asked(&mut trellis(mine.path(), &["doctor"]));
    asked(somewhere(home.path(), &["ask", "Own?", "--quiet"]).env("TRELLIS_DATA", home.path()));
    assert!(stdout(&there()).contains("Own?"));
}

#[test]
fn watching_attaches_to_a_run_that_is_at_work() {
    let folder = TempDir::new().unwrap();
    let server =
        Served::start_at(folder.path(), "127.0.0.1:0", |command| command.env("TRELLIS_REHEARSAL_DELAY_MS", "5"));
    let body = serde_json::json!({"question": PARTNER, "session_id": "team"}).to_string();
    server.json("POST", "/api/v1/runs", &body);
    let watching =
        trellis(folder.path(), &["run", "watch", "team", "--output", "ndjson"]).stdout(Stdio::piped()).spawn();
    let watched = stdout(&watching.unwrap().wait_with_output().unwrap());
    let events: Vec<Value> = watched.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["type"], &events.last().unwrap()["type"]), (&"run.started".into(), &"run.completed".into()));
    let seqs: Vec<_> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{seqs:?}");
}

#[test]
fn a_question_is_left_to_a_server_and_looked_at_later() {
    let folder = TempDir::new().unwrap();
    let server = Served::start(folder.path());
    let left = run(folder.path(), &["ask", PARTNER, "--session", "left", "--detach"]);
    assert_eq!((left.status.code(), stdout(&left).as_str()), (Some(0), "left\n"), "{}", stderr(&left));
    assert!(stderr(&left).contains("run left goes on at the server\nwatch it: trellis run watch left"), "{left:?}");
    let answer = ok(folder.path(), &["run", "watch", "left", "--quiet"]);
    assert!(answer.starts_with("## Partner risk profile: Company X"), "{answer}");
    // The same question again is its run, which has ended.
    let quiet = run(folder.path(), &["ask", PARTNER, "--session", "left", "--detach", "--quiet", "--output", "json"]);
    assert_eq!((stdout(&quiet).as_str(), stderr(&quiet).as_str()), ("{\"run_id\":\"left\"}\n", ""));
    server.kill();
    let alone = run(folder.path(), &["ask", "Why?", "--detach"]);
    assert_eq!((alone.status.code(), stdout(&alone).as_str()), (Some(2), ""));
    assert!(stderr(&alone).contains("start `trellis serve`"), "{}", stderr(&alone));
    assert_eq!(ok(folder.path(), &["runs"]).lines().count(), 1, "nothing was asked");
}

#[test]
fn whoever_waits_no_longer_leaves_the_run_where_it_is() {
    let (mine, theirs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    // Each piece of an answer takes as long as somebody waits for the whole.
    let slow =
        |command: &mut std::process::Command| command.env("TRELLIS_REHEARSAL_DELAY_MS", "1000").output().unwrap();
    let asked = ["ask", PARTNER, "--session", "late", "--timeout", "1s"];
    let here = slow(&mut trellis(mine.path(), &asked));
    assert_eq!(here.status.code(), Some(130), "{}", stderr(&here));
    for said in ["no answer within 1 s", "run late is interrupted", "go on: trellis resume late"] {
        assert!(stderr(&here).contains(said), "{said} is missing in {}", stderr(&here));
    }
    let server =
        Served::start_at(theirs.path(), "127.0.0.1:0", |command| command.env("TRELLIS_REHEARSAL_DELAY_MS", "1000"));
    let there = at(&server.url(), mine.path(), &asked);
    assert_eq!(there.status.code(), Some(130), "{}", stderr(&there));
    for said in ["no answer within 1 s", "run late goes on at the server", "watch it: trellis run watch late"] {
        assert!(stderr(&there).contains(said), "{said} is missing in {}", stderr(&there));
    }
    assert_eq!(server.json("GET", "/api/v1/runs/late", "")["state"], "running");
    let resumed = ok(mine.path(), &["resume", "late"]);
    assert!(resumed.starts_with("## Partner risk profile: Company X"), "{resumed}");
}
