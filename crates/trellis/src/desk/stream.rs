//! Following a run at a server, over broken connections and restarts.

use super::server::{Server, ServerRefusal, ServerTrouble, may_pass};
use super::sse::{Events, ServerEvent};
use crate::failure::{Exit, Failure};
use crate::show::{note, short};
use reqwest::{Method, Response, StatusCode};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use trellis_domain::RunId;
use trellis_domain::record::Record;
use trellis_orchestrator::Item;
use trellis_orchestrator::events::Chunk;

/// A server that is well breaks its silence every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// A server that was stopped may take its time to come back.
const ATTEMPTS: u32 = 40;
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A run as a server tells it. Each record comes once and in order, whatever happens to the connection.
#[derive(Debug)]
pub(crate) struct Stream<'a> {
    server: &'a Server,
    run: RunId,
    quiet: bool,
    /// The newest record that came.
    last: u64,
    connection: Option<Connection>,
    /// Attempts to connect since something came.
    attempts: u32,
    previews: Previews,
}

#[derive(Debug)]
struct Connection {
    response: Response,
    events: Events,
}

impl Connection {
    async fn next(&mut self) -> Result<ServerEvent, String> {
        loop {
            if let Some(event) = self.events.next().map_err(|error| error.to_string())? {
                return Ok(event);
            }
            let silent = |_| format!("silence for {} s", SILENCE.as_secs());
            match timeout(SILENCE, self.response.chunk()).await.map_err(silent)? {
                Ok(Some(bytes)) => self.events.push(&bytes),
                Ok(None) => return Err("the server has ended the connection".to_owned()),
                Err(error) => return Err(trellis_models::cause(&error)),
            }
        }
    }
}

impl<'a> Stream<'a> {
    pub(super) fn new(server: &'a Server, run: RunId, quiet: bool) -> Self {
        Self { server, run, quiet, last: 0, connection: None, attempts: 0, previews: Previews::default() }
    }

    /// The next item; waits for it, and for the server if need be.
    pub(crate) async fn next(&mut self) -> Result<Item, Failure> {
        loop {
            let connection = match &mut self.connection {
                Some(connection) => connection,
                None => match self.connect().await {
                    Ok(response) => {
                        self.previews.begin_again();
                        self.connection.insert(Connection { response, events: Events::new() })
                    }
                    Err(trouble) => {
                        self.wait(trouble).await?;
                        continue;
                    }
                },
            };
            match connection.next().await {
                Ok(event) => {
                    self.attempts = 0;
                    if let Some(item) = self.item(&event)? {
                        return Ok(item);
                    }
                }
                Err(why) => {
                    self.connection = None;
                    self.wait(ServerTrouble::Lost(why)).await?;
                }
            }
        }
    }

    async fn connect(&self) -> Result<Response, ServerTrouble> {
        let path = ["runs", self.run.as_str(), "events"];
        let request = self.server.request(Method::GET, &path, &[("format", "records")]);
        let response = self.server.send(request.header("last-event-id", self.last.to_string()), SILENCE).await?;
        if response.status() == StatusCode::OK {
            return Ok(response);
        }
        let status = response.status();
        Err(ServerTrouble::Foreign(format!("it answers {status} where the events of run {} were expected", self.run)))
    }

    /// Waits before the next attempt, if there is to be one. The first time, the person is told.
    async fn wait(&mut self, trouble: ServerTrouble) -> Result<(), Failure> {
        let why = match trouble {
            ServerTrouble::Lost(why) => why,
            ServerTrouble::Refused(ServerRefusal { status, message, .. }) if may_pass(status) => message,
            trouble @ (ServerTrouble::Refused(_) | ServerTrouble::Foreign(_)) => {
                return Err(self.server.failure(trouble));
            }
        };
        let url = self.server.url();
        if self.attempts >= ATTEMPTS {
            let (id, flags) = (short(&self.run), self.server.flags());
            let again = format!("once it is back, `trellis run watch {id}{flags}` goes on from here");
            return Err(Failure::new(Exit::Unreachable, format!("{url} is gone: {why}; {again}")));
        }
        if self.attempts == 0 && !self.quiet {
            note(&format!("the connection to {url} is lost ({why}); nothing else is, trying again"));
        }
        let pause = Duration::from_millis(100).saturating_mul(2_u32.saturating_pow(self.attempts));
        self.attempts += 1;
        sleep(pause.min(LONGEST_WAIT)).await;
        Ok(())
    }

