//! A real process is killed (SIGKILL) at every commit boundary of a run, and during a batch of runs. Every
//! run gets exactly one end, and no recorded call is made again.

use crate::{PARTNER, fails, json, ok, run, stderr, stdout, steps, steps_of, trellis};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use tempfile::TempDir;

/// Which calls a process made: lines such as `asking the model session=… step=i2`.
fn calls(log: &str) -> Vec<String> {
    let field = |line: &str, name: &str| {
        let rest = line.split_once(&format!("{name}="))?.1;
        Some(rest.split_whitespace().next()?.trim_matches('"').to_owned())
    };
    let made = log.lines().filter(|line| line.contains("asking the model") || line.contains("calling a tool"));
    made.filter_map(|line| Some(format!("{}/{}", field(line, "session")?, field(line, "step")?))).collect()
}

/// The calls whose outcome is recorded, as the record itself tells.
fn recorded(data: &Path, run: &str) -> BTreeSet<String> {
    let show = json(data, &["run", "show", run]);
    let sessions = show["sessions"].as_array().unwrap().iter();
    let steps = sessions.flat_map(|session| session["steps"].as_array().unwrap());
    let calls = steps.filter(|step| !matches!(step["step"].as_str(), Some("routing" | "conclusion" | "finding")));
    calls.map(|step| short_name(&step["id"])).collect()
}

fn short_name(id: &Value) -> String {
    id.as_str().unwrap().trim_start_matches("urn:trustgraph:agent:").to_owned()
}

/// An `ask` whose calls are logged and whose events can be read.
fn logged(data: &Path, arguments: &[&str], delay_ms: &str) -> Child {
    trellis(data, &[&["ask", PARTNER, "--output", "ndjson", "--color", "never"], arguments].concat())
        .env("RUST_LOG", "trellis_orchestrator=debug")
        .env("TRELLIS_REHEARSAL_DELAY_MS", delay_ms)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// One agent alone.
pub(crate) fn alone(data: &Path, session: &str, delay_ms: &str) -> Child {
    logged(data, &["--pattern", "react", "--session", session], delay_ms)
}

/// Kills the process once the event with this number was printed, which happens after its commit. Gives the names
/// of what was recorded until then.
pub(crate) fn kill_after(mut child: Child, seq: u64) -> BTreeSet<String> {
    let (mut seen, mut reached) = (BTreeSet::new(), false);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if event["type"] == "step.completed" && event["kind"] != "routing" {
            seen.insert(short_name(&event["step_id"]));
        }
        if event["seq"] == seq {
            reached = true;
            break;
        }
    }
    assert!(reached, "the run has no event {seq}");
    child.kill().unwrap();
    child.wait().unwrap();
    seen
}

/// Presses Ctrl-C once the run has started.
fn interrupt(mut child: Child) -> Output {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let pid = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    child.wait_with_output().unwrap()
}

/// Finishes everything and gives the calls that were made for it.
fn resume(data: &Path) -> Vec<String> {
    let output =
        trellis(data, &["resume", "--color", "never"]).env("RUST_LOG", "trellis_orchestrator=debug").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    calls(&stderr(&output))
}

fn assert_whole(data: &Path, run: &str) {
    let show = json(data, &["run", "show", run]);
    assert_eq!(show["state"], "answered", "{run}");
    let session = &show["sessions"][0];
    assert_eq!(steps_of(session, "conclusion").len(), 1, "{run} ends once");
    assert_eq!(steps(session).len(), 8, "{run}: routing, three times analysis and observation, conclusion");
    ok(data, &["verify", run]);
}

