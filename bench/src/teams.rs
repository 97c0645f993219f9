//! Plans and teams of agents: what parallel work gains, and what a fan-in costs.

use crate::machine::cpu;
use crate::setup::{Engine, follow, seeds};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use trellis_domain::document::Document;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::parts::{ChatTurn, Piece};
use trellis_domain::record::{Body, Name, Observed};
use trellis_domain::usage::Usage;
use trellis_domain::{Hash, RequestId, RunId, Scope, SessionId, Timestamp, Workspace};
use trellis_models::{ModelReply, ModelRequest, OnPiece, Provider, ProviderError};
use trellis_orchestrator::accept::{Question, UnknownNames};
use trellis_orchestrator::contract::play;
use trellis_orchestrator::memory::scripted::SILENT;
use trellis_orchestrator::ports::{BoxFuture, Commit, Journal, NewRecord, NewTurn, OpenTurn, Outcome, TurnKey};
use trellis_orchestrator::workers::{Stop, WorkerOptions};

/// Plays what the question says; the tools' own prompts take as long as they are told.
#[derive(Debug)]
struct Player {
    tool: Duration,
}

impl Provider for Player {
    fn name(&self) -> String {
        "player".to_owned()
    }

    fn reads_variables(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        on_piece: &'a mut OnPiece<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        Box::pin(async move {
            if request.prompt == "question" && !self.tool.is_zero() {
                tokio::time::sleep(self.tool).await;
            }
            let text = match play::say(&request.prompt, &heard(request)) {
                Ok(text) => text,
                Err(reason) if reason == SILENT => std::future::pending().await,
                Err(reason) => return Err(ProviderError::Permanent { reason }),
            };
            // A caller that has heard enough changes nothing: the whole text is here already.
            let _stopped = on_piece(Piece::Text(&text)).is_break();
            Ok(ModelReply {
                text,
                model: "player".to_owned(),
                in_token: Some(100),
                out_token: Some(20),
                ..ModelReply::default()
            })
        })
    }
}

/// The variables with the steps of the conversation, which the script counts.
fn heard(request: &ModelRequest) -> Cow<'_, Map<String, Value>> {
    let steps = request.turns.iter().filter(|turn| matches!(turn, ChatTurn::Assistant { .. })).count();
    if steps == 0 {
        return Cow::Borrowed(&request.variables);
    }
    let mut variables = request.variables.clone();
    variables.insert("history".to_owned(), vec![Value::Null; steps].into());
    Cow::Owned(variables)
}

async fn engine(tool: Duration) -> Result<Engine> {
    let mut items = seeds()?;
    items.push(trellis_domain::config::StoredItem {
        kind: "tool".to_owned(),
        key: "search".to_owned(),
        value: json!({"type": "text-completion", "name": "search", "description": "finds facts"}).to_string(),
    });
    Engine::new(Arc::new(Player { tool }), items).await
}

async fn ask(engine: &Engine, n: usize, scene: &Value, pattern: &str, limits: SomeLimits) -> Result<RunId> {
    ask_named(engine, &format!("{pattern}-{n}"), scene, pattern, limits).await
}

async fn ask_named(engine: &Engine, name: &str, scene: &Value, pattern: &str, limits: SomeLimits) -> Result<RunId> {
    let question = Question {
        scope: Scope::default(),
        request_id: RequestId::new(name)?,
        request: AgentRequest {
            question: scene.to_string(),
            pattern: pattern.to_owned(),
            streaming: true,
            ..AgentRequest::default()
        },
        limits,
        names: UnknownNames::Refuse,
        selection: trellis_domain::Selection::default(),
        by: None,
    };
    Ok(engine.runs.accept(question).await?.run)
}

/// Eight independent steps with a tool of 50 ms each, all at once and one by one.
pub(crate) async fn plan() -> Result<()> {
    const STEPS: usize = 8;
    const ROUNDS: usize = 7;
    let engine = engine(Duration::from_millis(50)).await?;
    let (stop, serving) = engine.serve(1024);
    let steps: Vec<_> = (0..STEPS).map(|n| json!({"say": n, "tool": true})).collect();
    let scene = json!({"plan": steps});
    let mut took = Vec::new();
    for at_once in [8, 1] {
        let mut rounds = Vec::new();
        // The median of a few; the first round of all warms up.
        for n in 0..=ROUNDS {
            let started = Instant::now();
            let limits = SomeLimits { steps_at_once: Some(at_once), ..SomeLimits::default() };
            let n = n + usize::try_from(at_once)? * 100;
            let run = ask(&engine, n, &scene, "plan-then-execute", limits).await?;
            follow(&engine.runs, &run).await?;
            rounds.push(started.elapsed());
        }
        rounds.remove(0);
        rounds.sort();
        took.push(rounds[ROUNDS / 2]);
    }
    stop.send_replace(Some(Stop::Drain));
    serving.await?;
    let ratio = took[1].as_secs_f64() / took[0].as_secs_f64();
    let target = 0.9 * STEPS as f64;
    println!(
        "plan          {STEPS} independent steps of 50 ms: {:.0} ms at once, {:.0} ms one by one, {ratio:.1} times faster (target {target:.1})",
        took[0].as_secs_f64() * 1000.0,
        took[1].as_secs_f64() * 1000.0,
    );
    Ok(())
}

