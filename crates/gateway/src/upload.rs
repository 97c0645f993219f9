//! A body as something that can be read where reading blocks, as it comes.

use axum::body::{Body, BodyDataStream, Bytes};
use futures_util::StreamExt;
use std::io::{self, ErrorKind, Read};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Pieces that wait to be read. Whoever sends waits, too.
const WAITING: usize = 4;
/// A body of which nothing came for so long has broken off.
const STALLED: Duration = Duration::from_secs(30);

enum Piece {
    Bytes(Bytes),
    /// Everything has come: without this, something is missing.
    End,
    Broken(ErrorKind, String),
}

/// The end that is read, on a thread.
pub(crate) struct UploadReader {
    pieces: mpsc::Receiver<Piece>,
    piece: Bytes,
    over: bool,
}

/// Nobody wants the rest.
struct Unread;

/// The end that receives.
pub(crate) struct Receiving(mpsc::Sender<Piece>);

pub(crate) fn channel() -> (Receiving, UploadReader) {
    let (send, pieces) = mpsc::channel(WAITING);
    (Receiving(send), UploadReader { pieces, piece: Bytes::new(), over: false })
}

impl Receiving {
    /// Receives a body to its end. If nobody reads it any more, because something in it is wrong, the rest is received for a
    /// while all the same: whoever is still sending would not hear why.
    pub(crate) async fn receive(self, body: Body) {
        let mut body = body.into_data_stream();
        if self.pass_on(&mut body).await.is_err() {
            let rest = async { while let Some(Ok(_)) = body.next().await {} };
            // Who goes on for so long does not listen.
            drop(timeout(STALLED, rest).await);
        }
    }

    async fn pass_on(&self, body: &mut BodyDataStream) -> Result<(), Unread> {
        loop {
            let piece = match timeout(STALLED, body.next()).await {
                Ok(Some(Ok(bytes))) => Piece::Bytes(bytes),
                Ok(None) => Piece::End,
                Ok(Some(Err(error))) => {
                    Piece::Broken(ErrorKind::ConnectionAborted, format!("the body cannot be read: {error}"))
                }
                Err(_) => {
                    let stalled = format!("nothing of the body came for {} s", STALLED.as_secs());
                    Piece::Broken(ErrorKind::TimedOut, stalled)
                }
            };
            let is_last = !matches!(piece, Piece::Bytes(_));
            self.0.send(piece).await.map_err(|_| Unread)?;
            if is_last {
                return Ok(());
            }
        }
    }
}

impl Read for UploadReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() && !self.over {
            match self.pieces.blocking_recv() {
                Some(Piece::Bytes(bytes)) => self.piece = bytes,
                Some(Piece::End) => self.over = true,
                Some(Piece::Broken(kind, why)) => return Err(io::Error::new(kind, why)),
                None => return Err(io::Error::new(ErrorKind::ConnectionAborted, "the body broke off")),
            }
        }
        let size = self.piece.len().min(out.len());
        out[..size].copy_from_slice(&self.piece.split_to(size));
        Ok(size)
    }
}
