//! The port `Stream` over Pulsar: a topic that keeps nothing, and a subscription for each process that goes with its connection.

use super::connection::{Incoming, LOST, Listen};
use super::link::{Link, Open};
use super::topics::{self, Listener};
use crate::back_off::BackOff;
use crate::bus::Setting;
use crate::notices::{Inbox, Outbox};
use crate::tasks::Tasks;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use std::sync::Arc;
use tokio::sync::mpsc;
use trellis_orchestrator::ports::{Stream, StreamListener, StreamMessage};

#[derive(Debug)]
pub(crate) struct PulsarStream {
    outbox: Arc<Outbox>,
    inbox: Arc<Inbox>,
    _tasks: Arc<Tasks>,
}

/// The broker drops what comes when so many are on their way to this process; that is noticed by their numbers.
const WAITING: u32 = 4_096;
/// More are asked for when so many have come.
const AT_ONCE: u32 = 256;
/// So many are on their way to the broker at once.
const UNCONFIRMED: usize = 256;

impl PulsarStream {
    pub(crate) async fn new(
        setting: &Setting,
        publishing: Link,
        consuming: Link,
        tasks: Arc<Tasks>,
    ) -> Result<Self, String> {
        let own = setting.world.fresh_id();
        let (outbox, inbox) = (Arc::new(Outbox::new(own.clone())), Arc::new(Inbox::new(own)));
        let open = consuming.now().ok_or(LOST)?;
        let hearing = Hearing { setting: setting.clone(), link: consuming, inbox: Arc::clone(&inbox) };
        let first = hearing.subscribe(&open).await?;
        tasks.spawn(hearing.run(open, first));
        let (telling, setting) = (Arc::clone(&outbox), setting.clone());
        tasks.spawn(async move { tell(&setting, publishing, &telling).await });
        Ok(Self { outbox, inbox, _tasks: tasks })
    }
}

struct Hearing {
    setting: Setting,
    link: Link,
    inbox: Arc<Inbox>,
}

type Heard = (Listener, mpsc::UnboundedReceiver<Incoming>);

impl Hearing {
    async fn subscribe(&self, open: &Open) -> Result<Heard, String> {
        let (sender, heard) = mpsc::unbounded_channel();
        let to: Listen = Arc::new(move |incoming| drop(sender.send(incoming)));
        // A name of its own each time: the broker may still think that the one before is there, and refuse a second one.
        let name = self.setting.world.fresh_id();
        let listener = topics::listen_to_notices(&self.setting, &open.session, &name, to).await?;
        listener.ask_for(WAITING);
        Ok((listener, heard))
    }

    async fn run(mut self, mut open: Arc<Open>, first: Heard) {
        let timing = self.setting.options.timing;
        let mut back_off = BackOff::new(timing.retry_first, timing.retry_longest);
        let mut heard: Result<Heard, String> = Ok(first);
        loop {
            match heard {
                Ok(heard) => {
                    back_off.succeeded();
                    self.hear_all(&open, heard).await;
                }
                Err(reason) => open.session.give_up(&reason),
            }
            self.link.replaced(&open).await;
            drop(open);
            back_off.wait(&*self.setting.world).await;
            open = self.link.connected().await;
            heard = self.subscribe(&open).await;
            self.inbox.missed();
        }
    }

    /// Until the session is lost.
    async fn hear_all(&mut self, open: &Arc<Open>, (listener, mut heard): Heard) {
        let mut taken = 0_u32;
        loop {
            let next = tokio::select! {
                biased;
                next = heard.recv() => next,
                () = self.link.replaced(open) => return,
            };
            // The connection has forgotten whom it hears for: it is lost.
            let Some(incoming) = next else { return };
            self.inbox.receive(&incoming.payload.data);
            taken = incoming.counts().saturating_add(taken);
            if taken >= AT_ONCE {
                listener.ask_for(taken);
                taken = 0;
            }
        }
    }
}

/// Publishes what waits whenever there is a connection.
async fn tell(setting: &Setting, mut link: Link, outbox: &Outbox) {
    let mut unconfirmed = FuturesUnordered::new();
    loop {
        let bytes = outbox.next().await;
        let open = link.connected().await;
        while unconfirmed.len() >= UNCONFIRMED {
            // A connection that is lost confirms nothing, but ends all that waits for it.
            if setting.in_time(unconfirmed.next()).await.is_none() {
                open.session.give_up("notices are not confirmed");
            }
        }
        // One that is too large or is lost leaves a gap, which listeners notice.
        if let Some((_, notices)) = &open.producers
            && bytes.len() <= notices.largest()
            && let Ok(receipt) = notices.send(setting, bytes)
        {
            unconfirmed.push(receipt);
        }
    }
}

impl Stream for PulsarStream {
    fn publish(&self, message: StreamMessage) {
        self.outbox.put(&message);
    }

    fn listen(&self) -> Box<dyn StreamListener> {
        self.inbox.listen()
    }
}
