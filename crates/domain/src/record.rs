//! Records: everything a run does, under names that can be computed in advance.
//!
//! A record is stored as three lines of JSON: header, body, texts. The first two are proven by the log; the header's
//! content hash is taken over the body's bytes as stored. What [`sealed`](crate::sealed) has taken out of the body is in
//! the third. Records of the formats before 3 have two lines, with all but large texts in the body.

use crate::document::Payload;
use crate::sealed::{Fetch, Sealed, unseal};
use crate::upgrade::{has_later_words, upgrade};
use crate::{Flow, Hash, RunId, SessionId, Timestamp, Workspace};
use serde::{Deserialize, Serialize};

pub use crate::body::{Accepted, Body, Ended, Exchange, Explained, Observed, Replied, Routed};
pub use crate::cause::Cause;
pub use crate::input::InputRequired;
pub use crate::intent::Intended;
pub use crate::name::{Core, Name};
pub use crate::parts::REVISION;
pub use crate::prompt_use::{FailedAttempt, Incomplete, ModelCall, ProbeUse, PromptUse, ReplyFormat};
pub use crate::reading::Reading;
pub use crate::unreadable::UnreadableRecord;
pub use crate::upgrade::FORMAT;

/// Since this format texts lie beside the body.
const SEALED: u16 = 3;

/// What the committer knows and the body does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub format: u16,
    pub workspace: Workspace,
    pub flow: Flow,
    pub run: RunId,
    pub session: SessionId,
    pub name: Name,
    /// Position among the run's events, gapless from 1.
    pub seq: u64,
    /// The session's version after the commit that wrote this record.
    pub version: u64,
    /// The records that this one follows from. Before format 4, only one of them, in the same session.
    pub causes: Vec<Cause>,
    pub parents: Vec<Hash>,
    pub content: Hash,
    /// The configuration snapshot that the session is pinned to.
    pub config: Hash,
    /// Counts from 1; higher when the effect was begun again.
    pub attempt: u32,
    /// Arrived after the session's end: kept, never acted on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    pub time: Timestamp,
}

/// One record. As JSON it is an object of header and body, with all texts in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub header: Header,
    pub body: Body,
}

/// The lines of a stored record.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    pub header: &'a [u8],
    pub body: &'a [u8],
    /// None before texts were taken out of bodies.
    pub texts: Option<&'a [u8]>,
    /// What the log proves: header and body.
    pub proven: &'a [u8],
}

impl<'a> Lines<'a> {
    pub fn of(bytes: &'a [u8]) -> Result<Self, UnreadableRecord> {
        let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        let header = ends.next().ok_or(UnreadableRecord::NoHeader)?;
        let body = ends.next();
        Ok(Self {
            header: &bytes[..header],
            body: &bytes[header + 1..body.unwrap_or(bytes.len())],
            texts: body.map(|end| &bytes[end + 1..]),
            proven: &bytes[..body.unwrap_or(bytes.len())],
        })
    }

    /// Whether the body has the content that its header names.
    pub fn check(&self, header: &Header) -> Result<(), UnreadableRecord> {
        if Hash::of(self.body) == header.content {
            return Ok(());
        }
        Err(UnreadableRecord::Content { session: header.session.clone(), name: header.name.clone() })
    }

    /// The stored form again, with other texts.
    pub fn with_texts(&self, texts: &[u8]) -> Vec<u8> {
        [self.proven, texts].join(&b'\n')
    }
}

/// As many bytes as headers usually have.
const USUAL_HEADER: usize = 1_024;

impl Record {
    /// The stored form of a header and its sealed body.
    pub fn stored(header: &Header, sealed: &Sealed) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(USUAL_HEADER + sealed.body.len() + sealed.texts.len());
        serde_json::to_writer(&mut bytes, header).expect("record headers are always JSON");
        for line in [&sealed.body, &sealed.texts] {
            bytes.push(b'\n');
            bytes.extend_from_slice(line);
        }
        bytes
    }

    /// Reads the stored form of a record without large texts. Texts are checked against their hashes, the body is not.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, UnreadableRecord> {
        Self::fetched(bytes, &mut |hash| Err(UnreadableRecord::Stored { hash, what: "was not looked for" }))
    }

    /// The same with large texts, which are fetched.
    pub fn fetched(bytes: &[u8], fetch: &mut Fetch<'_>) -> Result<Self, UnreadableRecord> {
        let lines = Lines::of(bytes)?;
        let header = read_header(lines.header)?;
        let body = if header.format >= SEALED {
            let texts = lines.texts.ok_or(UnreadableRecord::Texts("they are missing"))?;
            unseal(header.format, lines.body, texts, fetch)?
        } else {
            older_body(header.format, lines.body, fetch)?
        };
        Ok(Self { header, body })
    }

    /// Reads the stored form and checks that the body has the content its header names.
    pub fn from_bytes_checked(bytes: &[u8]) -> Result<Self, UnreadableRecord> {
        let record = Self::from_bytes(bytes)?;
        Lines::of(bytes)?.check(&record.header)?;
        Ok(record)
    }

    /// Reads only the header of the stored form.
    pub fn header_of(bytes: &[u8]) -> Result<Header, UnreadableRecord> {
        read_header(Lines::of(bytes)?.header)
    }
}

/// Whether the stored form of a record speaks in words that there were not in the format that it names.
pub fn speaks_of_later_formats(bytes: &[u8], format: u16) -> bool {
    Lines::of(bytes).is_ok_and(|lines| has_later_words(format, lines.body))
}

fn older_body(format: u16, bytes: &[u8], fetch: &mut Fetch<'_>) -> Result<Body, UnreadableRecord> {
    let mut value = serde_json::from_slice(bytes)?;
    upgrade(format, &mut value);
    let mut body: Body = serde_json::from_value(value)?;
    for payload in body.payloads_mut() {
        if let Payload::Blob(stored) = payload {
            *payload = Payload::Inline(fetch(stored.blob)?);
        }
    }
    Ok(body)
}

fn read_header(bytes: &[u8]) -> Result<Header, UnreadableRecord> {
    #[derive(Deserialize)]
    struct FormatOnly {
        format: u16,
    }
    let FormatOnly { format } = serde_json::from_slice(bytes)?;
    if format > FORMAT {
        return Err(UnreadableRecord::NewerFormat { found: format });
    }
    Ok(serde_json::from_slice(bytes)?)
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
