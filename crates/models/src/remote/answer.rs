//! An answer while it arrives: bytes become lines or frames, and those become messages.

use super::endpoint::Endpoint;
use super::frames::{FrameError, FrameReader};
use super::lines::{Brought, Framing, LONGEST_LINE, Messages};
use crate::provider::{self, ProviderError};
use reqwest::Response;
use std::time::Duration;
use tokio::time::timeout;
use trellis_domain::event_stream::{LineError, LineReader};
use trellis_domain::hash::Hashing;

/// An answer that arrives.
pub(crate) struct Answer<'e> {
    endpoint: &'e Endpoint,
    response: Response,
    /// What came before anybody knew how it is framed.
    begun: Vec<u8>,
    lines: LineReader,
    /// In place of lines.
    frames: Option<FrameReader>,
    ended: bool,
    /// All that came.
    hashing: Hashing,
    /// The same, if it is to be kept and not too long for that.
    kept: Option<Vec<u8>>,
}

/// Where providers say what they call a request.
const REQUEST_IDS: [&str; 4] = ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id"];

/// Longer answers are not kept.
const LONGEST_KEPT: usize = 4 << 20;

impl<'e> Answer<'e> {
    /// Nothing has come if the answer is empty.
    pub(super) fn new(endpoint: &'e Endpoint, response: Response, begun: Option<&[u8]>) -> Self {
        let kept = endpoint.settings.keep_requests.then(Vec::new);
        let (lines, hashing) = (LineReader::new(LONGEST_LINE), Hashing::default());
        let (ended, begun) = (begun.is_none(), begun.unwrap_or_default().to_vec());
        Self { endpoint, response, begun, lines, frames: None, ended, hashing, kept }
    }

    fn push(&mut self, bytes: &[u8]) {
        match &mut self.frames {
            Some(frames) => frames.push(bytes),
            None => self.lines.push(bytes),
        }
        self.hashing.update(bytes);
        self.kept = self.kept.take().filter(|kept| kept.len() + bytes.len() <= LONGEST_KEPT);
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(bytes);
        }
    }

    pub(crate) fn messages(mut self, framing: Framing) -> AnswerMessages<'e> {
        self.frames = (framing == Framing::AwsEvents).then(FrameReader::default);
        let begun = std::mem::take(&mut self.begun);
        self.push(&begun);
        AnswerMessages { answer: self, messages: Messages::new(framing) }
    }

    /// Waits for more bytes. False at the end.
    async fn more(&mut self, time_limit: Duration) -> Result<bool, ProviderError> {
        if self.ended {
            return Ok(false);
        }
        let chunk = timeout(time_limit, self.response.chunk()).await;
        let chunk = chunk.map_err(|_| self.endpoint.silent(time_limit))?.map_err(|error| self.endpoint.lost(error))?;
        self.ended = chunk.is_none();
        self.push(chunk.as_deref().unwrap_or_default());
        Ok(!self.ended)
    }

    fn unreadable(&self, error: LineError) -> ProviderError {
        match error {
            LineError::NotUtf8 => self.endpoint.transient("sent something that is not UTF-8"),
            LineError::TooLong => self.endpoint.permanent("sent a line that does not end"),
        }
    }

    async fn line(&mut self, time_limit: Duration) -> Result<Option<String>, ProviderError> {
        loop {
            if let Some(line) = self.lines.next() {
                return line.map(Some).map_err(|error| self.unreadable(error));
            }
            if !self.more(time_limit).await? {
                return self.lines.rest().transpose().map_err(|error| self.unreadable(error));
            }
        }
    }

    async fn frame(&mut self, time_limit: Duration) -> Result<Option<String>, ProviderError> {
        loop {
            let next = self.frames.as_mut().and_then(FrameReader::next);
            if let Some(frame) = next {
                return frame.map(Some).map_err(|error| match error {
                    FrameError::Damaged => self.endpoint.transient("sent a frame that is damaged"),
                    FrameError::TooLong => self.endpoint.permanent("sent a frame that is too long"),
                });
            }
            if !self.more(time_limit).await? {
                let is_cut = self.frames.as_ref().is_some_and(FrameReader::is_cut);
                return if is_cut {
                    Err(self.endpoint.transient("broke off in the middle of a frame"))
                } else {
                    Ok(None)
                };
            }
        }
    }

    /// Everything that is still to come.
    async fn rest(&mut self, time_limit: Duration) -> Result<String, ProviderError> {
        while self.more(time_limit).await? {
            if self.lines.waiting() > LONGEST_LINE {
                return Err(self.unreadable(LineError::TooLong));
            }
        }
        let rest = self.lines.rest().transpose().map_err(|error| self.unreadable(error))?;
        Ok(rest.unwrap_or_default())
    }
}

/// An answer, message by message.
pub(crate) struct AnswerMessages<'e> {
    answer: Answer<'e>,
    messages: Messages,
}

impl AnswerMessages<'_> {
    /// The next message; none at the end.
    pub(crate) async fn next(&mut self, time_limit: Option<Duration>) -> Result<Option<String>, ProviderError> {
        let usual = self.answer.endpoint.settings.between_tokens_timeout;
        let time_limit = time_limit.map_or(usual, |time_limit| time_limit.min(usual));
        if self.answer.frames.is_some() {
            return self.answer.frame(time_limit).await;
        }
        loop {
            let Some(line) = self.answer.line(time_limit).await? else {
                return Ok(match self.messages.end() {
                    Brought::Message(message) | Brought::Document(message) => Some(message),
                    Brought::Nothing => None,
                });
            };
            match self.messages.line(line).map_err(|error| self.answer.unreadable(error))? {
                Brought::Nothing => {}
                Brought::Message(message) => return Ok(Some(message)),
                Brought::Document(beginning) => {
                    let rest = self.answer.rest(time_limit).await?;
                    return Ok(Some(format!("{beginning}\n{rest}")));
                }
            }
        }
    }

    /// What came so far, for the record.
    pub(crate) fn response(&self) -> provider::Response {
        let Answer { endpoint, hashing, kept, .. } = &self.answer;
        let body = kept.as_ref().map(|kept| endpoint.redacted(&String::from_utf8_lossy(kept)));
        let headers = self.answer.response.headers();
        let id = REQUEST_IDS.iter().find_map(|name| headers.get(*name)?.to_str().ok());
        let request_id = id.map(|id| endpoint.words(id));
        provider::Response { hash: hashing.clone().finish(), body, request_id }
    }

    /// What was sent that belongs to no message.
    pub(crate) fn unrecognised(&self) -> Option<&str> {
        self.messages.unrecognised.as_deref()
    }
}