/// A plan whose hundred steps all call a slow tool at once, and short runs beside it.
pub(crate) async fn crowd() -> Result<()> {
    const STEPS: usize = 100;
    const SLOW: Duration = Duration::from_secs(3);
    const AROUND: usize = 100;
    // As many workers as a server has unless it is told otherwise.
    let engine = engine(SLOW).await?;
    let (stop, serving) = engine.serve(WorkerOptions::default().concurrency);
    let short = json!({"answer": "done"});
    // The first ones warm up.
    time_of_short_runs(&engine, "warm", AROUND, &short).await?;
    let alone = time_of_short_runs(&engine, "alone", AROUND, &short).await?;
    let steps: Vec<_> = (0..STEPS).map(|n| json!({"say": n, "tool": true})).collect();
    let at_once = Some(u32::try_from(STEPS)?);
    let limits = SomeLimits { max_plan_steps: at_once, steps_at_once: at_once, ..SomeLimits::default() };
    let started = Instant::now();
    let run = ask(&engine, 0, &json!({"plan": steps}), "plan-then-execute", limits).await?;
    let beside = time_of_short_runs(&engine, "beside", AROUND, &short).await?;
    ensure!(started.elapsed() < SLOW * 2, "the short runs took longer than the plan: nothing was beside them");
    follow(&engine.runs, &run).await?;
    let plan = started.elapsed();
    stop.send_replace(Some(Stop::Drain));
    serving.await?;
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "crowd         {STEPS} calls of {:.0} s in one plan: {:.1} s for all; a short run beside it takes {:.1} ms at the 95th \
         percentile, {:.1} ms alone",
        SLOW.as_secs_f64(),
        plan.as_secs_f64(),
        ms(beside),
        ms(alone),
    );
    Ok(())
}

/// The 95th percentile of runs that are asked one after the other.
async fn time_of_short_runs(engine: &Engine, name: &str, count: usize, scene: &Value) -> Result<Duration> {
    let mut times = Vec::with_capacity(count);
    for n in 0..count {
        let started = Instant::now();
        let run = ask_named(engine, &format!("{name}-{n}"), scene, "react", SomeLimits::default()).await?;
        follow(&engine.runs, &run).await?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    Ok(times[count * 95 / 100])
}

/// Supervisors with five subagents of two tool calls each, an instant model, every commit on disk.
pub(crate) async fn supervisor() -> Result<()> {
    const RUNS: usize = 1_000;
    const AT_ONCE: usize = 16;
    let engine = Arc::new(engine(Duration::ZERO).await?);
    let (stop, serving) = engine.serve(1024);
    let agents: Vec<_> = (0..5).map(|n| json!({"tools": 2, "answer": format!("finding of agent {n}")})).collect();
    let scene = Arc::new(json!({"team": [agents]}));
    let next = Arc::new(AtomicUsize::new(0));
    let (started, before) = (Instant::now(), cpu());
    let callers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (engine, next, scene) = (Arc::clone(&engine), Arc::clone(&next), Arc::clone(&scene));
            tokio::spawn(async move {
                let mut last = None;
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= RUNS {
                        return anyhow::Ok(last);
                    }
                    let run = ask(&engine, n, &scene, "supervisor", SomeLimits::default()).await?;
                    follow(&engine.runs, &run).await?;
                    last = Some(run);
                }
            })
        })
        .collect();
    let mut last = None;
    for caller in callers {
        last = caller.await??;
    }
    let (wall, used) = (started.elapsed(), cpu().saturating_sub(before));
    stop.send_replace(Some(Stop::Drain));
    serving.await?;
    let last = last.context("every caller has asked")?;
    let records = engine.store.journal.events(&Workspace::default(), &last, 0, usize::MAX).await?;
    let called = records.iter().filter(|record| matches!(record.body, Body::Observed(_))).count();
    ensure!(called == 10, "{called} tool calls in a run: this is not the work that is to be measured");
    println!(
        "supervisor    {:.0} runs per second at {AT_ONCE} concurrent (target 200): 5 subagents with 2 tools each, {:.1} ms CPU per run",
        RUNS as f64 / wall.as_secs_f64(),
        used.as_secs_f64() * 1000.0 / RUNS as f64,
    );
    Ok(())
}

