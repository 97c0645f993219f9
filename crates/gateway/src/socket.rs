//! `/api/v1/socket`: many requests at once on one WebSocket.
//!
//! The first frame says who is there. Each request is a task of its own; their replies share one bounded
//! channel to the writer. When the connection ends, the tasks end, and the runs they followed go on.

use crate::access::Identity;
use crate::bounds;
use crate::call::Call;
use crate::error::{Code, ErrorBody, Gone, ServiceError, StreamError};
use crate::frames::{Breach, Counted, Tally};
use crate::guests::{Client, Guest};
use crate::inside::Gateway;
use crate::json::{self, JsonError};
use crate::knocks::Knock;
use crate::outbox::{Outbox, Replies, Reply};
use crate::request_memory::{BodyPlace, Full, Place};
use crate::services::Service;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use trellis_domain::{Flow, Surface};

/// Buffers of a connection that says nothing. The library's own are 128 KiB each way.
const BUFFER: usize = 4 * 1024;
/// What is ready goes out in pieces of this size: each costs a call to the system. Only a connection that sends much
/// holds so much.
const TOGETHER: usize = 32 * 1024;
/// How long a peer may take to authenticate.
const INTRODUCTION: Duration = Duration::from_secs(30);
/// Every reply repeats the id of its request.
const LONGEST_ID: usize = 1024;
/// A peer that said nothing for this long is asked whether it is still there, and given as long to answer.
const QUIET: Duration = Duration::from_mins(1);
/// How long the last replies may take to be sent.
const PARTING: Duration = Duration::from_secs(5);

/// Open a socket
///
/// A WebSocket for many requests at once, as stock TrustGraph clients speak it: first `{"type": "auth", "token": …}`,
/// then frames with `id`, `service`, `flow`, `workspace` and `request`. Replies stream under the id.
#[utoipa::path(
    get, path = "/api/v1/socket", tag = "compatible", operation_id = "openSocket",
    responses(
        (status = 101, description = "The connection is a WebSocket now"),
        (status = 400, description = "This is no WebSocket handshake", body = String, content_type = "text/plain"),
        (status = 403, description = "From a page of another site", body = ErrorBody),
        (status = 429, description = "Too many wrong tokens came from this address", body = ErrorBody),
        (status = 426, description = "The connection cannot be upgraded", body = String, content_type = "text/plain"),
    ),
)]
pub(crate) async fn upgrade(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let (client, upgraded) = (parts.extensions.get::<Client>().cloned(), parts.extensions.get::<OnUpgrade>().cloned());
    // The handshake is checked for us; the connection is taken over here, where what comes can be counted.
    if let Err(wrong) = WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        return wrong.into_response();
    }
    let (Some(key), Some(upgraded)) = (parts.headers.get(header::SEC_WEBSOCKET_KEY), upgraded) else {
        return StatusCode::UPGRADE_REQUIRED.into_response();
    };
    let accepted = derive_accept_key(key.as_bytes());
    tokio::spawn(async move {
        match upgraded.await {
            Ok(upgraded) => Connection::serve(gateway, TokioIo::new(upgraded), client).await,
            Err(error) => tracing::debug!(%error, "a connection broke before it was a socket"),
        }
    });
    let headers = [
        (header::CONNECTION, "upgrade".to_owned()),
        (header::UPGRADE, "websocket".to_owned()),
        (header::SEC_WEBSOCKET_ACCEPT, accepted),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

type Socket = WebSocketStream<Counted<TokioIo<Upgraded>>>;

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(bounds::BODY))
        .max_frame_size(Some(bounds::BODY))
        .read_buffer_size(BUFFER)
        .write_buffer_size(TOGETHER)
        // Enough for what is gathered, a frame on top, and answers to pings.
        .max_write_buffer_size(TOGETHER + bounds::FRAME + 2 * bounds::SMALL)
}

/// One connection.
struct Connection {
    gateway: Arc<Gateway>,
    /// Who is there, once that is known.
    identity: Option<Identity>,
    /// When that has to be known at the latest.
    introduced_by: Instant,
    replies: Replies,
    /// What is known of the messages that come.
    tally: Tally,
    client: Option<Client>,
    tasks: JoinSet<()>,
}

