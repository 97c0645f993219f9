//! The connection to NATS.

use crate::back_off;
use crate::bus::Setting;
use crate::notices::Inbox;
use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A server that answers none of two is thought to be gone.
const PING_EVERY: Duration = Duration::from_secs(15);
/// So many commands wait for the connection.
const COMMANDS: usize = 1_024;
/// So many notices wait for this process; more are dropped, which is noticed by their numbers.
const NOTICES: usize = 4_096;

pub(crate) async fn connect(setting: &Setting, inbox: Arc<Inbox>) -> Result<Client, String> {
    let (address, timing) = (&setting.address, setting.options.timing);
    let world = Arc::clone(&setting.world);
    let shown = address.to_string();
    let connected = Arc::new(AtomicBool::new(true));
    let mut options = ConnectOptions::new()
        .name("trellis")
        .connection_timeout(timing.answer)
        .request_timeout(Some(timing.answer))
        .ping_interval(PING_EVERY)
        .client_capacity(COMMANDS)
        .subscription_capacity(NOTICES)
        .no_echo()
        .require_tls(address.tls)
        .reconnect_delay_callback(move |attempts| {
            let failures = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
            back_off::delay(timing.retry_first, timing.retry_longest, failures, &*world)
        })
        .event_callback(move |event| {
            told(&event, &shown, &connected, &inbox);
            std::future::ready(())
        });
    match (&address.user, &address.password) {
        (Some(user), Some(password)) => options = options.user_and_password(user.clone(), password.clone()),
        // NATS takes a name alone as a token.
        (Some(token), None) => options = options.token(token.clone()),
        (None, _) => {}
    }
    let host = if address.host.contains(':') { format!("[{}]", address.host) } else { address.host.clone() };
    let server: ServerAddr = format!("nats://{host}:{}", address.port).parse().map_err(|error| format!("{error}"))?;
    let opened = setting.in_time(options.connect(server)).await;
    let opened = opened.ok_or_else(|| format!("nothing was answered within {:?}", timing.answer))?;
    opened.map_err(|error| described(&error))
}

/// One line for each change of state, however many attempts lie between.
fn told(event: &Event, address: &str, connected: &AtomicBool, inbox: &Inbox) {
    match event {
        Event::Connected => {
            if !connected.swap(true, Ordering::SeqCst) {
                tracing::info!(address, "the connection to NATS is back");
            }
            inbox.missed();
        }
        Event::Disconnected => {
            if connected.swap(false, Ordering::SeqCst) {
                tracing::warn!(address, "the connection to NATS is lost");
            }
        }
        Event::SlowConsumer(_) => inbox.missed(),
        // Closed: nobody uses it any more.
        Event::Closed | Event::LameDuckMode | Event::Draining | Event::ServerError(_) | Event::ClientError(_) => {
            tracing::debug!(address, %event, "NATS");
        }
    }
}

/// Commands of a client without a connection wait, and at some point their senders too. So they are not given any.
pub(crate) fn is_connected(client: &Client) -> bool {
    client.connection_state() == State::Connected
}

/// An error with what lies below it.
pub(crate) fn described(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let below = error.to_string();
        if !text.contains(&below) {
            text = format!("{text}: {below}");
        }
        source = error.source();
    }
    text
}
