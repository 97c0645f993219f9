//! A way to a server that can be cut.

use parking_lot::Mutex;
use std::io::copy;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// Connections through it go on to a port, until they are cut.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    connections: Arc<Mutex<Connections>>,
}

#[derive(Debug, Default)]
struct Connections {
    open: Vec<TcpStream>,
    taken: usize,
    refusing: bool,
}

impl Proxy {
    /// Its threads end with the process.
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let connections = Arc::new(Mutex::new(Connections::default()));
        let shared = Arc::clone(&connections);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut connections = shared.lock();
                connections.taken += 1;
                if !connections.refusing
                    && let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server))
                {
                    for (from, to) in [(&client, &server), (&server, &client)] {
                        let clone = |stream: &TcpStream| stream.try_clone().expect("a socket can be shared");
                        let (mut from, mut to) = (clone(from), clone(to));
                        thread::spawn(move || {
                            drop(copy(&mut from, &mut to));
                            drop(to.shutdown(Shutdown::Both));
                        });
                    }
                    connections.open.extend([client, server]);
                }
            }
        });
        Self { port, connections }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// How often somebody has connected.
    pub fn taken(&self) -> usize {
        self.connections.lock().taken
    }

    /// Ends all connections.
    pub fn cut(&self) {
        for stream in self.connections.lock().open.drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Whether new connections end at once.
    pub fn refuse(&self, refusing: bool) {
        self.connections.lock().refusing = refusing;
    }
}
