//! The other end of a connection, and whether it is still there.
//!
//! HTTP does not look while it waits for a reply, because a client may close the half of the connection on which it has
//! said everything. What is worth something only to its caller looks for itself.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// How long somebody who has closed a half of the connection may wait on the other one.
const LISTENING: Duration = Duration::from_secs(1);
/// After this long it is looked again at a peer that has sent more than was read yet.
const AGAIN: Duration = Duration::from_millis(100);

/// A connection as HTTP uses it.
#[derive(Debug)]
pub(crate) struct Connection {
    read: Arc<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

/// Whoever is at the other end.
#[derive(Debug, Clone)]
pub(crate) struct Peer(Arc<OwnedReadHalf>);

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        Self { read: Arc::new(read), write }
    }

    pub(crate) fn peer(&self) -> Peer {
        Peer(Arc::clone(&self.read))
    }
}

impl Peer {
    /// Waits until the peer has gone.
    pub(crate) async fn left(&self) {
        while self.0.ready(Interest::READABLE).await.is_ok_and(|ready| !ready.is_read_closed()) {
            tokio::time::sleep(AGAIN).await;
        }
        tokio::time::sleep(LISTENING).await;
    }
}

/// Works as long as somebody is there to get the result; None if they have left.
pub(crate) async fn while_there<T>(peer: Option<&Peer>, work: impl Future<Output = T>) -> Option<T> {
    let Some(peer) = peer else { return Some(work.await) };
    tokio::select! {
        done = work => Some(done),
        () = peer.left() => None,
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream: &TcpStream = (*self.read).as_ref();
        loop {
            ready!(stream.poll_read_ready(cx))?;
            match stream.try_read(buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.write.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(cx)
    }
}
