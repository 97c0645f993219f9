//! Sessions per second, and what the engine alone could do with the same bytes.

use crate::machine::{cpu, memory};
use crate::setup::{Engine, ask, follow, seeds};
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use trellis_domain::record::{Name, Record};
use trellis_domain::{Scope, SessionId, Workspace};
use trellis_models::Rehearsal;
use trellis_orchestrator::ports::{Commit, Journal, NewRecord, NewTurn, Outcome};
use trellis_orchestrator::workers::Stop;

const SESSIONS: usize = 6000;
const AT_ONCE: usize = 64;

/// Whole sessions with an instant model: accept, three tool calls, answer; every commit on disk.
pub(crate) async fn sessions() -> Result<()> {
    let engine = Engine::new(Arc::new(Rehearsal::instant()), seeds()?).await?;
    let (stop, serving) = engine.serve(1024);
    let next = Arc::new(AtomicUsize::new(0));
    let (started, before) = (Instant::now(), cpu());
    let callers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (runs, next) = (engine.runs.clone(), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= SESSIONS {
                        return anyhow::Ok(());
                    }
                    let run = ask(&runs, n).await?;
                    follow(&runs, &run).await?;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    let (wall, used) = (started.elapsed(), cpu().saturating_sub(before));
    stop.send_replace(Some(Stop::Drain));
    serving.await?;
    let rate = SESSIONS as f64 / wall.as_secs_f64();
    let each = used.as_secs_f64() * 1000.0 / SESSIONS as f64;
    println!("sessions      {rate:.0} per second at {AT_ONCE} concurrent (target 1000), 9 commits each, all on disk");
    println!(
        "              {each:.2} ms CPU per session (target 3), memory {} MB, disk {} MB",
        memory().1,
        engine.disk_mb()
    );
    let lag = engine.store.graph.lag()?;
    let (started, before) = (Instant::now(), cpu());
    let absorbed = engine.store.graph.catch_up()?;
    let (wall, used) = (started.elapsed(), cpu().saturating_sub(before));
    println!(
        "graph view    {lag} runs behind, caught up in {:.1} s: {:.0} runs per second (target 400), {:.2} ms CPU per run",
        wall.as_secs_f64(),
        absorbed as f64 / wall.as_secs_f64(),
        used.as_secs_f64() * 1000.0 / absorbed.max(1) as f64,
    );
    Ok(())
}

/// The journal alone: the same records in the same commits, no model, no tools, no loop.
pub(crate) async fn engine() -> Result<()> {
    let sample = sample().await?;
    let engine = Engine::new(Arc::new(Rehearsal::instant()), seeds()?).await?;
    let journal = Arc::clone(&engine.store.journal);
    let next = Arc::new(AtomicUsize::new(0));
    let (started, before) = (Instant::now(), cpu());
    let writers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (journal, next, sample) = (Arc::clone(&journal), Arc::clone(&next), Arc::clone(&sample));
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= SESSIONS {
                        return anyhow::Ok(());
                    }
                    write_session(&*journal, &sample, &format!("bare-{n}")).await?;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }
    let (wall, used) = (started.elapsed(), cpu().saturating_sub(before));
    let bytes: usize = sample.iter().map(|record| serde_json::to_vec(&**record).map_or(0, |bytes| bytes.len())).sum();
    println!(
        "engine alone  {:.0} sessions' worth of commits per second ({} KB each), {:.2} ms CPU per session",
        SESSIONS as f64 / wall.as_secs_f64(),
        bytes / 1024,
        used.as_secs_f64() * 1000.0 / SESSIONS as f64,
    );
    Ok(())
}

/// The records of one real session.
async fn sample() -> Result<Arc<Vec<Arc<Record>>>> {
    let engine = Engine::new(Arc::new(Rehearsal::instant()), seeds()?).await?;
    let (stop, serving) = engine.serve(8);
    let run = ask(&engine.runs, 0).await?;
    follow(&engine.runs, &run).await?;
    stop.send_replace(Some(Stop::Drain));
    serving.await?;
    Ok(Arc::new(engine.store.journal.events(&Workspace::default(), &run, 0, 100).await?))
}

async fn write_session(journal: &dyn Journal, sample: &[Arc<Record>], id: &str) -> Result<()> {
    let session = SessionId::new(id)?;
    let versions = sample.last().map_or(0, |record| record.header.version);
    for version in 1..=versions {
        let part = sample.iter().filter(|record| record.header.version == version);
        let records = part.map(|record| NewRecord {
            session: session.clone(),
            name: record.header.name.clone(),
            causes: record.header.causes.clone(),
            config: record.header.config,
            attempt: 1,
            time: record.header.time,
            body: record.body.clone(),
        });
        // Turns open and close as in a run: with the first commit, each tool result, and the end.
        let turn = u32::try_from(version / 2 + 1)?;
        let closes = version > 1 && (version % 2 == 1);
        let opens = version == 1 || (closes && version < versions);
        let commit = Commit {
            scope: Scope::default(),
            run: session.clone(),
            session: session.clone(),
            seen: version - 1,
            seen_of_others: Vec::new(),
            records: records.collect(),
            close: closes.then(|| Name::new(format!("i{}", turn - 1))).into_iter().collect(),
            open: if opens {
                vec![NewTurn { session: session.clone(), name: Name::new(format!("i{turn}")), due: None }]
            } else {
                Vec::new()
            },
        };
        match journal.commit(commit).await? {
            Outcome::Committed(_) => {}
            Outcome::Conflict => anyhow::bail!("commit {version} of a fresh session conflicts"),
        }
    }
    Ok(())
}
