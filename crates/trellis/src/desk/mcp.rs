//! Messages of the Model Context Protocol, passed on to a server that speaks it.

use super::server::{Server, ServerTrouble, refusal};
use super::sse::Events;
use crate::failure::Failure;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Response};
use std::time::Duration;
use tokio::time::timeout;

/// More than the longest that a server lets a call wait before it says anything.
const FIRST_WORD: Duration = Duration::from_mins(11);
/// A server that is well breaks its silence every 15 s.
const SILENCE: Duration = Duration::from_mins(1);

/// What a server says to one message, message by message.
#[derive(Debug)]
pub(crate) struct McpReply<'a> {
    server: &'a Server,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Stream { response: Box<Response>, events: Events },
    Whole(Option<String>),
}

impl Server {
    /// Passes a message on, with what its headers have to say of it.
    pub(crate) async fn speak(
        &self,
        message: String,
        headers: &[(&'static str, String)],
    ) -> Result<McpReply<'_>, Failure> {
        let request = self.at_root(Method::POST, &["mcp"]).header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT, "application/json, text/event-stream").body(message);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        let rest = begin(request).await.map_err(|trouble| self.failure(trouble))?;
        Ok(McpReply { server: self, rest })
    }
}

async fn begin(request: reqwest::RequestBuilder) -> Result<Rest, ServerTrouble> {
    let silent = |_| lost(&format!("no reply for {} s", FIRST_WORD.as_secs()));
    let sent = timeout(FIRST_WORD, request.send()).await.map_err(silent)?;
    let response = sent.map_err(|error| lost(&trellis_models::cause(&error)))?;
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        return Ok(Rest::Stream { response: Box::new(response), events: Events::new() });
    }
    let (status, path) = (response.status(), response.url().path().to_owned());
    let body = timeout(SILENCE, response.bytes()).await.map_err(|_| lost("the reply stopped"))?;
    let body = body.map_err(|error| lost(&trellis_models::cause(&error)))?;
    // What is wrong with a message is told in the protocol's own words, whatever the status. What was refused before it
    // was looked at names none.
    let is_answer = |told: &serde_json::Value| told["jsonrpc"] == "2.0" && !told["id"].is_null();
    let told = serde_json::from_slice::<serde_json::Value>(&body).ok().filter(is_answer);
    match told {
        Some(told) => Ok(Rest::Whole(Some(told.to_string()))),
        None if status.is_success() => Ok(Rest::Whole(None)),
        None => Err(refusal(status, &path, &body)),
    }
}

impl McpReply<'_> {
    /// The next message, as one line; none when everything is said.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, Failure> {
        match &mut self.rest {
            Rest::Whole(message) => Ok(message.take()),
            Rest::Stream { response, events } => {
                next(response, events).await.map_err(|why| self.server.failure(lost(&why)))
            }
        }
    }
}

async fn next(response: &mut Response, events: &mut Events) -> Result<Option<String>, String> {
    loop {
        if let Some(event) = events.next().map_err(|error| error.to_string())? {
            return Ok(Some(event.data.replace('\n', " ")));
        }
        let silent = |_| format!("silence for {} s", SILENCE.as_secs());
        match timeout(SILENCE, response.chunk()).await.map_err(silent)? {
            Ok(Some(bytes)) => events.push(&bytes),
            Ok(None) => return Ok(None),
            Err(error) => return Err(trellis_models::cause(&error)),
        }
    }
}

fn lost(why: &str) -> ServerTrouble {
    ServerTrouble::Lost(why.to_owned())
}
