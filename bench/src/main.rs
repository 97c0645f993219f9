//! Figures, not tests: what a session costs, how many wait in how little memory, how soon `ask` speaks, what plans and
//! teams gain and cost, what the gateway adds, what loading knowledge costs, how soon passages are found, what TrustGraph's own
//! orchestrator takes for the same.
//!
//! `cargo xtask bench` runs all, or one that is named; each measurement is a process of its own, so that none sees another's memory.
#![allow(clippy::print_stdout, clippy::cast_precision_loss, reason = "figures for people")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

mod cluster;
mod documents;
mod gateway;
mod load;
mod machine;
mod mcp;
mod setup;
mod teams;
mod throughput;
mod trustgraph;
mod waiting;
mod warm_start;

use anyhow::{Result, bail};
use std::process::Command;

/// The same as the program's.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ALL: [&str; 18] = [
    "engine",
    "sessions",
    "waiting",
    "warm-start",
    "plan",
    "crowd",
    "supervisor",
    "siblings",
    "fan-in",
    "sockets",
    "streams",
    "idle",
    "mcp",
    "load",
    "documents",
    "postgres",
    "workers",
    "trustgraph",
];

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        None => {
            for name in ALL {
                let status = Command::new(std::env::current_exe()?).arg(name).status()?;
                if !status.success() {
                    bail!("{name} failed: {status}");
                }
            }
            Ok(())
        }
        Some("engine") => setup::runtime()?.block_on(throughput::engine()),
        Some("sessions") => setup::runtime()?.block_on(throughput::sessions()),
        Some("waiting") => setup::runtime()?.block_on(waiting::run()),
        Some("warm-start") => warm_start::run(),
        Some("plan") => setup::runtime()?.block_on(teams::plan()),
        Some("crowd") => setup::runtime()?.block_on(teams::crowd()),
        Some("supervisor") => setup::runtime()?.block_on(teams::supervisor()),
        Some("siblings") => setup::runtime()?.block_on(teams::siblings()),
        Some("fan-in") => setup::runtime()?.block_on(teams::fan_in()),
        Some("sockets") => setup::runtime()?.block_on(gateway::sockets()),
        Some("streams") => setup::runtime()?.block_on(gateway::streams()),
        Some("idle") => setup::runtime()?.block_on(gateway::idle()),
        Some("load") => setup::runtime()?.block_on(load::run()),
        Some(load::QUERY_WORKER) => Ok(trellis_store::view::work()?),
        Some("mcp") => setup::runtime()?.block_on(mcp::run()),
        Some("documents") => setup::runtime()?.block_on(documents::run()),
        Some("postgres") => setup::runtime()?.block_on(cluster::postgres()),
        Some("workers") => setup::runtime()?.block_on(cluster::second_process()),
        Some("trustgraph") => setup::runtime()?.block_on(trustgraph::run()),
        Some("client") => setup::runtime()?.block_on(gateway::be_client(std::env::args().skip(2).collect())),
        Some(other) => bail!("there is no measurement `{other}`; choose from {}", ALL.join(", ")),
    }
}
