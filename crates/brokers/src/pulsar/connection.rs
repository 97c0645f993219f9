//! One connection to a broker of Pulsar, from opening to loss.

use super::commands;
use super::frames::Frames;
use crate::bus::Setting;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use parking_lot::Mutex;
use pulsar::message::proto::{BaseCommand, CommandMessage};
use pulsar::message::{Message, Metadata, Payload};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::codec::Framed;

/// Where a broker is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Broker {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The broker behind it, if this is a proxy.
    pub(crate) behind: Option<String>,
}

/// An open connection. It lasts as long as its [`Driver`] runs.
pub(crate) struct OpenConnection {
    outgoing: mpsc::UnboundedSender<Message>,
    state: Arc<Mutex<State>>,
    numbers: AtomicU64,
    given_up: Arc<GivenUp>,
    /// Larger messages are refused.
    pub(crate) largest: usize,
}

/// Reads and writes.
pub(crate) type Driver = Pin<Box<dyn Future<Output = String> + Send>>;

/// What is done with the messages of a consumer.
pub(crate) type Listen = Arc<dyn Fn(Incoming) + Send + Sync>;

/// A message as it came.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) message: CommandMessage,
    pub(crate) payload: Payload,
}

impl Incoming {
    /// How many of those that were asked for it is to the broker: several if it has several in one.
    pub(crate) fn counts(&self) -> u32 {
        let together = self.payload.metadata.num_messages_in_batch.and_then(|number| u32::try_from(number).ok());
        together.unwrap_or(1).max(1)
    }
}

#[derive(Default)]
struct State {
    requests: HashMap<u64, oneshot::Sender<BaseCommand>>,
    /// By producer and number.
    sent: HashMap<(u64, u64), oneshot::Sender<Result<(), String>>>,
    consumers: HashMap<u64, Listen>,
    lost: bool,
}

#[derive(Debug, Default)]
struct GivenUp {
    reason: Mutex<Option<String>>,
    now: Notify,
}

/// The broker is asked so often whether it is there. One that has not said anything since the last time is thought to be gone.
const PING_EVERY: Duration = Duration::from_secs(15);

impl std::fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenConnection").field("largest", &self.largest).finish_non_exhaustive()
    }
}

impl OpenConnection {
    pub(crate) async fn open(setting: &Setting, broker: &Broker) -> Result<(Arc<Self>, Driver), String> {
        let opened = setting.in_time(Self::open_with(setting, broker)).await;
        opened.unwrap_or_else(|| Err(format!("nothing was answered within {:?}", setting.options.timing.answer)))
    }

    async fn open_with(setting: &Setting, broker: &Broker) -> Result<(Arc<Self>, Driver), String> {
        let mut framed = Framed::new(socket(broker).await?, Frames::up_to(DEFAULT_LARGEST));
        let connect = commands::connect(credentials(setting), broker.behind.clone());
        framed.send(connect).await.map_err(|error| error.to_string())?;
        let answer = framed.next().await.ok_or("it ends the connection")?.map_err(|error| error.to_string())?;
        if let Some(reason) = commands::refusal(&answer.command) {
            return Err(reason);
        }
        let connected = answer.command.connected.ok_or("it does not answer as Pulsar does")?;
        if !commands::is_new_enough(&connected) {
            return Err(format!("{} is too old: Pulsar 2.8 or newer is needed", connected.server_version));
        }
        let largest = connected.max_message_size.and_then(|size| usize::try_from(size).ok()).unwrap_or(DEFAULT_LARGEST);
        *framed.codec_mut() = Frames::up_to(largest);
        let (outgoing, waiting) = mpsc::unbounded_channel();
        let (state, given_up) = (Arc::new(Mutex::new(State::default())), Arc::new(GivenUp::default()));
        let numbers = AtomicU64::new(1);
        let open = Self {
            outgoing: outgoing.clone(),
            state: Arc::clone(&state),
            numbers,
            given_up: Arc::clone(&given_up),
            largest,
        };
        let driver = drive(setting.clone(), framed, waiting, outgoing.downgrade(), state, given_up);
        Ok((Arc::new(open), Box::pin(driver)))
    }

