//! Wake-ups on their way to Pulsar.

use super::connection::LOST;
use super::link::{Link, Open};
use super::topics::LaneProducer;
use crate::bus::Setting;
use crate::names::Lane;
use crate::sent::Sent;
use crate::wake_up::WakeUp;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Semaphore;
use trellis_domain::Timestamp;
use trellis_orchestrator::ports::{OpenTurn, QueueError, Role};

#[derive(Debug)]
pub(crate) struct Publisher {
    setting: Setting,
    link: Link,
    sent: Mutex<Sent>,
    rooms: Mutex<HashMap<Lane, Room>>,
    /// So many wait for their confirmation at once.
    unconfirmed: Semaphore,
}

/// How many more a lane may have. Pulsar itself only bounds bytes, and those of a namespace.
#[derive(Debug, Clone, Copy)]
struct Room {
    left: u64,
    looked: Timestamp,
}

const UNCONFIRMED: usize = 256;
/// After so long it is looked again how long a lane is.
const LOOK_EVERY_MS: u64 = 1_000;

impl Publisher {
    pub(crate) fn new(setting: &Setting, link: Link) -> Self {
        let (sent, rooms, unconfirmed) = (Mutex::default(), Mutex::default(), Semaphore::new(UNCONFIRMED));
        Self { setting: setting.clone(), link, sent, rooms, unconfirmed }
    }

    /// Publishes a turn, unless it is likely to wait at the broker already.
    pub(crate) async fn publish(&self, turn: OpenTurn) -> Result<(), QueueError> {
        let (open, lane) = (self.open()?, self.lane(&turn));
        if !self.may_send(&open, lane, &turn).await? {
            return Ok(());
        }
        self.find_room(&open, lane).await?;
        // Noted first: whoever takes it may be faster than its confirmation.
        self.sent.lock().note(lane, &turn.key, self.setting.world.now());
        let key = turn.key.clone();
        let sent = self.send(&open, lane, WakeUp { turn, handed_out: 0 }).await;
        if sent.is_err() {
            self.sent.lock().forget(&key);
        }
        sent
    }

    /// Publishes a turn that was handed out before. Its message makes room soon.
    pub(crate) async fn publish_again(&self, turn: OpenTurn, handed_out: u32) -> Result<(), QueueError> {
        let (open, lane) = (self.open()?, self.lane(&turn));
        self.send(&open, lane, WakeUp { turn, handed_out }).await
    }

    /// A wake-up for it has come.
    pub(crate) fn has_come(&self, turn: &OpenTurn) {
        self.sent.lock().forget(&turn.key);
    }

    fn lane(&self, turn: &OpenTurn) -> Lane {
        self.setting.names.lane(Role::of(turn), &turn.key.scope.workspace)
    }

    fn open(&self) -> Result<Arc<Open>, QueueError> {
        let open = self.link.now();
        open.ok_or_else(|| unavailable(format!("there is no connection to {}", self.setting.address)))
    }

    async fn may_send(&self, open: &Open, lane: Lane, turn: &OpenTurn) -> Result<bool, QueueError> {
        let now = self.setting.world.now();
        let look = {
            let mut sent = self.sent.lock();
            if sent.may_send(lane, &turn.key, now) {
                return Ok(true);
            }
            sent.should_look(lane, now)
        };
        if look {
            self.look(open, lane).await?;
        }
        Ok(self.sent.lock().may_send(lane, &turn.key, now))
    }

    async fn find_room(&self, open: &Open, lane: Lane) -> Result<(), QueueError> {
        let now = self.setting.world.now();
        let mut room = self.takes_room(lane, now);
        if room.is_none() {
            self.look(open, lane).await?;
            room = self.takes_room(lane, now);
        }
        if room == Some(true) {
            return Ok(());
        }
        Err(unavailable(format!("{} is full", self.setting.names.queue(lane))))
    }

    /// None if it has to be looked first.
    fn takes_room(&self, lane: Lane, now: Timestamp) -> Option<bool> {
        let mut rooms = self.rooms.lock();
        let room = rooms.get_mut(&lane).filter(|room| now.ms_since(room.looked) < LOOK_EVERY_MS)?;
        let has_room = room.left > 0;
        room.left = room.left.saturating_sub(1);
        Some(has_room)
    }

    /// How long a lane is.
    async fn look(&self, open: &Open, lane: Lane) -> Result<(), QueueError> {
        let asked = self.setting.world.now();
        let waiting = lane_producer(open, lane)?.waiting(&self.setting).await.map_err(|reason| {
            // Nothing could be published without it: whoever watches this lane is made anew.
            open.session.give_up(&reason);
            unavailable(reason)
        })?;
        if waiting == 0 {
            self.sent.lock().seen_empty(lane, asked);
        }
        let left = u64::from(self.setting.options.longest_queue).saturating_sub(waiting);
        self.rooms.lock().insert(lane, Room { left, looked: asked });
        Ok(())
    }

    async fn send(&self, open: &Open, lane: Lane, wake_up: WakeUp) -> Result<(), QueueError> {
        let _permit = self.unconfirmed.acquire().await.expect("the semaphore is never closed");
        let producer = &lane_producer(open, lane)?.producer;
        let receipt = producer.send(&self.setting, wake_up.write()).map_err(unavailable)?;
        let reason = match self.setting.in_time(receipt).await {
            Some(Ok(Ok(()))) => return Ok(()),
            Some(Ok(Err(reason))) => reason,
            Some(Err(_)) => return Err(unavailable(LOST.to_owned())),
            None => format!("nothing was confirmed within {:?}", self.setting.options.timing.answer),
        };
        open.session.give_up(&reason);
        Err(unavailable(reason))
    }
}

fn lane_producer(open: &Open, lane: Lane) -> Result<&LaneProducer, QueueError> {
    let producer = open.producers.as_ref().and_then(|(lanes, _)| lanes.get(&lane));
    producer.ok_or_else(|| unavailable("this session does not publish".to_owned()))
}

pub(crate) fn unavailable(reason: String) -> QueueError {
    QueueError::Unavailable(reason)
}
