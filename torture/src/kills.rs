//! A server is killed again and again while it works. Every accepted run ends once, and no recorded call is made again.

use crate::folder::settled;
use crate::{Chance, Programs, Server};
use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use trellis_domain::Timestamp;

/// What was done and seen.
#[derive(Debug, Default)]
pub struct Tally {
    pub kills: usize,
    pub accepted: usize,
    pub calls: usize,
}

/// A call that a server said it makes.
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) time: String,
}

/// Kills servers of one folder that many times, then lets the last one finish everything.
pub fn trial(programs: &Programs, kills: usize, seed: u64) -> Result<Tally> {
    let mut chance = Chance::new(seed);
    let data = TempDir::new()?;
    let accepted = Mutex::new(BTreeSet::new());
    let (mut calls, mut checkpoints, next) = (Vec::new(), Vec::new(), AtomicUsize::new(0));
    for _ in 0..kills {
        let server = Server::start(logged(programs, data.path()))?;
        let life = Duration::from_millis(200 + chance.below(1_800));
        let over = AtomicBool::new(false);
        let checkpoint = server.reply("GET", "/api/v1/log", "", "")?.1;
        checkpoints.push(checkpoint["checkpoint"].as_str().context("the log has a checkpoint")?.to_owned());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| ask_until(&server, &over, &next, &accepted));
            }
            thread::sleep(life);
            kill(server.id());
            over.store(true, Ordering::Relaxed);
        });
        calls.extend(server.kill()?.iter().filter_map(|line| call_in(line)));
    }
    let server = Server::start(logged(programs, data.path()))?;
    settled(&server)?;
    let accepted = accepted.into_inner();
    let mut recorded = BTreeMap::new();
    for run in &accepted {
        answered(&server, run)?;
        recorded.extend(recorded_at(&server, run, Duration::ZERO)?);
    }
    calls.extend(server.kill()?.iter().filter_map(|line| call_in(line)));
    for Call { name, time } in &calls {
        let again = recorded.get(name).is_some_and(|recorded| time > recorded);
        ensure!(!again, "{name} was called at {time}, although its outcome was on record");
    }
    let known = calls.iter().filter(|call| recorded.contains_key(&call.name)).count();
    ensure!(known * 2 > calls.len(), "of {} calls that the servers tell of, {known} are on record", calls.len());
    programs.ok(data.path(), &["doctor"])?;
    for checkpoint in checkpoints {
        let file = data.path().join("kept-checkpoint");
        std::fs::write(&file, checkpoint)?;
        programs.ok(data.path(), &["log", "verify", &file.display().to_string()])?;
    }
    Ok(Tally { kills, accepted: accepted.len(), calls: calls.len() })
}

fn logged(programs: &Programs, data: &Path) -> Command {
    let mut command = programs.serve(data);
    command.env("RUST_LOG", "info,trellis_orchestrator=debug");
    command
}

fn kill(process: u32) {
    // It is there until it was waited for, so this cannot hit another.
    drop(Command::new("kill").args(["-KILL", &process.to_string()]).status());
}

/// Asks until the server is gone. What it accepted is remembered.
fn ask_until(server: &Server, over: &AtomicBool, next: &AtomicUsize, accepted: &Mutex<BTreeSet<String>>) {
    const QUESTION: &str = "Assess the risk profile of Company X as a potential partner";
    while !over.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let pattern = if number.is_multiple_of(3) { "supervisor" } else { "react" };
        let body = json!({"question": QUESTION, "pattern": pattern, "session_id": format!("run-{number}")});
        // A request whose reply never came was not accepted, as far as this caller knows.
        if let Ok((200..=202, reply)) = server.reply("POST", "/api/v1/runs", "", &body.to_string())
            && let Some(run) = reply["run_id"].as_str()
        {
            accepted.lock().insert(run.to_owned());
        }
        thread::sleep(Duration::from_millis(3));
    }
}

pub(crate) fn answered(server: &Server, run: &str) -> Result<()> {
    let (status, shown) = server.reply("GET", &format!("/api/v1/runs/{run}"), "", "")?;
    ensure!(status == 200, "run {run} was accepted, and now: {status} {shown}");
    ensure!(shown["state"] == "answered", "run {run} is {} {}", shown["state"], shown["error"]);
    Ok(())
}

/// Until when each call of a run may have been made: so long after its outcome was there. A run has one end.
pub(crate) fn recorded_at(server: &Server, run: &str, allowed: Duration) -> Result<Vec<(String, String)>> {
    let (_, evidence) = server.reply("GET", &format!("/api/v1/runs/{run}/evidence"), "", "")?;
    let entries = evidence["entries"].as_array().with_context(|| format!("evidence of run {run}: {evidence}"))?;
    let header = |entry: &Value| serde_json::from_str::<Value>(entry["proven"].as_str()?.lines().next()?).ok();
    let name = |header: &Value| Some(format!("{}/{}", header["session"].as_str()?, header["name"].as_str()?));
    let allowed = i64::try_from(allowed.as_micros())?;
    let time = |header: &Value| Some(Timestamp::from_micros(header["time"].as_i64()? + allowed).to_string());
    let (mut ends, mut found) = (0, Vec::new());
    for header in entries.iter().filter_map(header) {
        ends += usize::from(header["session"] == run && header["name"] == "end");
        found.extend(name(&header).zip(time(&header)));
    }
    ensure!(ends == 1 && found.len() == entries.len(), "run {run} has {ends} ends: {evidence}");
    Ok(found)
}

/// A line such as `asking the model` with session, step and time.
pub(crate) fn call_in(line: &str) -> Option<Call> {
    let line: Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields")?;
    matches!(fields["message"].as_str()?, "asking the model" | "calling a tool").then_some(())?;
    let name = format!("{}/{}", fields["session"].as_str()?, fields["step"].as_str()?);
    Some(Call { name, time: line["timestamp"].as_str()?.to_owned() })
}