/// One fan-out of a thousand.
pub(crate) async fn siblings() -> Result<()> {
    const SIBLINGS: usize = 1_000;
    let engine = engine(Duration::ZERO).await?;
    let (stop, serving) = engine.serve(1024);
    let agents: Vec<_> = (0..SIBLINGS).map(|n| json!({"answer": format!("{n}")})).collect();
    let started = Instant::now();
    let run = ask(&engine, 0, &json!({"team": [agents]}), "supervisor", SomeLimits::default()).await?;
    follow(&engine.runs, &run).await?;
    let took = started.elapsed();
    stop.send_replace(Some(Stop::Drain));
    serving.await?;
    let records = engine.store.journal.events(&Workspace::default(), &run, 0, usize::MAX).await?;
    let joins: Vec<_> = records.iter().filter_map(|record| record.body.as_joined()).collect();
    ensure!(joins.len() == 1, "{} joins", joins.len());
    println!(
        "siblings      a fan-out of {} joined once, {:.1} s from question to answer",
        joins[0].members.len(),
        took.as_secs_f64()
    );
    Ok(())
}

/// What a check costs while a sibling is still at work, with little and with much in the store.
pub(crate) async fn fan_in() -> Result<()> {
    let mut costs = Vec::new();
    for records in [1_000, 1_000_000] {
        let engine = engine(Duration::ZERO).await?;
        fill(&*engine.store.journal, records).await?;
        costs.push(check(&engine).await?);
        println!("fan-in        a check takes {:.0} µs with {records} records in the store", costs[costs.len() - 1]);
    }
    println!("              {:.2} times as long with 1,000,000 as with 1,000 (target 1)", costs[1] / costs[0]);
    Ok(())
}

/// Writes records of other runs, many in a commit.
async fn fill(journal: &dyn Journal, records: usize) -> Result<()> {
    const IN_A_COMMIT: usize = 1_000;
    let observed = |n: usize| Observed {
        result: Document::stored(format!("fact {n}")),
        error: None,
        ms: 1,
        state: None,
        idempotency_key: None,
        usage: Usage::default(),
        calls: Vec::new(),
        trace: Vec::new(),
    };
    for chunk in 0..records / IN_A_COMMIT {
        let session = SessionId::new(&format!("other-{chunk}"))?;
        let record = |name: Name, body: Body| NewRecord {
            session: session.clone(),
            name,
            causes: Vec::new(),
            config: Hash::ZERO,
            attempt: 1,
            time: Timestamp::from_micros(1),
            body,
        };
        let accepted = play::accepted("another question");
        let first = std::iter::once(record(Name::session(), accepted));
        let rest = (1..IN_A_COMMIT).map(|n| record(Name::new(format!("r{n}")), Body::Observed(observed(n))));
        let commit = Commit {
            scope: Scope::default(),
            run: session.clone(),
            session: session.clone(),
            seen: 0,
            seen_of_others: Vec::new(),
            records: first.chain(rest).collect(),
            close: Vec::new(),
            open: Vec::new(),
        };
        ensure!(matches!(journal.commit(commit).await?, Outcome::Committed(_)), "a fresh session conflicts");
    }
    Ok(())
}

/// Microseconds for a check turn that finds a sibling missing: begun, loaded, decided, closed on disk.
async fn check(engine: &Engine) -> Result<f64> {
    const CHECKS: u32 = 200;
    let (stop, serving) = engine.serve(1024);
    let scene = json!({"team": [[{"answer": "a"}, {"silent": true}]]});
    let run = ask(engine, 0, &scene, "supervisor", SomeLimits::default()).await?;
    let journal = &engine.store.journal;
    // Until the first subagent has ended and its own check is done.
    let done = run.child(1, 0);
    while journal.end(&Workspace::default(), &done).await?.is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.send_replace(Some(Stop::Abandon));
    serving.await?;
    let seen = journal.load(&Workspace::default(), &run).await?.map_or(0, |log| log.version);
    let key = |name: Name| TurnKey { scope: Scope::default(), run: run.clone(), session: run.clone(), name };
    let mut spent = Duration::ZERO;
    for _ in 0..CHECKS {
        let turn = NewTurn { session: run.clone(), name: Name::check(1, 0), due: None };
        let commit = Commit {
            scope: Scope::default(),
            run: run.clone(),
            session: run.clone(),
            seen,
            seen_of_others: Vec::new(),
            records: Vec::new(),
            close: Vec::new(),
            open: vec![turn],
        };
        journal.commit(commit).await?;
        let open = OpenTurn::new(key(Name::check(1, 0)), None, false);
        let started = Instant::now();
        engine.orchestrator.handle(&open).await?;
        spent += started.elapsed();
    }
    Ok(spent.as_secs_f64() * 1e6 / f64::from(CHECKS))
}
