//! What lies at the broker: a topic for each lane with one subscription that all processes share, and a topic for notices.

use super::commands::{self, Listening};
use super::connection::{Incoming, Listen, OpenConnection};
use super::session::Session;
use crate::bus::Setting;
use crate::names::Lane;
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The subscription of all processes. What is published without one is gone.
const SUBSCRIPTION: &str = "trellis";

/// Tells the broker's messages of one sender apart.
#[derive(Debug)]
pub(crate) struct Producer {
    connection: Arc<OpenConnection>,
    number: u64,
    name: String,
    sent: Mutex<u64>,
}

/// A listener of a topic.
#[derive(Debug, Clone)]
pub(crate) struct Listener {
    pub(crate) connection: Arc<OpenConnection>,
    pub(crate) number: u64,
}

/// Where wake-ups of a lane are sent.
#[derive(Debug)]
pub(crate) struct LaneProducer {
    pub(crate) producer: Producer,
    /// Asks for nothing. It is there because only listeners are told how much waits.
    watcher: Listener,
}

pub(crate) fn lane_topic(setting: &Setting, lane: Lane) -> String {
    format!("persistent://{}/{}", setting.address.virtual_host, setting.names.queue(lane))
}

fn notices_topic(setting: &Setting) -> String {
    format!("non-persistent://{}/{}", setting.address.virtual_host, setting.names.notices())
}

/// Makes the topics of all lanes, if they are not there, and producers for them.
pub(crate) async fn produce_all(
    setting: &Setting,
    session: &Session,
) -> Result<(HashMap<Lane, LaneProducer>, Producer), String> {
    let lanes = setting.names.all_lanes().map(|lane| async move {
        // First: what comes before the subscription would be lost.
        let watcher = listen_to_lane(setting, session, lane, Arc::new(drop::<Incoming>)).await?;
        let producer = Producer::open(setting, session, &lane_topic(setting, lane)).await?;
        Ok::<_, String>((lane, LaneProducer { producer, watcher }))
    });
    let lanes = try_join_all(lanes).await?.into_iter().collect();
    Ok((lanes, Producer::open(setting, session, &notices_topic(setting)).await?))
}

/// Joins those who take the wake-ups of a lane.
pub(crate) async fn listen_to_lane(
    setting: &Setting,
    session: &Session,
    lane: Lane,
    to: Listen,
) -> Result<Listener, String> {
    listen(setting, session, &lane_topic(setting, lane), (SUBSCRIPTION, Listening::Shared), to).await
}

/// Listens to notices, under a name that nobody else has.
pub(crate) async fn listen_to_notices(
    setting: &Setting,
    session: &Session,
    name: &str,
    to: Listen,
) -> Result<Listener, String> {
    listen(setting, session, &notices_topic(setting), (name, Listening::Own), to).await
}

async fn listen(
    setting: &Setting,
    session: &Session,
    topic: &str,
    (name, how): (&str, Listening),
    to: Listen,
) -> Result<Listener, String> {
    let act = |connection: Arc<OpenConnection>| {
        let to = Arc::clone(&to);
        async move {
            let number = connection.number();
            connection.listen(number, to);
            let subscribe = |request| commands::subscribe(request, number, topic, name, how);
            if let Err(reason) = connection.ask(setting, subscribe).await {
                connection.forget(number);
                return Err(format!("{topic}: {reason}"));
            }
            Ok(Listener { connection, number })
        }
    };
    session.at_topic(topic, act).await
}

impl Producer {
    async fn open(setting: &Setting, session: &Session, topic: &str) -> Result<Self, String> {
        let act = |connection: Arc<OpenConnection>| async move {
            let number = connection.number();
            let produce = |request| commands::produce(request, number, topic);
            let made = connection.ask(setting, produce).await.map_err(|reason| format!("{topic}: {reason}"))?;
            let name = made.producer_success.map(|made| made.producer_name).unwrap_or_default();
            Ok(Self { connection, number, name, sent: Mutex::new(0) })
        };
        session.at_topic(topic, act).await
    }

    pub(crate) fn largest(&self) -> usize {
        self.connection.largest
    }

    /// What is given back is ready when the broker has it.
    pub(crate) fn send(
        &self,
        setting: &Setting,
        data: Vec<u8>,
    ) -> Result<oneshot::Receiver<Result<(), String>>, String> {
        // Until it is on its way: a namespace without duplicates drops what comes after a larger number, and confirms it.
        let mut sent = self.sent.lock();
        let sequence = *sent;
        *sent += 1;
        let now_ms = u64::try_from(setting.world.now().as_micros() / 1_000).unwrap_or_default();
        let message = commands::send(self.number, &self.name, sequence, now_ms, data);
        self.connection.send((self.number, sequence), message)
    }
}

impl LaneProducer {
    pub(crate) async fn waiting(&self, setting: &Setting) -> Result<u64, String> {
        self.watcher.waiting(setting).await
    }
}

impl Listener {
    /// How many messages wait or are in hand, of this listener and all others.
    pub(crate) async fn waiting(&self, setting: &Setting) -> Result<u64, String> {
        let asked = self.connection.ask(setting, |request| commands::statistics(request, self.number)).await?;
        Ok(asked.consumer_stats_response.and_then(|told| told.msg_backlog).unwrap_or_default())
    }

    /// Asks for so many messages more.
    pub(crate) fn ask_for(&self, messages: u32) {
        self.connection.tell(commands::flow(self.number, messages));
    }

    /// If it cannot be closed, the broker may go on sending to it, and nobody hears that.
    pub(crate) async fn close(&self, setting: &Setting) -> Result<(), String> {
        self.connection.forget(self.number);
        self.connection.ask(setting, |request| commands::close_consumer(request, self.number)).await.map(drop)
    }
}
