//! Thousands of sessions that wait for a slow model cost memory, not threads.

use crate::machine::memory;
use crate::setup::{Engine, ask, seeds};
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use trellis_models::{ModelReply, ModelRequest, OnPiece, Provider, ProviderError};
use trellis_orchestrator::ports::BoxFuture;
use trellis_orchestrator::workers::Stop;

const SESSIONS: usize = 10_000;

/// A model that never gets round to answering.
#[derive(Debug, Default)]
struct Slow {
    asked: AtomicUsize,
}

impl Provider for Slow {
    fn name(&self) -> String {
        "slow".to_owned()
    }

    fn complete<'a>(
        &'a self,
        _: &'a ModelRequest,
        _: &'a mut OnPiece<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }
}

pub(crate) async fn run() -> Result<()> {
    let model = Arc::new(Slow::default());
    let engine = Engine::new(Arc::clone(&model) as _, seeds()?).await?;
    let (stop, serving) = engine.serve(SESSIONS);
    for n in 0..SESSIONS {
        ask(&engine.runs, n).await?;
    }
    while model.asked.load(Ordering::Relaxed) < SESSIONS {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    let (now, most) = memory();
    println!(
        "waiting       {SESSIONS} sessions wait on a slow model in {now} MB (peak {most}, target 200), {threads} threads"
    );
    stop.send_replace(Some(Stop::Abandon));
    serving.await?;
    Ok(())
}
