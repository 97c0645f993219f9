//! Servers that are away, closed, foreign or killed; people who stop watching.

use crate::killed::{alone, kill_after};
use crate::served::Served;
use crate::{PARTNER, fails, ok, run, somewhere, stderr, stdout, trellis};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:1/";

fn at(server: &str, home: &Path, arguments: &[&str]) -> Command {
    somewhere(home, &[arguments, &["--url", server]].concat())
}

fn refused(command: &mut Command, exit: i32, words: &[&str]) {
    let output = command.output().unwrap();
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(exit), "{told}");
    for word in words {
        assert!(told.contains(word), "{word} is missing in {told}");
    }
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_server_that_is_not_there_is_named_with_what_to_do() {
    let home = TempDir::new().unwrap();
    for command in [&["ask", "Why?"][..], &["runs"], &["run", "show", "last"], &["verify", "last"], &["config", "list"]]
    {
        let words = ["cannot reach http://127.0.0.1:1/", "refused", "`trellis serve`", "leave --url out"];
        refused(&mut at(NOWHERE, home.path(), command), 3, &words);
    }
    let mut by_environment = somewhere(home.path(), &["runs"]);
    refused(by_environment.env("TRUSTGRAPH_URL", NOWHERE), 3, &["which TRUSTGRAPH_URL names", "unset the variable"]);
    refused(
        &mut at("localhost", home.path(), &["runs"]),
        2,
        &["--url", "`localhost` is not a web address", "http://localhost:8888/"],
    );
    let mut empty = somewhere(home.path(), &["runs"]);
    refused(empty.env("TRUSTGRAPH_URL", " "), 5, &["there is no data in"]);
}

#[test]
fn a_server_that_wants_a_token_gets_it_from_the_environment() {
    let folder = TempDir::new().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "ann s3cret-of-ann\nbob s3cret-of-bob default\n").unwrap();
    let data = folder.path().join("data");
    let server = Served::start_at(&data, "127.0.0.1:0", |command| command.arg("--tokens").arg(&tokens));
    let url = server.url();
    for command in [&["ask", "Why?"][..], &["runs"], &["config", "list"]] {
        refused(&mut at(&url, folder.path(), command), 4, &[&url, "wants a token", "TRUSTGRAPH_TOKEN"]);
        let mut wrong = at(&url, folder.path(), command);
        refused(wrong.env("TRUSTGRAPH_TOKEN", "guess"), 4, &["does not know the token in TRUSTGRAPH_TOKEN"]);
    }
    // The folder leads to the server, and so does the token.
    refused(&mut trellis(&data, &["runs"]), 4, &["wants a token"]);
    for mut command in
        [at(&url, folder.path(), &["ask", "Why?", "--quiet"]), trellis(&data, &["run", "answer", "last"])]
    {
        let output = command.env("TRUSTGRAPH_TOKEN", "s3cret-of-ann").output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(!stderr(&output).contains("s3cret"));
    }
    let mut elsewhere = at(&url, folder.path(), &["runs", "--workspace", "elsewhere"]);
    refused(elsewhere.env("TRUSTGRAPH_TOKEN", "s3cret-of-bob"), 4, &["this token does not reach that workspace"]);
}

#[test]
fn whoever_is_no_trellis_server_is_told_from_one() {
    let home = TempDir::new().unwrap();
    let replies = ["200 OK\r\nContent-Type: text/html", "404 Not Found", "301 Moved\r\nLocation: https://example.org/"];
    for (reply, words) in
        replies.into_iter().zip(["is it a Trellis server?", "404", "it has moved to https://example.org/"])
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).unwrap() > 0);
            write!(stream, "HTTP/1.1 {reply}\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello").unwrap();
        });
        refused(&mut at(&url, home.path(), &["runs"]), 3, &[&url, words]);
        server.join().unwrap();
    }
}

#[test]
fn commands_that_need_the_folder_say_so_and_what_to_do_instead() {
    let folder = TempDir::new().unwrap();
    let server = Served::start(folder.path());
    let commands = [(&["resume"][..], "continues its runs by itself"), (&["graph", "rebuild"], "stop the server")];
    for (command, instead) in commands {
        refused(&mut at(&server.url(), folder.path(), command), 2, &["not with --url", instead]);
        refused(&mut trellis(folder.path(), command), 7, &["is in use by `trellis serve`", &server.url(), instead]);
    }
    refused(&mut at(&server.url(), folder.path(), &["doctor"]), 2, &["not with --url", "stop the server"]);
    let told = ok(folder.path(), &["doctor"]);
    assert!(told.contains("in use by `trellis serve`") && told.contains(" answers\n"), "{told}");
    refused(&mut at(&server.url(), folder.path(), &["serve"]), 2, &["is a server itself"]);
    refused(&mut trellis(folder.path(), &["serve", "--listen", "127.0.0.1:0"]), 7, &["is in use by `trellis serve`"]);
    let mut model = at(&server.url(), folder.path(), &["ask", "Why?", "--model", "nobody/nothing"]);
    refused(&mut model, 2, &["no model `nobody/nothing` is configured"]);
    // Settings of this machine do not matter to a server.
    let mut asked = trellis(folder.path(), &["ask", "Why?", "--quiet"]);
    let asked = asked.env("TRELLIS_MODEL", "nonsense").output().unwrap();
    assert!(asked.status.success(), "{}", stderr(&asked));
}

