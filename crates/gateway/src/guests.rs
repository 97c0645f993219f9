//! Who is connected: how many there are, and of how many it is not known who they are.

use crate::bounds;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

/// All connections of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guests(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    connections: usize,
    arrivals: u64,
    /// Those of whom it is not known who they are, in the order in which they came.
    strangers: BTreeMap<u64, Arc<Notify>>,
}

/// A connection, as long as anything holds it.
#[derive(Debug, Clone)]
pub(crate) struct Guest(Arc<Visit>);

#[derive(Debug)]
struct Visit {
    guests: Guests,
    arrival: u64,
    leave: Arc<Notify>,
}

impl Guests {
    /// Somebody new. When there are too many, the stranger that has been here longest has to leave: whoever has something
    /// to say has said it by then. None if there are too many whom we know.
    pub(crate) fn welcome(&self) -> Option<Guest> {
        let mut book = self.0.lock();
        if book.strangers.len() >= bounds::STRANGERS || book.connections >= bounds::CONNECTIONS {
            if let Some((_, leave)) = book.strangers.pop_first() {
                leave.notify_one();
            }
            // Whoever leaves is counted until it has left.
            if book.connections >= bounds::CONNECTIONS + bounds::STRANGERS {
                return None;
            }
        }
        book.connections += 1;
        book.arrivals += 1;
        let (arrival, leave) = (book.arrivals, Arc::new(Notify::new()));
        book.strangers.insert(arrival, Arc::clone(&leave));
        drop(book);
        Some(Guest(Arc::new(Visit { guests: self.clone(), arrival, leave })))
    }
}

impl Guest {
    /// It is known who this is.
    pub(crate) fn introduced(&self) {
        self.0.guests.0.lock().strangers.remove(&self.0.arrival);
    }

    /// Waits until somebody else needs the place.
    pub(crate) async fn has_to_leave(&self) {
        self.0.leave.notified().await;
    }
}

/// Who is at the other end of a connection. Held as long as it is open.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) guest: Guest,
    _open: mpsc::Sender<Infallible>,
}

impl Client {
    /// `open` is closed when the last connection is.
    pub(crate) fn new(address: SocketAddr, guest: Guest, open: mpsc::Sender<Infallible>) -> Self {
        Self { address, guest, _open: open }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut book = self.guests.0.lock();
        book.connections -= 1;
        book.strangers.remove(&self.arrival);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn the_oldest_stranger_makes_room_and_nobody_else() {
        let guests = Guests::default();
        let known = guests.welcome().unwrap();
        known.introduced();
        let strangers: Vec<_> = (0..bounds::STRANGERS).map(|_| guests.welcome().unwrap()).collect();
        assert!(strangers.iter().all(|guest| guest.has_to_leave().now_or_never().is_none()));
        let newest = guests.welcome().unwrap();
        assert!(strangers[0].has_to_leave().now_or_never().is_some());
        for guest in strangers[1..].iter().chain([&known, &newest]) {
            assert!(guest.has_to_leave().now_or_never().is_none());
        }
        drop((strangers, newest));
        let book = guests.0.lock();
        assert_eq!((book.connections, book.strangers.len()), (1, 0));
    }

    #[test]
    fn there_are_only_so_many_connections() {
        let guests = Guests::default();
        let known = || {
            let guest = guests.welcome();
            guest.iter().for_each(Guest::introduced);
            guest
        };
        let all: Vec<_> = std::iter::repeat_with(known).take(bounds::CONNECTIONS * 2).flatten().collect();
        assert_eq!(all.len(), bounds::CONNECTIONS + bounds::STRANGERS);
        drop(all);
        assert!(known().is_some());
    }
}
