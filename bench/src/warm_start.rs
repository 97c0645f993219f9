//! How soon `trellis ask` shows something, on a folder that exists.

use crate::setup::{self, Engine};
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trellis_models::Rehearsal;
use trellis_orchestrator::ports::Journal;
use trellis_orchestrator::workers::Stop;

const ROUNDS: usize = 9;
const HISTORY: usize = 3000;

pub(crate) fn run() -> Result<()> {
    let program = setup::program()?;
    let folder = tempfile::TempDir::new()?;
    measure(&program, folder.path(), "a small folder")?;
    setup::runtime()?.block_on(fill(folder.path()))?;
    measure(&program, folder.path(), &format!("a folder of {HISTORY} runs"))
}

/// Gives a folder some history, so that opening it has something to do.
async fn fill(folder: &Path) -> Result<()> {
    let engine = Engine::at(folder, Arc::new(Rehearsal::instant()))?;
    let (stop, serving) = engine.serve(1024);
    for n in 0..HISTORY {
        setup::ask(&engine.runs, n).await?;
    }
    while engine.store.journal.open_runs().await? > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.send_replace(Some(Stop::Drain));
    serving.await?;
    Ok(())
}

fn measure(program: &Path, folder: &Path, what: &str) -> Result<()> {
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let started = Instant::now();
        let mut child = Command::new(program)
            .args(["ask", setup::QUESTION, "--data"])
            .arg(folder)
            .env("TRELLIS_MODEL", "rehearsal")
            .env("TRELLIS_REHEARSAL_DELAY_MS", "0")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stderr = child.stderr.take().context("stderr is piped")?;
        stderr.read_exact(&mut [0])?;
        let first = started.elapsed();
        stderr.read_to_end(&mut Vec::new())?;
        if !child.wait()?.success() {
            bail!("`trellis ask` failed");
        }
        // The first round warms up.
        if round > 0 {
            times.push(first);
        }
    }
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let (median, worst) = (ms(times[ROUNDS / 2]), ms(times[ROUNDS - 1]));
    println!(
        "warm start    first output of `ask` on {what} after {median:.0} ms (worst of {ROUNDS} {worst:.0}, target 50)"
    );
    Ok(())
}
