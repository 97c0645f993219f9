//! Frames of Pulsar's protocol, as the client crate reads and writes them, with two differences: one that is too large ends the
//! connection before it is in memory, and a message that cannot be read comes without its content. Without the latter, a message
//! of somebody whose client writes no checksum would end every connection that it is sent to.

use bytes::BytesMut;
use pulsar::error::ConnectionError;
use pulsar::message::{Codec, Message};
use tokio_util::codec::{Decoder, Encoder};

#[derive(Debug)]
pub(crate) struct Frames {
    /// Larger frames are not waited for.
    largest: usize,
}

/// Brokers leave so much for what is not content.
const AROUND: usize = 64 * 1024;
/// What a frame says of its own length, and of its command's.
const LENGTH: usize = 4;

impl Frames {
    /// For contents up to this size.
    pub(crate) fn up_to(content: usize) -> Self {
        Self { largest: content.saturating_add(AROUND) }
    }
}

impl Encoder<Message> for Frames {
    type Error = ConnectionError;

    fn encode(&mut self, message: Message, to: &mut BytesMut) -> Result<(), ConnectionError> {
        Codec.encode(message, to)
    }
}

impl Decoder for Frames {
    type Item = Message;
    type Error = ConnectionError;

    fn decode(&mut self, from: &mut BytesMut) -> Result<Option<Message>, ConnectionError> {
        if let Some(length) = length_at(from, 0)
            && length > self.largest
        {
            return Err(ConnectionError::Decoding(format!("a frame of {length} bytes is too large")));
        }
        Codec.decode(from).or_else(|error| without_content(from).ok_or(error).map(Some))
    }
}

/// Takes a frame that could not be read, and reads its command alone, if that is a message.
fn without_content(from: &mut BytesMut) -> Option<Message> {
    let (frame, command) = (LENGTH.checked_add(length_at(from, 0)?)?, length_at(from, LENGTH)?);
    let ends = LENGTH.checked_add(LENGTH)?.checked_add(command)?;
    if from.len() < frame || frame < ends {
        return None;
    }
    let alone = u32::try_from(command.checked_add(LENGTH)?).ok()?;
    let mut head = BytesMut::from(&alone.to_be_bytes()[..]);
    head.extend_from_slice(&from[LENGTH..ends]);
    let message = Codec.decode(&mut head).ok()??;
    message.command.message.as_ref()?;
    drop(from.split_to(frame));
    Some(message)
}

fn length_at(bytes: &BytesMut, place: usize) -> Option<usize> {
    let length = bytes.get(place..place + LENGTH)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(length)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pulsar::commands;
    use pulsar::message::proto::base_command::Type;
    use pulsar::message::proto::{BaseCommand, CommandMessage};
    use pulsar::message::{Metadata, Payload};

    fn frame(message: Message) -> BytesMut {
        let mut bytes = BytesMut::new();
        Frames::up_to(1_000).encode(message, &mut bytes).unwrap();
        bytes
    }

    fn message(content: &[u8]) -> BytesMut {
        let came = CommandMessage { consumer_id: 7, ..CommandMessage::default() };
        let command = BaseCommand { r#type: Type::Message as i32, message: Some(came), ..BaseCommand::default() };
        let metadata = Metadata { producer_name: "somebody".to_owned(), ..Metadata::default() };
        frame(Message { command, payload: Some(Payload { metadata, data: content.to_vec() }) })
    }

    #[test]
    fn a_message_that_cannot_be_read_comes_without_its_content_and_the_next_one_whole() {
        let mut bytes = message(b"spoiled");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        bytes.extend_from_slice(&message(b"whole"));
        let mut frames = Frames::up_to(1_000);
        let spoiled = frames.decode(&mut bytes).unwrap().unwrap();
        assert!(spoiled.payload.is_none());
        assert_eq!(spoiled.command.message.unwrap().consumer_id, 7);
        let whole = frames.decode(&mut bytes).unwrap().unwrap();
        assert_eq!(whole.payload.unwrap().data, b"whole");
        assert!(frames.decode(&mut bytes).unwrap().is_none() && bytes.is_empty());
    }

    #[test]
    fn what_is_no_frame_is_an_error_and_half_a_frame_is_waited_for() {
        let whole = frame(commands::ping());
        for end in 0..whole.len() {
            let mut part = BytesMut::from(&whole[..end]);
            assert!(Frames::up_to(1_000).decode(&mut part).unwrap().is_none(), "{end}");
        }
        for wrong in [&[0_u8, 0, 0, 4, 0, 0, 0, 9][..], &[0, 0, 0, 2, 0, 0], &[0, 0, 0, 6, 0, 0, 0, 2, 0xff, 0xff]] {
            assert!(Frames::up_to(1_000).decode(&mut BytesMut::from(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_frame_that_is_too_large_is_not_waited_for() {
        let length = u32::try_from(AROUND).unwrap() + 1_001;
        let mut bytes = BytesMut::from(&length.to_be_bytes()[..]);
        assert!(Frames::up_to(1_000).decode(&mut bytes).is_err());
        assert!(Frames::up_to(1_001).decode(&mut bytes).unwrap().is_none());
    }
}
