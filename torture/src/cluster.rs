//! Several processes over a real database and a real broker: workers and aggregators are killed at random, database and broker
//! restarted. Every accepted run ends once and verifies, and no call is made again whose outcome was on record.

use crate::Chance;
use crate::kills::{Call, answered, call_in, recorded_at};
use crate::program::{Programs, Server, finish};
use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use trellis_servers::{Nats, Postgres, RabbitMq, RabbitMqOptions};

/// What wakes workers up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bus {
    Postgres,
    RabbitMq,
    Nats,
}

impl Bus {
    pub const ALL: [Self; 3] = [Self::Postgres, Self::RabbitMq, Self::Nats];
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "PostgreSQL alone",
            Self::RabbitMq => "RabbitMQ",
            Self::Nats => "NATS",
        })
    }
}

/// What is done to a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub bus: Bus,
    pub workers: usize,
    /// How long it is asked and harmed; it finishes after that.
    pub time: Duration,
    pub seed: u64,
}

/// What was done and seen.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub kills: usize,
    pub restarts: usize,
    pub accepted: usize,
    pub calls: usize,
    /// From the first question to the last answer.
    pub seconds: u64,
}

const AGGREGATORS: usize = 2;
/// Whoever takes a turn over has read the session before the call, and the outcome of somebody who lost the turn may come
/// between: no later than a claim lasts, or others would have it.
const CLAIM_SECONDS: u64 = 3;
/// How long whatever is open after the harm may take.
const LONGEST_REST: Duration = Duration::from_mins(10);
/// Each of those who ask begins so many runs a second, more or less.
const ASKERS: u64 = 2;
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(400);
const QUESTION: &str = "Assess the risk profile of Company X as a potential partner";

/// The servers of others.
struct Engines {
    postgres: Postgres,
    broker: Option<Broker>,
}

enum Broker {
    RabbitMq(RabbitMq),
    Nats(Nats),
}

impl Engines {
    fn start(bus: Bus) -> Self {
        let broker = match bus {
            Bus::Postgres => None,
            Bus::RabbitMq => Some(Broker::RabbitMq(RabbitMq::start(RabbitMqOptions::default()))),
            Bus::Nats => Some(Broker::Nats(Nats::start())),
        };
        Self { postgres: Postgres::start(), broker }
    }

    fn command(&self, programs: &Programs, arguments: &[&str]) -> Command {
        let folder = self.postgres.folder().display().to_string().replace('/', "%2F");
        let mut command = programs.anywhere(arguments);
        command
            .env("TRELLIS_STATE", format!("postgres://trellis:secret@{folder}/postgres"))
            .env("TRELLIS_CONNECTIONS", "4")
            .env("TRELLIS_CLAIM_SECONDS", CLAIM_SECONDS.to_string())
            .env("TRELLIS_REHEARSAL_DELAY_MS", "2")
            .env("RUST_LOG", "info,trellis_orchestrator=debug");
        match &self.broker {
            None => {}
            Some(Broker::RabbitMq(broker)) => drop(command.env("TRELLIS_BUS", broker.address())),
            Some(Broker::Nats(broker)) => drop(command.env("TRELLIS_BUS", broker.address())),
        }
        command
    }

    fn start_process(&self, programs: &Programs, role: Role) -> Result<Server> {
        let arguments: &[&str] = match role {
            Role::Gateway => &["serve", "--no-workers", "--listen", "127.0.0.1:0", "--log-format", "json"],
            Role::Worker => &["worker", "--no-aggregation", "--log-format", "json"],
            Role::Aggregator => &["aggregator", "--log-format", "json"],
        };
        Server::start(self.command(programs, arguments))
    }

    /// All connections are lost, and what was not on disk.
    fn restart_database(&self) {
        self.postgres.kill();
        self.postgres.start_again();
    }

