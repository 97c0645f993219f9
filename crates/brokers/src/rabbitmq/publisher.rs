//! Wake-ups on their way to RabbitMQ.

use super::connection::{OpenConnection, described};
use super::lanes;
use super::link::Link;
use crate::bus::Setting;
use crate::names::Lane;
use crate::sent::Sent;
use crate::wake_up::WakeUp;
use lapin::options::BasicPublishOptions;
use lapin::{BasicProperties, Confirmation};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Semaphore;
use trellis_orchestrator::ports::{OpenTurn, QueueError, Role};

#[derive(Debug)]
pub(crate) struct Publisher {
    setting: Setting,
    link: Link,
    sent: Mutex<Sent>,
    /// So many wait for their confirmation at once.
    unconfirmed: Semaphore,
}

const UNCONFIRMED: usize = 256;
/// Survives a restart of the broker.
const PERSISTENT: u8 = 2;

impl Publisher {
    pub(crate) fn new(setting: &Setting, link: Link) -> Self {
        Self { setting: setting.clone(), link, sent: Mutex::default(), unconfirmed: Semaphore::new(UNCONFIRMED) }
    }

    pub(crate) fn lane(&self, turn: &OpenTurn) -> Lane {
        self.setting.names.lane(Role::of(turn), &turn.key.scope.workspace)
    }

    /// Publishes a turn, unless it is likely to wait at the broker already.
    pub(crate) async fn publish(&self, turn: OpenTurn) -> Result<(), QueueError> {
        let open = self.open()?;
        let lane = self.lane(&turn);
        if !self.may_send(&open, lane, &turn).await {
            return Ok(());
        }
        // Noted first: whoever takes it may be faster than its confirmation.
        self.sent.lock().note(lane, &turn.key, self.setting.world.now());
        let key = turn.key.clone();
        let sent = self.send(&open, lane, WakeUp { turn, handed_out: 0 }).await;
        if sent.is_err() {
            self.sent.lock().forget(&key);
        }
        sent
    }

    /// Publishes a turn that was handed out before.
    pub(crate) async fn publish_again(&self, turn: OpenTurn, handed_out: u32) -> Result<(), QueueError> {
        let (open, lane) = (self.open()?, self.lane(&turn));
        self.send(&open, lane, WakeUp { turn, handed_out }).await
    }

    /// A wake-up for it has come.
    pub(crate) fn has_come(&self, turn: &OpenTurn) {
        self.sent.lock().forget(&turn.key);
    }

    fn open(&self) -> Result<Arc<OpenConnection>, QueueError> {
        let open = self.link.now();
        let open = open.ok_or_else(|| unavailable(format!("there is no connection to {}", self.setting.address)))?;
        match open.blocked() {
            Some(reason) => Err(unavailable(format!("RabbitMQ takes no messages: {reason}"))),
            None => Ok(open),
        }
    }

    async fn may_send(&self, open: &OpenConnection, lane: Lane, turn: &OpenTurn) -> bool {
        let asked = self.setting.world.now();
        let look = {
            let mut sent = self.sent.lock();
            if sent.may_send(lane, &turn.key, asked) {
                return true;
            }
            sent.should_look(lane, asked)
        };
        if look {
            match self.setting.in_time(lanes::waiting(&self.setting, open, lane)).await {
                Some(Ok(0)) => self.sent.lock().seen_empty(lane, asked),
                Some(Ok(_)) | None => {}
                Some(Err(reason)) => open.give_up(&reason),
            }
        }
        self.sent.lock().may_send(lane, &turn.key, asked)
    }

    async fn send(&self, open: &OpenConnection, lane: Lane, wake_up: WakeUp) -> Result<(), QueueError> {
        let sent = self.setting.in_time(self.send_and_wait(open, lane, wake_up)).await;
        sent.unwrap_or_else(|| {
            if let Some(reason) = open.blocked() {
                return Err(unavailable(format!("RabbitMQ takes no messages: {reason}")));
            }
            let reason = format!("nothing was confirmed within {:?}", self.setting.options.timing.answer);
            open.give_up(&reason);
            Err(unavailable(reason))
        })
    }

    async fn send_and_wait(&self, open: &OpenConnection, lane: Lane, wake_up: WakeUp) -> Result<(), QueueError> {
        let _permit = self.unconfirmed.acquire().await.expect("the semaphore is never closed");
        let name = self.setting.names.queue(lane);
        let properties =
            BasicProperties::default().with_content_type("application/json".into()).with_delivery_mode(PERSISTENT);
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        // Without its channel, nothing more is published over this connection.
        let failed = |error: lapin::Error| {
            open.give_up(&described(&error));
            unavailable(described(&error))
        };
        let queue = name.as_str().into();
        let published = open.confirmed.basic_publish("".into(), queue, options, &wake_up.write(), properties).await;
        match published.map_err(failed)?.await.map_err(failed)? {
            Confirmation::Ack(None) => Ok(()),
            Confirmation::Ack(Some(_)) => {
                // All queues are declared with a new connection.
                open.give_up(&format!("the queue {name} was deleted"));
                Err(unavailable(format!("the queue {name} was deleted")))
            }
            Confirmation::Nack(_) => Err(unavailable(format!("the queue {name} is full"))),
            Confirmation::NotRequested => Err(unavailable("nothing is confirmed".to_owned())),
        }
    }
}

pub(crate) fn unavailable(reason: String) -> QueueError {
    QueueError::Unavailable(reason)
}
