//! A process that evaluates one query and ends.
//!
//! The evaluator allocates as it likes, and an allocation that fails ends its process, as does a stack that overflows.
//! So it has a process of its own, with a limit of the operating system on its memory. Nothing that a query does harms
//! more than its own worker, and to cancel a query is to end its worker.

use crate::query::{Bounds, Cancellation, QueryError};
use crate::remote::{ProcessLink, Remote, RemoteOverlay};
use crate::wire::{GREETING, Message, Pack, ask, tell};
use crate::{attendant, evaluate};
use std::any::Any;
use std::io::{self, BufReader, Read, Write};
use std::rc::Rc;
use std::thread;
use std::time::Duration;
use trellis_orchestrator::ports::GraphError;

/// Bytes of what it is told that are read at once.
const BUFFER: usize = 64 << 10;

/// Most bytes of an answer: whoever gets it has it in several forms until it is sent.
const ANSWER: usize = 16 << 20;

/// What a worker is to do, and what it may take for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub sparql: String,
    pub max_rows: usize,
    pub max_overlay_quads: usize,
    /// Bytes, besides the program itself and its stack.
    pub memory: u64,
    /// Of a processor: the second line behind whoever waits for the answer.
    pub time: Duration,
}

impl Job {
    /// Whether it can be given to a worker at all.
    pub fn check(&self) -> Result<(), QueryError> {
        evaluate::check_length(&self.sparql)
    }

    pub(crate) fn pack(&self, runs: &[String]) -> Pack {
        let mut job = Pack::new(tell::JOB);
        job.text(&self.sparql);
        for number in [self.max_rows as u64, self.max_overlay_quads as u64, self.memory, self.time.as_secs()] {
            job.number(number);
        }
        job.texts(runs);
        job
    }

    fn read(mut told: Message) -> Option<(Self, Vec<String>)> {
        if told.byte()? != tell::JOB {
            return None;
        }
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let job = Self {
            sparql: told.text()?,
            max_rows: count(told.number()?),
            max_overlay_quads: count(told.number()?),
            memory: told.number()?,
            time: Duration::from_secs(told.number()?),
        };
        let mut runs = Vec::new();
        while !told.is_over() {
            runs.push(told.text()?);
        }
        Some((job, runs))
    }
}

/// Does the work of a query's process: it is asked on standard input and replies on standard output. Returns when the
/// query is answered, or nobody asks.
pub fn work() -> io::Result<()> {
    let (mut input, mut output) = (BufReader::with_capacity(BUFFER, input()?), output()?);
    output.write_all(GREETING)?;
    output.flush()?;
    let Some(told) = Message::receive(&mut input)? else { return Ok(()) };
    let (job, runs) = Job::read(told).ok_or(io::ErrorKind::InvalidData)?;
    let stack = evaluate::stack_of(&job.sparql);
    confine(&job, stack);
    watch_owner();
    let evaluator = thread::Builder::new().name("query".to_owned()).stack_size(stack);
    let words = self::output()?;
    let answered = match evaluator.spawn(move || answer(&job, runs, Box::new(input), Box::new(words))) {
        Ok(answering) => answering.join().unwrap_or_else(|panic| Err(panicked(&*panic))),
        Err(error) => Err(QueryError::NoThread(error).into()),
    };
    match answered {
        Ok(()) => Ok(()),
        Err(error) => refusal(&error).send(&mut output),
    }
}

/// Answers a query, or says why there is no answer.
fn answer(job: &Job, runs: Vec<String>, from: Box<dyn Read>, to: Box<dyn Write>) -> Result<(), GraphError> {
    let link = Rc::new(ProcessLink::new(from, to));
    let (source, overlay) = (Remote(Rc::clone(&link)), RemoteOverlay { link: Rc::clone(&link), runs });
    let bounds = Bounds {
        max_rows: job.max_rows,
        max_bytes: ANSWER,
        max_overlay_quads: job.max_overlay_quads,
        cancellation: Cancellation::default(),
    };
    let answer = evaluate::answer(&job.sparql, &source, &overlay, &bounds)?;
    Ok(attendant::say(&answer, |words| link.say(words))?)
}

/// What it means that the evaluator has panicked: a text that cannot even be asked memory for, or a fault of it.
fn panicked(panic: &(dyn Any + Send)) -> GraphError {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("for no reason it tells");
    if text.contains("capacity overflow") {
        return GraphError::TooLarge("the query wants more memory than there can be; narrow it".to_owned());
    }
    QueryError::Evaluation(format!("the evaluator failed: {text}")).into()
}

fn refusal(error: &GraphError) -> Pack {
    let mut words = Pack::new(ask::REFUSED);
    words.byte(u8::from(matches!(error, GraphError::TooLarge(_))));
    words.text(&error.to_string());
    words
}

/// Standard input as it is: the library's own would keep what it has read from others.
#[cfg(unix)]
fn input() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

/// Standard output as it is: the library's own would break messages into lines.
#[cfg(unix)]
fn output() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

#[cfg(not(unix))]
fn input() -> io::Result<io::Stdin> {
    Ok(io::stdin())
}

#[cfg(not(unix))]
fn output() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}

/// Limits this process for the rest of its life. Where a limit cannot be set, the one who waits for the answer is the
/// only one.
#[cfg(unix)]
fn confine(job: &Job, stack: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = |resource, most: u64| {
        let maximum = getrlimit(resource).maximum;
        let current = Some(maximum.map_or(most, |maximum| maximum.min(most)));
        if let Err(error) = setrlimit(resource, Rlimit { current, maximum }) {
            tracing::warn!(?resource, %error, "a query's process could not be limited");
        }
    };
    limit(Resource::As, program_bytes() + stack as u64 + job.memory);
    limit(Resource::Cpu, job.time.as_secs() + 2);
    // It may well end by an abort: nobody needs its memory on disk.
    limit(Resource::Core, 0);
    // If the machine is short of memory, this process is the first to go. Only Linux knows this file.
    drop(std::fs::write("/proc/self/oom_score_adj", "1000"));
}

#[cfg(not(unix))]
fn confine(_: &Job, _: usize) {}

/// What the program takes before it does anything.
#[cfg(unix)]
fn program_bytes() -> u64 {
    /// Where nobody tells.
    const USUAL: u64 = 128 << 20;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB"));
    kilobytes.and_then(|number| number.trim().parse::<u64>().ok()).map_or(USUAL, |number| number << 10)
}

/// Ends this process with its owner, also while it computes and neither asks nor tells anything.
#[cfg(unix)]
fn watch_owner() {
    use rustix::event::{PollFd, PollFlags, poll};
    let watch = || {
        let input = io::stdin();
        // Nothing is waited for but the end, which is always told.
        let mut watched = [PollFd::new(&input, PollFlags::empty())];
        while poll(&mut watched, None).is_err() {}
        std::process::exit(0);
    };
    let watching = thread::Builder::new().name("owner".to_owned()).stack_size(64 << 10).spawn(watch);
    if let Err(error) = watching {
        tracing::warn!(%error, "a query's process does not notice the end of its owner");
    }
}

#[cfg(not(unix))]
fn watch_owner() {}