    /// Says whether there is one.
    fn restart_broker(&self) -> bool {
        let server: &trellis_servers::Server = match &self.broker {
            None => return false,
            Some(Broker::RabbitMq(broker)) => broker,
            Some(Broker::Nats(broker)) => broker,
        };
        server.kill();
        server.start_again();
        true
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Gateway,
    Worker,
    Aggregator,
}

/// Asks and harms a cluster, lets it finish, and looks at everything that came of it.
pub fn trial(programs: &Programs, plan: Plan) -> Result<Tally> {
    let engines = Engines::start(plan.bus);
    let gateway = engines.start_process(programs, Role::Gateway)?;
    let mut processes = Vec::new();
    for role in [vec![Role::Worker; plan.workers], vec![Role::Aggregator; AGGREGATORS]].concat() {
        processes.push((role, engines.start_process(programs, role)?));
    }
    let begun = Instant::now();
    let (accepted, over, next) = (Mutex::new(BTreeSet::new()), AtomicBool::new(false), AtomicUsize::new(0));
    let (mut calls, mut tally) = (Vec::new(), Tally::default());
    thread::scope(|scope| {
        for _ in 0..ASKERS {
            scope.spawn(|| ask_until(&gateway, &over, &next, &accepted));
        }
        let harmed = harm(programs, &engines, plan, &mut processes, &mut calls, &mut tally);
        over.store(true, Ordering::Relaxed);
        harmed
    })?;
    let accepted = accepted.into_inner();
    settled(&gateway, &accepted)?;
    tally.seconds = begun.elapsed().as_secs();
    for (_, process) in processes {
        calls.extend(process.kill()?.iter().filter_map(|line| call_in(line)));
    }
    (tally.accepted, tally.calls) = (accepted.len(), calls.len());
    check(programs, &engines, &gateway, &accepted, &calls)?;
    Ok(tally)
}

/// Kills a process about every second, and restarts the servers once each.
fn harm(
    programs: &Programs,
    engines: &Engines,
    plan: Plan,
    processes: &mut [(Role, Server)],
    calls: &mut Vec<Call>,
    tally: &mut Tally,
) -> Result<()> {
    let (begun, mut chance) = (Instant::now(), Chance::new(plan.seed));
    let (mut database, mut broker) = (Some(plan.time / 3), Some(plan.time * 2 / 3));
    while begun.elapsed() < plan.time {
        thread::sleep(Duration::from_millis(500 + chance.below(1_000)));
        if database.take_if(|at| begun.elapsed() >= *at).is_some() {
            engines.restart_database();
            tally.restarts += 1;
        }
        if broker.take_if(|at| begun.elapsed() >= *at).is_some() && engines.restart_broker() {
            tally.restarts += 1;
        }
        let place = usize::try_from(chance.below(processes.len() as u64))?;
        let (role, process) = &mut processes[place];
        let killed = std::mem::replace(process, engines.start_process(programs, *role)?);
        calls.extend(killed.kill()?.iter().filter_map(|line| call_in(line)));
        tally.kills += 1;
    }
    Ok(())
}

fn ask_until(gateway: &Server, over: &AtomicBool, next: &AtomicUsize, accepted: &Mutex<BTreeSet<String>>) {
    while !over.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let pattern = ["supervisor", "react", "plan-then-execute"][number % 3];
        let body = json!({"question": QUESTION, "pattern": pattern, "session_id": format!("run-{number}")});
        // A request whose reply never came was not accepted, as far as this caller knows.
        if let Ok((200..=202, reply)) = gateway.reply("POST", "/api/v1/runs", "", &body.to_string())
            && let Some(run) = reply["run_id"].as_str()
        {
            accepted.lock().insert(run.to_owned());
        }
        thread::sleep(BETWEEN_QUESTIONS);
    }
}

/// Waits until every run has ended.
fn settled(gateway: &Server, accepted: &BTreeSet<String>) -> Result<()> {
    let begun = Instant::now();
    for run in accepted {
        loop {
            let (status, shown) = gateway.reply("GET", &format!("/api/v1/runs/{run}"), "", "")?;
            if status == 200 && !["queued", "running"].contains(&shown["state"].as_str().unwrap_or_default()) {
                break;
            }
            if begun.elapsed() > LONGEST_REST {
                bail!("run {run} is still {status} {}", shown["state"]);
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

fn check(
    programs: &Programs,
    engines: &Engines,
    gateway: &Server,
    accepted: &BTreeSet<String>,
    calls: &[Call],
) -> Result<()> {
    let mut recorded = BTreeMap::new();
    for run in accepted {
        answered(gateway, run)?;
        recorded.extend(recorded_at(gateway, run, Duration::from_secs(CLAIM_SECONDS))?);
        let verified = finish(engines.command(programs, &["verify", run]))?;
        ensure!(verified.code() == Some(0), "`trellis verify {run}`: {verified}");
    }
    for Call { name, time } in calls {
        let again = recorded.get(name).is_some_and(|recorded| time > recorded);
        ensure!(!again, "{name} was called at {time}, although its outcome was on record");
    }
    let known = calls.iter().filter(|call| recorded.contains_key(&call.name)).count();
    ensure!(known * 2 > calls.len(), "of {} calls that the workers tell of, {known} are on record", calls.len());
    ensure!(!accepted.is_empty(), "no question was taken");
    let (_, status) = gateway.reply("GET", "/api/v1/status", "", "")?;
    let open = status["open_runs"].as_u64().with_context(|| format!("the gateway's status: {status}"))?;
    ensure!(open == 0, "{open} runs are still open");
    Ok(())
}
