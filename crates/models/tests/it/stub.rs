//! A server that does what a script says: byte by byte, with pauses, for ever, or not at all.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    /// As it came.
    pub(crate) bytes: Vec<u8>,
}

/// What the server does next. After the last of them it closes the connection.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Send(Vec<u8>),
    Pause(Duration),
    /// Keeps the connection and says nothing, until the client goes away.
    Hang,
    /// Sends this again and again, until the client goes away.
    Forever(Vec<u8>),
}

/// Which requests the script is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Calls,
    Probes,
    Descriptions,
}

/// The acts in answer to one request.
pub(crate) type Script = Vec<Act>;

pub(crate) struct Stub {
    pub(crate) base: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// How many clients went away before the script ended.
    left: Arc<Mutex<usize>>,
    task: JoinHandle<()>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stub {
    /// Answers each request by its place, counted from 0, and what it says.
    pub(crate) async fn start(script: impl Fn(usize, &Seen) -> Script + Send + Sync + 'static) -> Self {
        Self::starting(script, Wanted::Calls).await
    }

    /// The same, and the script answers probes, too.
    pub(crate) async fn probed(script: impl Fn(usize, &Seen) -> Script + Send + Sync + 'static) -> Self {
        Self::starting(script, Wanted::Probes).await
    }

    /// The same, and the script tells about models, too.
    pub(crate) async fn described(script: impl Fn(usize, &Seen) -> Script + Send + Sync + 'static) -> Self {
        Self::starting(script, Wanted::Descriptions).await
    }

    async fn starting(script: impl Fn(usize, &Seen) -> Script + Send + Sync + 'static, asked_for: Wanted) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (seen, left) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (script, seen_by, left_by) = (Arc::new(script), Arc::clone(&seen), Arc::clone(&left));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, seen, left) = (Arc::clone(&script), Arc::clone(&seen_by), Arc::clone(&left_by));
                tokio::spawn(async move {
                    if !serve(stream, &*script, &seen, asked_for).await {
                        *left.lock().unwrap() += 1;
                    }
                });
            }
        });
        Self { base, seen, left, task }
    }

    /// The same script for every request.
    pub(crate) async fn always(script: Script) -> Self {
        Self::start(move |_, _| script.clone()).await
    }

    /// One script after the other; the last one for all that follow.
    pub(crate) async fn each(scripts: impl IntoIterator<Item = Script>) -> Self {
        let scripts: Vec<_> = scripts.into_iter().collect();
        Self::start(move |n, _| scripts[n.min(scripts.len() - 1)].clone()).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn left(&self) -> usize {
        *self.left.lock().unwrap()
    }
}

/// Whether somebody wants to know how much a model can read.
fn is_about_a_model(path: &str) -> bool {
    let listed = ["/api/show", "/api/v0/models", "/v1/models", "/props", "/info"].contains(&path);
    listed || (path.contains("/models/") && !path.contains(':'))
}

/// False if the client went away in the middle.
async fn serve(
    stream: TcpStream,
    script: &(dyn Fn(usize, &Seen) -> Script + Sync),
    seen: &Mutex<Vec<Seen>>,
    asked_for: Wanted,
) -> bool {
    let mut stream = BufReader::new(stream);
    let Some(request) = request(&mut stream).await else { return true };
    if is_about_a_model(&request.path) && asked_for != Wanted::Descriptions {
        // It is asked once, and no part of the script. Only Ollama tells something.
        let (status, body) = match request.path.as_str() {
            "/api/show" => ("200 OK", json!({ "model_info": { "llama.context_length": 8192 } })),
            _ => ("404 Not Found", json!({ "error": "not found" })),
        };
        let mut stream = stream.into_inner();
        let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\n\r\n{body}");
        return stream.write_all(answer.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok();
    }
    let is_probe = request.headers.get("x-trellis-prompt").is_some_and(|prompt| prompt == "probe");
    let acts = if is_probe && asked_for != Wanted::Probes {
        // A model that obeys, whatever the script is about.
        crate::speech::obedient(&request)
    } else {
        let mut seen = seen.lock().unwrap();
        let acts = script(seen.len(), &request);
        seen.push(request);
        acts
    };
    let mut stream = stream.into_inner();
    for act in acts {
        let done = match act {
            Act::Send(bytes) => stream.write_all(&bytes).await.is_ok(),
            Act::Pause(pause) => {
                tokio::time::sleep(pause).await;
                true
            }
            Act::Hang => stream.read(&mut [0; 1]).await.is_ok_and(|read| read > 0),
            Act::Forever(bytes) => loop {
                if stream.write_all(&bytes).await.is_err() {
                    break false;
                }
            },
        };
        if !done {
            return false;
        }
    }
    stream.shutdown().await.is_ok()
}

async fn request(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    // Whoever only asks for something sends nothing.
    let length = headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    crate::recording::keep(&path, &body);
    // Forms are no JSON.
    Some(Seen { path, headers, body: serde_json::from_slice(&body).unwrap_or_default(), bytes: body })
}

/// An answer whose body ends with the connection.
pub(crate) fn head(status: &str, headers: &str) -> Act {
    Act::Send(format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n").into_bytes())
}

pub(crate) fn send(text: impl Into<Vec<u8>>) -> Act {
    Act::Send(text.into())
}

/// A stream of these pieces, each sent on its own.
pub(crate) fn stream(pieces: impl IntoIterator<Item = String>) -> Script {
    let pieces = pieces.into_iter().map(send);
    std::iter::once(head("200 OK", "content-type: text/event-stream\r\n")).chain(pieces).collect()
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Script {
    vec![head(status, headers), send(body)]
}
