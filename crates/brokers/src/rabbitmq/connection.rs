//! One connection to RabbitMQ, from opening to loss.

use crate::bus::Setting;
use async_rs::TokioRuntime;
use futures_util::{Stream, StreamExt as _};
use lapin::options::ConfirmSelectOptions;
use lapin::tcp::{AsyncTcpStream, OwnedTLSConfig};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{Channel, Connection, ConnectionProperties, ErrorKind, Event};
use parking_lot::Mutex;
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Notify;

type Events = Pin<Box<dyn Stream<Item = Event> + Send>>;

/// An open connection with a channel for each use.
pub(crate) struct OpenConnection {
    connection: Connection,
    /// With publisher confirms.
    pub(crate) confirmed: Channel,
    /// Without.
    pub(crate) unconfirmed: Channel,
    /// Whoever watches over it takes them.
    events: Mutex<Option<Events>>,
    /// Why RabbitMQ takes no messages now.
    blocked: Mutex<Option<String>>,
    /// Somebody has found it useless.
    given_up: Mutex<Option<String>>,
    giving_up: Notify,
    _socket: Socket,
}

impl std::fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenConnection").field("blocked", &self.blocked).finish_non_exhaustive()
    }
}

/// A second handle of a connection's socket, which is closed when this is dropped. The client's own thread only ends with the
/// socket, also when nothing is answered.
struct Socket(SharedSocket);

type SharedSocket = Arc<Mutex<Option<std::net::TcpStream>>>;

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(socket) = self.0.lock().take() {
            drop(socket.shutdown(Shutdown::Both));
        }
    }
}

impl OpenConnection {
    pub(crate) async fn open(setting: &Setting, purpose: &str) -> Result<Self, String> {
        let opened = setting.in_time(Self::open_with(setting, purpose)).await;
        let opened =
            opened.ok_or_else(|| format!("nothing was answered within {:?}", setting.options.timing.answer))?;
        opened.map_err(|error| described(&error))
    }

    async fn open_with(setting: &Setting, purpose: &str) -> lapin::Result<Self> {
        let socket = Socket(SharedSocket::default());
        let runtime = lapin::runtime::default_runtime()?;
        let properties = ConnectionProperties::default().with_connection_name(format!("trellis, {purpose}").into());
        let kept = Arc::clone(&socket.0);
        let connect = async move |uri: AMQPUri, runtime: TokioRuntime| {
            let (host, port) = (uri.authority.host.clone(), uri.authority.port);
            let addresses: Vec<_> = tokio::net::lookup_host((host.as_str(), port)).await?.collect();
            let stream = AsyncTcpStream::connect(&runtime, addresses).await?;
            if let AsyncTcpStream::Plain(plain) = &stream {
                let handle = plain.get_ref().as_fd().try_clone_to_owned()?;
                *kept.lock() = Some(std::net::TcpStream::from(handle));
            }
            match uri.scheme {
                AMQPScheme::AMQP => Ok(stream),
                AMQPScheme::AMQPS => Ok(stream.into_tls(&host, OwnedTLSConfig::default().as_ref()).await?),
            }
        };
        let connection = Connection::connector(uri(setting), runtime, connect, properties).await?;
        let events: Events = Box::pin(connection.events_listener());
        let events = Mutex::new(Some(events));
        let (confirmed, unconfirmed) = (connection.create_channel().await?, connection.create_channel().await?);
        confirmed.confirm_select(ConfirmSelectOptions::default()).await?;
        let (blocked, given_up) = (Mutex::default(), Mutex::default());
        let giving_up = Notify::new();
        Ok(Self { connection, confirmed, unconfirmed, events, blocked, given_up, giving_up, _socket: socket })
    }

    pub(crate) async fn create_channel(&self) -> Result<Channel, String> {
        self.new_channel().await.map_err(|error| described(&error))
    }

    pub(crate) async fn new_channel(&self) -> lapin::Result<Channel> {
        self.connection.create_channel().await
    }

    pub(crate) fn blocked(&self) -> Option<String> {
        self.blocked.lock().clone()
    }

    /// It is to be closed and opened anew.
    pub(crate) fn give_up(&self, reason: &str) {
        self.given_up.lock().get_or_insert_with(|| reason.to_owned());
        self.giving_up.notify_one();
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connection.status().connected()
    }

    /// Waits until it is lost, and says why. There is one who does. Errors of this kind do not end it.
    pub(crate) async fn lost(&self, setting: &Setting, is_outlived: impl Fn(&lapin::Error) -> bool) -> String {
        let taken = self.events.lock().take();
        let mut events = taken.expect("each connection is watched over once");
        let timing = setting.options.timing;
        let mut blocked_until: Option<trellis_domain::Timestamp> = None;
        loop {
            let now = setting.world.now();
            let wait = match blocked_until {
                None => LOOK_EVERY,
                Some(until) if until <= now => {
                    return format!("RabbitMQ has taken no messages for {:?}", timing.blocked_at_most);
                }
                Some(until) => LOOK_EVERY.min(std::time::Duration::from_millis(until.ms_since(now) + 1)),
            };
            let event = tokio::select! {
                biased;
                () = self.giving_up.notified() => None,
                event = events.next() => event,
                () = setting.world.sleep(wait) => None,
            };
            if let Some(reason) = self.given_up.lock().clone() {
                return reason;
            }
            match event {
                Some(Event::ConnectionBlocked(reason)) => {
                    tracing::warn!(reason, "RabbitMQ takes no messages");
                    *self.blocked.lock() = Some(reason);
                    let longest = u64::try_from(timing.blocked_at_most.as_millis()).unwrap_or(u64::MAX);
                    blocked_until = Some(now.plus_ms(longest));
                }
                Some(Event::ConnectionUnblocked) => {
                    tracing::info!("RabbitMQ takes messages again");
                    *self.blocked.lock() = None;
                    blocked_until = None;
                }
                Some(Event::Error(error)) if !is_outlived(&error) => return described(&error),
                Some(_) | None => {}
            }
            if !self.is_connected() {
                return "the connection was closed".to_owned();
            }
        }
    }
}

/// Events tell of a loss at once. This is for those that do not come.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

fn uri(setting: &Setting) -> AMQPUri {
    let address = &setting.address;
    // What RabbitMQ has after its installation.
    let guest = || "guest".to_owned();
    let userinfo = AMQPUserInfo {
        username: address.user.clone().unwrap_or_else(guest),
        password: address.password.clone().unwrap_or_else(guest),
    };
    let heartbeat = u16::try_from(setting.options.timing.heartbeat.as_secs()).unwrap_or(u16::MAX);
    AMQPUri {
        scheme: if address.tls { AMQPScheme::AMQPS } else { AMQPScheme::AMQP },
        authority: AMQPAuthority { userinfo, host: address.host.clone(), port: address.port },
        vhost: address.virtual_host.clone(),
        query: AMQPQueryString { heartbeat: Some(heartbeat), ..AMQPQueryString::default() },
    }
}

/// What went wrong, in the broker's words where it has some.
pub(crate) fn described(error: &lapin::Error) -> String {
    let kind = error.kind();
    if let ErrorKind::ProtocolError(error) = kind {
        return error.get_message().to_string();
    }
    if let ErrorKind::IOError(error) = kind {
        return error.to_string();
    }
    if matches!(kind, ErrorKind::InvalidConnectionState(_) | ErrorKind::InvalidChannelState(..)) {
        return "the connection is closed".to_owned();
    }
    error.to_string()
}
