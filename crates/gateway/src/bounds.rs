//! How much a caller may send and leave waiting.

/// Most bytes of a request's body, and of a message on a socket. Larger documents are uploaded in pieces.
pub(crate) const BODY: usize = 32 << 20;
/// Most bytes that are held of all large requests together, while they arrive and until they are answered.
pub(crate) const HELD: usize = 128 << 20;
/// A request up to this size is not large.
pub(crate) const SMALL: usize = 64 << 10;
/// Requests of one socket that may be unanswered at a time.
pub(crate) const OUTSTANDING: usize = 256;
/// Messages that wait for a slow reader before whoever writes them waits too.
pub(crate) const UNREAD: usize = 32;
/// Most bytes of those messages. A long one waits until others are sent.
pub(crate) const UNREAD_BYTES: usize = 2 << 20;
/// Most bytes of one frame to a client: the stock one closes the connection at 1 MiB, and then waits for ever.
pub(crate) const FRAME: usize = (1 << 20) - 1;
/// Most bytes of text in one frame; escaped, it may become six times as long.
pub(crate) const PIECE: usize = 128 << 10;