/// A supervisor and four subagents: one end each, and one join.
fn assert_joined(data: &Path, run: &str, when: &str) {
    let show = json(data, &["run", "show", run]);
    assert_eq!(show["state"], "answered", "{when}");
    let sessions = show["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 5, "{when}");
    for session in sessions {
        let ends = steps(session).iter().filter(|step| matches!(**step, "conclusion" | "synthesis")).count();
        assert_eq!(ends, 1, "{when}: {session}");
    }
    let [decomposition] = steps_of(&sessions[0], "decomposition")[..] else { panic!("{when}: one fan-out") };
    assert_eq!(decomposition["fan_out"]["join"]["findings"].as_array().unwrap().len(), 4, "{when}");
    assert_eq!(steps_of(&sessions[0], "finding").len(), 4, "{when}");
    ok(data, &["verify", run]);
}

#[test]
fn killed_at_any_commit_a_run_goes_on_and_pays_nothing_twice() {
    for seq in 1..=10 {
        let data = TempDir::new().unwrap();
        let seen = kill_after(alone(data.path(), "run", "3"), seq);
        let before: BTreeSet<_> = recorded(data.path(), "run").union(&seen).cloned().collect();
        let repeated: Vec<_> = resume(data.path()).into_iter().filter(|call| before.contains(call)).collect();
        assert!(repeated.is_empty(), "killed after event {seq}, {repeated:?} were made again");
        assert_whole(data.path(), "run");
        assert!(resume(data.path()).is_empty(), "nothing is left to do");
    }
}

/// Several at a time, so that the whole does not take a minute.
#[test]
fn killed_at_any_commit_of_a_supervisor_every_session_ends_once_and_the_join_happens_once() {
    const RECORDS: u64 = 35;
    let killed = |seq: u64| {
        let data = TempDir::new().unwrap();
        let seen = kill_after(logged(data.path(), &["--session", "run"], "1"), seq);
        let before: BTreeSet<_> = recorded(data.path(), "run").union(&seen).cloned().collect();
        let repeated: Vec<_> = resume(data.path()).into_iter().filter(|call| before.contains(call)).collect();
        assert!(repeated.is_empty(), "killed after event {seq}, {repeated:?} were made again");
        assert_joined(data.path(), "run", &format!("killed after event {seq}"));
        assert!(resume(data.path()).is_empty(), "nothing is left to do");
    };
    std::thread::scope(|scope| {
        for lane in 1..=4 {
            scope.spawn(move || (lane..=RECORDS).step_by(4).for_each(killed));
        }
    });
}

#[test]
fn killed_during_a_batch_every_run_ends_once() {
    const RUNS: usize = 6;
    let data = TempDir::new().unwrap();
    let names: Vec<String> = (0..RUNS).map(|n| format!("run-{n}")).collect();
    for name in &names {
        // Accepted, and left at once: an open run for the batch.
        interrupt(alone(data.path(), name, "200"));
    }
    // Three processes work on the whole batch and are killed after so many calls.
    for calls_before_kill in [3, 9, 14] {
        let before: BTreeSet<_> = names.iter().flat_map(|name| recorded(data.path(), name)).collect();
        let mut child = trellis(data.path(), &["resume", "--color", "never"])
            .env("RUST_LOG", "trellis_orchestrator=debug")
            .env("TRELLIS_REHEARSAL_DELAY_MS", "2")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        while calls(&log).len() < calls_before_kill {
            if lines.read_line(&mut log).unwrap() == 0 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        lines.read_to_string(&mut log).unwrap();
        let repeated: Vec<_> = calls(&log).into_iter().filter(|call| before.contains(call)).collect();
        assert!(repeated.is_empty(), "{repeated:?} were recorded and made again");
    }
    let before: BTreeSet<_> = names.iter().flat_map(|name| recorded(data.path(), name)).collect();
    let repeated: Vec<_> = resume(data.path()).into_iter().filter(|call| before.contains(call)).collect();
    assert!(repeated.is_empty(), "{repeated:?} were recorded and made again");
    for name in &names {
        assert_whole(data.path(), name);
    }
    assert!(ok(data.path(), &["doctor"]).contains("every hash is right"));
}

#[test]
fn an_interrupt_stops_watching_and_says_how_to_go_on() {
    let data = TempDir::new().unwrap();
    // More often than a request may be cut short: being asked to stop is no fault of the request.
    for _ in 0..7 {
        let output = interrupt(alone(data.path(), "mine", "300"));
        assert_eq!(output.status.code(), Some(130));
        let told = stderr(&output);
        assert!(
            told.contains("\nrun mine is interrupted; what it has done so far is kept\ngo on: trellis resume mine "),
            "{told}"
        );
        let last = stdout(&output).lines().last().map(|line| serde_json::from_str::<Value>(line).unwrap());
        assert_eq!(last, Some(serde_json::json!({"type": "run.detached", "run_id": "mine"})));
    }
    resume(data.path());
    assert_whole(data.path(), "mine");
}

#[test]
fn resume_tells_of_each_run_how_it_ended_and_how_to_look_further() {
    let data = TempDir::new().unwrap();
    for name in ["one", "two"] {
        interrupt(alone(data.path(), name, "200"));
    }
    let (code, message) = fails(data.path(), &["run", "answer", "one"]);
    assert_eq!((code, message.contains("run one is not finished; `trellis resume` continues it")), (130, true));
    let told = ok(data.path(), &["resume"]);
    for name in ["one", "two"] {
        assert!(told.contains(&format!("run {name} · answered · ")), "{told}");
        assert!(told.contains(&format!("see how: trellis run show {name}     read it: trellis run answer {name}\n")));
    }
    assert!(told.contains(" in / ") && told.ends_with("open runs finished: 2\n"), "{told}");
    interrupt(alone(data.path(), "three", "200"));
    let finished = json(data.path(), &["resume"]);
    let three = &finished["finished"][0];
    assert_eq!((&three["run_id"], &three["state"]), (&"three".into(), &"answered".into()));
    assert!(three["ms"].is_u64() && three["in_token"].is_u64() && three.get("missing").is_none(), "{three}");
}

#[test]
fn interrupting_resume_does_not_count_against_the_runs() {
    let data = TempDir::new().unwrap();
    interrupt(alone(data.path(), "mine", "300"));
    for _ in 0..6 {
        let mut child = trellis(data.path(), &["resume", "--color", "never"])
            .env("RUST_LOG", "trellis_orchestrator=debug")
            .env("TRELLIS_REHEARSAL_DELAY_MS", "300")
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
    resume(data.path());
    assert_whole(data.path(), "mine");
}

#[test]
fn a_reader_that_goes_away_does_not_count_against_the_run() {
    let data = TempDir::new().unwrap();
    for _ in 0..7 {
        let mut child = alone(data.path(), "mine", "20");
        let mut line = String::new();
        // Reads one line and goes away, as `head -1` does.
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert!(stderr(&output).contains("go on: trellis resume mine "), "{}", stderr(&output));
    }
    resume(data.path());
    assert_whole(data.path(), "mine");
}

/// Several were left open. Another question is answered without them, and each goes on only when somebody asks for it.
#[test]
fn an_interrupted_run_goes_on_when_somebody_asks_for_it_and_not_with_the_next_question() {
    let data = TempDir::new().unwrap();
    interrupt(alone(data.path(), "old", "200"));
    kill_after(alone(data.path(), "older", "100"), 2);
    let before = ["old", "older"].map(|run| json(data.path(), &["run", "show", run]));
    let output = run(data.path(), &["ask", "Another?", "--session", "new"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("other open runs: 2; `trellis runs` lists them"), "{}", stderr(&output));
    assert_eq!(
        ["old", "older"].map(|run| json(data.path(), &["run", "show", run])["sessions"].clone()),
        before.map(|run| run["sessions"].clone()),
        "nobody has worked on them"
    );
    let listed = run(data.path(), &["runs"]);
    assert_eq!(stdout(&listed).matches("  interrupted  ").count(), 2, "{}", stdout(&listed));
    assert!(stderr(&listed).contains("`trellis resume RUN` goes on with one"), "{}", stderr(&listed));
    assert!(stderr(&run(data.path(), &["run", "show", "old"])).contains("`trellis resume old` goes on with it"));

    let resumed = run(data.path(), &["resume", "old"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));
    assert!(stderr(&resumed).contains("financial-data("), "its steps are shown: {}", stderr(&resumed));
    assert_eq!(stdout(&resumed), ok(data.path(), &["run", "answer", "old"]), "and its answer");
    assert_whole(data.path(), "old");
    assert!(stdout(&run(data.path(), &["runs"])).contains("older  interrupted"));
    assert_eq!(run(data.path(), &["resume", "nothing"]).status.code(), Some(5));
    let again = run(data.path(), &["resume", "old"]);
    assert_eq!((again.status.code(), stdout(&again)), (Some(0), stdout(&resumed)), "nothing is done again");
    resume(data.path());
    assert_whole(data.path(), "older");
}

/// While somebody else is worked on, the time that a run waits is not its own.
#[test]
fn the_deadline_of_an_interrupted_run_does_not_come_nearer_while_others_are_worked_on() {
    let data = TempDir::new().unwrap();
    let team = |data: &Path| logged(data, &["--session", "team", "--limit", "fan-in-timeout-ms=4000"], "5");
    // Four agents are sent out, and the process goes before they are done.
    kill_after(team(data.path()), 6);
    assert!(alone(data.path(), "other", "15").wait_with_output().unwrap().status.success());
    let other = json(data.path(), &["run", "show", "other"]);
    assert!(other["ms"].as_u64().unwrap() > 4_000, "it lasted for longer than the deadline: {}", other["ms"]);
    resume(data.path());
    assert_joined(data.path(), "team", "after another");
}