    /// A number that nothing else on this connection has.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.state.lock().lost
    }

    /// It is to be closed and opened anew.
    pub(crate) fn give_up(&self, reason: &str) {
        self.given_up.reason.lock().get_or_insert_with(|| reason.to_owned());
        self.given_up.now.notify_one();
    }

    /// Says something that is not answered. Whether it arrives is not known.
    pub(crate) fn tell(&self, message: Message) {
        // Without its driver the connection is lost, which everybody is told otherwise.
        drop(self.outgoing.send(message));
    }

    /// Asks, and waits for the answer. No answer costs the connection: what it knows of us is not known then.
    pub(crate) async fn ask(
        &self,
        setting: &Setting,
        request: impl FnOnce(u64) -> Message,
    ) -> Result<BaseCommand, String> {
        let (number, (sender, answer)) = (self.number(), oneshot::channel());
        {
            let mut state = self.state.lock();
            if state.lost {
                return Err(LOST.to_owned());
            }
            state.requests.insert(number, sender);
        }
        self.tell(request(number));
        let answered = setting.in_time(answer).await;
        let Some(answered) = answered else {
            let reason = format!("nothing was answered within {:?}", setting.options.timing.answer);
            self.give_up(&reason);
            return Err(reason);
        };
        let answer = answered.map_err(|_| LOST.to_owned())?;
        commands::refusal(&answer).map_or(Ok(answer), Err)
    }

    /// Sends a message. What is given back is ready when the broker has it.
    pub(crate) fn send(
        &self,
        (producer, sequence): (u64, u64),
        message: Message,
    ) -> Result<oneshot::Receiver<Result<(), String>>, String> {
        let (sender, receipt) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if state.lost {
                return Err(LOST.to_owned());
            }
            state.sent.insert((producer, sequence), sender);
        }
        self.tell(message);
        Ok(receipt)
    }

    /// What comes for this consumer goes there.
    pub(crate) fn listen(&self, consumer: u64, to: Listen) {
        self.state.lock().consumers.insert(consumer, to);
    }

    pub(crate) fn forget(&self, consumer: u64) {
        self.state.lock().consumers.remove(&consumer);
    }
}

pub(crate) const LOST: &str = "the connection is lost";
/// Where a broker does not say it.
const DEFAULT_LARGEST: usize = 5 * 1024 * 1024;

trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