impl Connection {
    async fn serve(gateway: Arc<Gateway>, stream: TokioIo<Upgraded>, client: Option<Client>) {
        let capacity = gateway.capacity();
        let (counted, tally) = Counted::new(stream, capacity.memory.clone());
        let socket = WebSocketStream::from_raw_socket(counted, Role::Server, Some(config())).await;
        let (sink, stream) = socket.split();
        let (replies, unsent) = Replies::new(capacity.unread.clone());
        let (pings, asked) = mpsc::channel(1);
        let writer = tokio::spawn(write(sink, unsent, asked));
        let closing = Arc::clone(&gateway);
        let introduced_by = Instant::now() + INTRODUCTION;
        let to_peer = replies.clone();
        let guest = client.as_ref().map(|client| client.guest.clone());
        let mut connection =
            Self { gateway, identity: None, introduced_by, replies, tally, client, tasks: JoinSet::new() };
        let goodbye = tokio::select! {
            stranger = connection.read(stream, pings) => stranger,
            () = has_to_leave(guest.as_ref()) => Some(stranger()),
            () = to_peer.broken() => None,
            () = closing.closed() => {
                // Tasks that wait for a peer which does not read are not waited for.
                drop(tokio::time::timeout(PARTING, connection.finish()).await);
                Some(CloseFrame { code: CloseCode::Away, reason: "the server is stopping".into() })
            }
        };
        // Dropping the connection ends its tasks and, with the last sender, the writer; a peer that does not read
        // is not waited for.
        drop((connection, to_peer));
        let stop = writer.abort_handle();
        let part = async {
            if let Ok(Some(mut sink)) = writer.await {
                // The peer may be gone already.
                drop(sink.send(Message::Close(goodbye)).await);
            }
        };
        if tokio::time::timeout(PARTING, part).await.is_err() {
            stop.abort();
        }
    }

