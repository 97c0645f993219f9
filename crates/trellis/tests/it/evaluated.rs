//! Evaluations with the real binary: recorded once, and judged again without a model.

use crate::{fails, json, models, ok, stderr, stdout, trellis};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use tempfile::TempDir;

/// One that has to be answered, and one that only has to be routed.
const SUITE: &str = r#"{"id": "moss", "question": "Why is moss green?", "check": {"kind": "contains", "values": ["chlorophyll"]}}
{"id": "route", "question": "Why is fern green?", "task_types": ["general"], "patterns": ["react"]}
"#;

struct Bench {
    folder: TempDir,
    suite: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let suite = folder.path().join("suite.jsonl");
        std::fs::write(&suite, SUITE).unwrap();
        Self { folder, suite }
    }

    fn data(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The evaluation in this data folder, and its report.
    fn evaluated(&self, data: &str, arguments: &[&str], set: impl FnOnce(&mut Command)) -> (Option<i32>, Value) {
        let file = self.folder.path().join("report.json");
        let suite = self.suite.to_str().unwrap();
        let all = [&["eval", suite, "--report", file.to_str().unwrap(), "--quiet"], arguments].concat();
        let mut command = trellis(&self.data(data), &all);
        set(&mut command);
        let output = command.output().unwrap();
        let report = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
        (output.status.code(), serde_json::from_str(&report).unwrap())
    }

    /// The same from the recording, with nobody to ask.
    fn replayed(&self, data: &str, arguments: &[&str]) -> (Option<i32>, Value) {
        let recording = self.data("recorded");
        let replay = ["--replay", recording.to_str().unwrap()];
        self.evaluated(data, &[&replay, arguments].concat(), |command| {
            command.env("TRELLIS_MODEL", "openai/nobody").env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
        })
    }
}

/// Without what another run of the same cannot have in common: its id, and how long it took.
fn comparable(mut report: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| !(name == "run" || name == "replayed" || name.starts_with("ms")));
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    strip(&mut report);
    report
}

fn with_stub(address: &str) -> impl FnOnce(&mut Command) {
    move |command| {
        command.env_remove("TRELLIS_MODEL").env("OPENAI_API_KEY", "sk-test").env("OPENAI_BASE_URL", address);
        command.env("OPENAI_MODEL", "moss-1");
    }
}

#[test]
fn a_recorded_evaluation_is_judged_again_without_a_model() {
    let (bench, address) = (Bench::new(), models::serve("200 OK"));
    let arguments = ["--patterns", "auto,react", "--repeat", "2"];
    let prices = bench.data("prices.toml");
    std::fs::write(&prices, "[models.\"openai/moss-1\"]\ninput-price = 2.0\noutput-price = 8.0\n").unwrap();
    let (code, recorded) = bench.evaluated("recorded", &arguments, |command| {
        with_stub(&address)(command);
        command.env("TRELLIS_SETTINGS", &prices);
    });
    assert_eq!(code, Some(0));
    for row in recorded["rows"].as_array().unwrap() {
        assert!(row["cost_micros_mean"].as_f64() > Some(0.0), "a replay has to say the same: {row}");
    }
    let trials = recorded["trials"].as_array().unwrap();
    assert!(trials.iter().all(|trial| trial["right"] != json!(false)), "{recorded}");
    assert_eq!((trials.len(), &recorded["trials"][0]["model"]), (8, &json!("openai/moss-1")));
    let (code, replayed) = bench.replayed("elsewhere", &arguments);
    assert_eq!((code, &replayed["replayed"]), (Some(0), &json!(true)));
    assert_eq!(comparable(replayed), comparable(recorded.clone()));
    let (code, again) = bench.replayed("recorded", &arguments);
    assert_eq!((code, comparable(again)), (Some(0), comparable(recorded)), "also in the same folder");
    let runs = json(&bench.data("elsewhere"), &["runs", "--workspace", "evaluation"]);
    let run = runs["runs"][0]["run_id"].as_str().unwrap();
    assert!(ok(&bench.data("elsewhere"), &["verify", run, "--workspace", "evaluation"]).starts_with("ok"));
}

/// A model that worked on what nobody judges would be paid for nothing.
#[test]
fn what_only_has_to_be_routed_is_only_routed() {
    let (bench, (address, prompts)) = (Bench::new(), models::serve_and_tell("200 OK"));
    let only_routed = SUITE.lines().last().unwrap();
    std::fs::write(&bench.suite, only_routed).unwrap();
    let (code, report) = bench.evaluated("recorded", &["--patterns", "auto", "--repeat", "5"], with_stub(&address));
    assert_eq!((code, &report["trials"][4]["pattern_right"]), (Some(0), &json!(true)), "{report}");
    let asked: BTreeSet<_> = prompts.try_iter().collect();
    let routing = ["pattern-select", "probe", "task-type-classify"].map(str::to_owned);
    assert_eq!(asked, BTreeSet::from(routing));
}