async fn socket(broker: &Broker) -> Result<Box<dyn Socket>, String> {
    let stream = TcpStream::connect((broker.host.as_str(), broker.port)).await.map_err(|error| error.to_string())?;
    // Small messages are not to wait for each other.
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    if !broker.tls {
        return Ok(Box::new(stream));
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = rustls::pki_types::ServerName::try_from(broker.host.clone()).map_err(|error| error.to_string())?;
    let encrypted = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    Ok(Box::new(encrypted.map_err(|error| error.to_string())?))
}

/// A name with a password; a name alone is a token.
fn credentials(setting: &Setting) -> Option<(&'static str, Vec<u8>)> {
    match (&setting.address.user, &setting.address.password) {
        (Some(user), Some(password)) => Some(("basic", format!("{user}:{password}").into_bytes())),
        (Some(token), None) => Some(("token", token.clone().into_bytes())),
        (None, _) => None,
    }
}

/// Reads and writes until the connection is lost, and says why.
async fn drive(
    setting: Setting,
    framed: Framed<Box<dyn Socket>, Frames>,
    waiting: mpsc::UnboundedReceiver<Message>,
    outgoing: mpsc::WeakUnboundedSender<Message>,
    state: Arc<Mutex<State>>,
    given_up: Arc<GivenUp>,
) -> String {
    let ending = Ending(state);
    let state = &*ending.0;
    let (sink, stream) = framed.split();
    let heard = AtomicBool::new(true);
    // Both at once: a broker that reads nothing may have something to say.
    tokio::select! {
        biased;
        () = given_up.now.notified() => given_up.reason.lock().clone().unwrap_or_default(),
        reason = read(stream, state, &outgoing, &heard) => reason,
        reason = write(sink, waiting) => reason,
        reason = watch_over(&setting, &outgoing, &heard) => reason,
    }
}

/// Whoever waits for something is told by the end of its channel, also if nobody reads and writes any more.
struct Ending(Arc<Mutex<State>>);

impl Drop for Ending {
    fn drop(&mut self) {
        *self.0.lock() = State { lost: true, ..State::default() };
    }
}

async fn write(
    mut sink: impl Sink<Message, Error = impl std::fmt::Display> + Unpin,
    mut waiting: mpsc::UnboundedReceiver<Message>,
) -> String {
    while let Some(message) = waiting.recv().await {
        if let Err(error) = sink.send(message).await {
            return error.to_string();
        }
    }
    "nobody uses it any more".to_owned()
}

async fn read(
    mut stream: impl Stream<Item = Result<Message, impl std::fmt::Display>> + Unpin,
    state: &Mutex<State>,
    outgoing: &mpsc::WeakUnboundedSender<Message>,
    heard: &AtomicBool,
) -> String {
    loop {
        let message = match stream.next().await {
            None => return "the broker has closed it".to_owned(),
            Some(Err(error)) => return error.to_string(),
            Some(Ok(message)) => message,
        };
        heard.store(true, Ordering::Relaxed);
        if message.command.ping.is_some()
            && let Some(outgoing) = outgoing.upgrade()
        {
            drop(outgoing.send(commands::pong()));
        }
        if let Some(reason) = state.lock().take(message) {
            return reason;
        }
    }
}

/// Gives why it is useless if it has become so.
async fn watch_over(setting: &Setting, outgoing: &mpsc::WeakUnboundedSender<Message>, heard: &AtomicBool) -> String {
    while heard.swap(false, Ordering::Relaxed) {
        if let Some(outgoing) = outgoing.upgrade() {
            drop(outgoing.send(commands::ping()));
        }
        setting.world.sleep(PING_EVERY).await;
    }
    format!("nothing was heard of the broker for {PING_EVERY:?}")
}

impl State {
    /// Gives why the connection is useless if it has become so.
    fn take(&mut self, Message { mut command, payload }: Message) -> Option<String> {
        if let Some(message) = command.message.take() {
            // One that cannot be read is let go by whoever listens.
            let payload = payload.unwrap_or_else(|| Payload { metadata: Metadata::default(), data: Vec::new() });
            if let Some(consumer) = self.consumers.get(&message.consumer_id) {
                consumer(Incoming { message, payload });
            }
            return None;
        }
        if let Some(receipt) = command.send_receipt.take() {
            if let Some(sent) = self.sent.remove(&(receipt.producer_id, receipt.sequence_id)) {
                drop(sent.send(Ok(())));
            }
            return None;
        }
        if let Some(error) = command.send_error.take() {
            if let Some(sent) = self.sent.remove(&(error.producer_id, error.sequence_id)) {
                drop(sent.send(Err(error.message)));
            }
            return None;
        }
        // A topic that moves to another broker or is deleted: where it is now is looked up with a new connection.
        if command.close_producer.is_some() {
            return Some("the broker has closed a producer".to_owned());
        }
        if let Some(close) = &command.close_consumer {
            return self
                .consumers
                .contains_key(&close.consumer_id)
                .then(|| "the broker has closed a consumer".to_owned());
        }
        if let Some(request) = commands::answered(&command).and_then(|request| self.requests.remove(&request)) {
            drop(request.send(command));
        }
        None
    }
}