    /// Lets what is nearly done say so before the socket closes.
    async fn finish(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// Reads until the peer is gone, or is not to be listened to any more: then with what to send it.
    async fn read(&mut self, mut stream: SplitStream<Socket>, pings: mpsc::Sender<()>) -> Option<CloseFrame> {
        let mut asked = false;
        loop {
            let frame = tokio::select! {
                frame = tokio::time::timeout(QUIET, stream.next()) => frame,
                () = tokio::time::sleep_until(self.introduced_by), if self.identity.is_none() => return Some(stranger()),
                // Tasks that have ended make room.
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => continue,
            };
            let text = match frame {
                Err(_) if asked => return None,
                Err(_) => {
                    asked = true;
                    // One that waits already will do.
                    pings.try_send(()).ok();
                    continue;
                }
                Ok(None) => return None,
                Ok(Some(Err(error))) => return self.wrong(&error).await,
                Ok(Some(Ok(Message::Text(text)))) => Bytes::from(text),
                Ok(Some(Ok(Message::Binary(bytes)))) => bytes,
                Ok(Some(Ok(Message::Close(_)))) => return None,
                Ok(Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)))) => {
                    asked = false;
                    continue;
                }
            };
            asked = false;
            let place = self.tally.place();
            match self.frame(&text, place).await {
                Ok(Next::GoOn) => {}
                Ok(Next::Leave) => return Some(stranger()),
                Err(Gone) => return None,
            }
        }
    }

    /// Handles one frame. An error means that the writer is gone.
    async fn frame(&mut self, text: &[u8], place: Place) -> Result<Next, Gone> {
        let mut frame = match json::read(text) {
            Ok(Value::Object(frame)) => frame,
            Ok(_) | Err(JsonError::Syntax(_)) => {
                return self
                    .refuse(None, &ServiceError::new(Code::BadMessage, "Bad message: a frame must be a JSON object"))
                    .await;
            }
            Err(error @ JsonError::TooManyValues) => {
                return self.refuse(None, &ServiceError::new(Code::BadMessage, format!("Bad message: {error}"))).await;
            }
        };
        if frame.get("type").and_then(Value::as_str) == Some("auth") {
            return self.authenticate(&frame).await;
        }
        let id = frame.remove("id").filter(|id| !id.is_null());
        if id.as_ref().is_some_and(|id| id.to_string().len() > LONGEST_ID) {
            let long = format!("Bad message: the member `id` is longer than {LONGEST_ID} bytes");
            return self.refuse(None, &ServiceError::new(Code::BadMessage, long)).await;
        }
        let Some(identity) = self.identity.clone() else {
            return self.refuse(id, &ServiceError::new(Code::AuthRequired, "auth failure")).await;
        };
        if self.tasks.len() >= bounds::OUTSTANDING {
            let most = bounds::OUTSTANDING;
            let full =
                format!("{most} requests of this connection are unanswered; wait for one or open another connection");
            return self.refuse(id, &ServiceError::gateway(full)).await;
        }
        let Some(one_of_all) = self.gateway.capacity().outstanding() else {
            let most = bounds::OUTSTANDING_IN_ALL;
            let full = format!("{most} requests are unanswered on this server; ask again in a moment");
            return self.refuse(id, &ServiceError::gateway(full)).await;
        };
        let (gateway, outbox) = (Arc::clone(&self.gateway), Outbox::new(id, self.replies.clone()));
        self.tasks.spawn(async move {
            let memory = BodyPlace::new(place);
            let _taken = (memory.clone(), one_of_all);
            let serve = async {
                let (service, mut call) = addressed(&gateway, identity, frame, outbox.has_id()).await?;
                call.memory = Some(memory);
                service.stream(&gateway, call, &outbox).await
            };
            // A request must have an answer whatever happens: the stock client waits for ever.
            let serve = AssertUnwindSafe(serve).catch_unwind();
            let failed =
                |_| Err(ServiceError::gateway("this request met a fault of the server; its log tells more").into());
            let served = tokio::select! {
                // What has an end to tell tells it, also when the server is about to stop.
                biased;
                served = serve => served.unwrap_or_else(failed),
                () = gateway.closed() => Err(ServiceError::stopping().into()),
            };
            if let Err(StreamError::Service(error)) = served {
                // If nobody reads it any more, so be it.
                outbox.refuse(&error).await.ok();
            }
        });
        Ok(Next::GoOn)
    }

    /// `{"type": "auth", "token": …}`: at the beginning, and whenever the credential changes.
    async fn authenticate(&mut self, frame: &Map<String, Value>) -> Result<Next, Gone> {
        let token = frame.get("token").and_then(Value::as_str).unwrap_or_default();
        if self.identity.take().is_some() {
            // Whoever was known may try again if the new credential is wrong.
            self.introduced_by = Instant::now() + INTRODUCTION;
            self.tally.estranged();
        }
        let address = self.client.as_ref().map(|client| client.address);
        let failed = |why: &str| json!({"type": "auth-failed", "error": why});
        let (reply, next) = match self.gateway.capacity().knocks.knock(self.gateway.access(), address, token) {
            Knock::Known(identity) => {
                self.tally.introduced();
                if let Some(client) = &self.client {
                    client.guest.introduced();
                }
                let home = identity.reach.home();
                self.identity = Some(identity);
                (json!({"type": "auth-ok", "default_workspace": home.as_str()}), Next::GoOn)
            }
            Knock::Unknown => (failed("this server does not know the token; set TRUSTGRAPH_TOKEN"), Next::GoOn),
            Knock::TooMany(seconds) => (failed(&ServiceError::too_many_wrong_tokens(seconds).message), Next::Leave),
        };
        self.replies.send(reply.to_string(), None).await?;
        Ok(next)
    }

    async fn refuse(&self, id: Option<Value>, error: &ServiceError) -> Result<Next, Gone> {
        Outbox::new(id, self.replies.clone()).refuse(error).await?;
        Ok(Next::GoOn)
    }

    /// What is sent to a peer of which nothing more is read; none if it is gone.
    async fn wrong(&self, error: &tungstenite::Error) -> Option<CloseFrame> {
        let tungstenite::Error::Io(broken) = error else { return wrong(error) };
        let (error, code) = match Breach::of(broken)? {
            Breach::Stranger => (ServiceError::new(Code::AuthRequired, "auth failure"), CloseCode::Policy),
            Breach::Full => (ServiceError::gateway(Full::MESSAGE), CloseCode::Again),
            Breach::Deaf => return None,
        };
        self.refuse(None, &error).await.ok();
        Some(CloseFrame { code, reason: error.message.into() })
    }
}

