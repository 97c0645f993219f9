//! A connection that notices when its peer does not read.

use crate::peer::Connection;
use crate::unread::Unread;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How often a peer is looked after that reads nothing, and how often in all.
const LOOK: Duration = Duration::from_secs(5);
const LOOKS: u32 = 12;

/// Breaks when what is written to it does not go away: after a while, and soon if others need the room that it takes.
#[derive(Debug)]
pub(crate) struct Line {
    stream: Connection,
    unread: Unread,
    /// Since something did not fit.
    stalled: Option<Pin<Box<Sleep>>>,
    looks: u32,
}

impl Line {
    pub(crate) fn new(stream: Connection, unread: Unread) -> Self {
        Self { stream, unread, stalled: None, looks: 0 }
    }

    /// What came of writing.
    fn watching_progress<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        if self.stalled.is_none() {
            self.looks = 0;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(LOOK)));
        while stalled.as_mut().poll(cx).is_ready() {
            self.looks += 1;
            if self.looks >= LOOKS || self.unread.is_wanted() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")));
            }
            stalled.as_mut().reset(Instant::now() + LOOK);
        }
        Poll::Pending
    }
}

impl AsyncRead for Line {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watching_progress(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.watching_progress(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
