//! The connections that one use of the bus has: to the address that it was given, and to other brokers of the cluster as far
//! as these serve a topic.

use super::commands;
use super::connection::{Broker, Driver, OpenConnection};
use crate::bus::Setting;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use pulsar::message::proto::command_lookup_topic_response::LookupType;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{OnceCell, mpsc};
use url::Url;

#[derive(Debug)]
pub(crate) struct Session {
    setting: Setting,
    broker: Broker,
    main: Arc<OpenConnection>,
    others: Mutex<HashMap<Broker, Arc<OnceCell<Arc<OpenConnection>>>>>,
    drivers: mpsc::UnboundedSender<Driver>,
}

/// Keeps the connections of a session going.
pub(crate) struct Running {
    drivers: mpsc::UnboundedReceiver<Driver>,
    running: FuturesUnordered<Driver>,
}

const REDIRECTS: usize = 5;

impl Session {
    pub(crate) async fn open(setting: &Setting) -> Result<(Self, Running), String> {
        let address = &setting.address;
        let broker = Broker { tls: address.tls, host: address.host.clone(), port: address.port, behind: None };
        let (main, driver) = OpenConnection::open(setting, &broker).await?;
        let (sender, drivers) = mpsc::unbounded_channel();
        let session = Self { setting: setting.clone(), broker, main, others: Mutex::default(), drivers: sender };
        Ok((session, Running { drivers, running: FuturesUnordered::from_iter([driver]) }))
    }

    /// All connections are to be closed and opened anew.
    pub(crate) fn give_up(&self, reason: &str) {
        self.main.give_up(reason);
    }

    /// Does something with a topic over the connection to the broker that serves it.
    pub(crate) async fn at_topic<T, F>(&self, topic: &str, act: impl Fn(Arc<OpenConnection>) -> F) -> Result<T, String>
    where
        F: Future<Output = Result<T, String>>,
    {
        let named = self.look_up(topic).await?;
        if named.behind.is_some() {
            return act(self.connected_to(named).await?).await;
        }
        // The address that was given works from here, which cannot be said of what a broker believes to be its own.
        let refused = match act(Arc::clone(&self.main)).await {
            Ok(done) => return Ok(done),
            Err(reason) if self.main.is_lost() || named == self.broker => return Err(reason),
            Err(reason) => reason,
        };
        tracing::debug!(topic, reason = %refused, "another broker is asked");
        let (host, port) = (named.host.clone(), named.port);
        let done = match self.connected_to(named).await {
            Ok(other) => act(other).await,
            Err(reason) => Err(reason),
        };
        // Which of the two is the reason cannot be known here.
        done.map_err(|reason| format!("{refused}; and at {host}:{port}, which it names: {reason}"))
    }

    /// Which broker serves a topic. One that nobody serves is given to somebody by this.
    async fn look_up(&self, topic: &str) -> Result<Broker, String> {
        let (mut asked, mut authoritative) = (Arc::clone(&self.main), false);
        for _ in 0..REDIRECTS {
            let answer = asked.ask(&self.setting, |request| commands::look_up(request, topic, authoritative)).await?;
            let answer = answer.lookup_topic_response.ok_or("it does not say who serves a topic")?;
            let url = if self.broker.tls { &answer.broker_service_url_tls } else { &answer.broker_service_url };
            let named = url.as_deref().and_then(|url| self.broker_at(url));
            let named = named.ok_or("it does not say where the broker is that serves a topic")?;
            match answer.response() {
                // One broker alone says so, too, and then it makes no difference.
                LookupType::Connect if answer.proxy_through_service_url() && named != self.broker => {
                    let behind = Some(format!("{}:{}", named.host, named.port));
                    return Ok(Broker { behind, ..self.broker.clone() });
                }
                LookupType::Connect => return Ok(named),
                LookupType::Redirect => {
                    authoritative = answer.authoritative();
                    asked = self.connected_to(named).await?;
                }
                LookupType::Failed => return Err("it does not find who serves a topic".to_owned()),
            }
        }
        Err("brokers send from one to the other".to_owned())
    }

    fn broker_at(&self, url: &str) -> Option<Broker> {
        let url = Url::parse(url).ok()?;
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some(Broker { tls: self.broker.tls, host, port: url.port()?, behind: None })
    }

    async fn connected_to(&self, broker: Broker) -> Result<Arc<OpenConnection>, String> {
        if broker == self.broker {
            return Ok(Arc::clone(&self.main));
        }
        let cell = Arc::clone(self.others.lock().entry(broker.clone()).or_default());
        let open = cell.get_or_try_init(|| async {
            let (open, driver) = OpenConnection::open(&self.setting, &broker).await?;
            self.drivers.send(driver).map_err(|_| "the session has ended")?;
            Ok::<_, String>(open)
        });
        open.await.cloned()
    }
}

impl Running {
    /// Waits until one of the connections is lost, and says why.
    pub(crate) async fn lost(&mut self) -> String {
        loop {
            tokio::select! {
                biased;
                Some(reason) = self.running.next() => return reason,
                Some(driver) = self.drivers.recv() => self.running.push(driver),
                else => return "nobody uses it any more".to_owned(),
            }
        }
    }
}
