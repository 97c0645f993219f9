//! Queries in processes of their own: how many at once, for whom, and what each may take.

use crate::attendant::Unanswered;
use crate::places::{Asker, Full, Places};
use crate::process::{Leash, Pipes, Process};
use crate::query::{Bounds, Cancellation, QueryError};
use crate::worker::Job;
use parking_lot::Mutex;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use trellis_orchestrator::ports::{Answer, Found, GraphError, JournalError, QueryLimits};

/// How a worker is started: a program that calls [`crate::work`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    pub variables: Vec<(OsString, OsString)>,
}

/// What the operator allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuerySettings {
    /// Bytes of memory that a query may take.
    pub memory: u64,
    /// How long a query may take. A request can only ask for less.
    pub time: Duration,
    /// Queries that are evaluated at once. A workspace, and a caller, has at most half of them.
    pub at_once: usize,
    /// Workers that are started before anybody asks.
    pub spares: usize,
}

impl Default for QuerySettings {
    fn default() -> Self {
        Self { memory: 256 << 20, time: Duration::from_secs(30), at_once: 4, spares: 0 }
    }
}

/// Everything that evaluates queries.
#[derive(Debug, Clone)]
pub struct Queries {
    pub settings: QuerySettings,
    program: Arc<Program>,
    places: Places,
    spares: Arc<Mutex<Vec<Process>>>,
}

/// A worker that somebody waits for.
#[derive(Debug)]
pub struct Attended {
    pub pipes: Pipes,
    pub cancellation: Cancellation,
}

/// Ends a query when it is dropped: nobody waits for the answer any more.
struct EndOnDrop {
    leash: Leash,
    cancellation: Cancellation,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.cancellation.cancel();
        self.leash.cut();
    }
}

impl Queries {
    pub fn new(program: Program, settings: QuerySettings) -> Self {
        let queries = Self {
            settings,
            program: Arc::new(program),
            places: Places::new(settings.at_once),
            spares: Arc::default(),
        };
        queries.refill();
        queries
    }

    /// Has a query answered by the view with what is newer laid over it; by the view alone if that is too much. `attend`
    /// does either, and is told whether it is to be with what is newer.
    pub async fn answer<F>(
        &self,
        sparql: &str,
        limits: QueryLimits,
        attend: impl Fn(Job, bool) -> F,
    ) -> Result<Found<Answer>, GraphError>
    where
        F: Future<Output = Result<Found<Answer>, GraphError>>,
    {
        let job = Job {
            sparql: sparql.to_owned(),
            max_rows: limits.max_rows,
            max_overlay_quads: Bounds::default().max_overlay_quads,
            memory: self.settings.memory,
            time: limits.time.min(self.settings.time),
        };
        job.check()?;
        let behind = QueryError::OverlayTooLarge { max: job.max_overlay_quads }.to_string();
        match attend(job.clone(), true).await {
            Err(GraphError::TooLarge(reason)) if reason == behind => attend(job, false).await,
            answer => answer,
        }
    }