/// An `ask` at a server whose events can be read.
fn asking(url: &str, home: &Path, arguments: &[&str]) -> Child {
    let mut command =
        at(url, home, &[&["ask", PARTNER, "--session", "team", "--output", "ndjson"], arguments].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn slow(command: &mut Command) -> &mut Command {
    command.env("TRELLIS_REHEARSAL_DELAY_MS", "4")
}

#[test]
fn a_follower_survives_the_death_of_its_server_and_finishes_with_the_right_output() {
    let folder = TempDir::new().unwrap();
    let server = Served::start_at(folder.path(), "127.0.0.1:0", slow);
    let (address, url) = (server.address.clone(), server.url());
    let mut asking = asking(&url, folder.path(), &[]);
    let mut lines = BufReader::new(asking.stdout.take().unwrap()).lines();
    let mut events = Vec::new();
    let mut server = Some(server);
    for line in lines.by_ref() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if event["seq"] == 9 {
            server.take().unwrap().kill();
            server = Some(Served::start_at(folder.path(), &address, |command| command));
        }
        events.push(event);
    }
    let output = asking.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("the connection to").count(), 1, "told once: {}", stderr(&output));
    let durable =
        |events: Vec<Value>| -> Vec<Value> { events.into_iter().filter(|event| event.get("seq").is_some()).collect() };
    let heard = durable(events);
    assert_eq!(heard.last().unwrap()["type"], "run.completed");
    let whole = ok(folder.path(), &["run", "watch", "team", "--output", "ndjson"]);
    let whole = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(heard, durable(whole), "nothing is missing and nothing came twice");
}

/// Ctrl-C once that event was printed.
fn interrupted(mut asking: Child, seq: u64) -> (Output, Vec<Value>) {
    let mut events = Vec::new();
    for line in BufReader::new(asking.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if event["seq"] == seq {
            Command::new("kill").args(["-INT", &asking.id().to_string()]).status().unwrap();
        }
        events.push(event);
    }
    (asking.wait_with_output().unwrap(), events)
}

#[test]
fn whoever_stops_watching_stops_nothing() {
    let folder = TempDir::new().unwrap();
    let server = Served::start_at(folder.path(), "127.0.0.1:0", slow);
    let url = server.url();
    let (left, events) = interrupted(asking(&url, folder.path(), &[]), 6);
    let told = stderr(&left);
    assert_eq!((left.status.code(), &events.last().unwrap()["type"]), (Some(130), &"run.detached".into()), "{told}");
    for word in ["run team goes on", &format!("trellis run watch team --url {url}"), "trellis run cancel team --url"] {
        assert!(told.contains(word), "{word} is missing in {told}");
    }
    assert_eq!(fails(folder.path(), &["run", "answer", "team"]).0, 130, "it is at work");
    let watched = run(folder.path(), &["run", "watch", "team"]);
    assert!(watched.status.success(), "{}", stderr(&watched));
    assert!(stdout(&watched).starts_with("## Partner risk profile: Company X"));
}

#[test]
fn a_run_at_a_server_is_cancelled_under_whoever_follows_it() {
    let folder = TempDir::new().unwrap();
    let server = Served::start_at(folder.path(), "127.0.0.1:0", slow);
    let mut asking = asking(&server.url(), folder.path(), &[]);
    let mut last = Value::Null;
    for line in BufReader::new(asking.stdout.take().unwrap()).lines() {
        last = serde_json::from_str(&line.unwrap()).unwrap();
        if last["seq"] == 6 {
            assert_eq!(ok(folder.path(), &["run", "cancel", "team"]), "cancelled: run team\n");
        }
    }
    assert_eq!((asking.wait().unwrap().code(), &last["type"]), (Some(14), &"run.failed".into()));
    assert_eq!(stderr(&run(folder.path(), &["run", "cancel", "team"])), "it was cancelled before\n");
}

#[test]
fn watching_a_run_that_nobody_works_on_shows_what_there_is_and_says_how_to_go_on() {
    let folder = TempDir::new().unwrap();
    kill_after(alone(folder.path(), "mine", "20"), 4);
    let watched = run(folder.path(), &["run", "watch", "mine"]);
    assert_eq!(watched.status.code(), Some(130));
    let told = stderr(&watched);
    assert!(told.contains("financial-data(") && told.contains("`trellis resume` continues it"), "{told}");
    ok(folder.path(), &["resume"]);
    assert!(ok(folder.path(), &["run", "watch", "mine"]).starts_with("## Partner risk profile"));
}
