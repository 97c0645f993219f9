//! Wake-ups as they come from Pulsar.

use super::commands;
use super::connection::{Incoming, LOST, Listen};
use super::link::{Link, Open};
use super::publisher::Publisher;
use super::topics::{self, Listener};
use crate::back_off::BackOff;
use crate::bus::Setting;
use crate::held::Held;
use crate::names::Lane;
use crate::wake_up::WakeUp;
use futures_util::future::try_join_all;
use pulsar::message::proto::MessageIdData;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use trellis_domain::Timestamp;
use trellis_orchestrator::ports::{QueueError, Role};

/// A message that is held.
#[derive(Debug, Clone)]
pub(crate) struct PulsarMessage {
    id: MessageIdData,
    place: Arc<Place>,
}

/// What a message takes of what this process holds at most. When it is free, another message is asked for.
#[derive(Debug)]
struct Place {
    listener: Listener,
    _held: Arc<()>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.listener.ask_for(1);
    }
}

/// Takes wake-ups of one role for as long as it is polled.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) setting: Setting,
    pub(crate) role: Role,
    pub(crate) link: Link,
    pub(crate) held: Arc<Held<PulsarMessage>>,
    pub(crate) publisher: Arc<Publisher>,
}

#[derive(Debug)]
struct LaneListener {
    listener: Listener,
    /// Shared with all messages that are held.
    held: Arc<()>,
    /// When it came or was last heard.
    heard: Timestamp,
}

type Received = mpsc::UnboundedReceiver<(Lane, Incoming)>;
type Lanes = HashMap<Lane, LaneListener>;

/// A listener that holds nothing and has heard nothing for so long while something waits may be forgotten by the broker.
const STALLED_AFTER: Duration = Duration::from_secs(30);

impl Consumer {
    pub(crate) async fn run(mut self) {
        let timing = self.setting.options.timing;
        let mut back_off = BackOff::new(timing.retry_first, timing.retry_longest);
        loop {
            let open = self.link.connected().await;
            let (sender, received) = mpsc::unbounded_channel();
            match self.listen_to_all(&open, &sender).await {
                Ok(lanes) => {
                    back_off.succeeded();
                    let ended = self.take_all(&open, lanes, &sender, received).await;
                    open.session.give_up(&ended);
                }
                Err(reason) => open.session.give_up(&reason),
            }
            self.held.lose_connection();
            self.link.replaced(&open).await;
            drop(open);
            back_off.wait(&*self.setting.world).await;
        }
    }

    async fn listen_to_all(&self, open: &Open, to: &mpsc::UnboundedSender<(Lane, Incoming)>) -> Result<Lanes, String> {
        let lanes = self.setting.names.lanes(self.role).map(|lane| async move {
            let listener = self.listen(open, lane, to).await?;
            Ok::<_, String>((lane, listener))
        });
        Ok(try_join_all(lanes).await?.into_iter().collect())
    }

    async fn listen(
        &self,
        open: &Open,
        lane: Lane,
        to: &mpsc::UnboundedSender<(Lane, Incoming)>,
    ) -> Result<LaneListener, String> {
        let to = to.clone();
        let to: Listen = Arc::new(move |incoming| drop(to.send((lane, incoming))));
        let listener = topics::listen_to_lane(&self.setting, &open.session, lane, to).await?;
        listener.ask_for(u32::from(self.setting.options.prefetch));
        Ok(LaneListener { listener, held: Arc::default(), heard: self.setting.world.now() })
    }

    /// Gives why it has ended.
    async fn take_all(
        &mut self,
        open: &Arc<Open>,
        mut lanes: Lanes,
        to: &mpsc::UnboundedSender<(Lane, Incoming)>,
        mut received: Received,
    ) -> String {
        let mut link = self.link.clone();
        let mut look = self.setting.world.sleep(STALLED_AFTER);
        loop {
            tokio::select! {
                biased;
                Some((lane, incoming)) = received.recv() => if let Some(lane) = lanes.get_mut(&lane)
                    // What came to one that was made anew since comes again.
                    && incoming.message.consumer_id == lane.listener.number
                {
                    lane.heard = self.setting.world.now();
                    self.put(lane, incoming).await;
                },
                () = link.replaced(open) => return LOST.to_owned(),
                () = &mut look => {
                    if let Err(reason) = self.renew_stalled(open, &mut lanes, to).await {
                        return reason;
                    }
                    look = self.setting.world.sleep(STALLED_AFTER);
                }
            }
        }
    }

    async fn put(&self, lane: &LaneListener, incoming: Incoming) {
        // Several in one message have one place here.
        let more = incoming.counts() - 1;
        if more > 0 {
            lane.listener.ask_for(more);
        }
        let Incoming { message, payload } = incoming;
        let place = Arc::new(Place { listener: lane.listener.clone(), _held: Arc::clone(&lane.held) });
        let (id, before) = (message.message_id, message.redelivery_count.unwrap_or_default());
        match WakeUp::read(&payload.data) {
            Ok(WakeUp { turn, handed_out }) => {
                self.publisher.has_come(&turn);
                let count = handed_out.saturating_add(before).saturating_add(1);
                if let Some(merged) = self.held.put(turn, count, PulsarMessage { id, place }).await {
                    drop(acknowledge(&self.setting, &merged).await);
                }
            }
            Err(reason) => {
                let place_of_it = format!("{}:{}", id.ledger_id, id.entry_id);
                tracing::warn!(%reason, message = place_of_it, "a message is no wake-up; it is dropped");
                drop(acknowledge(&self.setting, &PulsarMessage { id, place }).await);
            }
        }
    }

    /// Listens anew where nothing comes although something waits. It may be in the hands of others; then nothing is lost by it.
    async fn renew_stalled(
        &self,
        open: &Open,
        lanes: &mut Lanes,
        to: &mpsc::UnboundedSender<(Lane, Incoming)>,
    ) -> Result<(), String> {
        let now = self.setting.world.now();
        for (name, lane) in lanes {
            let silent = u128::from(now.ms_since(lane.heard)) >= STALLED_AFTER.as_millis();
            if !silent || Arc::strong_count(&lane.held) > 1 || lane.listener.waiting(&self.setting).await? == 0 {
                continue;
            }
            tracing::debug!(lane = ?name, "a consumer that nothing comes to is made anew");
            lane.listener.close(&self.setting).await?;
            *lane = self.listen(open, *name, to).await?;
        }
        Ok(())
    }
}

/// Tells Pulsar that a message is done.
pub(crate) async fn acknowledge(setting: &Setting, message: &PulsarMessage) -> Result<(), QueueError> {
    let Listener { connection, number } = &message.place.listener;
    let done = connection.ask(setting, |request| commands::acknowledge(request, *number, message.id.clone())).await;
    done.map(drop).map_err(|reason| {
        if connection.is_lost() {
            return QueueError::Stale;
        }
        // Nobody here has it any more, and the broker would keep it for this connection as long as that lives.
        connection.give_up(&reason);
        QueueError::Unavailable(reason)
    })
}

/// Has Pulsar hand out a message again at once.
pub(crate) fn requeue(message: &PulsarMessage) {
    let Listener { connection, number } = &message.place.listener;
    connection.tell(commands::redeliver(*number, message.id.clone()));
}
