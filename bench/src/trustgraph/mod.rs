//! Our orchestrator against TrustGraph's own in a deployment: the same RabbitMQ, neighbours, questions and client for both, one
//! after the other.

mod asking;
mod broker;
mod neighbours;
mod process;

use anyhow::{Context, Result};
use asking::{Client, Times};
use neighbours::Neighbours;
use process::Contestant;
use std::sync::Arc;
use std::time::Duration;
use trellis_servers::{RabbitMq, RabbitMqOptions};

const REACT: &str = "react";
const SUPERVISOR: &str = "supervisor";
/// What a model takes where that is what is waited for.
const MODEL: Duration = Duration::from_millis(50);
const CLIENTS: usize = 16;

/// How many sessions are measured: enough for a median, few enough for the slower one to be through within a minute.
struct Amounts {
    warm_up: usize,
    sessions: usize,
    alone: usize,
    crowd: usize,
    supervisors: usize,
}

const OF_ORIGINAL: Amounts = Amounts { warm_up: 10, sessions: 100, alone: 15, crowd: 48, supervisors: 15 };
const OF_OURS: Amounts = Amounts { warm_up: 50, sessions: 500, alone: 30, crowd: 640, supervisors: 60 };

struct Figures {
    sessions: Times,
    /// Of one session.
    cpu: Duration,
    alone: Times,
    crowd: Times,
    supervisors: Times,
}

impl Figures {
    /// The throughput of many clients over that of one.
    fn gain(&self) -> f64 {
        self.crowd.per_second() / self.alone.per_second()
    }
}

pub(crate) async fn run() -> Result<()> {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let neighbours = Neighbours::start(&server.address()).await?;
    let client = Arc::new(Client::start(&server.address()).await?);
    let original = Contestant::original(&server).await.context("the original")?;
    let original = measure(original, &neighbours, &client, &OF_ORIGINAL).await.context("the original")?;
    let ours = Contestant::ours(&server).await.context("trellis orchestrator")?;
    let ours = measure(ours, &neighbours, &client, &OF_OURS).await.context("trellis orchestrator")?;
    tell(&original, &ours);
    Ok(())
}

async fn measure(
    contestant: Contestant,
    neighbours: &Neighbours,
    client: &Arc<Client>,
    amounts: &Amounts,
) -> Result<Figures> {
    let figures = ask(&contestant, neighbours, client, amounts).await;
    let figures = figures.with_context(|| format!("what it said last: {}", contestant.said()))?;
    contestant.stop().await?;
    Ok(figures)
}

async fn ask(
    contestant: &Contestant,
    neighbours: &Neighbours,
    client: &Arc<Client>,
    amounts: &Amounts,
) -> Result<Figures> {
    neighbours.model_takes(Duration::ZERO);
    client.until_answered(REACT).await?;
    client.ask_all(REACT, 1, amounts.warm_up).await?;
    client.ask_all(SUPERVISOR, 1, 2).await?;
    let before = contestant.cpu().await;
    let sessions = client.ask_all(REACT, 1, amounts.sessions).await?;
    let used = contestant.cpu().await.saturating_sub(before);
    let supervisors = client.ask_all(SUPERVISOR, 1, amounts.supervisors).await?;
    neighbours.model_takes(MODEL);
    let alone = client.ask_all(REACT, 1, amounts.alone).await?;
    let crowd = client.ask_all(REACT, CLIENTS, amounts.crowd).await?;
    let cpu = used.div_f64(amounts.sessions as f64);
    Ok(Figures { sessions, cpu, alone, crowd, supervisors })
}

fn tell(original: &Figures, ours: &Figures) {
    println!(
        "trustgraph    the original and trellis orchestrator by turns on one RabbitMQ, with neighbours that answer at once"
    );
    row("", "original", "trellis", "ratio", "target");
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let time = |what: &str, of: fn(&Figures) -> Duration, target: &str| {
        let (theirs, mine) = (ms(of(original)), ms(of(ours)));
        row(what, &format!("{theirs:.1} ms"), &format!("{mine:.1} ms"), &format!("{:.1} x", theirs / mine), target);
    };
    let one = "ReAct session with a tool call, one client, median";
    time(one, |figures| figures.sessions.percentile(50), "at most 20 ms");
    time("the same, 95th percentile", |figures| figures.sessions.percentile(95), "");
    time("CPU of such a session", |figures| figures.cpu, "ratio at least 20");
    time("supervisor with 5 subagents, median", |figures| figures.supervisors.percentile(50), "under 40 ms");
    time("the same, 95th percentile", |figures| figures.supervisors.percentile(95), "");
    let rate = |what: &str, of: fn(&Figures) -> f64, unit: &str, target: &str| {
        let (theirs, mine) = (of(original), of(ours));
        row(
            what,
            &format!("{theirs:.2}{unit}"),
            &format!("{mine:.2}{unit}"),
            &format!("{:.1} x", mine / theirs),
            target,
        );
    };
    let model = MODEL.as_millis();
    rate(&format!("one client, a model of {model} ms"), |figures| figures.alone.per_second(), "/s", "");
    rate(&format!("{CLIENTS} clients, the same model"), |figures| figures.crowd.per_second(), "/s", "");
    rate(&format!("{CLIENTS} clients over one"), Figures::gain, " x", "at least 15 x here");
}

fn row(what: &str, original: &str, ours: &str, ratio: &str, target: &str) {
    println!("              {what:<52} {original:>11} {ours:>11} {ratio:>9}  {target}");
}