    /// Lets somebody attend to a worker for at most that long, the wait for a place included. The place is free again
    /// once the worker has really ended.
    pub async fn with_worker<T: Send + 'static>(
        &self,
        asker: Asker,
        time: Duration,
        attend: impl FnOnce(&mut Attended) -> Result<T, Unanswered> + Send + 'static,
    ) -> Result<T, GraphError> {
        let guard = EndOnDrop { leash: Leash::default(), cancellation: Cancellation::default() };
        let deadline = tokio::time::Instant::now() + time;
        let place = match tokio::time::timeout_at(deadline, self.places.take(asker)).await {
            Ok(Ok(place)) => place,
            Ok(Err(Full)) => return Err(busy("too many queries wait already")),
            Err(_) => return Err(busy(&format!("no place for the query became free within {} s", time.as_secs_f64()))),
        };
        let (queries, leash, cancellation) = (self.clone(), guard.leash.clone(), guard.cancellation.clone());
        let (tell, told) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let _place = place;
            let answer = queries.evaluate(&leash, cancellation, attend);
            // The answer is not held up by the end of the process. Who is gone does not want it.
            drop(tell.send(answer));
            leash.cut();
            leash.ended();
        });
        match tokio::time::timeout_at(deadline, told).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(failed("the thread of a query failed"))),
            Err(_) => Err(GraphError::TimedOut(time)),
        }
    }

    fn evaluate<T>(
        &self,
        leash: &Leash,
        cancellation: Cancellation,
        attend: impl FnOnce(&mut Attended) -> Result<T, Unanswered>,
    ) -> Result<T, GraphError> {
        let process = self.process().map_err(|error| {
            tracing::error!(%error, "no process for a query");
            busy("no process could be started for the query")
        })?;
        let Some(pipes) = process.under(leash) else { return Err(QueryError::Cancelled.into()) };
        let mut attended = Attended { pipes, cancellation };
        match attend(&mut attended) {
            Ok(answer) => Ok(answer),
            Err(Unanswered::Refused(error)) => Err(error),
            Err(Unanswered::Lost(_)) if attended.cancellation.is_cancelled() => Err(QueryError::Cancelled.into()),
            Err(Unanswered::Lost(error)) => {
                if error.kind() == ErrorKind::InvalidData {
                    // It talks nonsense, and may go on with it.
                    leash.cut();
                }
                let last_words = attended.pipes.last_words();
                Err(self.why(leash.ended(), &last_words, &error))
            }
        }
    }

    /// A spare worker if there is one that lives, else a new one.
    fn process(&self) -> io::Result<Process> {
        let spare = {
            let mut spares = self.spares.lock();
            spares.retain_mut(Process::is_alive);
            spares.pop()
        };
        self.refill();
        spare.map_or_else(|| Process::start(&self.program), Ok)
    }

    /// Starts what is missing of the spares, off the path of whoever asks.
    fn refill(&self) {
        for _ in self.spares.lock().len()..self.settings.spares {
            let queries = self.clone();
            tokio::task::spawn_blocking(move || match Process::start(&queries.program) {
                Ok(process) => {
                    let mut spares = queries.spares.lock();
                    // Somebody else may have been faster.
                    if spares.len() < queries.settings.spares {
                        spares.push(process);
                    }
                }
                // Whoever asks next tries again, and is told.
                Err(error) => tracing::warn!(%error, "no spare process for queries"),
            });
        }
    }

    /// Why a worker ended without a word to us.
    fn why(&self, status: Option<ExitStatus>, last_words: &str, error: &io::Error) -> GraphError {
        let signal = status.and_then(signal_of);
        if last_words.contains("memory allocation of") {
            let megabytes = self.settings.memory >> 20;
            return GraphError::TooLarge(format!(
                "the query takes more than the {megabytes} MiB of memory that a query may have; narrow it, or let the \
                 operator raise memory-mb of queries"
            ));
        }
        if last_words.contains("overflowed its stack") {
            return GraphError::Query("the query is nested too deeply; simplify it".to_owned());
        }
        if signal.is_some() && signal == TOOK_TOO_LONG {
            return GraphError::TimedOut(self.settings.time);
        }
        if signal.is_some() && signal == KILLED {
            let why = "the query's process was ended from outside, maybe because the machine is short of memory; \
                       narrow the query, or ask again later";
            return GraphError::TooLarge(why.to_owned());
        }
        tracing::error!(?status, last_words, %error, "a query's process failed");
        GraphError::Query("the query ended its process; the server's log says more".to_owned())
    }
}

fn busy(what: &str) -> GraphError {
    GraphError::Busy(format!("{what}; ask again in a moment"))
}

fn failed(what: &str) -> GraphError {
    JournalError::Read(what.to_owned()).into()
}

#[cfg(unix)]
const TOOK_TOO_LONG: Option<i32> = Some(rustix::process::Signal::XCPU.as_raw());
#[cfg(unix)]
const KILLED: Option<i32> = Some(rustix::process::Signal::KILL.as_raw());
#[cfg(not(unix))]
const TOOK_TOO_LONG: Option<i32> = None;
#[cfg(not(unix))]
const KILLED: Option<i32> = None;

/// The signal that ended a process.
fn signal_of(status: ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    return None;
}
