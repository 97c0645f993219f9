//! How much a caller may send and leave waiting.

/// Most bytes of a request's body, and of a message on a socket. Larger documents are uploaded in pieces.
pub(crate) const BODY: usize = 32 << 20;
/// Most bytes that are held of all large requests together, while they arrive and until they are answered.
pub(crate) const HELD: usize = 64 << 20;
/// A request up to this size is not large, if its connection has no other.
pub(crate) const SMALL: usize = 64 << 10;
/// A message of a socket up to this size is not large, in either direction.
pub(crate) const SHORT: usize = 2 << 10;
/// Bytes that are listened to before it is known who is there. Each message may be as long as a small request.
pub(crate) const STRANGER: usize = 128 << 10;
/// Most bytes of a request's headers.
pub(crate) const HEADERS: usize = 64 << 10;
/// Connections in all, and those of whom it is not known who is there.
pub(crate) const CONNECTIONS: usize = 16_384;
pub(crate) const STRANGERS: usize = 512;
/// Wrong tokens from one address in a minute.
pub(crate) const WRONG_TOKENS: u32 = 20;
/// Requests of one socket that may be unanswered at a time, and of all sockets.
pub(crate) const OUTSTANDING: usize = 256;
pub(crate) const OUTSTANDING_IN_ALL: usize = 8_192;
/// Messages that wait for a slow reader before whoever writes them waits too.
pub(crate) const UNREAD: usize = 32;
/// Most bytes of those messages. A long one waits until others are sent.
pub(crate) const UNREAD_BYTES: usize = 2 << 20;
/// Most bytes of replies that wait for slow readers, of all connections together.
pub(crate) const UNREAD_IN_ALL: usize = 64 << 20;
/// Replies that are made at a time for one socket: those of a peer that does not read wait.
pub(crate) const FLOORS: usize = 4;
/// Replies that may be large are made so many at a time.
pub(crate) const MADE_AT_ONCE: usize = 4;
/// Runs whose evidence is gathered at a time.
pub(crate) const CHECKED_AT_ONCE: usize = 4;
/// And of one workspace: nobody keeps the others from it.
pub(crate) const CHECKED_OF_ONE_WORKSPACE: usize = 1;
/// Most bytes of the records in one reply with a run's evidence.
pub(crate) const EVIDENCE: usize = 32 << 20;
/// Bytes that wait in a connection's own buffer in the system.
pub(crate) const SEND_BUFFER: u32 = 256 << 10;
/// Most bytes of one frame to a client: the stock one closes the connection at 1 MiB, and then waits for ever.
pub(crate) const FRAME: usize = (1 << 20) - 1;
/// Most bytes of text in one frame; escaped, it may become six times as long.
pub(crate) const PIECE: usize = 128 << 10;
/// Most values in the JSON of a request: each takes far more memory than it takes bytes.
pub(crate) const VALUES: usize = 250_000;
