//! Lines of a client, passed on to a server one by one, and what it says to them, as lines.

use super::message::{self, ClientLine, Request};
use crate::desk::Server;
use crate::failure::Failure;
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use trellis_domain::event_stream::LineReader;

/// More than a server takes.
const LONGEST_LINE: usize = 32 << 20;
/// Requests that may be unanswered at a time. Further ones are not read yet.
const OUTSTANDING: usize = 256;
/// Lines that wait until the client reads.
const UNREAD: usize = 32;
/// How long answers may take once the client has closed its end.
const PARTING: Duration = Duration::from_secs(5);

/// What the requests of a client share.
#[derive(Debug)]
struct Shared {
    server: Server,
    /// The version that client and server agreed on, if they did.
    agreed: Mutex<Option<String>>,
    lines: mpsc::Sender<String>,
}

/// Passes everything on until the client closes its end.
pub(super) async fn run(server: Server) -> Result<(), Failure> {
    let (lines, told) = mpsc::channel(UNREAD);
    let writing = tokio::spawn(write(told));
    let shared = Arc::new(Shared { server, agreed: Mutex::new(None), lines });
    let read = read_all(shared).await;
    let written = writing.await.map_err(Failure::unexpected)?;
    read?;
    // A client that has gone away has all that it wanted.
    drop(written);
    Ok(())
}

async fn read_all(shared: Arc<Shared>) -> Result<(), Failure> {
    let (mut input, mut lines) = (tokio::io::stdin(), LineReader::new(LONGEST_LINE));
    let (mut tasks, mut by_id) = (JoinSet::new(), HashMap::new());
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = tokio::select! {
            read = input.read(&mut buffer) => read?,
            () = shared.lines.closed() => return Ok(()),
        };
        if read == 0 {
            break;
        }
        lines.push(&buffer[..read]);
        while let Some(line) = lines.next() {
            let line = line.map_err(|error| Failure::usage(format!("the client cannot be understood: {error}")))?;
            take(&shared, &line, &mut tasks, &mut by_id).await;
        }
    }
    let finished = async { while tasks.join_next().await.is_some() {} };
    // What is not answered by then goes on at the server.
    drop(tokio::time::timeout(PARTING, finished).await);
    Ok(())
}

async fn take(shared: &Arc<Shared>, line: &str, tasks: &mut JoinSet<()>, by_id: &mut HashMap<String, AbortHandle>) {
    while tasks.try_join_next().is_some() {
        by_id.retain(|_, handle| !handle.is_finished());
    }
    for message in message::read(line) {
        match message {
            ClientLine::Ignored => {}
            ClientLine::Wrong(reply) => drop(shared.lines.send(reply).await),
            ClientLine::Cancel(id) => {
                if let Some(handle) = by_id.remove(&id) {
                    handle.abort();
                }
            }
            ClientLine::Request(request) => {
                if tasks.len() >= OUTSTANDING {
                    drop(tasks.join_next().await);
                }
                let (shared, id) = (Arc::clone(shared), message::key(&request.id));
                by_id.insert(id, tasks.spawn(async move { answer(&shared, &request).await }));
            }
        }
    }
}

/// A request has one answer whatever happens: clients wait for it.
async fn answer(shared: &Shared, request: &Request) {
    let mut answered = false;
    let passed_on = AssertUnwindSafe(pass_on(shared, request, &mut answered)).catch_unwind().await;
    let why = match passed_on {
        Ok(Ok(())) => "the server's reply ended without an answer; ask again".to_owned(),
        Ok(Err(failure)) => failure.message,
        Err(_) => "passing this on met a fault of the program".to_owned(),
    };
    if !answered {
        drop(shared.lines.send(request.failed(&why)).await);
    }
}

/// One request, and everything that is said to it.
async fn pass_on(shared: &Shared, request: &Request, answered: &mut bool) -> Result<(), Failure> {
    let agreed = shared.agreed.lock().clone();
    let headers = request.headers(agreed.as_deref());
    let mut reply = shared.server.speak(request.text.clone(), &headers).await?;
    while let Some(line) = reply.next().await? {
        if request.method == "initialize" {
            *shared.agreed.lock() = message::agreed_version(&line);
        }
        *answered |= request.is_answered_by(&line);
        // Nobody may be there to hear it.
        drop(shared.lines.send(line).await);
    }
    Ok(())
}

async fn write(mut lines: mpsc::Receiver<String>) -> std::io::Result<()> {
    let mut output = tokio::io::stdout();
    while let Some(line) = lines.recv().await {
        output.write_all(format!("{line}\n").as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}
