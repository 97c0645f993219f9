//! What comes in on a WebSocket, looked at before anything is set aside for it.
//!
//! The protocol's library sets aside as much as a frame announces, and answers every ping. So each frame's head is read
//! here first: how long a message becomes is counted against the room for large requests from its first byte on, and
//! before somebody has said who it is there is only so much of everything.

use crate::bounds;
use crate::request_memory::{Place, RequestMemory};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Why nothing more of a peer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Breach {
    #[error("more came than is listened to before it is known who is there")]
    Stranger,
    #[error("there is no room for the message")]
    Full,
    #[error("the peer asks whether we are there and does not read the answers")]
    Deaf,
}

impl Breach {
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()).copied()
    }
}

/// A connection whose frames are counted.
#[derive(Debug)]
pub(crate) struct Counted<S> {
    stream: S,
    tally: Tally,
}

impl<S> Counted<S> {
    pub(crate) fn new(stream: S, memory: RequestMemory) -> (Self, Tally) {
        let tally = Tally(Arc::new(Mutex::new(Count::new(memory))));
        (Self { stream, tally: tally.clone() }, tally)
    }
}

/// What is known about the frames of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Tally(Arc<Mutex<Count>>);

impl Tally {
    /// It is known who is there: larger messages are taken from now on.
    pub(crate) fn introduced(&self) {
        self.0.lock().stranger = None;
    }

    /// It is not known any more who is there.
    pub(crate) fn estranged(&self) {
        self.0.lock().stranger = Some(bounds::STRANGER);
    }

    /// What the oldest whole message takes that was not asked for yet.
    pub(crate) fn place(&self) -> Place {
        self.0.lock().whole.pop_front().unwrap_or_default()
    }
}

/// The longest head of a frame.
const HEAD: usize = 14;

#[derive(Debug)]
struct Count {
    memory: RequestMemory,
    /// How many bytes more a stranger may send; none once it is known who is there.
    stranger: Option<usize>,
    head: Vec<u8>,
    /// How much of the frame's content is still to come.
    left: u64,
    /// Whether the frame is the last of a message.
    last: bool,
    bytes: u64,
    message: Place,
    whole: VecDeque<Place>,
    /// The last thing that was written did not fit into the connection.
    blocked: bool,
    /// Bytes of answers to pings that wait because of that.
    unread: usize,
}

impl Count {
    fn new(memory: RequestMemory) -> Self {
        Self {
            memory,
            stranger: Some(bounds::STRANGER),
            head: Vec::with_capacity(HEAD),
            left: 0,
            last: false,
            bytes: 0,
            message: Place::default(),
            whole: VecDeque::new(),
            blocked: false,
            unread: 0,
        }
    }

    fn read(&mut self, mut bytes: &[u8]) -> Result<(), Breach> {
        if let Some(left) = &mut self.stranger {
            *left = left.checked_sub(bytes.len()).ok_or(Breach::Stranger)?;
        }
        loop {
            if self.left > 0 {
                let skipped = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                self.left -= skipped as u64;
                bytes = &bytes[skipped..];
                if self.left == 0 {
                    self.end();
                }
            }
            let Some((first, rest)) = bytes.split_first() else { return Ok(()) };
            self.head.push(*first);
            bytes = rest;
            if let Some(frame) = Frame::read(&self.head) {
                self.head.clear();
                self.begin(&frame)?;
            }
        }
    }

    fn begin(&mut self, frame: &Frame) -> Result<(), Breach> {
        self.left = frame.length;
        self.last = matches!(frame.kind, Kind::Message | Kind::Fragment { last: true });
        match frame.kind {
            Kind::Message => self.take(frame.length, 1)?,
            // Fragments are gathered in a place that grows to twice the size that it needs.
            Kind::Fragment { .. } => self.take(frame.length, 2)?,
            Kind::Ping if self.blocked => {
                let answer = usize::try_from(frame.length).unwrap_or(usize::MAX).saturating_add(2);
                self.unread = self.unread.saturating_add(answer);
                if self.unread > bounds::SMALL {
                    return Err(Breach::Deaf);
                }
            }
            Kind::Ping | Kind::Other => {}
        }
        if frame.length == 0 {
            self.end();
        }
        Ok(())
    }

    /// Room for more of a message.
    fn take(&mut self, length: u64, times: usize) -> Result<(), Breach> {
        self.bytes = self.bytes.saturating_add(length);
        if self.stranger.is_some() && self.bytes > bounds::SMALL as u64 {
            return Err(Breach::Stranger);
        }
        // What is longer than a message may be is refused by the protocol's library.
        if self.bytes > bounds::BODY as u64 {
            return Ok(());
        }
        let taken = usize::try_from(length).map_err(|_| Breach::Full)?.saturating_mul(times);
        self.memory.extend_beyond(bounds::SHORT, &mut self.message, taken).map_err(|_| Breach::Full)
    }

    /// A frame is complete.
    fn end(&mut self) {
        if std::mem::take(&mut self.last) {
            self.bytes = 0;
            self.whole.push_back(std::mem::take(&mut self.message));
        }
    }

    fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => self.blocked = true,
            Poll::Ready(Ok(bytes)) => {
                self.blocked = false;
                self.unread = self.unread.saturating_sub(*bytes);
            }
            Poll::Ready(Err(_)) => {}
        }
    }
}

/// The head of a frame.
struct Frame {
    kind: Kind,
    length: u64,
}

enum Kind {
    /// A whole message by itself.
    Message,
    Fragment {
        last: bool,
    },
    Ping,
    Other,
}

impl Frame {
    /// None as long as the head is not complete.
    fn read(head: &[u8]) -> Option<Self> {
        let (&[first, short], rest) = head.split_first_chunk()?;
        let (length, rest) = match short & 0x7f {
            126 => rest.split_first_chunk().map(|(long, rest)| (u64::from(u16::from_be_bytes(*long)), rest))?,
            127 => rest.split_first_chunk().map(|(long, rest)| (u64::from_be_bytes(*long), rest))?,
            short => (u64::from(short), rest),
        };
        let mask = if short & 0x80 == 0 { 0 } else { 4 };
        let kind = match (first & 0x0f, first & 0x80 != 0) {
            (1..=7, true) => Kind::Message,
            (0..=7, last) => Kind::Fragment { last },
            (9, _) => Kind::Ping,
            _ => Kind::Other,
        };
        (rest.len() >= mask).then_some(Self { kind, length })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = read
            && let Err(breach) = self.tally.0.lock().read(&buf.filled()[before..])
        {
            buf.set_filled(before);
            return Poll::Ready(Err(io::Error::other(breach)));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.tally.0.lock().wrote(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
