//! The servers start, die, stand still, come back, and leave nothing behind.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trellis_servers::{Nats, Postgres, Proxy, RabbitMq, RabbitMqOptions, Server};

/// The processes whose ids are noted in a server's folder.
fn processes(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let ids = files.filter(|file| file.extension().is_some_and(|extension| extension == "pid"));
    ids.map(|file| Path::new("/proc").join(std::fs::read_to_string(file).unwrap())).collect()
}

/// Kills and restarts a server, then drops it.
fn comes_back_and_leaves_nothing<S: std::ops::Deref<Target = Server>>(server: S, answers: impl Fn() -> bool) {
    let folder = server.folder().to_owned();
    assert!(answers());
    server.kill();
    assert!(!answers(), "a killed server serves nobody");
    server.start_again();
    assert!(answers());
    let processes = processes(&folder);
    assert!(!processes.is_empty() && processes.iter().all(|process| process.exists()), "{processes:?}");
    drop(server);
    assert!(processes.iter().all(|process| !process.exists()), "{processes:?} still run");
    assert!(!folder.exists());
}

/// The beginning of what a server says to whoever connects.
fn greeting(port: u16, hello: &[u8]) -> Option<[u8; 4]> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(hello).ok()?;
    let mut greeting = [0; 4];
    stream.read_exact(&mut greeting).ok().map(|()| greeting)
}

#[test]
fn nats() {
    let server = Nats::start();
    let port = server.port();
    comes_back_and_leaves_nothing(server, || greeting(port, b"") == Some(*b"INFO"));
}

#[test]
fn rabbitmq() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let port = server.port();
    // A method frame of channel 0.
    comes_back_and_leaves_nothing(server, || greeting(port, b"AMQP\0\0\x09\x01") == Some([1, 0, 0, 0]));
}

#[test]
fn postgres() {
    let server = Postgres::start();
    let socket = server.folder().join(".s.PGSQL.5432");
    comes_back_and_leaves_nothing(server, || std::os::unix::net::UnixStream::connect(&socket).is_ok());
}

#[test]
fn a_server_that_stands_still_goes_on_where_it_was() {
    let server = Nats::start();
    server.pause();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut greeting = [0; 4];
    assert!(stream.read_exact(&mut greeting).is_err(), "it says nothing while it stands still");
    server.resume();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"INFO");
}

#[test]
fn a_proxy_can_be_cut_and_refuse() {
    let server = Nats::start();
    let proxy = Proxy::to(server.port());
    assert_eq!(greeting(proxy.port(), b""), Some(*b"INFO"));
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
    let mut greeted = [0; 4];
    stream.read_exact(&mut greeted).unwrap();
    proxy.cut();
    assert!(stream.read_to_end(&mut Vec::new()).is_err() || stream.read(&mut greeted).unwrap() == 0);
    proxy.refuse(true);
    assert_eq!(greeting(proxy.port(), b""), None);
    proxy.refuse(false);
    assert_eq!(greeting(proxy.port(), b""), Some(*b"INFO"));
    assert_eq!(proxy.taken(), 4);
}