    fn item(&mut self, event: &ServerEvent) -> Result<Option<Item>, Failure> {
        let unreadable = |what: String| {
            Failure::unexpected(format!("{}: {what}; is it a newer version than this program?", self.server.url()))
        };
        match event.kind.as_str() {
            "record" => {
                let record: Arc<Record> = serde_json::from_str(&event.data)
                    .map_err(|error| unreadable(format!("a record cannot be read: {error}")))?;
                let (came, expected) = (record.header.seq, self.last + 1);
                if came != expected {
                    return Err(unreadable(format!("record {came} came where {expected} was expected")));
                }
                self.last = came;
                Ok(Some(Item::Record(record)))
            }
            "chunk" => {
                let chunk: Chunk = serde_json::from_str(&event.data)
                    .map_err(|error| unreadable(format!("a piece of text cannot be read: {error}")))?;
                Ok(self.previews.news(chunk))
            }
            // Whatever a later server tells besides.
            _ => Ok(None),
        }
    }
}

/// Live text that came. Every connection tells each open message from its start: what is known is not told again.
#[derive(Debug, Default)]
struct Previews(HashMap<Arc<str>, Preview>);

#[derive(Debug, Default)]
struct Preview {
    text: String,
    /// How much of it this connection has told.
    told: usize,
    /// It was begun again with other words: its record will bring it whole.
    stale: bool,
}

impl Previews {
    fn begin_again(&mut self) {
        self.0.values_mut().for_each(|preview| preview.told = 0);
    }

    /// What of a piece is new.
    fn news(&mut self, chunk: Chunk) -> Option<Item> {
        let Chunk { session_id, message_id, chunk_type, content } = chunk;
        let preview = self.0.entry(Arc::clone(&message_id)).or_default();
        let known = &preview.text[preview.told..];
        let new = match (content.strip_prefix(known), known.strip_prefix(content.as_str())) {
            (Some(new), _) => new.to_owned(),
            (None, Some(_)) => String::new(),
            (None, None) => {
                preview.stale = true;
                String::new()
            }
        };
        preview.text.push_str(&new);
        preview.told = preview.text.floor_char_boundary(preview.told + content.len());
        let news = !new.is_empty() && !preview.stale;
        news.then_some(Item::Text { session: session_id, message_id, kind: chunk_type, text: new })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::SessionId;
    use trellis_orchestrator::hub::TextKind;

    fn news(previews: &mut Previews, message: &str, content: &str) -> Option<String> {
        let session_id = SessionId::new("s").unwrap();
        let (message_id, content) = (message.into(), content.to_owned());
        let chunk = Chunk { session_id, message_id, chunk_type: TextKind::Answer, content };
        match previews.news(chunk) {
            Some(Item::Text { text, .. }) => Some(text),
            Some(Item::Record(_)) | None => None,
        }
    }

    #[test]
    fn text_that_a_new_connection_tells_again_is_shown_once() {
        let mut previews = Previews::default();
        assert_eq!(news(&mut previews, "a", "one "), Some("one ".into()));
        assert_eq!(news(&mut previews, "a", "two "), Some("two ".into()));
        assert_eq!(news(&mut previews, "b", "other"), Some("other".into()));
        previews.begin_again();
        assert_eq!(news(&mut previews, "a", "one"), None);
        assert_eq!(news(&mut previews, "a", " two three"), Some("three".into()));
        assert_eq!(news(&mut previews, "a", " four"), Some(" four".into()));
        assert_eq!(news(&mut previews, "b", "other"), None);
    }

    #[test]
    fn text_that_was_begun_again_with_other_words_is_left_to_its_record() {
        let mut previews = Previews::default();
        assert_eq!(news(&mut previews, "a", "one two"), Some("one two".into()));
        previews.begin_again();
        assert_eq!(news(&mut previews, "a", "one and a half"), None);
        assert_eq!(news(&mut previews, "a", " more"), None);
    }
}