/// What is to be done after a frame.
enum Next {
    GoOn,
    Leave,
}

async fn has_to_leave(guest: Option<&Guest>) {
    match guest {
        Some(guest) => guest.has_to_leave().await,
        None => std::future::pending().await,
    }
}

fn stranger() -> CloseFrame {
    CloseFrame { code: CloseCode::Policy, reason: "say who you are first".into() }
}

/// What is sent to a peer that breaks the protocol; none if it is gone.
fn wrong(error: &tungstenite::Error) -> Option<CloseFrame> {
    use tungstenite::Error;
    let code = match error {
        Error::Capacity(_) => CloseCode::Size,
        Error::Utf8(_) => CloseCode::Invalid,
        Error::Protocol(_) => CloseCode::Protocol,
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Io(_)
        | Error::Tls(_)
        | Error::WriteBufferFull(_)
        | Error::AttackAttempt
        | Error::Url(_)
        | Error::Http(_)
        | Error::HttpFormat(_) => return None,
    };
    // A reason has room for 123 bytes.
    let mut reason = error.to_string();
    reason.truncate(reason.floor_char_boundary(120));
    Some(CloseFrame { code, reason: reason.into() })
}

/// Which service a frame is for, and what it is asked.
async fn addressed(
    gateway: &Gateway,
    identity: Identity,
    mut frame: Map<String, Value>,
    has_id: bool,
) -> Result<(Service, Call), ServiceError> {
    let bad = |what: &str| ServiceError::new(Code::BadMessage, format!("Bad message: {what}"));
    if !has_id {
        return Err(bad("the member `id` is missing"));
    }
    let request = match frame.remove("request") {
        Some(Value::Object(request)) => request,
        Some(_) => return Err(bad("the member `request` must be an object")),
        None => return Err(bad("the member `request` is missing")),
    };
    let text = |name: &str| match frame.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(bad(&format!("the member `{name}` must be a text"))),
    };
    let unknown = || ServiceError::new(Code::UnknownService, "unknown service");
    let (service, flow) = match text("flow")? {
        "" => (Service::of_workspace(text("service")?).ok_or_else(unknown)?, None),
        flow => {
            let named = Flow::new(flow).map_err(|error| ServiceError::new(Code::BadMessage, error.to_string()))?;
            (Service::of_flow(text("service")?).ok_or_else(unknown)?, Some(named))
        }
    };
    let inside = gateway.enter(&identity, text("workspace")?).await?;
    Ok((service, Call { inside, surface: Surface::TrustgraphSocket, flow, request, memory: None }))
}

/// Writes replies until nobody has any left, and gives the sink back; or until the peer is gone.
async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut replies: mpsc::Receiver<Reply>,
    mut pings: mpsc::Receiver<()>,
) -> Option<SplitSink<Socket, Message>> {
    let mut ready = Vec::with_capacity(bounds::UNREAD);
    loop {
        tokio::select! {
            count = replies.recv_many(&mut ready, bounds::UNREAD) => if count == 0 { return Some(sink) },
            Some(()) = pings.recv() => sink.send(Message::Ping(Bytes::new())).await.ok()?,
        }
        // What is ready goes out together: a call to the system for each frame would cost more than the frame.
        for reply in &mut ready {
            sink.feed(Message::Text(std::mem::take(&mut reply.text).into())).await.ok()?;
        }
        sink.flush().await.ok()?;
        // What they took of the room is free now.
        ready.clear();
    }
}
