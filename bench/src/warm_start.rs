//! How soon `trellis ask` shows something, on a folder that exists.

use anyhow::{Context, Result, bail};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;

pub(crate) fn run() -> Result<()> {
    let program = crate::setup::program()?;
    let folder = tempfile::TempDir::new()?;
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let started = Instant::now();
        let mut child = Command::new(&program)
            .args(["ask", crate::setup::QUESTION, "--data"])
            .arg(folder.path())
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
        // The first round makes the folder.
        if round > 0 {
            times.push(first);
        }
    }
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "warm start    first output of `ask` after {:.0} ms (median of {ROUNDS}, worst {:.0}, target 300)",
        ms(times[ROUNDS / 2]),
        ms(times[ROUNDS - 1])
    );
    Ok(())
}