/// What is judged may change, and what is asked may not.
#[test]
fn other_checks_judge_anew_and_other_prompts_are_not_covered() {
    let (bench, address) = (Bench::new(), models::serve("200 OK"));
    bench.evaluated("recorded", &["--patterns", "auto"], with_stub(&address));
    std::fs::write(&bench.suite, SUITE.replace("chlorophyll", "copper")).unwrap();
    let (_, stricter) = bench.replayed("elsewhere", &[]);
    assert_eq!(stricter["trials"][0]["right"], json!(false), "{stricter}");
    let prompt = r#"{"prompt": "Answer: {{ question }}", "response-type": "text"}"#;
    let elsewhere = bench.data("elsewhere");
    ok(&elsewhere, &["config", "put", "prompt", "template.agent-react", prompt, "--workspace", "evaluation"]);
    let (code, changed) = bench.replayed("elsewhere", &[]);
    assert_eq!(code, Some(0));
    let lacks = changed["trials"][0]["not_covered"].as_str().unwrap();
    assert!(lacks.contains("`agent-react`"), "{lacks}");
    assert_eq!(changed["trials"][1]["pattern_right"], json!(true), "what only routes is covered still");
    assert_eq!((&changed["rows"][0]["not_covered"], &changed["rows"][0]["right"]), (&json!(["moss"]), &Value::Null));
    let more_often = bench.replayed("again", &["--repeat", "3"]).1;
    assert_eq!(more_often["rows"][0]["not_covered"].as_array().unwrap().len(), 4, "a reply counts once: {more_often}");
    let nothing = std::fs::write(&bench.suite, SUITE.replace("Why is", "How is"));
    assert!(nothing.is_ok() && bench.replayed("third", &[]).0 == Some(11), "nothing was covered");
}

#[test]
fn a_folder_without_replies_says_how_to_get_some() {
    let bench = Bench::new();
    let suite = bench.suite.to_str().unwrap();
    let (code, message) = fails(&bench.data("x"), &["eval", suite, "--replay", bench.data("none").to_str().unwrap()]);
    assert_eq!((code, message.contains("there is no data in")), (5, true), "{message}");
    ok(&bench.data("other"), &["ask", "What is Company X?"]);
    let (code, message) = fails(&bench.data("x"), &["eval", suite, "--replay", bench.data("other").to_str().unwrap()]);
    assert_eq!((code, message.contains("record some with")), (5, true), "{message}");
    bench.evaluated("recorded", &[], |_| {});
    let arguments =
        ["eval", suite, "--models", "openai/y", "--replay", bench.folder.path().join("recorded").to_str().unwrap()]
            .map(str::to_owned);
    let (code, message) = fails(&bench.data("x"), &arguments.each_ref().map(String::as_str));
    assert_eq!((code, message.contains("name some of rehearsal")), (2, true), "{message}");
}

/// Takes requests and answers none. Tells of each.
fn silent() -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (asked, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let asked = asked.clone();
            std::thread::spawn(move || {
                let mut first = [0; 1];
                if stream.read_exact(&mut first).is_ok() && asked.send(()).is_err() {
                    return;
                }
                // Until the other side goes away.
                drop(stream.read_to_end(&mut Vec::new()));
            });
        }
    });
    (address, requests)
}

#[cfg(unix)]
#[test]
fn an_evaluation_that_is_interrupted_leaves_no_open_runs() {
    let (bench, (address, requests)) = (Bench::new(), silent());
    let data = bench.data("recorded");
    let mut command = trellis(&data, &["eval", bench.suite.to_str().unwrap(), "--patterns", "react", "--repeat", "9"]);
    with_stub(&address)(&mut command);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    requests.recv().unwrap();
    requests.recv().unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(open_runs(&data), Vec::<String>::new());
}

fn open_runs(data: &Path) -> Vec<String> {
    let runs = json(data, &["runs", "--workspace", "evaluation"]);
    let runs = runs["runs"].as_array().unwrap().clone();
    assert!(!runs.is_empty(), "something was asked");
    let state = |run: &Value| run["state"].as_str().unwrap().to_owned();
    runs.iter().map(state).filter(|state| state != "cancelled").collect()
}
