//! Lines of a client, up to a length. The SDK would leave out a line that is too long, and let the client wait for ever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Ends with a line that is too long.
#[derive(Debug)]
pub(super) struct BoundedLines<R> {
    input: R,
    longest: usize,
    /// Bytes since the last line break.
    since: usize,
    cut: Cut,
}

/// Whether a line was too long.
#[derive(Debug, Clone, Default)]
pub(super) struct Cut(Arc<AtomicBool>);

impl Cut {
    pub(super) fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<R> BoundedLines<R> {
    pub(super) fn new(input: R, longest: usize) -> (Self, Cut) {
        let cut = Cut::default();
        (Self { input, longest, since: 0, cut: cut.clone() }, cut)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.input).poll_read(cx, buffer))?;
        let read = &buffer.filled()[before..];
        // Of several lines in one piece only the first goes on from before, and only the last may grow.
        let first = read.iter().position(|byte| *byte == b'\n');
        let longest = self.since + first.unwrap_or(read.len());
        self.since = match read.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => read.len() - last - 1,
            None => longest,
        };
        if longest > self.longest {
            self.cut.0.store(true, Ordering::Relaxed);
            // Whoever gets an error has got nothing.
            buffer.set_filled(before);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the line is too long")));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    async fn read(text: &str, longest: usize) -> (bool, bool) {
        let (mut lines, cut) = BoundedLines::new(in_pieces(text), longest);
        let mut all = String::new();
        (lines.read_to_string(&mut all).await.is_ok_and(|_| all == text), cut.happened())
    }

    /// The text in pieces of three bytes.
    fn in_pieces(text: &str) -> impl AsyncRead + Unpin {
        let pieces: Vec<_> = text.as_bytes().chunks(3).map(<[u8]>::to_vec).collect();
        pieces.into_iter().fold(Box::new(tokio::io::empty()) as Box<dyn AsyncRead + Unpin>, |all, piece| {
            Box::new(all.chain(io::Cursor::new(piece)))
        })
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_ends_the_stream_and_short_ones_do_not() {
        assert_eq!(read("12345678\n1234567890\n\n1\n", 10).await, (true, false));
        assert_eq!(read("12345678\n12345678901\n", 10).await, (false, true));
        assert_eq!(read("12345678901234", 10).await, (false, true));
    }
}
