//! Servers that are reached over HTTP. Every answer is bounded, and none is followed to another place.

use crate::http::cause;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The most that is read of one answer, with everything that comes before it.
pub(super) const MOST_BYTES: usize = 8 << 20;
/// Answers above this size are large, and only so many of them are read at a time.
const LARGE_BYTES: usize = 64 << 10;
static LARGE: Semaphore = Semaphore::const_new(32);
/// So many events may come for one request.
const MOST_EVENTS: usize = 10_000;
const SESSION: &str = "mcp-session-id";
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
/// So much of a refusal is told.
const TOLD: usize = 500;

/// Where a server is, and what is sent with every request.
#[derive(Debug, Clone, PartialEq)]
pub struct Address {
    pub url: Url,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// A client that reads bounded answers. It does not listen to what a server says without being asked.
#[derive(Debug, Clone)]
pub(super) struct Bounded {
    client: Client,
    trouble: Trouble,
}

/// Why an answer broke off last.
pub(super) type Trouble = Arc<Mutex<Option<String>>>;

impl Bounded {
    pub(super) fn new(client: Client, trouble: Trouble) -> Self {
        Self { client, trouble }
    }
}

type Failed = StreamableHttpError<reqwest::Error>;

impl StreamableHttpClient for Bounded {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let mut request = self.client.post(&*uri).header(ACCEPT, [EVENTS, JSON].join(", ")).header(CONTENT_TYPE, JSON);
        request = request.headers(headers(session_id.as_deref(), auth_header, custom_headers)?);
        let body = serde_json::to_vec(&message)?;
        let response = request.body(body).send().await.map_err(Failed::Client)?;
        let (status, has_session) = (response.status(), session_id.is_some());
        let is_awaited = matches!(message, ClientJsonRpcMessage::Request(_));
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            if is_awaited {
                return Err(Failed::UnexpectedServerResponse(format!("it answered {status}, and nothing else").into()));
            }
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status.is_redirection() {
            let place = text_of(&response, "location").unwrap_or_default();
            let told = format!("it sends on to {}, which is not followed", shown(place.as_bytes()));
            return Err(Failed::UnexpectedServerResponse(told.into()));
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(Failed::SessionExpired);
        }
        let kind = text_of(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        let session = text_of(&response, SESSION);
        if !status.is_success() {
            let body = read(response).await?;
            return refused(&message, has_session, status, &body, session);
        }
        if kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(events(response, Arc::clone(&self.trouble)), session));
        }
        let body = read(response).await?;
        match serde_json::from_slice(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(_) if !is_awaited => Ok(StreamableHttpPostResponse::Accepted),
            Err(_) => {
                let what = format!("it answered with {}, which is no message of this protocol", shown(&body));
                Err(Failed::UnexpectedServerResponse(what.into()))
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let headers = headers(Some(&session_id), auth_header, custom_headers)?;
        // Whether it has let go of the session is its own business.
        self.client.delete(&*uri).headers(headers).send().await.map(drop).map_err(Failed::Client)
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        _: Option<Arc<str>>,
        _: Option<String>,
        _: Option<String>,
        _: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        Err(Failed::ServerDoesNotSupportSse)
    }
}

fn headers(
    session: Option<&str>,
    token: Option<String>,
    custom: HashMap<HeaderName, HeaderValue>,
) -> Result<HeaderMap, Failed> {
    let wrong = |name: &str| Failed::UnexpectedServerResponse(format!("the header {name} cannot be sent").into());
    let mut headers: HeaderMap = custom.into_iter().collect();
    if let Some(session) = session {
        headers.insert(SESSION, HeaderValue::from_str(session).map_err(|_| wrong(SESSION))?);
    }
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| wrong("authorization"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

fn text_of(response: &Response, name: &str) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

/// What a server means that does not want a message. One that does not know how newer clients begin is to be begun with
/// as older ones do, and is told so by the error that it would have sent.
fn refused(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    status: StatusCode,
    body: &[u8],
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, Failed> {
    let error = match serde_json::from_slice(body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        Ok(_) | Err(_) => None,
    };
    let is_forbidden = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let told = || format!("it answered {status}: {}", shown(body));
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !has_session
        && status.is_client_error()
        && !is_forbidden
    {
        let why = error.map_or_else(|| ErrorData::invalid_request(told(), None), |error| error.error);
        let answer = ServerJsonRpcMessage::error(why, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match error {
        Some(error) if !is_forbidden => {
            Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), session))
        }
        Some(_) | None => Err(Failed::UnexpectedServerResponse(told().into())),
    }
}

/// An answer while it is read.
struct Answer {
    response: Response,
    bytes: usize,
    /// Its place among the large ones.
    place: Option<SemaphorePermit<'static>>,
}

impl Answer {
    fn of(response: Response) -> Self {
        Self { response, bytes: 0, place: None }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        let chunk = self.response.chunk().await.map_err(|error| cause(&error))?;
        self.bytes += chunk.as_deref().map_or(0, <[u8]>::len);
        if self.bytes > MOST_BYTES {
            return Err(too_much());
        }
        if self.bytes > LARGE_BYTES && self.place.is_none() {
            self.place = LARGE.acquire().await.ok();
        }
        Ok(chunk)
    }
}

async fn read(response: Response) -> Result<Vec<u8>, Failed> {
    let (mut answer, mut body) = (Answer::of(response), Vec::new());
    while let Some(chunk) = answer.next().await.map_err(|why| Failed::UnexpectedServerResponse(why.into()))? {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The events of one answer. Nothing is read behind an error, which is noted: whoever waits is only told of an end.
fn events(response: Response, trouble: Trouble) -> BoxStream<'static, Result<Sse, SseError>> {
    let bytes = stream::unfold(Some(Answer::of(response)), move |answer| {
        let trouble = Arc::clone(&trouble);
        async move {
            let mut answer = answer?;
            match answer.next().await {
                Ok(chunk) => Some((Ok(chunk?), Some(answer))),
                Err(why) => {
                    *trouble.lock() = Some(why.clone());
                    Some((Err(std::io::Error::other(why)), None))
                }
            }
        }
    });
    SseStream::from_bytes_stream(bytes).take(MOST_EVENTS).boxed()
}

pub(super) fn too_much() -> String {
    format!("its answer is longer than {} MB", MOST_BYTES >> 20)
}

/// The beginning of an answer, for people.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(TOLD)]);
    if text.trim().is_empty() { "nothing".to_owned() } else { text.trim().to_owned() }
}
